import { SessionVersionConflictError } from './errors.ts';
import type { HistoryBackend } from './history-backend.ts';
import { sessionExists } from './store-backend.ts';
import type { SessionStoreBackend, StagedHistory } from './store-backend.ts';

/** The part of a store that a collected history needs. */
type Target = Pick<SessionStoreBackend, 'get' | 'setMetadata'> & {
  history(sessionId: string): Pick<HistoryBackend, 'read' | 'write'>;
};

/** For backends without a stage of their own: all of it in memory, and one write at the end. */
export class CollectedHistory implements StagedHistory {
  readonly #sessionId: string;
  readonly #store: Target;
  #texts: string[] = [];

  constructor(sessionId: string, store: Target) {
    this.#sessionId = sessionId;
    this.#store = store;
  }

  append(texts: readonly string[]): void {
    for (const text of texts) this.#texts.push(text);
  }

  async publish(how: 'create' | 'replace' | 'append'): Promise<void> {
    const history = this.#store.history(this.#sessionId);
    const texts = this.#texts;
    if (texts.length === 0) await this.#publishEmpty(how);
    else if (how === 'append') await history.write({ type: 'append', texts });
    else if (how === 'replace') await history.write({ type: 'replace', texts });
    else {
      // First the version: what is written in between is noticed then.
      const { version } = await history.read(0);
      if ((await this.#store.get(this.#sessionId)) !== undefined) throw sessionExists(this.#sessionId);
      try {
        await history.write({ type: 'replace', texts, ifVersion: version });
      } catch (error) {
        if (error instanceof SessionVersionConflictError) throw sessionExists(this.#sessionId);
        throw error;
      }
    }
  }

  discard(): void {
    this.#texts = [];
  }

  /** A session without items is made as one that has metadata and no items. */
  async #publishEmpty(how: 'create' | 'replace' | 'append'): Promise<void> {
    if (how === 'create' && (await this.#store.get(this.#sessionId)) !== undefined)
      throw sessionExists(this.#sessionId);
    if (how === 'replace') await this.#store.history(this.#sessionId).write({ type: 'replace', texts: [] });
    await this.#store.setMetadata(this.#sessionId, {});
  }
}
