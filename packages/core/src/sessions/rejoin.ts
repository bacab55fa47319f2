import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { StateRecord } from '../state/record.ts';
import { turnBatch } from './batch.ts';
import type { Session } from './contract.ts';
import { KEPT, KnownTail, tailDigest } from './tail.ts';

/** Where a batch of a resumed segment goes. */
export interface Place {
  /** What is to be stored: calls that the session lost are added, outputs that it has already are left out. */
  readonly items: readonly AgentInputItem[];
  /** The end of the history that these items replace. */
  readonly replaced: readonly AgentInputItem[];
  /** The history did not end where the run had left it: operation ids of earlier resumes say nothing about what it holds now. */
  readonly searched: boolean;
  /** What stands before the items, as far as it was read. */
  readonly tail: KnownTail | undefined;
}

type Read = (count: number) => Promise<AgentInputItem[]>;

/**
 * Finds out where a resumed run stands in its session. As a rule the history ends with the run's own newest item, which
 * the read before the first append shows (STATE §11.2 ③). Where it does not, the newest `KEPT` items are looked at, once:
 * an earlier resume of the same state may have written there and died (its items are replaced as this resume gets to them),
 * or the session was cleared or is another one (calls that outputs belong to are stored with them), or somebody else went
 * on with the conversation (what is stored stays, no output is stored twice). STATE-304, 305.
 */
export class Rejoin {
  readonly #session: Session;
  #state: 'due' | 'again' | 'over' = 'due';
  /** The run's newest item in the session; `undefined`: to be searched for by what the batch holds. */
  #newest: string | undefined;
  readonly #hasItems: boolean;
  /** Outputs that the state waits for. */
  readonly #open: ReadonlySet<string>;

  constructor(session: Session, record: StateRecord) {
    this.#session = session;
    this.#open = openOutputs(record);
    this.#hasItems = record.sessionItems.length > 0;
    const newest = record.sessionItems.findLast((item) => item.type !== 'tool_approval_item');
    // Items of a batch that is still owed may be stored or not.
    if (newest === undefined || record.pendingWrite !== undefined) return;
    const stored = turnBatch(session, record.reasoningItemIdPolicy, [newest]).items.at(-1);
    this.#newest = stored && tailDigest(session, stored);
  }

  /** Whether the next batch has to be placed; `alone`: it ends the run and answers no calls. */
  isDue(alone: boolean): boolean {
    return this.#state === 'again' || (this.#state === 'due' && !alone);
  }

  /** The end of the history is known otherwise. */
  end(): void {
    this.#state = 'over';
  }

  /** A batch that an earlier segment left owed is there now. */
  settled(items: readonly AgentInputItem[]): void {
    const newest = items.at(-1);
    if (this.#state === 'due' && newest !== undefined) this.#newest = tailDigest(this.#session, newest);
  }

  async place(batch: readonly AgentInputItem[], record: StateRecord, read: Read): Promise<Place> {
    return this.#state === 'again' ? await this.#next(batch, read) : await this.#first(batch, record, read);
  }

  async #first(batch: readonly AgentInputItem[], record: StateRecord, read: Read): Promise<Place> {
    const wanted = batch.length + 1;
    const near = await read(wanted);
    const newest = near.at(-1);
    const isEnd = newest !== undefined && tailDigest(this.#session, newest) === this.#newest;
    if (isEnd || !this.#hasItems) return this.#apart(batch, new KnownTail(near, near.length < wanted), false);
    const window = near.length < wanted ? near : await read(KEPT);
    const complete = window.length < (near.length < wanted ? wanted : KEPT);
    const items = complete ? [...this.#lostCalls(batch, window, record), ...batch] : batch;
    const own = new Set([...batch.flatMap((item) => keyOf(item) ?? []), ...this.#open]);
    const start = window.findIndex((item) => own.has(keyOf(item) ?? ''));
    const rest = start === -1 ? [] : window.slice(start);
    if (rest.length > 0 && isOwn(rest, own)) return this.#again(items, window.slice(0, start), rest);
    const stored = new Set(rest.flatMap((item) => keyOf(item) ?? []));
    return this.#apart(
      items.filter((item) => !stored.has(keyOf(item) ?? '')),
      new KnownTail(window, complete),
    );
  }

  /** Later batches follow the one before; what stands behind that is of the earlier resume still. */
  async #next(batch: readonly AgentInputItem[], read: Read): Promise<Place> {
    const window = await read(KEPT);
    const at = window.findLastIndex((item) => tailDigest(this.#session, item) === this.#newest);
    const rest = window.slice(at + 1);
    if (at === -1 || !isOwn(rest, this.#open)) return this.#apart(batch, new KnownTail(window, window.length < KEPT));
    return this.#again(batch, window.slice(0, at + 1), rest);
  }

  #apart(items: readonly AgentInputItem[], tail: KnownTail, searched = true): Place {
    this.#state = 'over';
    return { items, replaced: [], searched, tail };
  }

  #again(items: readonly AgentInputItem[], before: readonly AgentInputItem[], rest: readonly AgentInputItem[]): Place {
    this.#state = 'again';
    const newest = items.at(-1);
    this.#newest = newest && tailDigest(this.#session, newest);
    const isStored =
      rest.length >= items.length &&
      items.every((item, index) => {
        const stored = rest[index];
        return stored !== undefined && tailDigest(this.#session, item) === tailDigest(this.#session, stored);
      });
    // What is there already in this very form stays, for readers and for a resume that goes on at the same time.
    return isStored
      ? { items: [], replaced: [], searched: true, tail: undefined }
      : { items, replaced: rest, searched: true, tail: new KnownTail(before, false) };
  }

  /**
   * Calls, and the reasoning that led to them, that outputs of the batch or of a later pass would be without. What the run
   * has not published yet is not lost: it comes with its pass.
   */
  #lostCalls(
    batch: readonly AgentInputItem[],
    window: readonly AgentInputItem[],
    record: StateRecord,
  ): readonly AgentInputItem[] {
    const asked = new Set([...batch.flatMap((item) => keyOf(item) ?? []), ...this.#open]);
    const there = new Set([...batch, ...window].flatMap((item) => keyOf(item) ?? []));
    const published = new Set(record.sessionItems.map((item) => item.type === 'tool_call_item' && item.callId));
    const lost: RunItem[] = [];
    let reasoning: RunItem[] = [];
    for (const item of record.processed?.newItems ?? []) {
      if (item.type === 'reasoning_item') reasoning.push(item);
      else {
        if (
          item.type === 'tool_call_item' &&
          isFunctionCall(item) &&
          published.has(item.callId) &&
          asked.has(outputKey(item.callId ?? ''))
        )
          lost.push(...reasoning, item);
        reasoning = [];
      }
    }
    const stored = lost.length === 0 ? [] : turnBatch(this.#session, record.reasoningItemIdPolicy, lost).items;
    return stored.some((item) => item.type === 'function_call' && !there.has(keyOf(item) ?? ''))
      ? stored.filter((item) => !there.has(keyOf(item) ?? ''))
      : [];
  }
}

/** Outputs that the state waits for. */
function openOutputs(record: StateRecord): ReadonlySet<string> {
  if (record.step.type !== 'interruption') return new Set();
  const calls = (record.processed?.newItems ?? []).flatMap((item) =>
    item.type === 'tool_call_item' && isFunctionCall(item) ? [item.callId ?? ''] : [],
  );
  const done = new Set(
    record.generatedItems.map((item) => (item.type === 'tool_call_output_item' ? item.callId : undefined)),
  );
  return new Set(calls.filter((callId) => !done.has(callId)).map(outputKey));
}

function isFunctionCall(item: Extract<RunItem, { type: 'tool_call_item' }>): boolean {
  return item.rawItem.type === 'function_call';
}

function outputKey(callId: string): string {
  return `function_call_output ${callId}`;
}

/** What makes an item that one and no other: its kind with the id of its call, or with its own. */
function keyOf(item: AgentInputItem): string | undefined {
  const { type, call_id: callId, id } = item as { type?: unknown; call_id?: unknown; id?: unknown };
  const own = callId ?? id;
  return typeof type === 'string' && typeof own === 'string' && own !== '' ? `${type} ${own}` : undefined;
}

/**
 * Whether a run alone may have written these items: nothing that a person or a program said to it, and no answer to calls of
 * others, or to none.
 */
function isOwn(items: readonly AgentInputItem[], own: ReadonlySet<string>): boolean {
  const asked = new Set<unknown>();
  return items.every((item) => {
    const { type, role, call_id: callId } = item as { type?: unknown; role?: unknown; call_id?: unknown };
    if (role !== undefined) return role === 'assistant';
    if (typeof type !== 'string' || saidByOthers.has(type)) return false;
    if (!type.endsWith('_output')) {
      asked.add(callId);
      return true;
    }
    // The provider's own search answers itself, without a call id.
    if (typeof callId !== 'string') return type === 'tool_search_output';
    return asked.has(callId) || own.has(`${type} ${callId}`);
  });
}

/** Without a role, and yet no run writes them by itself. */
const saidByOthers: ReadonlySet<string> = new Set(['item_reference', 'mcp_approval_response']);
