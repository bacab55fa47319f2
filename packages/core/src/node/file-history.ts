import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { sha256Hex } from '../base/digest.ts';
import { SessionSchemaError } from '../sessions/errors.ts';
import { matchSuffix, operationMismatch, suffixMismatch, versionConflict } from '../sessions/history-backend.ts';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '../sessions/history-backend.ts';
import { OperationMemory } from '../sessions/operation-memory.ts';
import { codeOf, withLock } from './lock-file.ts';
import {
  batchLine,
  finishedSize,
  firstLine,
  headerLine,
  linesBackwards,
  parseBatch,
  parseHeader,
} from './session-file.ts';
import type { FileRecord, Header } from './session-file.ts';

/** Of a session that has no file. */
const NONE = 'none';
const OPERATIONS_AT_LEAST = 64;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What a file says, as far as its last finished line. */
interface Known {
  readonly header: Header;
  /** Where the header ends. */
  readonly start: number;
  readonly size: number;
  readonly ino: number;
}

/** One session in a file of its own. Reads take no lock: a file only grows, or another one takes its place. */
export class FileHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #dir: string;
  readonly #path: string;
  readonly #lockMs: number;
  /** Operations that this object knows of, and up to where it has read the file. */
  #memory: { readonly epoch: string; readonly size: number; readonly operations: OperationMemory } | undefined;
  readonly #unknown = new WeakSet<object>();

  constructor(sessionId: string, dir: string, lockMs: number) {
    this.#sessionId = sessionId;
    this.#dir = dir;
    this.#path = join(dir, fileName(sessionId));
    this.#lockMs = lockMs;
  }

  /** There is nothing to let go of: files are open for as long as a call. The session is over all the same. */
  close(): void {}

  async read(count: number | undefined): Promise<StoredHistory> {
    const file = await this.#open('r');
    if (file === undefined) return { records: [], version: NONE };
    try {
      const known = await this.#look(file);
      if (known === undefined) return { records: [], version: NONE };
      return await readTail(file, known, count);
    } finally {
      await file.close();
    }
  }

  async write(change: HistoryWrite): Promise<string> {
    return await this.#locked(async (stillOwn) => {
      const { operation, ifVersion, texts } = change;
      const file = await this.#open('r+');
      try {
        const known = file && (await this.#look(file));
        const operations = file && known ? await this.#operations(file, known) : new OperationMemory([]);
        const seen = operation && operations.get(operation.id);
        if (seen !== undefined) {
          if (seen.digest !== operation?.digest) throw operationMismatch();
          return seen.version;
        }
        const actual = file && known ? (await readTail(file, known, 0)).version : NONE;
        if (ifVersion !== undefined && ifVersion !== actual) throw versionConflict(this.#sessionId, ifVersion, actual);
        if (change.type === 'append' && texts.length === 0 && operation === undefined) return actual;
        const version = nextVersion(actual);
        const line = batchLine(version, texts, operation, Date.now());
        await stillOwn();
        if (change.type === 'append' && file && known) await this.#append(file, known, line);
        else {
          const kept =
            change.type === 'replace_suffix' && file && known ? await keptOf(file, known, change.expected) : [];
          if (change.type === 'replace_suffix' && !(file && known) && change.expected.length > 0)
            throw suffixMismatch();
          const header = headerLine({
            sessionId: this.#sessionId,
            version: actual === NONE ? version : actual,
            operations,
          });
          const old = kept.length === 0 ? '' : batchLine(actual, kept, undefined, Date.now());
          await this.#replace(header + old + line, stillOwn);
        }
        return version;
      } finally {
        await file?.close();
      }
    });
  }

  async pop(): Promise<StoredRecord | undefined> {
    return await this.#locked(async (stillOwn) => {
      const file = await this.#open('r+');
      try {
        const known = file && (await this.#look(file));
        if (!file || !known) return undefined;
        const { records, version } = await readTail(file, known, undefined);
        const record = records.at(-1);
        if (record === undefined) return undefined;
        const operations = await this.#operations(file, known);
        const kept = records.slice(0, -1).map(({ value }) => value);
        const header = headerLine({ sessionId: this.#sessionId, version, operations });
        await this.#replace(header + batchLine(nextVersion(version), kept, undefined, Date.now()), stillOwn);
        return record;
      } finally {
        await file?.close();
      }
    });
  }

  async clear(): Promise<void> {
    await this.#locked(async () => {
      for (const path of [this.#path, `${this.#path}.new`]) {
        await unlink(path).catch((error: unknown) => {
          if (codeOf(error) !== 'ENOENT') throw error;
        });
      }
      await this.#durably(async () => await syncFolder(this.#dir));
    });
  }

  outcomeUnknown(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#unknown.has(error);
  }

  // ---- what the file says

  async #open(flags: 'r' | 'r+'): Promise<FileHandle | undefined> {
    try {
      return await open(this.#path, flags);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** `undefined`: not even its header was finished. */
  async #look(file: FileHandle): Promise<Known | undefined> {
    const { size, ino } = await file.stat();
    const finished = await finishedSize(file, size);
    const line = await firstLine(file, finished);
    if (line === undefined) return undefined;
    const header = parseHeader(line.text);
    if (header?.sessionId !== this.#sessionId)
      throw new SessionSchemaError(
        `'${this.#path}' is ${header === undefined ? 'no file of a session' : 'the file of another session'}; nothing was changed. Move it away, or use another folder.`,
        { sessionId: this.#sessionId },
      );
    return { header, start: line.end, size: finished, ino };
  }

  /** Those of the last day, and the last 64 in any case; the file is read once, later its new lines alone. */
  async #operations(file: FileHandle, { header, start, size, ino }: Known): Promise<OperationMemory> {
    const memory = this.#memory;
    // A file that took the place of another one may have its inode.
    const epoch = `${ino} ${header.version}`;
    const isSame = memory !== undefined && memory.epoch === epoch && memory.size <= size && memory.size >= start;
    let count = 0;
    const found: { key: { id: string; digest: string }; version: string; at: number }[] = [];
    for await (const { text, offset } of linesBackwards(file, isSame ? memory.size : start, size)) {
      const { operation, version, at } = parseBatch(text, offset);
      if (operation !== undefined) found.push({ key: operation, version, at });
      if (operation !== undefined) count++;
      if (count >= OPERATIONS_AT_LEAST && at < Date.now() - DAY_MS) break;
    }
    let operations = isSame ? memory.operations : header.operations;
    for (const { key, version, at } of found.toReversed()) operations = operations.with(key, version, at);
    this.#memory = { epoch, size, operations };
    return operations;
  }

  // ---- changing it

  async #locked<R>(work: (stillOwn: () => Promise<void>) => Promise<R>): Promise<R> {
    await makeFolder(this.#dir);
    return await withLock(`${this.#path}.lock`, this.#lockMs, this.#sessionId, work);
  }

  /** One line at the end. A line that another process did not finish is cut off before, one of ours that failed after. */
  async #append(file: FileHandle, { size }: Known, line: string): Promise<void> {
    if ((await file.stat()).size > size) await file.truncate(size);
    const appender = await open(this.#path, 'a');
    try {
      await appender.writeFile(line);
    } catch (error) {
      // A full disk: what was written of it is no line, and goes if it can.
      await file.truncate(size).catch(() => undefined);
      throw error;
    } finally {
      await appender.close().catch(() => undefined);
    }
    await this.#durably(async () => await file.sync());
  }

  /** Another file in its place: whoever reads the old one reads on in it. */
  async #replace(content: string, stillOwn: () => Promise<void>): Promise<void> {
    // Whoever died over it left it behind: it is written anew.
    const draft = `${this.#path}.new`;
    try {
      const file = await open(draft, 'w', 0o600);
      try {
        await file.writeFile(content);
        await file.sync();
      } finally {
        await file.close();
      }
      await stillOwn();
      await rename(draft, this.#path);
    } catch (error) {
      await unlink(draft).catch(() => undefined);
      throw error;
    }
    await this.#durably(async () => await syncFolder(this.#dir));
  }

  /** What is written may be lost, or not, if it cannot be brought to the disk. */
  async #durably(sync: () => Promise<void>): Promise<void> {
    try {
      await sync();
    } catch (error) {
      if (typeof error === 'object' && error !== null) this.#unknown.add(error);
      throw error;
    }
  }
}

interface FileTail extends StoredHistory {
  readonly records: readonly FileRecord[];
}

/** The newest records, and the version, which the newest line has. */
async function readTail(file: FileHandle, known: Known, count: number | undefined): Promise<FileTail> {
  const batches: (readonly FileRecord[])[] = [];
  let version: string | undefined;
  let found = 0;
  for await (const { text, offset } of linesBackwards(file, known.start, known.size)) {
    const batch = parseBatch(text, offset);
    if (version === undefined && batch.version !== '') version = batch.version;
    batches.push(batch.records);
    found += batch.records.length;
    if (count !== undefined && found >= count && version !== undefined) break;
  }
  const records = batches.toReversed().flat();
  const from = count === undefined ? 0 : Math.max(0, records.length - count);
  return { records: records.slice(from), version: version ?? known.header.version };
}

/** What stays in the list when its end is replaced: what cannot be decoded as it stands (SESS-153). */
async function keptOf(file: FileHandle, known: Known, expected: readonly string[]): Promise<unknown[]> {
  const { records } = await readTail(file, known, undefined);
  const matched = matchSuffix(records, expected);
  if (matched?.length !== expected.length) throw suffixMismatch();
  const gone = new Set(matched);
  return records.filter((_, index) => !gone.has(index)).map(({ value }) => value);
}

/** `epoch:count`: the epoch is drawn with the file, so that a new one has no version of an old one. */
function nextVersion(actual: string): string {
  const [epoch = '', count = '0'] = actual === NONE ? [randomBytes(6).toString('hex')] : actual.split(':');
  return `${epoch}:${Number(count) + 1}`;
}

/** Of an id that cannot leave the folder. Names of files end at 255 bytes: longer ones are told apart by their hash. */
function fileName(sessionId: string): string {
  const name = Buffer.from(sessionId, 'utf8').toString('base64url');
  return name.length <= 200 ? `${name}.ndjson` : `${name.slice(0, 100)}~${sha256Hex(sessionId)}.ndjson`;
}

/** With those that it is in, each brought to the disk in the one above. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

/** So that a name that was just made or removed is found after a power cut. Windows has no such thing. */
async function syncFolder(dir: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
