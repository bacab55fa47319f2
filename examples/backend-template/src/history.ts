import { randomUUID } from 'node:crypto';

import { matchSuffix, operationMismatch, suffixMismatch, versionConflict } from '@agents/core/session';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '@agents/core/session';

import type { Database, Document } from './database.ts';

/** One session in the database: all that `StoredSession` needs to know of it. */
export class TemplateHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #database: Database;

  constructor(sessionId: string, database: Database) {
    this.#sessionId = sessionId;
    this.#database = database;
  }

  /** The newest `count` records and the version of the same moment. A session that does not exist is empty. */
  async read(count: number | undefined): Promise<StoredHistory> {
    const document = await this.#database.get(this.#sessionId);
    const texts = document?.texts ?? [];
    const from = count === undefined ? 0 : Math.max(0, texts.length - count);
    return { records: recordsOf(texts.slice(from), from), version: versionOf(document) };
  }

  /** All or nothing: the operation id is looked up, and stored, in the same step as the items. */
  async write(change: HistoryWrite): Promise<string> {
    let version = '';
    await this.#database.update(this.#sessionId, (document) => {
      const { operation, ifVersion, texts } = change;
      const known = operation && document?.operations[operation.id];
      if (known) {
        if (known.digest !== operation.digest) throw operationMismatch();
        version = known.version;
        return document;
      }
      const actual = versionOf(document);
      if (ifVersion !== undefined && ifVersion !== actual) throw versionConflict(this.#sessionId, ifVersion, actual);
      version = actual;
      if (change.type === 'append' && texts.length === 0 && operation === undefined) return document;
      const next = changed(document, [...keptOf(document?.texts ?? [], change), ...texts], change.upkeep);
      version = versionOf(next);
      if (operation === undefined) return next;
      // A real backend forgets operations after a day, but never the last 64.
      return { ...next, operations: { ...next.operations, [operation.id]: { digest: operation.digest, version } } };
    });
    return version;
  }

  /** The session stays, with its metadata and operations, also without items. */
  async pop(): Promise<StoredRecord | undefined> {
    let popped: StoredRecord | undefined;
    await this.#database.update(this.#sessionId, (document) => {
      const position = (document?.texts.length ?? 0) - 1;
      const text = document?.texts[position];
      if (document === undefined || text === undefined) return document;
      popped = { text, position };
      return changed(document, document.texts.slice(0, -1), true);
    });
    return popped;
  }

  async clear(): Promise<void> {
    await this.#database.update(this.#sessionId, () => undefined);
  }

  /** A write that failed with one of these may have been stored all the same: the caller repeats it with its operation id. */
  outcomeUnknown(error: unknown): boolean {
    return error instanceof ConnectionLost;
  }
}

/** Of your driver: the errors after which nobody knows. */
export class ConnectionLost extends Error {}

function recordsOf(texts: readonly string[], from = 0): StoredRecord[] {
  return texts.map((text, index) => ({ text, position: from + index }));
}

function versionOf(document: Document | undefined): string {
  return document?.version ?? 'none';
}

/** What stays of the old items. */
function keptOf(texts: readonly string[], change: HistoryWrite): readonly string[] {
  if (change.type === 'append') return texts;
  if (change.type === 'replace') return [];
  const matched = matchSuffix(recordsOf(texts), change.expected);
  if (matched?.length !== change.expected.length) throw suffixMismatch();
  return texts.filter((_, index) => !matched.includes(index));
}

export function changed(
  document: Document | undefined,
  texts: readonly string[],
  upkeep: boolean | undefined = false,
): Document {
  const now = Date.now();
  return {
    operations: {},
    createdAt: now,
    ...document,
    texts,
    version: randomUUID(),
    updatedAt: upkeep && document ? document.updatedAt : now,
  };
}
