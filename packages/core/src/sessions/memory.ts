import { randomHex } from '../base/ids.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import { encodeItems } from './codec.ts';
import type { SessionSettings } from './contract.ts';
import { matchSuffix, operationMismatch, suffixMismatch, versionConflict } from './history-backend.ts';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from './history-backend.ts';
import { StoredSession } from './stored-session.ts';

/** Operations are remembered this long, and the last ones in any case (SESS-034). */
const REMEMBER_MS = 24 * 60 * 60 * 1000;
const REMEMBER_LAST = 64;

export const memoryEncoding = { ascii: false };

/** In the options of a session: a history that others have too, of a store. */
export const sharedHistory: unique symbol = Symbol('sharedHistory');
export interface SharedHistory {
  readonly [sharedHistory]?: MemoryHistory;
}

/**
 * Keeps items in this object. Default id: random. Items are checked and copied as a database would, so that what works
 * here works there.
 *
 * @throws UserError for options of a wrong kind, `session_id_invalid`
 * @throws SessionItemError for initial items that are no JSON
 * @example
 * const session = new MemorySession();
 * await run(agent, 'My name is Ada.', { session });
 * await run(agent, 'What is my name?', { session });
 */
export class MemorySession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(
    sessionId?: string,
    options?: { items?: readonly NoInfer<T>[] | undefined; sessionSettings?: SessionSettings | undefined },
  ) {
    checkOptions(options, { items: kinds.array, sessionSettings: kinds.object }, 'MemorySession');
    const { items = [], [sharedHistory]: shared, ...rest }: NonNullable<typeof options> & SharedHistory = options ?? {};
    const encoding = memoryEncoding;
    super(sessionId ?? randomUuid(), (id) => shared ?? new MemoryHistory(id, encodeItems(items, id, encoding)), {
      name: 'MemorySession',
      options: rest,
      encoding,
    });
  }
}

/** The reference of what a backend does. */
export class MemoryHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #onClear: (() => void) | undefined;
  /** Milliseconds of the clock; `undefined`: nothing was written, or it was cleared. */
  createdAt: number | undefined;
  updatedAt: number | undefined;
  /** Each item as its JSON text: a copy that nobody can change. */
  #texts: string[];
  #version = 0;
  readonly #operations = new Map<string, { readonly digest: string; readonly version: string; readonly at: number }>();

  constructor(sessionId: string, texts: string[], onClear?: () => void) {
    this.#sessionId = sessionId;
    this.#texts = texts;
    this.#onClear = onClear;
  }

  get count(): number {
    return this.#texts.length;
  }

  read(count: number | undefined): StoredHistory {
    const from = count === undefined ? 0 : Math.max(0, this.#texts.length - count);
    const records = this.#texts.slice(from).map((text, index) => ({ text, position: from + index }));
    return { records, version: String(this.#version) };
  }

  write(change: HistoryWrite): string {
    const { operation, ifVersion, texts } = change;
    const known = operation && this.#operations.get(operation.id);
    if (known !== undefined) {
      if (known.digest !== operation?.digest) throw operationMismatch();
      return known.version;
    }
    if (ifVersion !== undefined && ifVersion !== String(this.#version))
      throw versionConflict(this.#sessionId, ifVersion, String(this.#version));
    if (change.type === 'replace') this.#texts = [...texts];
    else if (change.type === 'replace_suffix') this.#replaceSuffix(change.expected, texts);
    // One by one: a batch may have more items than a call may have arguments.
    else for (const text of texts) this.#texts.push(text);
    if (change.type !== 'append' || texts.length > 0) this.#changed(change.upkeep === true);
    const version = String(this.#version);
    if (operation) this.#operations.set(operation.id, { digest: operation.digest, version, at: Date.now() });
    this.#forget();
    return version;
  }

  pop(): StoredRecord | undefined {
    const text = this.#texts.pop();
    if (text === undefined) return undefined;
    this.#version++;
    return { text, position: this.#texts.length };
  }

  clear(): void {
    this.#texts = [];
    this.#version++;
    this.#operations.clear();
    this.createdAt = undefined;
    this.updatedAt = undefined;
    this.#onClear?.();
  }

  /** Makes the session if there is none. */
  touch(): void {
    this.createdAt ??= Date.now();
    this.updatedAt ??= this.createdAt;
  }

  /** Forgets nothing, but nothing can be read or written any more. */
  close(): void {}

  #changed(upkeep: boolean): void {
    this.#version++;
    this.touch();
    if (!upkeep) this.updatedAt = Date.now();
  }

  #replaceSuffix(expected: readonly string[], texts: readonly string[]): void {
    const from = Math.max(0, this.#texts.length - expected.length);
    const tail = this.#texts.slice(from).map((text, index) => ({ text, position: from + index }));
    if (matchSuffix(tail, expected)?.length !== expected.length) throw suffixMismatch();
    this.#texts.length = from;
    for (const text of texts) this.#texts.push(text);
  }

  #forget(): void {
    for (const [id, { at }] of this.#operations) {
      if (this.#operations.size <= REMEMBER_LAST || Date.now() - at < REMEMBER_MS) return;
      this.#operations.delete(id);
    }
  }
}

/** Version 4; `crypto.randomUUID` exists in secure contexts only. */
function randomUuid(): string {
  const hex = randomHex(16);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, variant + hex.slice(17, 20), hex.slice(20)].join(
    '-',
  );
}
