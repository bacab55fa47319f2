import { isObject } from '../base/json.ts';
import { fieldOf, redacted } from './sensitive.ts';
import type { SpanPolicy } from './sensitive.ts';
import type { Span, SpanType } from './types.ts';

type Data = Record<string, unknown>;
type Passed = Map<string, unknown>;

/** Members that may hold what users, models and tools said. All others of these types are names, counts and times. */
const SENSITIVE: { readonly [K in SpanType]?: readonly string[] } = {
  agent: ['metadata'],
  task: [],
  turn: [],
  generation: ['input', 'output'],
  response: ['input', 'response'],
  function: ['input', 'output'],
  handoff: [],
  guardrail: [],
  custom: ['data'],
  mcp_tools: [],
  transcription: ['input', 'output'],
  speech: ['input', 'output'],
  speech_group: ['input'],
};

/**
 * Sends what a span holds through `traceRedact` of its run, before anybody sees it. It finds what whoever made the span
 * put there; a value goes through once, but for objects that are the user's own and may have changed since.
 */
export function redactData(span: Span, policy: SpanPolicy, passed: Passed): void {
  const data = span.spanData as unknown as Data;
  const known: readonly string[] | undefined = SENSITIVE[span.type];
  // Of a type of the user's own everything is.
  for (const field of known ?? Object.keys(data)) {
    const isUsers = known === undefined || span.type === 'custom';
    const value = data[field];
    if (value === undefined || (!isUsers && passed.get(field) === value)) continue;
    const shown = passField(span, policy, passed, field, value);
    if (shown === undefined) delete data[field];
    else data[field] = shown;
  }
  if (span.type === 'custom' && !isObject(span.spanData.data)) span.spanData.data = {};
  if (span.type === 'generation') redactMetadata(span, policy, passed);
}

/** What the redaction makes of a value that is about to be set. */
export function passField(span: Span, policy: SpanPolicy, passed: Passed, field: string, value: unknown): unknown {
  const shown: unknown = redacted(policy, fieldOf(span, field), value);
  passed.set(field, shown);
  return shown;
}

/** The one setting of a model that users fill with data of their own. */
function redactMetadata(span: Span<'generation'>, policy: SpanPolicy, passed: Passed): void {
  const { modelConfig } = span.spanData;
  const metadata = modelConfig?.['metadata'];
  const field = 'modelConfig.metadata';
  if (metadata === undefined || metadata === null || passed.get(field) === metadata) return;
  const shown = passField(span, policy, passed, field, metadata);
  const { metadata: _, ...others } = modelConfig ?? {};
  span.spanData.modelConfig = shown === undefined ? others : { ...modelConfig, metadata: shown };
}
