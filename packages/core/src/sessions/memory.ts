/// <reference lib="esnext.disposable" />
import { UserError } from '../base/errors.ts';
import { randomHex } from '../base/ids.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import { decodeItem, encodeItems } from './codec.ts';
import type { HistoryOperation, ManagedSession, SessionSettings } from './contract.ts';
import { SessionClosedError, SessionVersionConflictError } from './errors.ts';
import { changeDigest, checkBatch, checkOperation, checkWriteOptions, sameSuffix } from './operations.ts';
import type { HistoryChange } from './operations.ts';
import { checkSessionId, checkSessionSettings, resolveLimit } from './settings.ts';

/** Operations are remembered this long, and the last ones in any case (SESS-034). */
const REMEMBER_MS = 24 * 60 * 60 * 1000;
const REMEMBER_LAST = 64;

interface Remembered {
  readonly digest: string;
  readonly version: string;
  readonly at: number;
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
export class MemorySession<T extends object = AgentInputItem> implements ManagedSession<T> {
  readonly sessionId: string;
  readonly sessionSettings: SessionSettings | undefined;
  /** Each item as its JSON text: a copy that nobody can change. */
  #texts: string[];
  #version = 0;
  #closed = false;
  readonly #operations = new Map<string, Remembered>();

  constructor(
    sessionId?: string,
    options?: { items?: readonly NoInfer<T>[] | undefined; sessionSettings?: SessionSettings | undefined },
  ) {
    checkOptions(options, { items: kinds.array, sessionSettings: kinds.object }, 'MemorySession');
    checkSessionSettings(options?.sessionSettings, "'sessionSettings' of MemorySession");
    this.sessionId = sessionId ?? randomUuid();
    checkSessionId(this.sessionId);
    this.sessionSettings = options?.sessionSettings;
    this.#texts = this.#encode(options?.items ?? []);
  }

  get closed(): boolean {
    return this.#closed;
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  async getItems(limit?: number): Promise<T[]> {
    this.#checkOpen();
    return this.#newest(resolveLimit(limit, this.sessionSettings)).map((text) => decodeItem<T>(text) as T);
  }

  async addItems(items: readonly T[]): Promise<void> {
    this.#checkOpen();
    this.#append(this.#encode(checkBatch(items, 'addItems()')));
  }

  async popItem(): Promise<T | undefined> {
    this.#checkOpen();
    const text = this.#texts.pop();
    if (text === undefined) return undefined;
    this.#version++;
    return decodeItem<T>(text);
  }

  async clearSession(): Promise<void> {
    this.#checkOpen();
    this.#texts = [];
    this.#version++;
    this.#operations.clear();
  }

  async applyHistoryTransaction(operation: HistoryOperation<T>): Promise<void> {
    this.#checkOpen();
    const { operationId, transaction, digest } = checkOperation(operation);
    if (transaction.type === 'append_items') {
      const texts = this.#encode(transaction.items);
      this.#once(operationId, digest ?? changeDigest(transaction), () => this.#append(texts));
      return;
    }
    const expected = this.#encode(transaction.expectedSuffix);
    const replacement = this.#encode(transaction.replacement);
    this.#once(operationId, digest ?? changeDigest(transaction), () => {
      const tail = expected.length === 0 ? [] : this.#texts.slice(-expected.length);
      if (!sameSuffix(tail, expected)) throw suffixMismatch();
      this.#texts.splice(this.#texts.length - expected.length, expected.length, ...replacement);
      this.#version++;
    });
  }

  async readHistory(limit?: number): Promise<{ items: T[]; version: string }> {
    const items = await this.getItems(limit);
    return { items, version: String(this.#version) };
  }

  async appendIfVersion(version: string, items: readonly T[], options?: { operationId?: string }): Promise<string> {
    this.#checkOpen();
    checkWriteOptions(options, ['operationId'], 'appendIfVersion()');
    const texts = this.#encode(checkBatch(items, 'appendIfVersion()'));
    return this.#versioned({ type: 'append_items', items }, version, options?.operationId, () => this.#append(texts));
  }

  async replaceHistory(items: readonly T[], options?: { ifVersion?: string; operationId?: string }): Promise<string> {
    this.#checkOpen();
    checkWriteOptions(options, ['ifVersion', 'operationId'], 'replaceHistory()');
    const texts = this.#encode(checkBatch(items, 'replaceHistory()'));
    return this.#versioned({ type: 'replace_history', items }, options?.ifVersion, options?.operationId, () => {
      this.#texts = texts;
      this.#version++;
    });
  }

  async ping(): Promise<boolean> {
    this.#checkOpen();
    return true;
  }

  /** Forgets nothing, but nothing can be read or written any more. */
  async close(): Promise<void> {
    this.#closed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #newest(limit: number | undefined): readonly string[] {
    if (limit === undefined) return this.#texts;
    return limit === 0 ? [] : this.#texts.slice(-limit);
  }

  #append(texts: readonly string[]): void {
    if (texts.length === 0) return;
    // One by one: a batch may have more items than a call may have arguments.
    for (const text of texts) this.#texts.push(text);
    this.#version++;
  }

  #versioned(
    change: HistoryChange,
    expected: string | undefined,
    operationId: string | undefined,
    apply: () => void,
  ): string {
    const write = (): void => {
      const actual = String(this.#version);
      if (expected !== undefined && expected !== actual) {
        throw new SessionVersionConflictError(
          'The history was changed since it was read; nothing was written. Read it again.',
          {
            sessionId: this.sessionId,
            expected,
            actual,
          },
        );
      }
      apply();
    };
    if (operationId !== undefined) return this.#once(operationId, changeDigest(change), write);
    write();
    return String(this.#version);
  }

  /** Version after the change, or that of the first time when it is repeated. */
  #once(operationId: string, digest: string, apply: () => void): string {
    const known = this.#operations.get(operationId);
    if (known !== undefined) {
      if (known.digest !== digest) throw operationMismatch();
      return known.version;
    }
    apply();
    const version = String(this.#version);
    this.#operations.set(operationId, { digest, version, at: Date.now() });
    this.#forget();
    return version;
  }

  #forget(): void {
    for (const [id, { at }] of this.#operations) {
      if (this.#operations.size <= REMEMBER_LAST || Date.now() - at < REMEMBER_MS) return;
      this.#operations.delete(id);
    }
  }

  #encode(items: readonly object[]): string[] {
    return encodeItems(items, this.sessionId, { ascii: false });
  }

  #checkOpen(): void {
    if (this.#closed) throw new SessionClosedError('The session was closed.', { sessionId: this.sessionId });
  }
}

function suffixMismatch(): UserError {
  return new UserError('The history does not end with the expected items; nothing was changed.', {
    code: 'session_suffix_mismatch',
  });
}

function operationMismatch(): UserError {
  return new UserError(
    'This operation id was used for another change; nothing was changed. An operation id belongs to one change.',
    {
      code: 'session_operation_mismatch',
    },
  );
}

/** Version 4; `crypto.randomUUID` exists in secure contexts only. */
function randomUuid(): string {
  const hex = randomHex(16);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, variant + hex.slice(17, 20), hex.slice(20)].join(
    '-',
  );
}
