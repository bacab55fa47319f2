import type { FileHandle } from 'node:fs/promises';

import { isObject } from '../base/json.ts';
import { OperationMemory } from '../sessions/operation-memory.ts';
import type { HistoryOperationKey, StoredRecord } from '../sessions/history-backend.ts';

/*
 * A file of a session: a line of JSON that says whose it is and which operations it has seen, then a line per batch. A line
 * without its line break was never finished, and is no line.
 *
 *   {"format":"agents-session-file","version":1,"sessionId":"user-42","v":"3f9c:0","operations":[]}
 *   {"v":"3f9c:1","at":1796015396123,"operation":["op","digest"],"items":["{\"role\":\"user\",…}", …]}
 */
const FORMAT = 'agents-session-file';
const VERSION = 1;
const NEWLINE = 0x0a;
const CHUNK = 64 * 1024;
/** Lines that are decoded between two looks at what else is to be done. */
const SLICE_BYTES = 4 * 1024 * 1024;

export interface Header {
  readonly sessionId: string;
  readonly version: string;
  readonly operations: OperationMemory;
}

export interface Batch {
  /** Of the history once the batch is in it. */
  readonly version: string;
  readonly at: number;
  readonly operation: HistoryOperationKey | undefined;
  readonly records: readonly FileRecord[];
}

/** `value` is what stands in the list of a batch, text or not, and goes into another file with it. */
export interface FileRecord extends StoredRecord {
  readonly value: unknown;
}

export function headerLine({ sessionId, version, operations }: Header): string {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, sessionId, v: version, operations })}\n`;
}

export function batchLine(
  version: string,
  items: readonly unknown[],
  operation: HistoryOperationKey | undefined,
  at: number,
): string {
  const known = operation && { operation: [operation.id, operation.digest] };
  return `${JSON.stringify({ v: version, at, ...known, items })}\n`;
}

/** `undefined`: it is not the header of a session. */
export function parseHeader(line: string): Header | undefined {
  const value = parse(line);
  const { format, version, sessionId, v, operations } = value ?? {};
  if (format !== FORMAT || version !== VERSION || typeof sessionId !== 'string' || typeof v !== 'string')
    return undefined;
  return { sessionId, version: v, operations: OperationMemory.from(operations) };
}

/** A line that is no batch is one record that cannot be decoded. */
export function parseBatch(line: string, offset: number): Batch {
  const value = parse(line);
  const { v, at, operation, items } = value ?? {};
  if (typeof v !== 'string' || !Array.isArray(items))
    return {
      version: '',
      at: 0,
      operation: undefined,
      records: [{ text: undefined, position: offset, value: { line } }],
    };
  const [id, digest] = Array.isArray(operation) ? (operation as unknown[]) : [];
  return {
    version: v,
    at: typeof at === 'number' ? at : 0,
    operation: typeof id === 'string' && typeof digest === 'string' ? { id, digest } : undefined,
    records: (items as unknown[]).map((value, index) => ({
      text: typeof value === 'string' ? value : undefined,
      position: offset + index,
      value,
    })),
  };
}

/** Where the last finished line ends. */
export async function finishedSize(file: FileHandle, size: number): Promise<number> {
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - CHUNK);
    const bytes = await readBytes(file, start, end);
    const at = bytes.lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

/** The first line, without its break; `undefined`: none was finished. */
export async function firstLine(file: FileHandle, size: number): Promise<{ text: string; end: number } | undefined> {
  const parts: Buffer[] = [];
  for (let start = 0; start < size; start += CHUNK) {
    const bytes = await readBytes(file, start, Math.min(size, start + CHUNK));
    const at = bytes.indexOf(NEWLINE);
    parts.push(at < 0 ? bytes : bytes.subarray(0, at));
    if (at >= 0) return { text: Buffer.concat(parts).toString('utf8'), end: start + at + 1 };
  }
  return undefined;
}

/** Lines between two offsets that are ends of lines, the newest first, with their offsets. */
export async function* linesBackwards(
  file: FileHandle,
  from: number,
  to: number,
): AsyncGenerator<{ text: string; offset: number }> {
  let rest: Buffer = Buffer.alloc(0);
  let chunk = CHUNK;
  let since = 0;
  for (let end = to; end > from;) {
    const start = Math.max(from, end - chunk);
    const bytes = Buffer.concat([await readBytes(file, start, end), rest]);
    // Without its last byte, the break of the newest line.
    let lineEnd = bytes.length - 1;
    for (let at = bytes.lastIndexOf(NEWLINE, lineEnd - 1); lineEnd > 0;) {
      if (at < 0 && start > from) break;
      yield { text: bytes.toString('utf8', at + 1, lineEnd), offset: start + at + 1 };
      since += lineEnd - at;
      if (since > SLICE_BYTES) {
        since = 0;
        await new Promise<void>((resolve) => void setImmediate(resolve));
      }
      lineEnd = at;
      at = lineEnd > 0 ? bytes.lastIndexOf(NEWLINE, lineEnd - 1) : -1;
    }
    rest = lineEnd >= 0 ? bytes.subarray(0, lineEnd + 1) : Buffer.alloc(0);
    end = start;
    // Long lines are not searched again and again.
    chunk = Math.min(2 * chunk, 16 * CHUNK);
  }
}

async function readBytes(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start);
  let at = 0;
  while (at < bytes.length) {
    const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return at === bytes.length ? bytes : bytes.subarray(0, at);
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
