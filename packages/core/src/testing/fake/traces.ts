import { isObject } from '../../base/json.ts';
import { ApiRefusal } from './types.ts';

type Wire = Readonly<Record<string, unknown>>;

const MAX_BODY_BYTES = 5_000_000;
const MAX_FIELD_BYTES = 100_000;
const RECORDS: Readonly<Record<string, readonly string[]>> = {
  trace: ['object', 'id', 'workflow_name', 'group_id', 'metadata'],
  'trace.span': ['object', 'id', 'trace_id', 'parent_id', 'started_at', 'ended_at', 'span_data', 'error', 'metadata'],
};

/** What was posted to the ingest of traces, in order. */
export class TraceStore {
  readonly #strict: boolean;
  readonly #records: Wire[] = [];

  constructor(strict: boolean) {
    this.#strict = strict;
  }

  get records(): readonly Record<string, unknown>[] {
    return this.#records;
  }

  /** All of a batch or nothing. @throws ApiRefusal for what the ingest refuses */
  add(body: unknown, bytes: number): void {
    if (bytes > MAX_BODY_BYTES) throw new ApiRefusal('Request body is too large.', { status: 413 });
    const data: unknown = isObject(body) ? body['data'] : undefined;
    if (!Array.isArray(data)) throw new ApiRefusal("Missing required parameter: 'data'.", { param: 'data' });
    for (const [index, record] of data.entries()) {
      if (!isObject(record)) throw refused(`data[${index}]`, 'expected an object');
      this.#check(record, `data[${index}]`);
    }
    this.#records.push(...(data as Wire[]));
  }

  #check(record: Wire, at: string): void {
    const members = RECORDS[String(record['object'])];
    if (members === undefined) throw refused(`${at}.object`, "expected 'trace' or 'trace.span'");
    if (typeof record['id'] !== 'string' || record['id'] === '') throw refused(`${at}.id`, 'expected a string');
    if (!this.#strict) return;
    for (const key of Object.keys(record))
      if (!members.includes(key)) throw new ApiRefusal(`Unknown parameter: '${at}.${key}'.`, { param: `${at}.${key}` });
    if (record['object'] === 'trace') checkMetadata(record['metadata'], `${at}.metadata`);
    else if (isObject(record['span_data'])) checkSpanData(record['span_data'], `${at}.span_data`);
    else throw refused(`${at}.span_data`, 'expected an object');
  }
}

function checkMetadata(metadata: unknown, at: string): void {
  if (metadata === null || metadata === undefined) return;
  if (!isObject(metadata)) throw refused(at, 'expected an object');
  for (const [key, value] of Object.entries(metadata))
    if (typeof value !== 'string') throw refused(`${at}.${key}`, 'expected a string');
}

function checkSpanData(data: Wire, at: string): void {
  for (const field of ['input', 'output'])
    if (bytesOf(data[field]) > MAX_FIELD_BYTES)
      throw refused(`${at}.${field}`, `expected at most ${MAX_FIELD_BYTES} bytes`);
  const { usage } = data;
  if (usage === undefined || usage === null) return;
  if (data['type'] !== 'generation')
    throw new ApiRefusal(`Unknown parameter: '${at}.usage'.`, { param: `${at}.usage` });
  if (!isObject(usage)) throw refused(`${at}.usage`, 'expected an object');
  for (const key of Object.keys(usage))
    if (!['input_tokens', 'output_tokens', 'details'].includes(key))
      throw new ApiRefusal(`Unknown parameter: '${at}.usage.${key}'.`, { param: `${at}.usage.${key}` });
}

function bytesOf(value: unknown): number {
  return value === undefined ? 0 : new TextEncoder().encode(JSON.stringify(value)).length;
}

function refused(param: string, expected: string): ApiRefusal {
  return new ApiRefusal(`Invalid type for '${param}': ${expected}.`, { param, code: 'invalid_type' });
}
