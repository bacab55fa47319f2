import { SessionBusyError, sessionExists } from '@agents/core/session';
import type { StagedHistory } from '@agents/core/session';
import { ObjectId } from 'mongodb';
import type { Filter } from 'mongodb';

import { batchOf } from './append.ts';
import { checkSizes, chunksOf } from './batches.ts';
import type { Scope } from './history.ts';
import { batchesOf, countOf, integer, isCleared, unusedGeneration } from './layout.ts';
import type { MessageDocument, SessionDocument } from './layout.ts';
import { commit, isInDoubt } from './outcome.ts';
import { ignoringErrors } from './pop.ts';
import { isCurrent, readState } from './read.ts';
import { replacedHistory } from './replaced.ts';
import type { State } from './read.ts';
import { removeSession } from './remove.ts';
import { batchesExpireAt, discard, exchange, publishedFields, retire } from './replace.ts';

/** Changes of others that a publication gives way to. */
const ATTEMPTS = 20;
/** Documents that are sent at once. */
const COPIED = 100;
/** Numbers that are left for the history which the staged one is put behind. */
const ROOM = 2 ** 31;

/** Of the history that what was staged comes into the place of. */
type OldBatch = Pick<MessageDocument, '_id' | 'generation' | 'operation' | 'seq' | '_popped'>;

/** A history that is written under a generation that nobody has; it becomes visible by one update. */
export class StagedBatches implements StagedHistory {
  readonly #scope: Scope;
  #generation: number;
  /** The number of the first item. */
  readonly #first: number;
  #items = 0;
  #batches = 0;
  /** It counts, or may do so: nothing of it may go. */
  #mayCount = false;
  #isDiscarded = false;

  private constructor(scope: Scope, { generation, document }: State) {
    this.#scope = scope;
    this.#generation = unusedGeneration(generation);
    this.#first = countOf(document?._seq) + ROOM;
  }

  static async begin(scope: Scope): Promise<StagedBatches> {
    return new StagedBatches(scope, await readState(scope));
  }

  async append(texts: readonly string[]): Promise<void> {
    checkSizes(texts, this.#scope.sessionId);
    const expiresAt = batchesExpireAt(this.#scope, undefined, new Date());
    const generation = this.#generation;
    let items = this.#items;
    const batches = chunksOf(texts).map((chunk) => {
      items += chunk.length;
      return batchOf(this.#scope, chunk, { generation, last: this.#first + items - 1, expiresAt });
    });
    if (batches.length > 0) await this.#scope.messages.insertMany(batches);
    this.#items = items;
    this.#batches += batches.length;
  }

  async publish(how: 'create' | 'replace' | 'append'): Promise<void> {
    const scope = this.#scope;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const state = await readState(scope);
      const { document } = state;
      if (state.expired && document !== undefined) {
        await removeSession(scope, document);
        continue;
      }
      const exists = document !== undefined && !isCleared(document);
      if (how === 'create' && exists) throw sessionExists(scope.sessionId);
      if (how === 'append' && exists && this.#items === 0) return;
      await this.#settleBehind(state);
      const old = how === 'append' ? await this.#copyOld(state) : await this.#idsOf(state.generation);
      // Metadata alone makes a session again.
      const _id = await this.#exchange(state, old, { _cleared: document?._cleared ?? null });
      if (_id !== undefined) {
        await ignoringErrors(retire(scope, _id, state.generation, old));
        return;
      }
    }
    throw this.#busy();
  }

  async discard(): Promise<void> {
    this.#isDiscarded = true;
    if (!this.#mayCount) await discard(this.#scope, this.#generation);
  }

  async #exchange(
    state: State,
    old: readonly OldBatch[],
    matching: Filter<SessionDocument>,
  ): Promise<ObjectId | undefined> {
    if (this.#isDiscarded) throw this.#busy();
    this.#mayCount = true;
    try {
      const _id = await commit(this.#scope, () =>
        exchange(this.#scope, state, this.#fields(state, old), undefined, matching),
      );
      this.#mayCount = _id !== undefined;
      return _id;
    } catch (error) {
      this.#mayCount = isInDoubt(error);
      throw error;
    }
  }

  #fields({ document, generation }: State, old: readonly OldBatch[]): SessionDocument {
    const now = new Date();
    return {
      ...publishedFields(this.#scope, document, now),
      _generation: integer(this.#generation),
      _replaced: replacedHistory(generation, old),
      _seq: integer(this.#items === 0 ? countOf(document?._seq) : this.#first + this.#items),
    };
  }

  /** All that was staged, under a generation behind the one that counts: a clear removes those before. @throws SessionBusyError */
  async #settleBehind({ generation, document }: State): Promise<void> {
    const { messages, sessionId } = this.#scope;
    const to = this.#generation > generation ? this.#generation : unusedGeneration(generation);
    const staged = {
      session_id: sessionId,
      generation: integer(this.#generation),
      seq: { $gte: integer(this.#first) },
    };
    const expiresAt = batchesExpireAt(this.#scope, document, new Date());
    // Copies of a try before.
    await messages.deleteMany({ ...staged, seq: { $lt: integer(this.#first) } });
    const { matchedCount } = await messages.updateMany(staged, {
      $set: { generation: integer(to), ...(expiresAt !== undefined && { expires_at: expiresAt }) },
    });
    this.#generation = to;
    if (matchedCount !== this.#batches || countOf(document?._seq) > this.#first) throw this.#busy();
  }

  async #idsOf(generation: number): Promise<OldBatch[]> {
    const { messages, sessionId } = this.#scope;
    return await messages
      .find(batchesOf(sessionId, generation), { projection: { generation: 1, operation: 1, seq: 1, _popped: 1 } })
      .toArray();
  }

  /** What counts now, before what was staged. */
  async #copyOld(state: State): Promise<OldBatch[]> {
    const { messages, sessionId } = this.#scope;
    const old: OldBatch[] = [];
    let copies: MessageDocument[] = [];
    const flush = async (): Promise<void> => {
      if (copies.length > 0) await messages.insertMany(copies);
      copies = [];
    };
    for await (const batch of messages.find(batchesOf(sessionId, state.generation), { batchSize: COPIED })) {
      const { _id, operation, ...rest } = batch;
      const { seq, generation, _popped } = batch;
      old.push({
        _id,
        seq,
        generation: generation ?? null,
        ...(operation && { operation }),
        ...(_popped !== undefined && { _popped }),
      });
      // A remainder of a life that is over goes, and is not taken along.
      if (!isCurrent(batch, state)) continue;
      copies.push({
        ...rest,
        seq: integer(countOf(batch.seq)),
        _id: new ObjectId(),
        generation: integer(this.#generation),
      });
      if (copies.length === COPIED) await flush();
    }
    await flush();
    return old;
  }

  #busy(): SessionBusyError {
    return new SessionBusyError('Others changed the history again and again; nothing was written. Try again.', {
      sessionId: this.#scope.sessionId,
    });
  }
}
