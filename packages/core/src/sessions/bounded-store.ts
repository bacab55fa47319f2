import { bounded, OutOfTime } from './bounded.ts';
import { CollectedHistory } from './collected-history.ts';
import type { Session } from './contract.ts';
import { SessionOutcomeUnknownError } from './errors.ts';
import type { HistoryBackend, StoredRecord } from './history-backend.ts';
import type { SessionPage, SessionPageResult, SessionStoreBackend, StagedHistory } from './store-backend.ts';
import type { SessionInfo } from './store.ts';

type ChangeKind = SessionOutcomeUnknownError['operation'];

/**
 * A backend whose calls end in time, each by itself (a fork or an import is many), with what it may leave out. A change that
 * ran out of time, or failed in a way that does not tell, has an unknown outcome.
 */
export class BoundedStore<S extends Session = Session> {
  readonly #backend: SessionStoreBackend<S>;
  readonly #ms: number | undefined;

  constructor(backend: SessionStoreBackend<S>, ms: number | undefined) {
    this.#backend = backend;
    this.#ms = ms;
  }

  async list(page: SessionPage): Promise<SessionPageResult> {
    return await this.#bounded(undefined, () => this.#backend.list(page));
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    return await this.#bounded(sessionId, () => this.#backend.get(sessionId));
  }

  async remove(sessionIds: readonly string[], idleSince?: Date): Promise<{ sessions: number; items: number }> {
    return await this.#change(
      sessionIds[0] ?? '',
      'clear',
      async () => await this.#backend.remove(sessionIds, idleSince),
    );
  }

  async sweep(idleSince: Date): Promise<void> {
    await this.#bounded(undefined, () => this.#backend.sweep?.(idleSince));
  }

  async setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#change(sessionId, 'replace', async () => {
      await this.#backend.setMetadata(sessionId, patch);
    });
  }

  async check(): Promise<string[]> {
    return (await this.#bounded(undefined, () => this.#backend.check?.())) ?? [];
  }

  history(sessionId: string): Pick<HistoryBackend, 'read' | 'write'> {
    const history = this.#backend.history(sessionId);
    return {
      read: async (count) => await this.#bounded(sessionId, () => history.read(count)),
      write: async (change) => {
        const kind = change.type === 'append' ? 'append' : 'replace';
        return await this.#change(sessionId, kind, async () => await history.write(change));
      },
    };
  }

  /** From the oldest record on, of one moment. */
  async *parts(sessionId: string): AsyncGenerator<readonly StoredRecord[]> {
    if (this.#backend.parts === undefined) {
      yield (await this.history(sessionId).read(undefined)).records;
      return;
    }
    const parts = this.#backend.parts(sessionId)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const part = await this.#bounded(sessionId, () => parts.next());
        if (part.done === true) return;
        yield part.value;
      }
    } finally {
      // Lets go of a cursor. What failed has ended already, and one that gave no answer in time gives none to this.
      void Promise.resolve(parts.return?.()).catch(() => undefined);
    }
  }

  async stage(sessionId: string): Promise<StagedHistory> {
    const staged = await this.#bounded(sessionId, () => this.#backend.stage?.(sessionId));
    if (staged === undefined) return new CollectedHistory(sessionId, this);
    let isEmpty = true;
    const append = async (texts: readonly string[]): Promise<void> => {
      await this.#bounded(sessionId, () => staged.append(texts));
    };
    return {
      append: async (texts) => {
        if (texts.length === 0) return;
        isEmpty = false;
        await append(texts);
      },
      publish: async (how) => {
        if (isEmpty) await append([]);
        const kind = how === 'append' ? 'append' : 'replace';
        await this.#change(sessionId, kind, async () => {
          await staged.publish(how);
        });
      },
      discard: async () => await this.#bounded(sessionId, () => staged.discard()),
    };
  }

  async #bounded<R>(sessionId: string | undefined, work: () => R | Promise<R>): Promise<R> {
    return await bounded(this.#ms, sessionId, work);
  }

  async #change<R>(sessionId: string, operation: ChangeKind, work: () => Promise<R>): Promise<R> {
    try {
      return await this.#bounded(sessionId, work);
    } catch (error) {
      if (!(error instanceof OutOfTime || this.#backend.history(sessionId).outcomeUnknown?.(error) === true))
        throw error;
      throw new SessionOutcomeUnknownError(
        'The change of the store may have been made although its answer did not arrive. Look with get(), and repeat it if it was not.',
        { sessionId, operation, cause: error },
      );
    }
  }
}
