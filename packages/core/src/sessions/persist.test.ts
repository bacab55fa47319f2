import { describe, expect, it, vi } from 'vitest';

import { Agent } from '../agent/agent.ts';
import { itemDigest } from '../items/convert.ts';
import { MessageOutputItem, ReasoningItem, ToolCallItem, ToolCallOutputItem } from '../items/items.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { newRecord } from '../state/copy.ts';
import { ToolApprovalItem } from '../state/decisions.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import type { StateRecord } from '../state/record.ts';
import { CompactionHook } from './compaction-hook.ts';
import type { CompactionOptions, HistoryOperation, Session } from './contract.ts';
import { SessionOutcomeUnknownError } from './errors.ts';
import { MemorySession } from './memory.ts';
import { operationId } from './operation-id.ts';
import { SessionWriter } from './persist.ts';
import { checkSessionForResume } from './recover.ts';
import { KnownTail } from './tail.ts';

const item = (value: object): AgentInputItem => value as AgentInputItem;
const user = (content: string) => item({ role: 'user', content });
const digest = (value: AgentInputItem) => itemDigest(value, 'raw');

const agent = new Agent({ name: 'A' });
const message = (text: string): RunItem =>
  new MessageOutputItem(agent, {
    type: 'message',
    id: `msg_${text}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  });
const callItem = (id: string): RunItem =>
  new ToolCallItem(agent, { type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
const outputItem = (id: string, output = 'ok'): RunItem =>
  new ToolCallOutputItem(agent, { type: 'function_call_output', call_id: id, output }, { output });
const wire = (...items: readonly RunItem[]) => items.map((one) => one.toInputItem());

function record(changes: Partial<StateRecord> = {}): StateRecord {
  return Object.assign(
    newRecord({ agent, context: undefined, input: 'hi', maxTurns: 10, runKey: '0'.repeat(32) }),
    changes,
  );
}

/** A record in its first turn, with a response. */
const inTurn = (turn = 1): Partial<StateRecord> => ({ currentTurn: turn, modelResponses: [{}] as never });

function writerOf(session: Session, state: StateRecord, tail?: KnownTail, compaction?: CompactionHook) {
  const effects: string[] = [];
  const writer = new SessionWriter({
    session,
    record: state,
    context: state.context,
    tail,
    compaction,
    step: (effect, fn) => {
      effects.push(effect.operation);
      return fn();
    },
  });
  return { writer, effects };
}

const empty = () => new KnownTail([], true);
const meta = { hasLocalToolOutputs: false };

/** Four methods, on a list that a test can look at. */
function plain(stored: AgentInputItem[] = []) {
  const session = {
    sessionId: 'plain' as string | undefined,
    getItems: vi.fn<(limit?: number) => Promise<AgentInputItem[]>>((limit) =>
      Promise.resolve(stored.slice(Math.max(0, stored.length - (limit ?? stored.length)))),
    ),
    addItems: vi.fn<(items: readonly AgentInputItem[]) => Promise<void>>((items) =>
      Promise.resolve(void stored.push(...items)),
    ),
    popItem: () => Promise.resolve(stored.pop()),
    clearSession: () => Promise.resolve(void stored.splice(0)),
  };
  return { session, stored };
}

describe('a fresh segment', () => {
  it('writes input and turns as batches, without another read [SESS#1, SESS-081, STATE-303, RUN-1602]', async () => {
    const { session, stored } = plain();
    const state = record();
    const { writer, effects } = writerOf(session, state, empty());
    writer.stageInput([user('hi')]);
    await writer.writeInput();
    await writer.writeInput();
    Object.assign(state, inTurn());
    const turn = [callItem('c'), outputItem('c')];
    await writer.writeTurn(turn, { ...meta, responseId: 'resp_1', hasLocalToolOutputs: true });
    await writer.writeTurn([message('done')], { ...meta, terminal: true });
    expect(session.addItems.mock.calls.map(([items]) => items)).toEqual([
      [user('hi')],
      wire(...turn),
      wire(message('done')),
    ]);
    expect(stored).toHaveLength(4);
    expect(effects).toEqual(['append', 'append', 'append']);
    expect(session.getItems).not.toHaveBeenCalled();
    expect(state).toMatchObject({ pendingWrite: undefined, sessionId: 'plain', persistedItemCount: 3 });
  });

  it('owes its input from the preparation on, and a turn while it is written [STATE-321, RUN-1615]', async () => {
    const old = [user('1'), user('2'), user('3'), user('4')];
    const { session } = plain([...old]);
    const state = record();
    const { writer } = writerOf(session, state, new KnownTail(old, true));
    const owed: (PendingWrite | undefined)[] = [];
    session.addItems.mockImplementation(() => {
      owed.push(structuredClone({ ...state.pendingWrite!, position: undefined }));
      return Promise.resolve();
    });
    writer.stageInput([user('hi')]);
    expect(state.pendingWrite).toMatchObject({
      sessionId: 'plain',
      items: [user('hi')],
      before: null,
      persistedCount: 0,
      responseId: null,
      store: null,
      hasLocalToolOutputs: false,
      acknowledged: false,
    });
    await writer.writeInput();
    Object.assign(state, inTurn());
    await writer.writeTurn([callItem('c'), outputItem('c')], {
      responseId: 'resp_1',
      store: false,
      hasLocalToolOutputs: true,
    });
    expect(owed[0]).toMatchObject({ before: [digest(old[2]!), digest(old[3]!)] });
    expect(owed[1]).toMatchObject({
      before: [...old.slice(2), user('hi')].map(digest),
      persistedCount: 2,
      responseId: 'resp_1',
      store: false,
      hasLocalToolOutputs: true,
    });
    expect(state.pendingWrite).toBeUndefined();
  });

  it('knows an empty history to be empty, and reads the tail when the window hid all of it [SESS-061]', async () => {
    const { session } = plain();
    const state = record();
    const first = writerOf(session, state, empty());
    session.addItems.mockRejectedValueOnce(new Error('down'));
    first.writer.stageInput([user('hi')]);
    await expect(first.writer.writeInput()).rejects.toThrow('down');
    expect(state.pendingWrite?.before).toEqual([]);

    const hidden = plain([user('1'), user('2'), user('3')]);
    const other = record();
    const second = writerOf(hidden.session, other, new KnownTail([], false));
    second.writer.stageInput([user('hi')]);
    await second.writer.writeInput();
    expect(hidden.session.getItems.mock.calls).toEqual([[2]]);
    Object.assign(other, inTurn());
    await second.writer.writeTurn([message('x')], meta);
    expect(hidden.session.getItems).toHaveBeenCalledTimes(1);
  });

  it('looks back no further than it must, however long the history is', async () => {
    const tail = new KnownTail(
      Array.from({ length: 100_000 }, (_, index) => user(String(index))),
      true,
    );
    expect(tail.last(2)).toEqual([user('99998'), user('99999')]);
    for (let turn = 0; turn < 2000; turn++) tail.push([user(`t${turn}`)]);
    expect(tail.last(1_000_000).length).toBeLessThanOrEqual(512);
    expect(tail.last(1)).toEqual([user('t1999')]);
  });

  it('leaves approvals out, repeats nothing in a batch and counts what is in it [SESS-076, 082, 085, 086]', async () => {
    const { session } = plain();
    const state = record(inTurn());
    const { writer } = writerOf(session, state, empty());
    const reasoning = new ReasoningItem(agent, { type: 'reasoning', id: 'rs_1', summary: [], status: null } as never);
    const approval = new ToolApprovalItem(
      agent,
      { type: 'function_call', call_id: 'w', name: 'f', arguments: '{}' } as never,
      {},
    );
    await writer.writeTurn(
      [reasoning, callItem('c'), approval, outputItem('c', 'first'), outputItem('c', 'second')],
      meta,
    );
    expect(session.addItems.mock.calls[0]?.[0]).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [] },
      ...wire(callItem('c'), outputItem('c', 'second')),
    ]);
    expect(state.persistedItemCount).toBe(3);
    await writer.writeTurn([approval], meta);
    expect(session.addItems).toHaveBeenCalledTimes(1);
  });

  it('stores reasoning without its id under the policy, unless the session keeps it [SESS-085]', async () => {
    const reasoning = new ReasoningItem(agent, { type: 'reasoning', id: 'rs_1', summary: [] });
    for (const [keeps, stored] of [
      [false, { type: 'reasoning', summary: [] }],
      [true, { type: 'reasoning', id: 'rs_1', summary: [] }],
    ] as const) {
      const { session } = plain();
      const { writer } = writerOf(
        Object.assign(session, keeps && { preserveReasoningItemIds: true }),
        record({ ...inTurn(), reasoningItemIdPolicy: 'omit' }),
        empty(),
      );
      await writer.writeTurn([reasoning], meta);
      expect(session.addItems.mock.calls[0]?.[0]).toEqual([stored]);

      // New input likewise, and without what is no input.
      const fresh = writerOf(session, record({ reasoningItemIdPolicy: 'omit' }), empty());
      fresh.writer.stageInput([item({ ...wire(reasoning)[0], status: null, created_by: 'x' })]);
      await fresh.writer.writeInput();
      expect(session.addItems.mock.calls[1]?.[0]).toEqual([stored]);
    }
  });

  it('lets a session prepare what it stores: input, turns and held batches, in their stored form [SESS-085, RUN-1607]', async () => {
    const given: unknown[] = [];
    const { session, stored } = plain();
    const kept = user('prepared');
    const policied = Object.assign(session, {
      prepareItemsForPersistence(items: readonly AgentInputItem[]) {
        given.push(items);
        return [kept];
      },
    });
    const state = record({ reasoningItemIdPolicy: 'omit' });
    const { writer } = writerOf(policied, state, empty());
    writer.stageInput([item({ ...user('hi'), created_by: 'x' })]);
    await writer.writeInput();
    Object.assign(state, inTurn());
    const reasoning = new ReasoningItem(agent, { type: 'reasoning', id: 'rs_1', summary: [] });
    await writer.writeTurn([reasoning, message('b')], meta);
    expect(stored).toEqual([kept, kept]);
    expect(given).toEqual([[user('hi')], [{ type: 'reasoning', summary: [] }, ...wire(message('b'))]]);
    // What the run wrote counts, not what became of it.
    expect(state.persistedItemCount).toBe(2);

    await writer.holdTurn([message('held')], meta);
    await writer.writeTurn([message('a')], meta);
    expect(stored).toEqual([kept, kept, kept]);
    expect(given.at(-1)).toHaveLength(2);
  });

  it("calls other people's sessions with exactly the documented arguments [SESS#35, SESS-032]", async () => {
    const arities: [string, number][] = [];
    const log =
      (name: string, result: unknown) =>
      (...args: unknown[]) => {
        arities.push([name, args.length]);
        return Promise.resolve(result);
      };
    const session = {
      sessionId: 's',
      getItems: log('getItems', []),
      addItems: log('addItems', undefined),
      popItem: log('popItem', undefined),
      clearSession: log('clearSession', undefined),
    } as Session;
    const state = record();
    const { writer } = writerOf(session, state);
    writer.stageInput([user('hi')]);
    await writer.writeInput();
    expect(arities).toEqual([
      ['getItems', 1],
      ['addItems', 1],
    ]);
  });

  it('gives sessions that ask for it the context, last [SESS-033]', async () => {
    const { session } = plain();
    const state = record();
    const { writer } = writerOf(Object.assign(session, { acceptsRunContext: true as const }), state);
    writer.stageInput([user('hi')]);
    await writer.writeInput();
    expect(session.getItems.mock.calls).toEqual([[2, state.context]]);
    expect(session.addItems.mock.calls).toEqual([[[user('hi')], state.context]]);

    const memory = new MemorySession('m');
    const apply = vi.spyOn(memory, 'applyHistoryTransaction');
    const other = record();
    const capable = writerOf(memory, other, empty());
    capable.writer.stageInput([user('hi')]);
    await capable.writer.writeInput();
    expect(apply.mock.calls).toEqual([[expect.objectContaining({ operationId: expect.any(String) }), other.context]]);
  });

  it('gives it with what takes the place of an earlier resume, too [SESS-033, SESS-111]', async () => {
    const { session, stored } = plain(wire(callItem('c'), outputItem('c', 'earlier')));
    const last: unknown[] = [];
    for (const name of ['getItems', 'addItems', 'popItem'] as const) {
      const method = session[name] as (...args: readonly unknown[]) => Promise<never>;
      Object.assign(session, {
        [name]: async (...args: readonly unknown[]) => {
          last.push([name, args.at(-1)]);
          return await method(...args);
        },
      });
    }
    const state = record({ ...inTurn(), sessionItems: [callItem('c')] });
    const { writer } = writerOf(Object.assign(session, { acceptsRunContext: true as const }), state);
    await writer.writeTurn([outputItem('c', 'now')], { hasLocalToolOutputs: true });
    expect(stored).toEqual(wire(callItem('c'), outputItem('c', 'now')));
    const names = ['getItems', 'getItems', 'getItems', 'popItem', 'getItems', 'addItems'];
    expect(last).toEqual(names.map((name) => [name, state.context]));
  });

  it('asks for the id of a session that has none yet, and works with one that never has [SESS-001]', async () => {
    const { session } = plain();
    session.sessionId = undefined;
    const state = record();
    const { writer } = writerOf(
      Object.assign(session, { getSessionId: () => Promise.resolve('given') }),
      state,
      empty(),
    );
    writer.stageInput([user('hi')]);
    let during: string | undefined;
    session.addItems.mockImplementation(() => {
      during = state.pendingWrite?.sessionId;
      return Promise.resolve();
    });
    await writer.writeInput();
    expect(during).toBe('given');
    expect(state.sessionId).toBe('given');

    const nameless = plain();
    nameless.session.sessionId = undefined;
    const other = record();
    const second = writerOf(
      Object.assign(nameless.session, { getSessionId: () => Promise.reject(new Error('no id')) }),
      other,
      empty(),
    );
    second.writer.stageInput([user('hi')]);
    await second.writer.writeInput();
    expect(nameless.stored).toEqual([user('hi')]);
    expect(other.sessionId).toBeUndefined();
  });
});

describe('operation ids', () => {
  const idsOf = async (state: StateRecord): Promise<string[]> => {
    const session = new MemorySession('chat-1');
    const ids: string[] = [];
    const apply = session.applyHistoryTransaction.bind(session);
    vi.spyOn(session, 'applyHistoryTransaction').mockImplementation((operation) => {
      ids.push(operation.operationId);
      return apply(operation);
    });
    const { writer } = writerOf(session, state, empty());
    writer.stageInput([user('yes')]);
    await writer.writeInput();
    Object.assign(state, inTurn());
    await writer.writeTurn([message('a')], meta);
    await writer.writeTurn([message('a')], meta);
    Object.assign(state, { ...inTurn(2), persistedItemCount: 0 });
    await writer.writeTurn([message('a')], meta);
    return ids;
  };

  it('tell runs, turns and batches apart, and are the same when a batch is repeated [SESS-101, STATE-320]', async () => {
    const ids = await idsOf(record());
    expect(new Set(ids).size).toBe(4);
    expect(await idsOf(record())).toEqual(ids);
    expect(await idsOf(record({ runKey: '1'.repeat(32) }))).not.toEqual(expect.arrayContaining([ids[0]]));
    expect(ids[0]).toBe(operationId('chat-1', '0'.repeat(32), { turn: 0, firstItemIndex: 0 }, [digest(user('yes'))]));
    expect(ids[0]).toMatch(/^[\w-]{43}$/);
  });

  it('has a form that other processes can compute', () => {
    // printf '["agents-session-op-v1","chat-1","k",1,2,"d1","d2"]' | openssl dgst -sha256 -binary | basenc --base64url
    expect(operationId('chat-1', 'k', { turn: 1, firstItemIndex: 2 }, ['d1', 'd2'])).toBe(
      'jRJ60Cz3ywQIDDCaU2fYyLFQTFUdVpktiYLp1Eyemj0',
    );
  });
});

describe('an append that fails', () => {
  it('passes the error on unchanged and stays owed [SESS-090, 105, RUN-1606, STATE-317]', async () => {
    const failure = new Error('down');
    const { session, stored } = plain();
    session.addItems.mockRejectedValueOnce(failure);
    const state = record(inTurn());
    const { writer } = writerOf(session, state, empty());
    await expect(writer.writeTurn([callItem('c'), outputItem('c')], meta)).rejects.toBe(failure);
    expect(state).toMatchObject({
      persistedItemCount: 0,
      pendingWrite: { before: [], items: wire(callItem('c'), outputItem('c')), persistedCount: 2, acknowledged: false },
    });
    expect(stored).toEqual([]);
  });

  it('is repeated with the same id when its outcome is unknown, three times at most [SESS-102]', async () => {
    vi.useFakeTimers();
    try {
      const memory = new MemorySession('m');
      const operations: HistoryOperation[] = [];
      const lost = new SessionOutcomeUnknownError('lost', { operation: 'append' });
      let failures = 3;
      const apply = memory.applyHistoryTransaction.bind(memory);
      vi.spyOn(memory, 'applyHistoryTransaction').mockImplementation(async (operation) => {
        operations.push(operation);
        await apply(operation);
        if (failures-- > 0) throw lost;
      });
      const write = async (state: StateRecord): Promise<unknown> => {
        const { writer } = writerOf(memory, state, empty());
        const done = writer.writeTurn([message('a')], meta).then(
          () => 'done',
          (error: unknown) => error,
        );
        await vi.runAllTimersAsync();
        return await done;
      };
      expect(await write(record(inTurn()))).toBe('done');
      expect(operations).toHaveLength(4);
      expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(1);
      expect(await memory.getItems()).toEqual(wire(message('a')));

      failures = 4;
      const state = record({ ...inTurn(), runKey: '2'.repeat(32) });
      expect(await write(state)).toBe(lost);
      expect(operations).toHaveLength(8);
      expect(state.pendingWrite).toBeDefined();
    } finally {
      vi.useRealTimers();
    }
  });

  it('is repeated after 50, 200 and 800 ms, each a fifth shorter or longer [SESS-102]', async () => {
    for (const random of [0, 0.5, 1]) {
      vi.useFakeTimers();
      vi.spyOn(Math, 'random').mockReturnValue(random);
      try {
        const memory = new MemorySession('m');
        const waits: number[] = [];
        let last = Date.now();
        vi.spyOn(memory, 'applyHistoryTransaction').mockImplementation(() => {
          waits.push(Date.now() - last);
          last = Date.now();
          return Promise.reject(new SessionOutcomeUnknownError('lost', { operation: 'append' }));
        });
        const { writer } = writerOf(memory, record(inTurn()), empty());
        const ended = writer.writeTurn([message('a')], meta).catch(() => undefined);
        await vi.runAllTimersAsync();
        await ended;
        expect(waits).toEqual([0, 50, 200, 800].map((wait) => Math.round(wait * (0.8 + 0.4 * random))));
      } finally {
        vi.restoreAllMocks();
        vi.useRealTimers();
      }
    }
  });

  it('is not repeated on a session without operations [SESS-102]', async () => {
    const { session } = plain();
    session.addItems.mockRejectedValue(new SessionOutcomeUnknownError('lost', { operation: 'append' }));
    const { writer } = writerOf(session, record(inTurn()), empty());
    await expect(writer.writeTurn([message('a')], meta)).rejects.toThrow('lost');
    expect(session.addItems).toHaveBeenCalledTimes(1);
  });

  it('has the error of the session for an item that is no JSON [SESS-008]', async () => {
    const cyclic: Record<string, unknown> = { role: 'user' };
    cyclic['self'] = cyclic;
    const state = record();
    const { writer } = writerOf(new MemorySession('m'), state, empty());
    writer.stageInput([item(cyclic)]);
    await expect(writer.writeInput()).rejects.toMatchObject({ code: 'session_item_invalid' });
  });

  it('of a last turn leaves nothing owed: the mark of the state stands for it [STATE-331, 337]', async () => {
    const { session } = plain();
    session.addItems.mockRejectedValue(new Error('down'));
    const state = record(inTurn());
    const { writer } = writerOf(session, state, empty());
    await expect(writer.writeTurn([message('a')], { ...meta, terminal: true })).rejects.toThrow('down');
    expect(state.pendingWrite).toBeUndefined();
  });
});

describe('settling what an earlier segment left', () => {
  const before = [user('0'), user('1'), user('2')];
  const batch = wire(callItem('c'), outputItem('c'));
  const pending = (changes: Partial<PendingWrite> = {}): PendingWrite => ({
    sessionId: 'plain',
    items: batch,
    before: before.map(digest),
    persistedCount: 2,
    responseId: 'resp_1',
    store: null,
    hasLocalToolOutputs: true,
    acknowledged: false,
    ...changes,
  });
  const settle = async (history: readonly AgentInputItem[], changes: Partial<PendingWrite> = {}) => {
    const { session, stored } = plain([...history]);
    const state = record({ ...inTurn(), pendingWrite: pending(changes) });
    const { writer, effects } = writerOf(session, state);
    const error: unknown = await writer.settle().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return { session, stored, state, error, effects };
  };

  it('takes a batch that stands at the end as committed [SESS#15, SESS-104, RUN-1611]', async () => {
    const { stored, state, session, error } = await settle([...before, ...batch]);
    expect(error).toBeUndefined();
    expect(session.getItems.mock.calls).toEqual([[5]]);
    expect(session.addItems).not.toHaveBeenCalled();
    expect(stored).toHaveLength(5);
    expect(state).toMatchObject({ pendingWrite: undefined, persistedItemCount: 2 });
  });

  it('appends a batch that is not there [SESS-104, RUN-1611]', async () => {
    const { stored, state } = await settle(before);
    expect(stored).toEqual([...before, ...batch]);
    expect(state.pendingWrite).toBeUndefined();
    const fresh = await settle([], { before: [] });
    expect(fresh.stored).toEqual(batch);
  });

  it('does the whole write when it had never begun [STATE-321]', async () => {
    const { stored, effects, session } = await settle([...before, user('somebody else')], { before: null });
    expect(stored.slice(-2)).toEqual(batch);
    expect(effects).toEqual(['read', 'append']);
    expect(session.getItems.mock.calls).toEqual([[3]]);
  });

  it.each<[string, AgentInputItem[], Partial<PendingWrite>]>([
    ['another writer', [...before, user('else')], {}],
    ['a part of the batch', [...before, batch[0]!], {}],
    ['the batch behind another history', [user('9'), user('8'), user('7'), ...batch].slice(-before.length - 2), {}],
    ['the acknowledged batch behind another history', [user('9'), ...batch], { acknowledged: true }],
    ['another history', [user('9')], {}],
    ['something in an empty history', [user('9')], { before: [] }],
    [
      'equal items that allow both',
      [user('x'), user('x'), user('x')],
      { before: [digest(user('x'))], items: [user('x')] },
    ],
    ['an acknowledged batch that is gone', before, { acknowledged: true }],
    ['an acknowledged batch that others changed', [...before, batch[0]!, user('else')], { acknowledged: true }],
  ])(
    'refuses %s, touches nothing and keeps the batch [SESS#16, RUN-1611, SESS-107]',
    async (_name, history, changes) => {
      const { stored, state, error } = await settle(history, changes);
      expect(error).toMatchObject({ name: 'UserError', code: 'session_write_ambiguous' });
      expect(stored).toEqual(history);
      expect(state.pendingWrite).toBeDefined();
    },
  );

  it('never appends an acknowledged batch again [SESS-107]', async () => {
    const { session, state } = await settle([...before, ...batch], { acknowledged: true });
    expect(session.addItems).not.toHaveBeenCalled();
    expect(state.pendingWrite).toBeUndefined();
  });

  it('repeats the operation where its id is known, right beside other writers too [SESS#16, STATE-320]', async () => {
    for (const arrived of [true, false]) {
      const session = new MemorySession('plain', { items: before });
      const first = record({ ...inTurn() });
      const apply = session.applyHistoryTransaction.bind(session);
      vi.spyOn(session, 'applyHistoryTransaction').mockImplementationOnce(async (operation) => {
        if (arrived) await apply(operation);
        throw new Error('lost');
      });
      const { writer } = writerOf(session, first, new KnownTail(before, true));
      await expect(writer.writeTurn([callItem('c'), outputItem('c')], meta)).rejects.toThrow('lost');
      await session.addItems([user('somebody else')]);
      const again = writerOf(session, first);
      await again.writer.settle();
      expect(again.effects).toEqual(['append']);
      expect((await session.getItems()).filter((one) => 'call_id' in one)).toEqual(batch);
      // After a restore without the key only the tail is left to look at.
      const { position: _, ...restored } = pending({ sessionId: 'plain' });
      const third = writerOf(session, record({ ...inTurn(), pendingWrite: restored }));
      await expect(third.writer.settle()).rejects.toMatchObject({ code: 'session_write_ambiguous' });
    }
  });

  it('compares as the session says, with raw digests [STATE-316]', async () => {
    const { session } = plain([
      item({ ...user('0'), id: 'server_1' }),
      ...batch.map((one) => item({ ...one, id: 'server_2' })),
    ]);
    const policy = {
      normalizeForComparison: (one: AgentInputItem) => {
        const { id: _, ...rest } = one as { id?: string };
        return rest as AgentInputItem;
      },
    };
    const state = record({ ...inTurn(), pendingWrite: pending({ before: [digest(user('0'))] }) });
    await writerOf(Object.assign(session, policy), state).writer.settle();
    expect(session.addItems).not.toHaveBeenCalled();

    const completed = item({ type: 'message', role: 'assistant', status: 'completed', content: 'x' });
    const without = item({ type: 'message', role: 'assistant', content: 'x' });
    expect((await settle([completed], { before: [], items: [completed] })).error).toBeUndefined();
    expect((await settle([without], { before: [], items: [completed] })).error).toMatchObject({
      code: 'session_write_ambiguous',
    });
  });

  it('keeps the batch when the settlement fails too, any number of times [STATE-313]', async () => {
    const { session, stored } = plain([...before]);
    const state = record({ ...inTurn(), pendingWrite: pending() });
    session.addItems.mockRejectedValueOnce(new Error('1')).mockRejectedValueOnce(new Error('2'));
    await expect(writerOf(session, state).writer.settle()).rejects.toThrow('1');
    await expect(writerOf(session, state).writer.settle()).rejects.toThrow('2');
    await writerOf(session, state).writer.settle();
    expect(stored).toEqual([...before, ...batch]);
  });

  it('goes on writing without another read of the tail [STATE-301]', async () => {
    const { session, stored } = plain([...before]);
    const state = record({ ...inTurn(), pendingWrite: pending() });
    const tails: unknown[] = [];
    session.addItems.mockImplementation((items) => {
      tails.push(state.pendingWrite?.before);
      return Promise.resolve(void stored.push(...items));
    });
    const { writer, effects } = writerOf(session, state);
    await writer.settle();
    Object.assign(state, { ...inTurn(2), persistedItemCount: 0 });
    await writer.writeTurn([message('a')], meta);
    expect(effects).toEqual(['read', 'append', 'append']);
    expect(stored).toHaveLength(6);
    // What was settled stands before what follows it.
    expect(tails).toEqual([before.map(digest), batch.map(digest)]);
  });
});

describe('the session of a resume', () => {
  const owed = (changes: Partial<PendingWrite> = {}): Partial<StateRecord> => ({
    sessionId: 'plain',
    pendingWrite: {
      sessionId: 'plain',
      items: [user('x')],
      before: null,
      persistedCount: 0,
      responseId: null,
      store: null,
      hasLocalToolOutputs: false,
      acknowledged: false,
      ...changes,
    },
  });
  const check = (changes: Partial<StateRecord>, session: Session | null | undefined) => () =>
    checkSessionForResume(record(changes), session);
  const { session } = plain();
  const other = Object.assign(plain().session, { sessionId: 'other' });

  it('is asked for when the state remembers one; null says that none is meant [SESS-054, STATE-210, RUN-114]', () => {
    expect(check({ sessionId: 'plain' }, undefined)).toThrow(expect.objectContaining({ code: 'session_missing' }));
    expect(check({ sessionId: 'plain' }, null)).not.toThrow();
    expect(check({ sessionId: 'plain' }, other)).not.toThrow();
    expect(check({}, undefined)).not.toThrow();
  });

  it('is the one that a pending write belongs to [RUN-1612]', async () => {
    const wrong = expect.objectContaining({ name: 'UserError', code: 'session_write_wrong_session' });
    expect(check(owed(), session)).not.toThrow();
    expect(check(owed(), other)).toThrow(wrong);
    expect(check(owed(), null)).toThrow(wrong);
    expect(check({ ...owed(), sessionId: undefined }, undefined)).toThrow(wrong);
    // That of a session without an id belongs to none that has one.
    expect(check(owed({ sessionId: '' }), session)).toThrow(wrong);
    // An id that has to be asked for is compared before anything is read.
    const late = plain();
    late.session.sessionId = undefined;
    const { writer, effects } = writerOf(
      Object.assign(late.session, { getSessionId: () => Promise.resolve('other') }),
      record(owed()),
    );
    await expect(writer.settle()).rejects.toEqual(wrong);
    expect(effects).toEqual([]);
  });

  it('leaves a held batch alone, and the turn that ends the hold writes it first [STATE-324, 327]', async () => {
    const held = owed({
      items: wire(callItem('gated'), callItem('dropped'), callItem('open'), callItem('free'), outputItem('free')),
      held: { policy: null, turn: 1, start: 0 },
    });
    expect(check(held, null)).not.toThrow();
    expect(check({ ...held, sessionId: undefined }, undefined)).not.toThrow();
    expect(check(held, other)).toThrow(expect.objectContaining({ code: 'session_write_wrong_session' }));
    const target = plain();
    const state = record({
      ...held,
      ...inTurn(),
      step: {
        type: 'interruption',
        interruptions: [{ callId: 'open' } as never],
        responseAccepted: false,
        llmEndHooksStarted: true,
      },
    });
    const { writer } = writerOf(target.session, state);
    await writer.settle();
    await writer.writeInput();
    expect(state.pendingWrite?.held).toEqual({ policy: null, turn: 1, start: 0 });
    expect(target.session.addItems).not.toHaveBeenCalled();
    await writer.writeTurn([outputItem('gated')], meta);
    // Nobody will answer what was dropped; what is open waits still.
    expect(target.stored).toEqual(
      wire(callItem('gated'), callItem('open'), callItem('free'), outputItem('free'), outputItem('gated')),
    );
    expect(state).toMatchObject({ pendingWrite: undefined, persistedItemCount: 5 });
  });

  it('holds a turn for its response, also when a later pause of that turn names none [SESS-121, STATE-322]', async () => {
    const state = record(inTurn());
    const { writer } = writerOf(plain().session, state, empty());
    await writer.holdTurn([callItem('a')], { ...meta, responseId: 'resp_1', store: false });
    await writer.holdTurn([callItem('a'), outputItem('a')], meta);
    expect(state.pendingWrite).toMatchObject({
      items: wire(callItem('a'), outputItem('a')),
      responseId: 'resp_1',
      store: false,
    });
    Object.assign(state, inTurn(2));
    await writer.holdTurn([callItem('b')], { ...meta, responseId: 'resp_2' });
    expect(state.pendingWrite).toMatchObject({ responseId: 'resp_2', store: null, held: { turn: 2, start: 2 } });
    expect(state.pendingWrite?.items).toHaveLength(3);
  });

  it('forgets a held batch of which nothing is left [STATE-324]', async () => {
    const { session } = plain();
    const state = record({
      ...inTurn(),
      ...owed({ items: wire(callItem('dropped')), held: { policy: null, turn: 1, start: 0 } }),
    });
    await writerOf(session, state).writer.writeTurn([], meta);
    expect(session.addItems).not.toHaveBeenCalled();
    expect(state.pendingWrite).toBeUndefined();
  });

  it.each<[string, RunItem[], unknown]>([
    ['put off with outputs of tools', [callItem('c'), outputItem('c')], ['defer', 'resp_1', { store: false }]],
    ['put off with an output alone', [outputItem('c')], ['defer', 'resp_1', { store: false }]],
    ['asked for without', [message('a')], ['compact', 'resp_1', false]],
  ])(
    'has a compaction for its response, %s, by whatever the batch is written [SESS-121, STATE-327]',
    async (_, items, expected) => {
      for (const end of ['settle', 'turn'] as const) {
        const told: unknown[] = [];
        const session = Object.assign(plain().session, {
          runCompaction: ({ responseId, store }: CompactionOptions = {}) =>
            Promise.resolve(void told.push(['compact', responseId, store])),
          deferCompaction: (responseId: string, options: object = {}) =>
            Promise.resolve(void told.push(['defer', responseId, options])),
        });
        const held = { items: wire(...items), responseId: 'resp_1', store: false };
        const state = record({ ...inTurn(), ...owed({ ...held, held: { policy: null, turn: 1, start: 0 } }) });
        const compaction = new CompactionHook({
          session,
          context: state.context,
          reasoningItemIdPolicy: undefined,
          signal: undefined,
          countUsage: () => undefined,
        });
        const { writer } = writerOf(session, state, undefined, compaction);
        await (end === 'settle'
          ? writer.settle()
          : writer.writeTurn([], { ...meta, responseId: 'resp_1', store: false }));
        expect(told, end).toEqual([expected]);
      }
    },
  );
});
