import { atOnce } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { logFailure } from './log.ts';
import { runtime, warnOnce } from './runtime.ts';
import type { SpanDataWriter } from './runtime.ts';
import type { SpanDataMap, SpanInit, SpanOf, SpanType, SpanUsage } from './types.ts';

type Wire = Record<string, unknown>;

/**
 * The wire forms, key for key those of the Python edition (TRACE §4.2). What has no value is `null`, but for the usage of
 * tasks and turns, which is left out.
 */
const WRITERS: { readonly [K in SpanType]: (data: SpanDataMap[K]) => Wire } = {
  agent: ({ name, handoffs, tools, outputType }) => ({
    type: 'agent',
    name,
    handoffs: handoffs ?? null,
    tools: tools ?? null,
    output_type: outputType ?? null,
  }),
  task: ({ name, usage }) => ({
    type: 'custom',
    name: 'task',
    data: {
      sdk_span_type: 'task',
      name,
      ...(usage === undefined
        ? undefined
        : { usage: { ...turnUsage(usage), requests: usage.requests ?? 0, total_tokens: usage.totalTokens ?? 0 } }),
    },
  }),
  turn: ({ turn, agentName, usage }) => ({
    type: 'custom',
    name: 'turn',
    data: {
      sdk_span_type: 'turn',
      turn,
      agent_name: agentName,
      ...(usage === undefined ? undefined : { usage: turnUsage(usage) }),
    },
  }),
  generation: ({ input, output, model, modelConfig, usage }) => ({
    type: 'generation',
    input: input ?? null,
    output: output ?? null,
    model: model ?? null,
    model_config: modelConfig ?? null,
    usage: usage ?? null,
  }),
  response: ({ response, responseId, usage }) => ({
    type: 'response',
    response_id: response?.id ?? responseId ?? null,
    usage: usage ?? null,
  }),
  function: ({ name, input, output, mcpData }) => ({
    type: 'function',
    name,
    input: input ?? null,
    output: outputText(output),
    mcp_data: mcpData ?? null,
  }),
  handoff: ({ fromAgent, toAgent }) => ({ type: 'handoff', from_agent: fromAgent ?? null, to_agent: toAgent ?? null }),
  guardrail: ({ name, triggered }) => ({ type: 'guardrail', name, triggered: triggered ?? false }),
  custom: ({ name, data }) => ({ type: 'custom', name, data: data ?? {} }),
  mcp_tools: ({ server, result }) => ({ type: 'mcp_tools', server: server ?? null, result: result ?? null }),
  transcription: ({ input, output, model, modelConfig }) => ({
    type: 'transcription',
    input: { data: input ?? '', format: 'pcm' },
    output: output ?? null,
    model: model ?? null,
    model_config: modelConfig ?? null,
  }),
  speech: ({ input, output, model, modelConfig, firstContentAt }) => ({
    type: 'speech',
    input: input ?? null,
    output: { data: output ?? '', format: 'pcm' },
    model: model ?? null,
    model_config: modelConfig ?? null,
    first_content_at: firstContentAt ?? null,
  }),
  speech_group: ({ input }) => ({ type: 'speech_group', input: input ?? null }),
};

/** Members without which a span of the type means nothing. */
const REQUIRED: Readonly<Record<string, Readonly<Record<string, 'string' | 'number'>>>> = {
  agent: { name: 'string' },
  task: { name: 'string' },
  turn: { turn: 'number', agentName: 'string' },
  function: { name: 'string' },
  guardrail: { name: 'string' },
  custom: { name: 'string' },
};

/**
 * Writes the wire form of a span type of one's own; without it the data is exported as it is.
 *
 * @throws UserError for a type of this package and for anything but a function
 * @example
 * declare module '@agents/core/tracing' {
 *   interface SpanDataMap { retrieval: { index: string; hits?: number } }
 * }
 * registerSpanType('retrieval', ({ index, hits }) => ({ index, hits: hits ?? null }));
 */
export function registerSpanType<K extends SpanType>(
  type: K,
  toWire: (data: SpanDataMap[K]) => Record<string, unknown>,
): void {
  if (Object.hasOwn(WRITERS, type))
    throw new UserError(`Span type '${type}' has a fixed wire form; register a type of another name.`);
  if (typeof toWire !== 'function')
    throw new UserError(`registerSpanType('${type}') takes a function, not ${kindOf(toWire)}.`);
  runtime().spanTypes.set(type, toWire as unknown as SpanDataWriter);
}

/** @throws UserError that names what is missing */
export function checkSpanInit(init: SpanInit<SpanType>): void {
  const given: unknown = init;
  if (typeof given !== 'object' || given === null)
    throw new UserError(`A span needs { type, … }, not ${kindOf(given)}.`);
  const { type } = init;
  if (typeof type !== 'string') throw new UserError(`A span needs a 'type' that is a string, not ${kindOf(type)}.`);
  const required = REQUIRED[type];
  for (const name in required) {
    const value = (init as unknown as Wire)[name];
    if (typeof value === required[name]) continue;
    throw new UserError(`A span of type '${type}' needs '${name}', a ${required[name]}, not ${kindOf(value)}.`);
  }
}

/** The span's own data: every given member, and what a type starts with. Values are kept by reference (TRACE-A13). */
export function dataOf<K extends SpanType>(init: SpanInit<K>): SpanDataMap[K] {
  const { type, ...given } = init as SpanInit<SpanType>;
  const data = given as Wire;
  if (type === 'agent') {
    data['handoffs'] ??= [];
    data['tools'] ??= [];
  } else if (type === 'guardrail') data['triggered'] ??= false;
  else if (type === 'custom') data['data'] ??= {};
  return data as SpanDataMap[K];
}

/** `span_data` of the record, made now; never throws. Values may be what JSON cannot hold. */
export function spanDataToWire(span: SpanOf<SpanType>): Wire & { type: string } {
  const { type } = span;
  const write = (WRITERS as Partial<Record<string, SpanDataWriter>>)[type];
  try {
    if (write !== undefined) return write(span.spanData) as Wire & { type: string };
    return { type, ...ownTypeToWire(type, span.spanData) };
  } catch (error) {
    logFailure('Export of a span', error);
    return { type };
  }
}

function ownTypeToWire(type: string, data: SpanDataMap[SpanType]): Wire {
  const write = runtime().spanTypes.get(type);
  if (write !== undefined) {
    try {
      const wire: unknown = atOnce(write(data), 'The writer');
      if (typeof wire === 'object' && wire !== null) return wire as Wire;
      logFailure(`Writer of span type '${type}'`, wire);
    } catch (error) {
      logFailure(`Writer of span type '${type}'`, error);
    }
  } else
    warnOnce(
      `span-type:${type}`,
      'A span of an unknown type is exported as it is; registerSpanType() gives it a form.',
    );
  return { ...data };
}

function turnUsage(usage: SpanUsage): Wire {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_input_tokens: usage.cacheWriteInputTokens,
  };
}

/** A tool's output as text: JSON where it is JSON (TRACE-S7). */
function outputText(output: unknown): string | null {
  if (output === undefined || output === null) return null;
  if (typeof output === 'string') return output;
  try {
    const text: unknown = JSON.stringify(output);
    if (typeof text === 'string') return text;
  } catch {
    // A cycle, a BigInt or a toJSON that throws.
  }
  try {
    // oxlint-disable-next-line typescript/no-base-to-string -- what has no JSON may still have a text
    return String(output);
  } catch {
    return UNSERIALIZABLE;
  }
}

const UNSERIALIZABLE = '<unserializable>';
