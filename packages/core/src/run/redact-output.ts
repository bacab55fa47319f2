import type { OutputGuardrailResult, ToolGuardrailResult } from '../agent/guardrail.ts';
import type { RunItem } from '../items/items.ts';
import type { ResponseOutputItem } from '../items/wire.ts';
import type { ModelResponse } from '../models/model.ts';
import { ToolCallItem, ToolCallOutputItem } from '../items/items.ts';

/** What is left of a response whose tool output was blocked. */
export interface RedactedResponse {
  /** Calls and outputs without data, in the order of the items; empty where not all of them could be rebuilt. */
  readonly items: readonly RunItem[];
  /** `undefined`: nothing of the response is left. */
  readonly response: ModelResponse | undefined;
}

/**
 * Rebuilds the calls and outputs of a response from an allow-list of their members, with `text` in place of every output
 * (RUN-921…924). Where anything else than messages and such pairs is among the items, nothing is kept.
 *
 * @param items of the response and its local work
 */
export function redactResponse(items: readonly RunItem[], response: ModelResponse, text: string): RedactedResponse {
  const rebuilt: RunItem[] = [];
  const open = new Set<string>();
  const answered = new Set<string>();
  for (const item of items) {
    if (item.type === 'message_output_item' || item.type === 'tool_approval_item') continue;
    const safe = item.type === 'tool_call_item' ? rebuiltCall(item) : rebuiltOutput(item, text);
    const callId = safe?.callId;
    if (safe === undefined || callId === undefined) return nothing;
    if (safe.type === 'tool_call_item' ? open.has(callId) : !open.has(callId) || answered.has(callId)) return nothing;
    (safe.type === 'tool_call_item' ? open : answered).add(callId);
    rebuilt.push(safe);
  }
  if (rebuilt.length === 0 || open.size !== answered.size) return nothing;
  const output = rebuilt.flatMap((item) =>
    item.type === 'tool_call_item' ? [item.rawItem as ResponseOutputItem] : [],
  );
  const { usage, responseId, requestId } = response;
  return {
    items: rebuilt,
    response: {
      output,
      usage,
      ...(responseId !== undefined && { responseId }),
      ...(requestId !== undefined && { requestId }),
    },
  };
}

const nothing: RedactedResponse = { items: [], response: undefined };

function rebuiltCall(item: ToolCallItem): ToolCallItem | undefined {
  const raw = item.rawItem as unknown as Loose;
  if (raw['type'] !== 'function_call') return undefined;
  const kept = allowed(raw, ['type', 'name', 'arguments', 'call_id'], ['id', 'namespace']);
  return kept && new ToolCallItem(item.agent, kept as never, { toolOrigin: item.toolOrigin });
}

function rebuiltOutput(item: RunItem, text: string): ToolCallOutputItem | undefined {
  const raw = item.rawItem as unknown as Loose;
  if (item.type !== 'tool_call_output_item' || raw['type'] !== 'function_call_output') return undefined;
  const kept = allowed({ ...raw, output: text }, ['type', 'call_id', 'output'], ['id']);
  return kept && new ToolCallOutputItem(item.agent, kept as never, { output: text, toolOrigin: item.toolOrigin });
}

type Loose = Readonly<Record<string, unknown>>;

const statuses: readonly unknown[] = ['in_progress', 'completed', 'incomplete'];

/** The members that may stay, all of them texts; `undefined` for what a program owns, or lacks one that it must have. */
function allowed(raw: Loose, required: readonly string[], optional: readonly string[]): Loose | undefined {
  const kept: Record<string, unknown> = {};
  for (const key of required) {
    if (typeof raw[key] !== 'string') return undefined;
    kept[key] = raw[key];
  }
  for (const key of optional) if (typeof raw[key] === 'string') kept[key] = raw[key];
  if (statuses.includes(raw['status'])) kept['status'] = raw['status'];
  const { caller } = raw;
  if (caller === undefined || caller === null) return kept;
  if ((caller as Loose)['type'] !== 'direct') return undefined;
  kept['caller'] = { type: 'direct' };
  return kept;
}

/** What output guardrails said, without the output and what they said of it (RUN-925). */
export function redactVerdict(result: OutputGuardrailResult, text: string): OutputGuardrailResult {
  const { guardrail, agent, output } = result;
  return {
    guardrail,
    agent,
    agentOutput: text,
    output: { tripwireTriggered: output.tripwireTriggered, outputInfo: null },
  };
}

/** What guardrails of tools said about outputs of the response: whether they let them pass, and no word of theirs (RUN-926). */
export function redactToolVerdict({ guardrail, output }: ToolGuardrailResult, text: string): ToolGuardrailResult {
  const { type } = output.behavior;
  return {
    guardrail,
    output: { behavior: type === 'reject_content' ? { type, message: text } : { type }, outputInfo: text },
  };
}
