import { isFixedMessage } from './messages.ts';
import type { SpanWire, TraceWire } from './types.ts';

/** Members of `span_data` that are names and counts. */
const PUBLIC = new Set([
  'type',
  'name',
  'handoffs',
  'tools',
  'output_type',
  'model',
  'usage',
  'response_id',
  'from_agent',
  'to_agent',
  'triggered',
  'server',
]);

/** A wire record of which names and counts are left: what the log policy allows by default. */
export function publicRecord(record: TraceWire | SpanWire): TraceWire | SpanWire {
  if (record.object === 'trace') return { ...record, group_id: null, metadata: null };
  const { metadata: _metadata, ...rest } = record;
  return { ...rest, span_data: publicData(record.span_data), error: publicError(record.error) };
}

/** The text of an error where it is one of the fixed ones, else that there is one. */
export function publicMessage(message: string): string {
  return isFixedMessage(message) ? message : 'Error';
}

function publicError(error: SpanWire['error']): SpanWire['error'] {
  return error && { message: publicMessage(error.message), data: null };
}

function publicData(data: SpanWire['span_data']): SpanWire['span_data'] {
  const shown: SpanWire['span_data'] = { type: data.type };
  for (const [key, value] of Object.entries(data))
    shown[key] = PUBLIC.has(key) || isTaskOrTurn(key, value) ? value : null;
  return shown;
}

/** Tasks and turns travel as custom spans; their data is the SDK's own. */
function isTaskOrTurn(key: string, value: unknown): boolean {
  return key === 'data' && typeof value === 'object' && value !== null && 'sdk_span_type' in value;
}
