import { sha256Hex } from '../base/digest.ts';
import { UserError } from '../base/errors.ts';
import { randomHex } from '../base/ids.ts';
import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import { encodeItem } from './codec.ts';
import type { SessionOptions } from './contract.ts';
import { SessionBusyError, SessionSchemaError } from './errors.ts';
import { matchSuffix, operationMismatch, suffixMismatch, versionConflict } from './history-backend.ts';
import type {
  HistoryBackend,
  HistoryOperationKey,
  HistoryWrite,
  StoredHistory,
  StoredRecord,
} from './history-backend.ts';
import { OperationMemory } from './operation-memory.ts';
import { sessionOptionChecks, StoredSession } from './stored-session.ts';

/** What a store of keys and values has to offer. Values are text; an etag stands for one state of one value. */
export interface KeyValueStore {
  get(key: string): Promise<{ value: string; etag: string } | undefined>;
  /** Writes if the stored etag is `etag` (`undefined`: nothing stored); false if not. */
  compareAndSet(key: string, value: string, etag: string | undefined): Promise<boolean>;
  /** What is not there is deleted already. */
  delete(key: string): Promise<void>;
}

const TRIES = 5;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1000;

/**
 * A session in one value of a store with compare-and-set (etags): Cloudflare KV with a Durable Object, Deno KV, Dapr, etcd.
 * All of the history travels with each call, so it is for short ones. Items stand under `<prefix><id>:messages` as the Python
 * SDK's Dapr session has them. A store whose first write is not conditional may lose one of two first writes.
 *
 * @throws UserError `session_id_invalid`, and for options of a wrong kind
 * @example
 * const session = new KeyValueSession('user-42', { store: myStore, keyPrefix: 'agents:' });
 */
export class KeyValueSession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(
    sessionId: string,
    options: SessionOptions & {
      store: KeyValueStore;
      /** Default none. */
      keyPrefix?: string;
    },
  ) {
    checkOptions(options, { ...sessionOptionChecks, store, keyPrefix }, 'KeyValueSession');
    const given = options as typeof options | undefined;
    if (given?.store === undefined) throw new UserError("KeyValueSession needs the option 'store'.");
    const { store: client, keyPrefix: prefix = '', ...rest } = given;
    super(sessionId, (id) => new KeyValueHistory(id, client, prefix), {
      name: 'KeyValueSession',
      options: rest,
      timeoutMs: 30_000,
    });
  }
}

function store(value: unknown): string | undefined {
  const names = ['get', 'compareAndSet', 'delete'] as const;
  const isStore = isObject(value) && names.every((name) => typeof value[name] === 'function');
  return isStore ? undefined : "an object with 'get', 'compareAndSet' and 'delete'";
}

function keyPrefix(value: unknown): string | undefined {
  return typeof value === 'string' && !value.includes('\0') ? undefined : 'a string without NUL';
}

/** The value of a session, taken apart. */
interface Aggregate {
  /** As they stand in the array: texts of items, and what others put there. */
  readonly elements: readonly unknown[];
  readonly operations: OperationMemory;
  /** Drawn when the value was made, and how often it was changed since. */
  readonly epoch: string;
  readonly count: number;
}

/** The first element of the array: no JSON, so that Python, which skips what it cannot decode, passes over it. */
const MARK = 'agents ';

class KeyValueHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #store: KeyValueStore;
  readonly #messages: string;
  readonly #metadata: string;
  /** Errors of writes: what they were about to store may be there. */
  readonly #unknown = new WeakSet<object>();

  constructor(sessionId: string, client: KeyValueStore, prefix: string) {
    this.#sessionId = sessionId;
    this.#store = client;
    this.#messages = `${prefix}${sessionId}:messages`;
    this.#metadata = `${prefix}${sessionId}:metadata`;
  }

  async read(count: number | undefined): Promise<StoredHistory> {
    const aggregate = parse((await this.#store.get(this.#messages))?.value);
    // Nothing can be read of it, and somebody has to hear of it.
    if (aggregate === undefined) return { records: [{ text: undefined, position: 0 }], version: 'unreadable' };
    const records = aggregate.elements.map(recordOf);
    const from = count === undefined ? 0 : Math.max(0, records.length - count);
    return { records: records.slice(from), version: versionOf(aggregate) };
  }

  async write(change: HistoryWrite): Promise<string> {
    return await this.#update((aggregate) => {
      const { operation, ifVersion } = change;
      const known = operation && aggregate.operations.get(operation.id);
      if (known !== undefined) {
        if (known.digest !== operation?.digest) throw operationMismatch();
        return { answer: known.version };
      }
      const actual = versionOf(aggregate);
      if (ifVersion !== undefined && ifVersion !== actual) throw versionConflict(this.#sessionId, ifVersion, actual);
      if (change.type === 'append' && change.texts.length === 0 && operation === undefined) return { answer: actual };
      return changed(aggregate, change, operation);
    }, change.upkeep);
  }

  async pop(): Promise<StoredRecord | undefined> {
    return await this.#update<StoredRecord | undefined>((aggregate) => {
      const position = aggregate.elements.length - 1;
      if (position < 0) return { answer: undefined };
      const answer = recordOf(aggregate.elements[position], position);
      return { answer, next: advanced(aggregate, aggregate.elements.slice(0, -1)) };
    }, true);
  }

  async clear(): Promise<void> {
    await this.#writing(async () => await this.#store.delete(this.#messages));
    await this.#store.delete(this.#metadata).catch((error: unknown) => this.#warn(error));
  }

  outcomeUnknown(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#unknown.has(error);
  }

  /** Reads, changes and writes until nobody else did so in between. */
  async #update<R>(change: (aggregate: Aggregate) => { answer: R; next?: Aggregate }, upkeep = false): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      const stored = await this.#store.get(this.#messages);
      const aggregate = parse(stored?.value);
      if (aggregate === undefined)
        throw new SessionSchemaError(
          'The value of this session is not an array of items; it was not overwritten. Repair it, or clear the session.',
          { sessionId: this.#sessionId },
        );
      const { answer, next } = change(aggregate);
      if (next === undefined) return answer;
      const value = serialize(next);
      if (await this.#writing(async () => await this.#store.compareAndSet(this.#messages, value, stored?.etag))) {
        if (!upkeep) await this.#touch();
        return answer;
      }
      if (attempt === TRIES)
        throw new SessionBusyError(
          `Others changed the session ${TRIES} times in a row; nothing was written. Try again.`,
          { sessionId: this.#sessionId },
        );
      const wait = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (1 + 0.1 * Math.random());
      await new Promise<void>((resolve) => void setTimeout(resolve, wait));
    }
  }

  async #writing<R>(write: () => Promise<R>): Promise<R> {
    try {
      return await write();
    } catch (error) {
      if (typeof error === 'object' && error !== null) this.#unknown.add(error);
      throw error;
    }
  }

  /** Times of the session. The items are stored: a failure here is told, not raised (SESS-152). */
  async #touch(): Promise<void> {
    try {
      const stored = await this.#store.get(this.#metadata);
      // Whole seconds, as Python has them.
      const now = String(Math.floor(Date.now() / 1000));
      const known = stored === undefined ? undefined : parseObject(stored.value);
      const created = typeof known?.['created_at'] === 'string' ? known['created_at'] : now;
      const value = JSON.stringify({ ...known, session_id: this.#sessionId, created_at: created, updated_at: now });
      await this.#store.compareAndSet(this.#metadata, value, stored?.etag);
    } catch (error) {
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    getLogger('session').warn('The times of a session could not be stored; its items are.', {
      sessionId: this.#sessionId,
      error: error instanceof Error ? error.name : typeof error,
    });
  }
}

function changed(
  aggregate: Aggregate,
  change: HistoryWrite,
  operation: HistoryOperationKey | undefined,
): { answer: string; next: Aggregate } {
  const { elements, operations } = aggregate;
  const next = advanced(aggregate, [...keptOf(elements, change), ...change.texts]);
  const answer = versionOf(next);
  if (operation === undefined) return { answer, next };
  return { answer, next: { ...next, operations: operations.with(operation, answer) } };
}

function advanced(aggregate: Aggregate, elements: readonly unknown[]): Aggregate {
  const epoch = aggregate.epoch === '' ? randomHex(6) : aggregate.epoch;
  return { ...aggregate, elements, epoch, count: aggregate.count + 1 };
}

function keptOf(elements: readonly unknown[], change: HistoryWrite): readonly unknown[] {
  if (change.type === 'append') return elements;
  if (change.type === 'replace') return [];
  const found = matchSuffix(elements.map(recordOf), change.expected);
  if (found?.length !== change.expected.length) throw suffixMismatch();
  const gone = new Set(found);
  return elements.filter((_, index) => !gone.has(index));
}

/** Other writers change items and no count, so the items are in it too. */
function versionOf({ epoch, count, elements }: Aggregate): string {
  if (epoch === '' && elements.length === 0) return 'none';
  const newest = JSON.stringify(elements.at(-1)) ?? '';
  return `${epoch}:${count}:${elements.length}:${sha256Hex(newest).slice(0, 16)}`;
}

/** `undefined`: it is not what a session looks like. */
function parse(value: string | undefined): Aggregate | undefined {
  const empty = { elements: [], operations: new OperationMemory([]), epoch: '', count: 0 };
  if (value === undefined) return empty;
  try {
    const array: unknown = JSON.parse(value);
    if (!Array.isArray(array)) return undefined;
    const [first, ...rest] = array as unknown[];
    const mark =
      typeof first === 'string' && first.startsWith(MARK) ? parseObject(first.slice(MARK.length)) : undefined;
    if (mark === undefined) return { ...empty, elements: array as unknown[] };
    const { epoch, count, operations } = mark;
    return { elements: rest, operations: OperationMemory.from(operations), epoch: String(epoch), count: Number(count) };
  } catch {
    return undefined;
  }
}

/** Python keeps items as texts, and reads those that are not. */
function recordOf(element: unknown, position: number): StoredRecord {
  return { text: typeof element === 'string' ? element : textOf(element), position };
}

function textOf(element: unknown): string | undefined {
  try {
    return isObject(element) ? encodeItem(element) : undefined;
  } catch {
    // Nested deeper than any item.
    return undefined;
  }
}

function serialize({ elements, operations, epoch, count }: Aggregate): string {
  const mark = { epoch, count, operations: operations.toJSON() };
  return JSON.stringify([MARK + JSON.stringify(mark), ...elements]);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
