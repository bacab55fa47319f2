import type { RunItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { GuardrailResultLists, StateRecord } from './record.ts';

/** What people see of a record. Its lists may be the record's own: who hands them out takes `readOnly`. */
export interface PublicView {
  readonly newItems: readonly RunItem[];
  readonly rawResponses: readonly ModelResponse[];
  /** Items that the model would see behind the input. */
  readonly replayed: readonly RunItem[];
}

/**
 * Of a turn whose local work goes on, or was cut, the record holds more than is public: what such a turn did not keep stays
 * private until it is done (RUN-509). Its response shows together with its items (RUN-1203); outputs of calls that are
 * public, those of a resumed pass, show once they are committed (RUN-1802).
 */
export function publicView(record: StateRecord): PublicView {
  const { generatedItems, sessionItems, modelResponses, processed, step, withheld } = record;
  const whole = { newItems: sessionItems, rawResponses: modelResponses, replayed: generatedItems };
  // Accepted, and not understood yet.
  if (step.type === 'interruption' && step.responseAccepted && processed === undefined)
    return { ...whole, rawResponses: modelResponses.slice(0, -1) };
  const response = (step.type === 'interruption' && processed?.newItems) || [];
  const [first] = response;
  const start = first === undefined ? -1 : generatedItems.lastIndexOf(first);
  if (start < 0) return whole;
  const places = response.map((item) => sessionItems.lastIndexOf(item)).filter((place) => place >= 0);
  if (places.length === 0)
    return isThere(response, sessionItems)
      ? whole
      : { ...whole, rawResponses: modelResponses.slice(0, -1), replayed: generatedItems.slice(0, start) };
  const shown = new Set(sessionItems.slice(Math.min(...places)));
  const turn = generatedItems.slice(start);
  if (turn.every((item) => shown.has(item))) return whole;
  const calls = callIds(response.filter((item) => shown.has(item)));
  const outputs = turn.filter(
    (item) => withheld !== true && item.type === 'tool_call_output_item' && !shown.has(item) && calls.has(item.callId),
  );
  for (const item of outputs) shown.add(item);
  return {
    newItems: [...sessionItems, ...outputs],
    rawResponses: modelResponses,
    replayed: [...generatedItems.slice(0, start), ...turn.filter((item) => shown.has(item))],
  };
}

/** Results of guardrails that people see: of a response that is not finished those of its tools come later. */
export function publicResults(record: StateRecord): {
  readonly [K in keyof GuardrailResultLists]: Readonly<GuardrailResultLists[K]>;
} {
  const { guardrailResults: all, privateResults: start } = record;
  if (start === undefined) return all;
  return {
    ...all,
    toolInput: all.toolInput.slice(0, start.toolInput),
    toolOutput: all.toolOutput.slice(0, start.toolOutput),
  };
}

/** A list that its reader cannot change, and through which nobody reaches the record (IL-070). */
export function readOnly<T>(list: readonly T[]): readonly T[] {
  return Object.freeze(list.slice());
}

/** In states of older writers the items of the two lists are different objects. */
function isThere(response: readonly RunItem[], sessionItems: readonly RunItem[]): boolean {
  const calls = callIds(response);
  return sessionItems.some((item) => item.type === 'tool_call_item' && calls.has(item.callId));
}

function callIds(items: readonly RunItem[]): ReadonlySet<string | undefined> {
  return new Set(items.flatMap((item) => (item.type === 'tool_call_item' ? [item.callId] : [])));
}
