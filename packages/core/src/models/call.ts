import { UserError } from '../base/errors.ts';
import { throwIfAborted, untilAborted } from './abort.ts';
import { checkedResponse } from './answer.ts';
import { collectStream } from './collect.ts';
import { withinTime } from './deadline.ts';
import type { Deadline } from './deadline.ts';
import type { StreamListener } from './collect.ts';
import type { Model, ModelRequest, ModelResponse } from './model.ts';

/**
 * One attempt of a model call, within the setting `timeoutMs`. With `onEvent` the model streams, and every event goes there
 * while it arrives; without, it is a plain call: a plain run never opens a stream.
 * @throws UserError when the model lacks the form that is asked for, before anything is sent
 * @throws ModelBehaviorError for answers that cannot be used, RunAbortedError when `request.signal` fires
 * @throws ModelTimeoutError when the time is over
 */
export function callModel(model: Model, request: ModelRequest, onEvent?: StreamListener): Promise<ModelResponse> {
  const { timeoutMs } = request.modelSettings;
  return typeof timeoutMs === 'number'
    ? withinTime(timeoutMs, request.signal, (deadline) => attempt(model, request, onEvent, deadline))
    : attempt(model, request, onEvent);
}

/**
 * An abort of the run is waited for by nobody; the end of the time leaves the model a moment, so only the model's own signal
 * tells of it.
 */
async function attempt(
  model: Model,
  request: ModelRequest,
  onEvent: StreamListener | undefined,
  deadline?: Deadline,
): Promise<ModelResponse> {
  assertCallForm(model, onEvent === undefined ? 'getResponse' : 'streamResponse');
  throwIfAborted(request.signal);
  const sent = deadline === undefined ? request : { ...request, signal: deadline.signal };
  if (onEvent !== undefined)
    return await collectStream(model.streamResponse(sent), onEvent, { signal: request.signal, deadline });
  // A model of plain JavaScript may answer without a promise.
  return checkedResponse(await untilAborted(Promise.resolve(model.getResponse(sent)), request.signal));
}

function assertCallForm(model: Partial<Model>, method: 'getResponse' | 'streamResponse'): void {
  if (typeof model[method] === 'function') return;
  const form = method === 'getResponse' ? 'a plain run' : 'a streamed run';
  throw new UserError(`The model has no method ${method}, which ${form} calls. Complete it with defineModel({ … }).`);
}
