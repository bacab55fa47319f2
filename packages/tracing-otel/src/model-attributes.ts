import type { Attributes } from '@opentelemetry/api';
import type { ModelCallDetails, Span } from '@agents/core/tracing';
import { agents, common, genAi, operations } from './names.ts';
import { isObject } from './parts.ts';
import type { JsonObject } from './parts.ts';

export type ModelSpan = Span<'response'> | Span<'generation'>;

/** The model that was asked for; unknown with a prompt template that names it. */
export function requestModelOf(span: ModelSpan): string | undefined {
  return span.details.requestModel ?? (span.type === 'generation' ? span.spanData.model : undefined);
}

/** What is known of a model call at its start, and what samplers read. */
export function addModelStart(span: ModelSpan, attributes: Attributes): void {
  attributes[genAi.operation] = operations.chat;
  addCalled(span, undefined, attributes);
}

/** Who is called, but for what is `known`. */
function addCalled(span: ModelSpan, known: Attributes | undefined, attributes: Attributes): void {
  const { provider, serverAddress, serverPort } = span.details;
  const model = requestModelOf(span);
  if (provider !== undefined && known?.[genAi.provider] !== provider) attributes[genAi.provider] = provider;
  if (model !== undefined && known?.[genAi.requestModel] !== model) attributes[genAi.requestModel] = model;
  if (serverAddress !== undefined && known?.[common.serverAddress] !== serverAddress)
    attributes[common.serverAddress] = serverAddress;
  if (serverPort !== undefined && known?.[common.serverPort] !== serverPort) attributes[common.serverPort] = serverPort;
}

/** The rest, at its end, but for content; of what was known at its start only what is another now. */
export function modelEnd(span: ModelSpan, started: Attributes | undefined, attributes: Attributes): void {
  const { details } = span;
  addCalled(span, started, attributes);
  addRequest(span, details, attributes);
  const tokens = tokensOf(span);
  if (tokens !== undefined) addTokens(tokens, attributes);
  const model = responseModelOf(span);
  if (model !== undefined) attributes[genAi.responseModel] = model;
  const id =
    details.responseId ??
    (span.type === 'response' ? (span.spanData.response?.id ?? span.spanData.responseId) : undefined);
  if (id) attributes[genAi.responseId] = id;
  const reasons = finishReasonsOf(span);
  if (reasons !== undefined) attributes[genAi.finishReasons] = reasons;
  if (details.timeToFirstChunkMs !== undefined) attributes[genAi.timeToFirstChunk] = details.timeToFirstChunkMs / 1000;
  if (details.serviceTier !== undefined) attributes[common.openaiResponseTier] = details.serviceTier;
  if (details.requestId !== undefined) attributes[agents.requestId] = details.requestId;
  if (isAbandoned(span)) attributes[agents.abandoned] = true;
}

/** A stream that was left: no answer came, and nothing failed. */
function isAbandoned(span: ModelSpan): boolean {
  return span.details.stream === true && span.error === undefined && span.spanData.usage === undefined;
}

function addRequest(span: ModelSpan, details: ModelCallDetails, attributes: Attributes): void {
  const config = details.requestParams ?? (span.type === 'generation' ? span.spanData.modelConfig : undefined) ?? {};
  for (const [member, name] of PARAMETERS) {
    const value = config[member];
    if (typeof value === 'number') attributes[name] = value;
  }
  const { stop, seed, n, reasoning, service_tier: tier, prompt } = config;
  const stops = typeof stop === 'string' ? [stop] : stop;
  if (Array.isArray(stops)) attributes[genAi.stopSequences] = stops.filter((entry) => typeof entry === 'string');
  if (typeof seed === 'number') attributes['gen_ai.request.seed'] = seed;
  if (typeof n === 'number' && n !== 1) attributes[genAi.choiceCount] = n;
  const effort = isObject(reasoning) ? reasoning['effort'] : undefined;
  if (typeof effort === 'string') attributes[genAi.reasoningLevel] = effort;
  if (typeof tier === 'string') attributes[common.openaiRequestTier] = tier;
  if (isObject(prompt)) addPrompt(prompt, attributes);
  if (details.stream === true) attributes[genAi.requestStream] = true;
  if (details.previousResponseId !== undefined) attributes[genAi.previousResponseId] = details.previousResponseId;
  if (details.api !== undefined) attributes[common.openaiApi] = details.api;
  if (details.attempt !== undefined && details.attempt > 1) attributes[agents.attempt] = details.attempt;
}

function addPrompt({ id, version }: JsonObject, attributes: Attributes): void {
  if (typeof id === 'string') attributes[genAi.promptName] = id;
  if (typeof version === 'string') attributes[genAi.promptVersion] = version;
}

const PARAMETERS = [
  ['temperature', 'gen_ai.request.temperature'],
  ['top_p', 'gen_ai.request.top_p'],
  ['max_tokens', 'gen_ai.request.max_tokens'],
  ['frequency_penalty', 'gen_ai.request.frequency_penalty'],
  ['presence_penalty', 'gen_ai.request.presence_penalty'],
] as const;

export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
}

/** What the provider counted; `undefined` when it counted nothing. */
export function tokensOf(span: ModelSpan): Tokens | undefined {
  const { usage } = span.spanData;
  if (usage === undefined) return undefined;
  const input = detailsIn(usage, 'input_tokens_details');
  const output = detailsIn(usage, 'output_tokens_details');
  const tokens = {
    input: count(usage['input_tokens'] ?? usage['prompt_tokens']),
    output: count(usage['output_tokens'] ?? usage['completion_tokens']),
    cacheRead: count(input['cached_tokens']),
    cacheWrite: count(input['cache_write_tokens']),
    reasoning: count(output['reasoning_tokens']),
  };
  return tokens.input === 0 && tokens.output === 0 ? undefined : tokens;
}

function addTokens(tokens: Tokens, attributes: Attributes): void {
  attributes[genAi.inputTokens] = tokens.input;
  attributes[genAi.outputTokens] = tokens.output;
  // Counts that most providers lack come as zero.
  if (tokens.cacheRead > 0) attributes[genAi.cacheReadTokens] = tokens.cacheRead;
  if (tokens.cacheWrite > 0) attributes[genAi.cacheWriteTokens] = tokens.cacheWrite;
  if (tokens.reasoning > 0) attributes[genAi.reasoningTokens] = tokens.reasoning;
}

function detailsIn(usage: JsonObject, member: string): JsonObject {
  const found = usage[member];
  return isObject(found) ? found : {};
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

export function responseModelOf(span: ModelSpan): string | undefined {
  return span.details.responseModel ?? (span.type === 'response' ? span.spanData.response?.model : undefined);
}

/** Why the model stopped, one per choice; of an answer of items from what they are. */
export function finishReasonsOf(span: ModelSpan): string[] | undefined {
  const { finishReasons } = span.details;
  if (finishReasons !== undefined) return [...finishReasons];
  const output: unknown = span.type === 'response' ? span.spanData.response?.output : span.spanData.output;
  if (!Array.isArray(output) || span.error !== undefined) return undefined;
  return [output.some(isCall) ? 'tool_calls' : 'stop'];
}

function isCall(item: unknown): boolean {
  if (!isObject(item)) return false;
  if (Array.isArray(item['tool_calls'])) return item['tool_calls'].length > 0;
  return item['type'] === 'function_call' || item['type'] === 'custom_tool_call';
}
