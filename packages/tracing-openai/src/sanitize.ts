import type { SpanWire, TraceWire } from '@agents/core/tracing';
import { cleanJson, needsCleaning, preview } from './clean-json.ts';
import { truncated } from './truncate.ts';

type Wire = Readonly<Record<string, unknown>>;
const FIELDS = ['input', 'output'] as const;
export type WireRecord = TraceWire | SpanWire;

/**
 * A record as OpenAI's ingest takes it, but for the sizes of its fields (`cutFields`). What needs no change is shared; the
 * record itself, which shares its data with a span, is never changed.
 */
export function sanitized(record: WireRecord): WireRecord {
  if (record.object === 'trace') return withTexts(record);
  const data = withoutReasoning(withPreviews(withUsage(record.span_data)));
  return data === record.span_data ? record : { ...record, span_data: data as SpanWire['span_data'] };
}

/** Cuts input and output that are larger than `maxBytes`. */
export function cutFields(record: WireRecord, maxBytes: number): WireRecord {
  if (record.object === 'trace') return record;
  let data: Wire = record.span_data;
  for (const field of FIELDS) data = withMember(data, field, truncated(data[field], maxBytes));
  return data === record.span_data ? record : { ...record, span_data: data as SpanWire['span_data'] };
}

function withMember(data: Wire, key: string, value: unknown): Wire {
  return data[key] === value ? data : { ...data, [key]: value };
}

/** Metadata of a trace: texts only. */
function withTexts(trace: TraceWire): TraceWire {
  const { metadata } = trace;
  if (metadata === null || Object.values(metadata).every((value) => typeof value === 'string')) return trace;
  const texts = Object.entries(metadata).flatMap(([key, value]) => {
    const text = textOf(value);
    return text === undefined ? [] : [[key, text] as const];
  });
  return { ...trace, metadata: Object.fromEntries(texts) };
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const clean = cleanJson(value);
  return clean === undefined || clean === null ? undefined : JSON.stringify(clean);
}

/** Fields that JSON would leave out say at least what they were. */
function withPreviews(data: Wire): Wire {
  let shown = data;
  for (const field of FIELDS) if (isUnsayable(data[field])) shown = withMember(shown, field, preview(data[field]));
  return shown;
}

function isUnsayable(value: unknown): boolean {
  return (
    typeof value === 'function' || typeof value === 'symbol' || (typeof value === 'number' && !Number.isFinite(value))
  );
}

/** Usage is for generations only, and in the ingest's own form. */
function withUsage(data: Wire): Wire {
  if (!Object.hasOwn(data, 'usage')) return data;
  const { usage } = data;
  const isGeneration = data['type'] === 'generation';
  if (isGeneration && !isObject(usage)) return data;
  const fit = isGeneration && isObject(usage) ? fitUsage(usage) : undefined;
  if (fit !== undefined) return withMember(data, 'usage', fit);
  const { usage: _, ...others } = data;
  return others;
}

/** Counts that the ingest does not know by name go among the details. */
function fitUsage(usage: Wire): Wire | undefined {
  const { input_tokens, output_tokens, details } = usage;
  if (!Number.isFinite(input_tokens) || !Number.isFinite(output_tokens)) return undefined;
  const merged: Record<string, unknown> = isObject(details) ? { ...details } : {};
  let isFit = details === undefined || isObject(details);
  for (const key of Object.keys(usage)) {
    if (KNOWN.has(key)) continue;
    isFit = false;
    const value = usage[key];
    if (value !== null && value !== undefined && !isUnsayable(value)) merged[key] = value;
  }
  const isClean = !needsCleaning(merged, true);
  if (isFit && isClean) return usage;
  const shown = isClean ? merged : (cleanJson(merged) as Wire);
  return { input_tokens, output_tokens, ...(Object.keys(shown).length > 0 ? { details: shown } : undefined) };
}

const KNOWN: ReadonlySet<string> = new Set(['input_tokens', 'output_tokens', 'details']);

const THOUGHTS = ['reasoning', 'reasoning_content', 'thinking_blocks', 'thinking'];
const THOUGHT_PARTS: readonly unknown[] = ['thinking', 'redacted_thinking'];

/** What a model thought stays here: messages of generations lose it, data of other shapes is not searched. */
function withoutReasoning(data: Wire): Wire {
  if (data['type'] !== 'generation') return data;
  let shown = data;
  for (const field of FIELDS) {
    const list = data[field];
    if (Array.isArray(list)) shown = withMember(shown, field, mapped(spoken(list), spokenResponse));
  }
  return shown;
}

/** Items without those of reasoning, and messages without their thoughts; the list itself where there are none. */
function spoken(items: readonly unknown[]): readonly unknown[] {
  const isThought = (item: unknown): boolean => isObject(item) && item['type'] === 'reasoning';
  return mapped(items.some(isThought) ? items.filter((item) => !isThought(item)) : items, spokenMessage);
}

function spokenResponse(item: unknown): unknown {
  if (!isObject(item) || item['object'] !== 'response' || !Array.isArray(item['output'])) return item;
  return withMember(item, 'output', spoken(item['output']));
}

function spokenMessage(item: unknown): unknown {
  if (!isObject(item) || item['role'] !== 'assistant') return item;
  let message: Wire = item;
  if (THOUGHTS.some((key) => Object.hasOwn(item, key)))
    message = Object.fromEntries(Object.entries(item).filter(([key]) => !THOUGHTS.includes(key)));
  const { content } = item;
  const isThought = (part: unknown): boolean => isObject(part) && THOUGHT_PARTS.includes(part['type']);
  if (!Array.isArray(content) || !content.some(isThought)) return message;
  return { ...message, content: content.filter((part) => !isThought(part)) };
}

/** The list itself where nothing changes. */
function mapped(list: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  const changed = list.map(change);
  return changed.some((item, index) => item !== list[index]) ? changed : list;
}

function isObject(value: unknown): value is Wire {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
