import { isObject } from '../base/json.ts';
import type { SpanDataMap, SpanType, SpanUsage, SpanWire } from './types.ts';

type Wire = Readonly<Record<string, unknown>>;
type Data = SpanDataMap[SpanType];

/** Words that differ in memory; members that only the wire has are left out. */
const MEMBERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  agent: { name: 'name', handoffs: 'handoffs', tools: 'tools', output_type: 'outputType' },
  generation: { input: 'input', output: 'output', model: 'model', model_config: 'modelConfig', usage: 'usage' },
  response: { response_id: 'responseId', usage: 'usage' },
  function: { name: 'name', input: 'input', output: 'output', mcp_data: 'mcpData' },
  handoff: { from_agent: 'fromAgent', to_agent: 'toAgent' },
  guardrail: { name: 'name', triggered: 'triggered' },
  custom: { name: 'name', data: 'data' },
  mcp_tools: { server: 'server', result: 'result' },
  transcription: { output: 'output', model: 'model', model_config: 'modelConfig' },
  speech: { input: 'input', model: 'model', model_config: 'modelConfig', first_content_at: 'firstContentAt' },
  speech_group: { input: 'input' },
};

/** `span_data` of a record as spans have it in memory; tasks and turns, which travel as custom spans, are themselves again. */
export function spanDataFromWire({ span_data: wire, metadata }: SpanWire): { type: SpanType; data: Data } {
  const own = ownSpan(wire);
  if (own !== undefined) return own;
  const type = wire.type as SpanType;
  const members = MEMBERS[type];
  // A type of the user's own is exported by a writer of the user's own; nobody knows the way back.
  if (members === undefined) return { type, data: withoutType(wire) };
  const data: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(members)) {
    const value = wire[name];
    if (value !== undefined && value !== null) data[member] = value;
  }
  if (type === 'transcription' && isObject(wire['input'])) data['input'] = wire['input']['data'];
  if (type === 'speech' && isObject(wire['output'])) data['output'] = wire['output']['data'];
  if (type === 'agent' && metadata !== undefined) data['metadata'] = { ...metadata };
  return { type, data: data };
}

function withoutType({ type: _, ...others }: SpanWire['span_data']): Record<string, unknown> {
  return others;
}

function ownSpan({ type, data }: SpanWire['span_data']): { type: 'task' | 'turn'; data: Data } | undefined {
  if (type !== 'custom' || !isObject(data)) return undefined;
  const usage = isObject(data['usage']) ? { usage: usageOf(data['usage']) } : undefined;
  const { name, turn, agent_name: agentName } = data;
  if (data['sdk_span_type'] === 'task' && typeof name === 'string') return { type: 'task', data: { name, ...usage } };
  if (data['sdk_span_type'] === 'turn' && typeof turn === 'number' && typeof agentName === 'string')
    return { type: 'turn', data: { turn, agentName, ...usage } };
  return undefined;
}

function usageOf(wire: Wire): SpanUsage {
  const count = (name: string): number => (typeof wire[name] === 'number' ? wire[name] : 0);
  return {
    inputTokens: count('input_tokens'),
    outputTokens: count('output_tokens'),
    cachedInputTokens: count('cached_input_tokens'),
    cacheWriteInputTokens: count('cache_write_input_tokens'),
    ...(typeof wire['requests'] === 'number' ? { requests: wire['requests'] } : undefined),
    ...(typeof wire['total_tokens'] === 'number' ? { totalTokens: wire['total_tokens'] } : undefined),
  };
}
