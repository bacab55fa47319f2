import { randomHex } from '../base/ids.ts';
import type { ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem } from '../items/wire.ts';

/** Kinds of ids that a script counts. */
export type DrawnId = 'msg' | 'rs' | 'call';

/** Marks an item whose id was drawn here; scripts replace such ids by counted ones. Registered, for two package copies. */
const drawn: unique symbol = Symbol.for('@agents/core/testing/drawn-id') as never;
interface Drawn {
  readonly [drawn]?: DrawnId;
}

/** An assistant message. Its id is random; in a script it is `msg_1`, `msg_2`, … */
export function text(text: string): ResponseOutputMessage {
  return mark(message({ type: 'output_text', text, annotations: [], logprobs: [] }), 'msg');
}

/** An assistant message that refuses. */
export function refusal(text: string): ResponseOutputMessage {
  return mark(message({ type: 'refusal', refusal: text }), 'msg');
}

/**
 * A call of a function tool; `args` default `{}`, a string is sent as it is. The call id is random; in a script it is
 * `call_1`, `call_2`, … in order of the script.
 */
export function toolCall(
  name: string,
  args: object | string = {},
  options: { callId?: string; namespace?: string } = {},
): ResponseFunctionToolCall {
  const call: ResponseFunctionToolCall = {
    type: 'function_call',
    call_id: options.callId ?? `call_${randomHex(8)}`,
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
    status: 'completed',
    ...(options.namespace === undefined ? undefined : { namespace: options.namespace }),
  };
  return options.callId === undefined ? mark(call, 'call') : call;
}

/** A reasoning item with a summary of one part. */
export function reasoning(summary: string): ResponseReasoningItem {
  return mark(
    { id: `rs_${randomHex(8)}`, type: 'reasoning', summary: [{ type: 'summary_text', text: summary }] },
    'rs',
  );
}

/** Which of an item's ids a script may replace. */
export function drawnIdOf(item: object): DrawnId | undefined {
  return (item as Drawn)[drawn];
}

function message(part: ResponseOutputMessage['content'][number]): ResponseOutputMessage {
  return { id: `msg_${randomHex(8)}`, type: 'message', role: 'assistant', status: 'completed', content: [part] };
}

/** Not enumerable: no JSON, no comparison and no copy has it. */
function mark<T extends object>(item: T, id: DrawnId): T {
  return Object.defineProperty(item, drawn, { value: id });
}
