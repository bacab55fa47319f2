// Metrics of the GenAI conventions: names, units and bounds.

/** Bounds of a histogram, each twice (or four times) the one before. */
const steps = (first: number, factor: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => Number((first * factor ** index).toPrecision(8)));

const seconds = { unit: 's', bounds: steps(0.01, 2, 14) } as const;
const tokens = { unit: '{token}', bounds: steps(1, 4, 14) } as const;

/** A metric as the conventions have it. */
export interface MetricName {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Of a histogram; a counter has none. */
  readonly bounds?: readonly number[];
}

type Metric =
  | 'inputTokens'
  | 'outputTokens'
  | 'cacheRead'
  | 'cacheWrite'
  | 'reasoning'
  | 'inputPerCall'
  | 'outputPerCall'
  | 'duration'
  | 'timeToFirstChunk'
  | 'agentDuration'
  | 'agentInferenceCalls'
  | 'agentToolCalls'
  | 'toolDuration';

const inference = 'gen_ai.client.inference';

export const metricNames: Readonly<Record<Metric, MetricName>> = {
  inputTokens: { name: `${inference}.usage.input_tokens`, unit: '{token}', description: 'Input tokens used.' },
  outputTokens: { name: `${inference}.usage.output_tokens`, unit: '{token}', description: 'Output tokens used.' },
  cacheRead: {
    name: `${inference}.usage.cache_read.input_tokens`,
    unit: '{token}',
    description: "Input tokens served from the provider's cache.",
  },
  cacheWrite: {
    name: `${inference}.usage.cache_write.input_tokens`,
    unit: '{token}',
    description: "Input tokens written to the provider's cache.",
  },
  reasoning: {
    name: `${inference}.usage.reasoning.output_tokens`,
    unit: '{token}',
    description: 'Output tokens used for reasoning.',
  },
  inputPerCall: { ...tokens, name: `${inference}.operation.input_tokens`, description: 'Input tokens per model call.' },
  outputPerCall: {
    ...tokens,
    name: `${inference}.operation.output_tokens`,
    description: 'Output tokens per model call.',
  },
  duration: { ...seconds, name: `${inference}.duration`, description: 'Duration of model calls.' },
  timeToFirstChunk: {
    ...seconds,
    name: `${inference}.time_to_first_chunk`,
    description: 'Time to the first chunk of streamed model calls.',
  },
  agentDuration: {
    name: 'gen_ai.invoke_agent.duration',
    unit: 's',
    bounds: steps(0.1, 2, 13),
    description: 'Duration of agents and workflows.',
  },
  agentInferenceCalls: {
    name: 'gen_ai.invoke_agent.inference_calls',
    unit: '{inference_call}',
    bounds: steps(1, 2, 8),
    description: 'Model calls of one agent.',
  },
  agentToolCalls: {
    name: 'gen_ai.invoke_agent.tool_calls',
    unit: '{tool_call}',
    bounds: steps(1, 2, 8),
    description: 'Tool calls of one agent.',
  },
  toolDuration: { ...seconds, name: 'gen_ai.execute_tool.duration', description: 'Duration of tools.' },
};
