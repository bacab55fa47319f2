import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { throwIfAborted } from './abort.ts';
import { checkedResponse } from './answer.ts';
import { collectStream } from './collect.ts';
import type { Model, ModelRequest, ResponseMetadata } from './model.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';

/**
 * A model with one call form: streams are made from the response, or the response is collected from the stream.
 * @throws UserError when both forms are missing, or one is no function
 * @example
 * ```ts
 * const echo = defineModel({
 *   async getResponse({ input }) {
 *     return { output: [text(`You sent ${input.length} items.`)], usage: toUsage() };
 *   },
 * });
 * ```
 */
export function defineModel(
  model: Partial<Model> & (Pick<Model, 'getResponse'> | Pick<Model, 'streamResponse'>),
): Model {
  if (typeof model !== 'object' || model === null)
    throw new UserError(`defineModel takes an object with getResponse or streamResponse, not ${kindOf(model)}.`);
  const { getResponse, streamResponse } = model as Partial<Model>;
  for (const [name, form] of Object.entries({ getResponse, streamResponse }))
    if (form !== undefined && typeof form !== 'function')
      throw new UserError(`defineModel: ${name} must be a function, not ${kindOf(form)}.`);
  if (getResponse === undefined && streamResponse === undefined)
    throw new UserError('defineModel needs getResponse or streamResponse.');
  if (getResponse !== undefined && streamResponse !== undefined) return model as Model;
  const optional = ['supportsDefaultPromptCacheKey', 'supportsServerManagedHistory', 'onRunEnd', 'close'] as const;
  const bound = optional.flatMap((name) => (model[name] === undefined ? [] : [[name, model[name].bind(model)]]));
  return {
    getResponse:
      getResponse?.bind(model) ??
      ((request) => collectStream((model as Model).streamResponse(request), undefined, request)),
    streamResponse: streamResponse?.bind(model) ?? ((request) => streamOf(model as Model, request)),
    ...Object.fromEntries(bound),
  };
}

async function* streamOf(model: Model, request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata> {
  const { requestId, rawUsage, ...response } = checkedResponse(await model.getResponse(request));
  // Most models stream by themselves.
  const { synthesizeStream } = await import('./synthesize.ts');
  throwIfAborted(request.signal);
  for (const event of synthesizeStream(response)) {
    yield event;
    throwIfAborted(request.signal);
  }
  return { requestId, rawUsage, usage: response.usage };
}
