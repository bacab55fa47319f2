import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import { throwIfAborted, untilAborted } from './abort.ts';
import { collectStream } from './collect.ts';
import type { StreamListener } from './collect.ts';
import type { Model, ModelRequest, ModelResponse } from './model.ts';

/**
 * One model call. With `onEvent` the model streams, and every event goes there while it arrives; without, it is a
 * plain call: a plain run never opens a stream.
 * @throws UserError when the model lacks the form that is asked for, before anything is sent
 * @throws ModelBehaviorError for answers that cannot be used, RunAbortedError when `request.signal` fires
 */
export async function callModel(model: Model, request: ModelRequest, onEvent?: StreamListener): Promise<ModelResponse> {
  assertCallForm(model, onEvent === undefined ? 'getResponse' : 'streamResponse');
  throwIfAborted(request.signal);
  if (onEvent !== undefined) return collectStream(model.streamResponse(request), onEvent, request.signal);
  return checkedResponse(await untilAborted(model.getResponse(request), request.signal));
}

function assertCallForm(model: Partial<Model>, method: 'getResponse' | 'streamResponse'): void {
  if (typeof model[method] === 'function') return;
  const form = method === 'getResponse' ? 'a plain run' : 'a streamed run';
  throw new UserError(`The model has no method ${method}, which ${form} calls. Complete it with defineModel({ … }).`);
}

/** Models are plain objects of anybody, so what they answer is looked at once. */
function checkedResponse(response: Partial<ModelResponse> | undefined): ModelResponse {
  if (!Array.isArray(response?.output))
    throw new ModelBehaviorError('The model answered without an output array; a response is { output, usage }.');
  return response.usage === undefined
    ? { ...response, output: response.output, usage: toUsage() }
    : (response as ModelResponse);
}
