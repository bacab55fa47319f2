import { randomHex } from '../base/ids.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import type { StateRecord } from '../state/record.ts';
import { claimHeld, inputBatch, rawDigests, turnBatch } from './batch.ts';
import { appendItems, applyOperation, readItems } from './calls.ts';
import type { SessionStep } from './calls.ts';
import { partialAppend, supports } from './contract.ts';
import type { HistoryOperation, PartialAppendSession, Session, TransactionalSession } from './contract.ts';
import { SessionOutcomeUnknownError } from './errors.ts';
import type { CompactionHook } from './compaction-hook.ts';
import { batchPosition, operationId } from './operation-id.ts';
import { hold } from './held.ts';
import { ambiguous, isHeld, readOutcome, stillThere, wrongSession } from './recover.ts';
import { Rejoin } from './rejoin.ts';
import type { Place } from './rejoin.ts';
import { rewind } from './rewind.ts';
import { knownSessionId, readSessionId } from './settings.ts';
import { KEPT, KnownTail, tailDigest } from './tail.ts';
import type { VersionChain } from './version-chain.ts';

/** Waits between repeats of an append whose answer was lost (SESS-102). */
const REPEAT_AFTER_MS = [50, 200, 800] as const;

export interface WriterArgs {
  readonly session: Session;
  readonly record: StateRecord;
  readonly context: RunContext;
  readonly step: SessionStep;
  /** Rejects when the run is aborted, for what is waited for outside of a step. */
  readonly race?: (<T>(work: Promise<T>) => Promise<T>) | undefined;
  /** From `prepareInput`; absent in a resumed segment, whose first write reads it. */
  readonly tail?: KnownTail | undefined;
  /** With `sessionConcurrency: 'detect'`. */
  readonly chain?: VersionChain | undefined;
  /** Of a session that compacts its history. */
  readonly compaction?: CompactionHook | undefined;
}

export interface TurnMeta {
  readonly responseId?: string | undefined;
  readonly store?: boolean | undefined;
  readonly hasLocalToolOutputs: boolean;
  /** The last append of a run: the record has no pending write then, the unrecoverable mark stands for it (STATE-331). */
  readonly terminal?: boolean | undefined;
}

/**
 * The only writer of a session. A batch stands in the record before it is offered to the session and leaves it when the
 * session acknowledged it, so that whatever happens in between can be settled later (STATE §11.2). Errors of the session
 * pass unchanged.
 */
export class SessionWriter {
  readonly #session: Session;
  #record: StateRecord;
  readonly #context: RunContext;
  readonly #step: SessionStep;
  readonly #race: WriterArgs['race'];
  readonly #chain: VersionChain | undefined;
  /** What the loop tells of its model calls. */
  readonly compaction: CompactionHook | undefined;
  #tail: KnownTail | undefined;
  /** Of a resumed segment, until it knows where it stands. */
  readonly #rejoin: Rejoin | undefined;
  #sessionId: string | undefined;

  constructor(args: WriterArgs) {
    this.#session = args.session;
    this.#record = args.record;
    this.#context = args.context;
    this.#step = args.step;
    this.#race = args.race;
    this.#chain = args.chain;
    this.compaction = args.compaction;
    this.#tail = args.tail;
    this.#rejoin = args.tail === undefined ? new Rejoin(args.session, args.record) : undefined;
    this.#sessionId = knownSessionId(args.session);
    this.#record.sessionId = this.#sessionId ?? this.#record.sessionId;
  }

  /** The turns that follow are written down in another record (a state that was passed in stands still, STATE-135). */
  follow(record: StateRecord): void {
    this.#record = record;
  }

  /** The run's new input is owed to the session from now on (STATE-321). */
  stageInput(newItems: readonly AgentInputItem[]): void {
    const batch = inputBatch(this.#session, this.#record, newItems);
    if (batch.items.length === 0) return;
    this.#record.pendingWrite = this.#pending(
      batch.items,
      { persistedCount: 0, turn: 0, firstItemIndex: 0 },
      { hasLocalToolOutputs: false },
    );
  }

  /** Before the first request leaves. Does nothing when no input is owed. */
  async writeInput(): Promise<void> {
    const id = await this.#id();
    const owed = this.#record.pendingWrite;
    // Staged before a session that gives its id only on request had been asked.
    if (owed?.sessionId === '' && id !== '') this.#record.pendingWrite = { ...owed, sessionId: id };
    const pending = this.#record.pendingWrite;
    if (pending !== undefined && !isHeld(pending)) await this.#write(pending);
  }

  /** What a turn adds to the history; approvals that wait are left out. */
  async writeTurn(items: readonly RunItem[], meta: TurnMeta): Promise<void> {
    const record = this.#record;
    // A batch that is still owed comes first; only a caller that skipped `writeInput` gets here with one.
    await this.writeInput();
    const turn = turnBatch(this.#session, record.reasoningItemIdPolicy, items);
    const held = record.pendingWrite;
    const batch = held === undefined ? turn : claimHeld(this.#session, record, held, turn);
    const hasLocalToolOutputs = meta.hasLocalToolOutputs || (held !== undefined && hasOutput(batch.items));
    if (batch.items.length === 0) {
      record.pendingWrite = undefined;
      return;
    }
    const persistedCount = record.persistedItemCount + batch.count;
    const pending = this.#pending(
      batch.items,
      { persistedCount, ...batchPosition(record) },
      { ...meta, hasLocalToolOutputs },
    );
    if (meta.terminal !== true) record.pendingWrite = pending;
    await this.#write(pending, meta.terminal);
  }

  /** What a pause leaves owed while output guardrails may yet withhold it: held in the state (STATE-322). */
  async holdTurn(items: readonly RunItem[], meta: TurnMeta): Promise<void> {
    await this.writeInput();
    hold(this.#record, items, meta, { session: this.#session, sessionId: await this.#id() });
  }

  /**
   * Settles what an earlier segment left owed, before anything else of a resume. No tool, hook or model is involved.
   *
   * @throws UserError `session_write_wrong_session`, `session_write_ambiguous`; the write stays owed then
   */
  async settle(): Promise<void> {
    const pending = this.#record.pendingWrite;
    if (pending === undefined) return;
    if (pending.sessionId !== (await this.#id())) throw wrongSession();
    if (!isHeld(pending)) await this.#settle(pending);
    else if (this.#record.step.type !== 'interruption') await this.#settleHeld(pending);
  }

  /** The turn of a held batch was ended by a segment without the session: what is whole of it is written now (STATE-327). */
  async #settleHeld(held: PendingWrite): Promise<void> {
    const record = this.#record;
    const { items, count } = claimHeld(this.#session, record, held, { items: [], count: 0 });
    record.pendingWrite = undefined;
    if (items.length === 0) return;
    const { responseId, store } = held;
    record.pendingWrite = this.#pending(
      items,
      { persistedCount: record.persistedItemCount + count, ...batchPosition(record) },
      { responseId: responseId ?? undefined, store: store ?? undefined, hasLocalToolOutputs: hasOutput(items) },
    );
    await this.#write(record.pendingWrite);
  }

  async #settle(pending: PendingWrite): Promise<void> {
    const { before } = pending;
    if (before === null) return await this.#write(pending);
    // With the same operation id the session itself knows whether it has the batch, also when others wrote meanwhile.
    if (!pending.acknowledged && pending.position !== undefined && supports(this.#session, 'transactions')) {
      await this.#append(pending);
      this.#chain?.restart();
      this.#tail = undefined;
      this.#rejoin?.settled(pending.items);
      return await this.#acknowledge(pending);
    }
    const tail = await this.#read(before.length + pending.items.length);
    const digests = this.#digests(tail);
    const batch = this.#digests(pending.items);
    if (pending.acknowledged) {
      if (!stillThere(before, batch, digests)) throw ambiguous();
    } else {
      const outcome = readOutcome(before, batch, digests);
      if (outcome === 'ambiguous') return await this.#settlePartial(pending);
      if (outcome === 'unchanged') {
        await this.#append(pending);
        tail.push(...pending.items);
      }
    }
    this.#tail = new KnownTail(tail, false);
    this.#rejoin?.end();
    await this.#acknowledge(pending, true);
  }

  /** A session that stores a batch in parts may know which of them it has. */
  async #settlePartial(pending: PendingWrite): Promise<void> {
    const session = this.#session as Session & Partial<PartialAppendSession>;
    if (typeof session[partialAppend] !== 'function') throw ambiguous();
    const goesOn = await this.#step({ kind: 'session', operation: 'append' }, async () =>
      session[partialAppend]?.(pending.items),
    );
    if (goesOn !== true) throw ambiguous();
    this.#tail = undefined;
    this.#rejoin?.settled(pending.items);
    await this.#acknowledge(pending);
  }

  /** Steps ③ to ⑤ of STATE §11.2. The last append of a run needs no `before`: nobody will settle it. */
  async #write(pending: PendingWrite, terminal = false): Promise<void> {
    if (this.#rejoin?.isDue(terminal && !pending.hasLocalToolOutputs)) {
      const place = await this.#rejoin.place(pending.items, this.#record, (count) => this.#read(count));
      this.#tail = place.tail;
      return await this.#put(place, pending, terminal);
    }
    if (!terminal) pending.before ??= await this.#before(pending.items.length);
    await this.#append(pending);
    await this.#acknowledge(pending);
  }

  /** A batch of a segment that may not be the first one to go on from its state. */
  async #put({ items, replaced, searched }: Place, owed: PendingWrite, terminal: boolean): Promise<void> {
    const pending = items === owed.items ? owed : { ...owed, items };
    if (items.length > 0) {
      if (!terminal) this.#record.pendingWrite = pending;
      // With `before` a settlement would look at the tail alone; without, it finds its place again as this segment did.
      if (!searched) pending.before ??= await this.#before(items.length);
      if (replaced.length > 0) await this.#replace(replaced, items);
      else await this.#append(pending);
      if (replaced.length === 0) await this.#ensure(items);
    }
    await this.#acknowledge(pending);
  }

  async #replace(expectedSuffix: readonly AgentInputItem[], replacement: readonly AgentInputItem[]): Promise<void> {
    const session = this.#session;
    this.#chain?.restart();
    await this.#step({ kind: 'session', operation: 'append', items: replacement.length }, async () => {
      if (supports(session, 'transactions')) {
        const transaction = { type: 'replace_suffix', expectedSuffix, replacement } as const;
        return await this.#apply(session, { operationId: randomHex(16), transaction });
      }
      const digest = (item: AgentInputItem): string => tailDigest(session, item);
      if (!(await rewind({ session, suffix: expectedSuffix, context: this.#context, digest }))) throw ambiguous();
      await appendItems(session, replacement, this.#context);
    });
    this.compaction?.rejoin();
  }

  /**
   * The id of an append may be known from an earlier resume whose items were replaced or taken out since: then nothing was
   * stored. What somebody else stored behind them meanwhile does not hide them.
   */
  async #ensure(items: readonly AgentInputItem[]): Promise<void> {
    const session = this.#session;
    if (!supports(session, 'transactions')) return;
    const wanted = this.#digests(items);
    for (const count of [items.length, Math.max(KEPT, items.length)]) {
      const stored = this.#digests(await this.#read(count));
      if (stored.some((_, start) => wanted.every((digest, index) => digest === stored[start + index]))) return;
    }
    this.#chain?.restart();
    await this.#step({ kind: 'session', operation: 'append', items: items.length }, () =>
      this.#apply(session, { operationId: randomHex(16), transaction: { type: 'append_items', items } }),
    );
    this.compaction?.rejoin();
  }

  async #before(batchLength: number): Promise<readonly string[]> {
    const wanted = batchLength + 1;
    if (this.#tail?.known !== true) {
      const items = await this.#read(wanted);
      this.#tail = new KnownTail(items, items.length < wanted);
    }
    return this.#digests(this.#tail.last(wanted));
  }

  async #append(pending: PendingWrite): Promise<void> {
    const session = this.#session;
    const { items } = pending;
    await this.#step({ kind: 'session', operation: 'append', items: items.length }, async () => {
      const chain = this.#chain;
      const transactions = supports(session, 'transactions') ? session : undefined;
      if (!chain && !transactions) return await appendItems(session, items, this.#context);
      const position = pending.position ?? batchPosition(this.#record);
      const id = operationId(await this.#id(), this.#record.runKey, position, rawDigests(items));
      if (chain) await repeat(() => chain.append(items, id));
      else if (transactions)
        await this.#apply(transactions, { operationId: id, transaction: { type: 'append_items', items } });
    });
    this.compaction?.appended();
  }

  async #apply(session: TransactionalSession, operation: HistoryOperation): Promise<void> {
    await repeat(() => applyOperation(session, operation, this.#context));
  }

  /** The append is confirmed; the record of it goes when the session has compacted, or put it off, too (STATE-329). */
  async #acknowledge(pending: PendingWrite, isInTail = false): Promise<void> {
    pending.acknowledged = true;
    this.#record.persistedItemCount = pending.persistedCount;
    if (!isInTail) this.#tail?.push(pending.items);
    if (this.compaction && (await this.compaction.stored(pending, this.#step))) {
      this.#tail = undefined;
      this.#chain?.restart();
    }
    this.#record.pendingWrite = undefined;
  }

  async #read(count: number): Promise<AgentInputItem[]> {
    return await this.#step({ kind: 'session', operation: 'read' }, () =>
      readItems(this.#session, count, this.#context),
    );
  }

  #digests(items: readonly AgentInputItem[]): string[] {
    return items.map((item) => tailDigest(this.#session, item));
  }

  /** `''` when the session has no id to be had: such writes are told apart by what they hold alone. */
  async #id(): Promise<string> {
    if (this.#sessionId !== undefined) return this.#sessionId;
    const asked = readSessionId(this.#session);
    this.#sessionId = await (this.#race?.(asked) ?? asked);
    if (this.#sessionId === undefined) return '';
    this.#record.sessionId = this.#sessionId;
    return this.#sessionId;
  }

  #pending(
    items: readonly AgentInputItem[],
    {
      persistedCount,
      ...position
    }: { readonly persistedCount: number; readonly turn: number; readonly firstItemIndex: number },
    meta: TurnMeta,
  ): PendingWrite {
    return {
      sessionId: this.#sessionId ?? '',
      items,
      before: null,
      persistedCount,
      responseId: meta.responseId ?? null,
      store: meta.store ?? null,
      hasLocalToolOutputs: meta.hasLocalToolOutputs,
      acknowledged: false,
      position,
      exchange: this.compaction?.exchange,
    };
  }
}

/** A change with an operation id, again while nobody knows whether it was stored. */
async function repeat(change: () => Promise<void>): Promise<void> {
  for (const wait of REPEAT_AFTER_MS) {
    try {
      return await change();
    } catch (error) {
      if (!(error instanceof SessionOutcomeUnknownError)) throw error;
      await new Promise<void>((resolve) => void setTimeout(resolve, wait * (0.8 + 0.4 * Math.random())));
    }
  }
  await change();
}

function hasOutput(items: readonly AgentInputItem[]): boolean {
  return items.some(({ type }) => type === 'function_call_output');
}
