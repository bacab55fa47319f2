import { runningSha256 } from '../base/digest.ts';
import { isObject } from '../base/json.ts';
import { decodeItem, encodeItem } from './codec.ts';
import { pauses } from './decode.ts';
import { SessionError } from './errors.ts';
import type { StoredRecord } from './history-backend.ts';
import { isEnvelope } from './store-turns.ts';

/*
 * A session as lines of JSON: {"format":"agents-session","version":1,"sessionId":…,"createdAt":…}, an item per line, and at
 * the end {"end":true,"items":n,"sha256":…}, the hash of the item lines, each with its line break.
 */
const FORMAT = 'agents-session';
const VERSION = 1;

export interface ExportHeader {
  readonly sessionId: string;
  readonly createdAt?: Date | undefined;
}

/** Corrupt records are left out. Nothing is given before the first part was read. */
export async function* exportLines(
  { sessionId, createdAt }: ExportHeader,
  parts: AsyncIterable<readonly StoredRecord[]>,
): AsyncGenerator<string> {
  const header = { format: FORMAT, version: VERSION, sessionId, createdAt: createdAt?.toISOString() ?? null };
  const hash = runningSha256();
  const pause = pauses();
  let items = 0;
  let hasBegun = false;
  for await (const records of parts) {
    for (const { text } of records) {
      const item = text === undefined ? undefined : decodeItem<object>(text);
      if (text === undefined || item === undefined) continue;
      // As it is stored: numbers keep their digits. What is no single line of JSON is written anew.
      const line = `${/[\r\n]|NaN|Infinity/.test(text) ? encodeItem(item) : text}\n`;
      hash.update(line);
      items++;
      if (!hasBegun) yield `${JSON.stringify(header)}\n`;
      hasBegun = true;
      yield line;
      await pause();
    }
  }
  if (!hasBegun) yield `${JSON.stringify(header)}\n`;
  yield `${JSON.stringify({ end: true, items, sha256: hash.hex() })}\n`;
}

export interface ImportedItem {
  readonly item: object;
  /** Of its line, in characters. */
  readonly size: number;
}

/**
 * The items of an export. All of it is checked, the count and the hash when the last line was read: until the iteration has
 * ended nothing of it may be believed.
 *
 * @throws SessionError
 */
export async function* importItems(sessionId: string, lines: AsyncIterable<string>): AsyncGenerator<ImportedItem> {
  const hash = runningSha256();
  let number = 0;
  let items = 0;
  // The last line looks like an item; which one it is shows when no other follows.
  let held: string | undefined;
  let from: unknown;
  for await (const given of lines) {
    number++;
    if (typeof (given as unknown) !== 'string') throw refuse(`has a line ${number} that is no string`, sessionId);
    const line = given.replace(/\r?\n$/, '');
    if (number === 1) {
      from = readHeader(line, sessionId);
      continue;
    }
    if (held !== undefined) {
      items++;
      hash.update(`${held}\n`);
      yield { item: readItem(held, number - 1, sessionId, from === sessionId), size: held.length };
    }
    held = line;
  }
  const end = held === undefined ? undefined : decodeItem<Record<string, unknown>>(held);
  if (end === undefined || end['end'] !== true) throw refuse('is cut off: its last line is missing', sessionId);
  if (end['items'] !== items) throw refuse(`says that it has other than ${items} items`, sessionId);
  if (end['sha256'] !== hash.hex()) throw refuse('was changed: its hash is another', sessionId);
}

/** The id of the session that was exported. */
function readHeader(line: string, sessionId: string): unknown {
  const header: unknown = decodeItem<object>(line);
  if (!isObject(header) || header['format'] !== FORMAT)
    throw refuse('is no export of a session: its first line is another', sessionId);
  if (header['version'] !== VERSION) throw refuse(`has a version other than ${VERSION}`, sessionId);
  return header['sessionId'];
}

function readItem(line: string, number: number, sessionId: string, isSameId: boolean): object {
  const item = decodeItem<object>(line);
  if (item === undefined) throw refuse(`has a line ${number} that is not the JSON text of an object`, sessionId);
  if (!isSameId && isEnvelope(item))
    throw refuse(
      'holds items that were encrypted for the id of the exported session: import it under that id, then copy it with migrateSession() from one EncryptedSession to another',
      sessionId,
    );
  return item;
}

function refuse(problem: string, sessionId: string): SessionError {
  return new SessionError(`The export ${problem}; nothing was imported.`, { sessionId });
}
