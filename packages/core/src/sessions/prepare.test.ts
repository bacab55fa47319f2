import { describe, expect, it, vi } from 'vitest';

import type { AgentInputItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import { RunContext as Context } from '../state/context.ts';
import type { ItemPolicySession, Session, SessionInputCallback, SessionSettings } from './contract.ts';
import { MemorySession } from './memory.ts';
import { prepareInput } from './prepare.ts';
import type { PrepareArgs } from './prepare.ts';
import { VersionChain } from './version-chain.ts';

const item = (value: object): AgentInputItem => value as AgentInputItem;
const user = (content: string) => item({ role: 'user', content });
const call = (id: string, extra: object = {}) =>
  item({ type: 'function_call', call_id: id, name: 'f', arguments: '{}', ...extra });
const output = (id: string, extra: object = {}) =>
  item({ type: 'function_call_output', call_id: id, output: 'ok', ...extra });
const reasoning = (id: string) => item({ type: 'reasoning', id, summary: [] });
const answer = (text: string) =>
  item({
    type: 'message',
    id: `msg_${text}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  });

const context: RunContext = new Context(undefined);
const step: PrepareArgs['step'] = (_effect, fn) => fn();

async function prepare(
  history: readonly AgentInputItem[],
  options: Partial<PrepareArgs> & { limit?: number | null } = {},
) {
  const session =
    options.session ??
    new MemorySession(undefined, {
      items: history,
      ...('limit' in options && { sessionSettings: { limit: options.limit ?? null } }),
    });
  const { limit: _, ...rest } = options;
  return await prepareInput({ input: 'new', context, step, ...rest, session });
}

describe('the default order', () => {
  it('is history, then the new input; a string becomes a message, a list is taken as it is [SESS-063, 064]', async () => {
    const history = [user('old'), answer('yes')];
    expect(await prepare(history)).toMatchObject({ input: [...history, user('new')], newItems: [user('new')] });
    const list = [user('a'), call('c'), output('c')];
    const prepared = await prepare(history, { input: list });
    expect(prepared.input).toEqual([...history, ...list]);
    expect(prepared.newItems).toEqual(list);
    expect(list).toHaveLength(3);
  });

  it('reads once, as one effect [SESS-061, RUN-1601]', async () => {
    const session = new MemorySession(undefined, { items: [user('old')] });
    const getItems = vi.spyOn(session, 'getItems');
    const effects: unknown[] = [];
    await prepare([], {
      session,
      step: (effect, fn) => {
        effects.push(effect);
        return fn();
      },
    });
    expect(getItems.mock.calls).toEqual([[]]);
    expect(effects).toEqual([{ kind: 'session', operation: 'read' }]);
  });

  it('leaves what the session gave as it was, and takes out members of the SDK [SESS-062]', async () => {
    const stored = [
      call('c', { _agents_tool_title: 'T', _agents_tool_description: 'D', created_by: 'x' }),
      output('c'),
    ];
    const session = plainSession(stored);
    const { input } = await prepare([], { session });
    expect(input[0]).toEqual(call('c'));
    expect(stored[0]).toHaveProperty('created_by', 'x');
  });

  it('omits ids of stored reasoning when the run does, unless the session keeps them [SESS#31, SESS-062, IL-032]', async () => {
    const history = [reasoning('rs_1'), answer('yes')];
    expect((await prepare(history, { reasoningItemIdPolicy: 'omit' })).input[0]).toEqual({
      type: 'reasoning',
      summary: [],
    });
    for (const kept of [{}, { reasoningItemIdPolicy: 'preserve' as const }])
      expect((await prepare(history, kept)).input[0]).toEqual(reasoning('rs_1'));
    const keeping = Object.assign(plainSession(history), { preserveReasoningItemIds: true });
    expect((await prepare([], { session: keeping, reasoningItemIdPolicy: 'omit' })).input[0]).toEqual(
      reasoning('rs_1'),
    );
  });

  it('lets a session prepare its items for the model', async () => {
    const session: ItemPolicySession = Object.assign(plainSession([user('old')]), {
      prepareHistoryItemForModelInput: (old: AgentInputItem) => item({ ...old, content: 'prepared' }),
    });
    expect((await prepare([], { session })).input).toEqual([user('prepared'), user('new')]);
  });

  it('lets it prepare them when members of the SDK and ids of reasoning are out already [SESS-062]', async () => {
    const seen: AgentInputItem[] = [];
    const stored = [reasoning('rs_1'), call('c', { _agents_tool_title: 'T', created_by: 'x' }), output('c')];
    const session: ItemPolicySession = Object.assign(plainSession(stored), {
      prepareHistoryItemForModelInput(old: AgentInputItem) {
        seen.push(old);
        return old;
      },
    });
    await prepare([], { session, reasoningItemIdPolicy: 'omit' });
    expect(seen).toEqual([{ type: 'reasoning', summary: [] }, call('c'), output('c')]);
  });

  it('refuses items of the other SDK with the way out [SESS#76, SESS-065]', async () => {
    for (const foreign of [
      { type: 'function_call', callId: 'c' },
      { role: 'user', content: 'x', providerData: {} },
    ]) {
      await expect(prepare([item(foreign)])).rejects.toMatchObject({
        code: 'session_foreign_items',
        message: expect.stringContaining('convertJsSdkItems()'),
      });
      const policied = Object.assign(plainSession([item(foreign)]), { preserveReasoningItemIds: true });
      await expect(prepare([], { session: policied })).rejects.toMatchObject({ code: 'session_foreign_items' });
    }
  });
});

describe('the limit', () => {
  const history = [user('1'), user('2'), user('3')];

  it.each<[string, SessionSettings | undefined, number]>([
    ['2', { limit: 2 }, 2],
    ['0', { limit: 0 }, 0],
    ['null', { limit: null }, 3],
    ['nothing', undefined, 1],
    ['undefined', { limit: undefined as never }, 1],
  ])(
    'of the session is 1, the run says %s: %i items [SESS#28, SESS-005, 061, IL-018]',
    async (_name, settings, count) => {
      const { input } = await prepare(history, { limit: 1, settings });
      expect(input).toEqual([...history.slice(history.length - count), user('new')]);
    },
  );

  it('holds where other writers are looked for, too [SESS-061, SESS-361]', async () => {
    const session = new MemorySession(undefined, { items: history });
    const chain = new VersionChain(session, context);
    expect((await prepare([], { session, chain, settings: { limit: 1 } })).input).toEqual([user('3'), user('new')]);
  });

  it('leaves the end of the history known as far as it was read', async () => {
    const tailOf = async (old: readonly AgentInputItem[], limit: number | null) =>
      (await prepare(old, { settings: { limit } })).tail;
    expect((await tailOf(history, null)).last(2)).toEqual(history.slice(1));
    expect((await tailOf(history, 1)).last(2)).toEqual(history.slice(2));
    // Nothing was looked at; an empty answer to a real question says that nothing is there.
    expect((await tailOf(history, 0)).known).toBe(false);
    expect((await tailOf([], null)).known).toBe(true);
    expect((await tailOf([], 5)).known).toBe(true);
    // As it is stored, not as the model sees it.
    expect((await prepare([reasoning('rs_1')], { reasoningItemIdPolicy: 'omit' })).tail.last(1)).toEqual([
      reasoning('rs_1'),
    ]);
  });

  it('is a whole number, and settings have no other members [SESS-004, 005]', async () => {
    await expect(prepare(history, { settings: { limit: 1.5 } })).rejects.toThrow(/whole number/);
    await expect(prepare(history, { settings: { limits: 1 } as never })).rejects.toThrow(/limit/);
  });

  it('that cuts a pair leaves the orphan output out, and so does a history that has none of its call [SESS#24, SESS#25, SESS-074, IL-019]', async () => {
    const pair = [call('c'), output('c'), answer('yes')];
    expect((await prepare(pair, { settings: { limit: 2 } })).input).toEqual([answer('yes'), user('new')]);
    const orphan = [output('c'), answer('yes')];
    expect((await prepare(orphan)).input).toEqual([answer('yes'), user('new')]);
    expect(
      (await prepare(pair, { settings: { limit: 2 }, callback: (old, items) => [...old, ...items] })).input,
    ).toEqual([answer('yes'), user('new')]);
    expect((await prepare([], { input: [output('c')] })).input).toEqual([output('c')]);
  });
});

describe('orphans and duplicates', () => {
  it('leaves stored calls without an answer out, with the reasoning before them [SESS#26, SESS-071, 073]', async () => {
    const history = [
      user('1'),
      reasoning('rs_0'),
      call('a'),
      output('a'),
      reasoning('rs_1'),
      reasoning('rs_2'),
      call('b'),
      reasoning('rs_3'),
      answer('yes'),
    ];
    expect((await prepare(history)).input).toEqual([
      user('1'),
      reasoning('rs_0'),
      call('a'),
      output('a'),
      reasoning('rs_3'),
      answer('yes'),
      user('new'),
    ]);
  });

  it('keeps reasoning before an output that is left out, and what is new [SESS-073]', async () => {
    expect((await prepare([reasoning('rs_1'), output('a'), answer('yes')])).input).toEqual([
      reasoning('rs_1'),
      answer('yes'),
      user('new'),
    ]);
    const callback: SessionInputCallback = (old, items) => [...items, ...old];
    expect((await prepare([call('a')], { callback, input: [reasoning('rs_2')] })).input).toEqual([reasoning('rs_2')]);
  });

  it('answers count by type and call id, and may be new [SESS-071]', async () => {
    const custom = item({ type: 'custom_tool_call_output', call_id: 'a', output: 'x' });
    expect((await prepare([call('a'), custom])).input).toEqual([user('new')]);
    expect((await prepare([call('a')], { input: [output('a')] })).input).toEqual([call('a'), output('a')]);
  });

  it.each([
    ['function_call', 'function_call_output'],
    ['custom_tool_call', 'custom_tool_call_output'],
    ['shell_call', 'shell_call_output'],
    ['apply_patch_call', 'apply_patch_call_output'],
    ['computer_call', 'computer_call_output'],
    ['local_shell_call', 'local_shell_call_output'],
    ['tool_search_call', 'tool_search_output'],
    ['program', 'program_output'],
  ])('leaves out a %s without its %s, and the other way round [SESS-071, SESS-074]', async (asks, answers) => {
    const pair = [item({ type: asks, call_id: 'a' }), item({ type: answers, call_id: 'a' })];
    expect((await prepare(pair)).input).toEqual([...pair, user('new')]);
    for (const half of pair) expect((await prepare([half])).input).toEqual([user('new')]);
  });

  it('sends and stores what is new, also calls without an answer [SESS#27, SESS-071]', async () => {
    const pending = item({ type: 'shell_call', call_id: 's', status: 'in_progress', action: { commands: ['ls'] } });
    expect(await prepare([], { input: [pending] })).toMatchObject({ input: [pending], newItems: [pending] });
  });

  const program = (id: string, extra: object = {}) => item({ type: 'program', call_id: id, code: '', ...extra });
  const owned = (id: string, extra: object) => item({ caller: { type: 'program', caller_id: id }, ...extra });

  it('keeps programs with what they own, and drops both together [SESS-072]', async () => {
    const history = [
      program('p'),
      owned('p', { type: 'shell_call', call_id: 's1', status: 'in_progress' }),
      owned('p', { type: 'shell_call', call_id: 's2', status: 'completed' }),
      program('q'),
      owned('q', { type: 'function_call', call_id: 'f', name: 'f', arguments: '{}' }),
      // Its call was cut off: nothing of this program stays.
      program('r'),
      owned('r', output('g')),
    ];
    expect((await prepare(history)).input).toEqual([history[0], history[1], user('new')]);
  });

  it.each([
    [{}, true],
    [{ status: null }, true],
    [{ status: 'in_progress' }, true],
    [{ status: 'completed' }, false],
  ])('keeps a shell call of a program, but none of the model itself, with %o: %s [SESS-072]', async (status, stays) => {
    const shell = { type: 'shell_call', call_id: 's', ...status };
    const history = [program('p'), owned('p', shell)];
    expect((await prepare(history)).input).toEqual([...(stays ? history : []), user('new')]);
    for (const other of [{}, { caller: { type: 'direct', caller_id: 'p' } }])
      expect((await prepare([program('p'), item({ ...shell, ...other })])).input).toEqual([user('new')]);
  });

  it('keeps a program for what is new in the turn, or for a program of its own that stays [SESS-072]', async () => {
    const fresh = [owned('p', call('f')), owned('p', output('f'))];
    expect((await prepare([program('p')], { input: fresh })).input).toEqual([program('p'), ...fresh]);
    const nested = [program('p'), owned('p', program('q')), owned('q', { type: 'shell_call', call_id: 's' })];
    expect((await prepare(nested)).input).toEqual([...nested, user('new')]);
  });

  it('pairs searches without ids from the end [SESS-072]', async () => {
    const search = (n: number) => item({ type: 'tool_search_call', id: `ts_${n}`, call_id: null, arguments: {} });
    const found = (n: number) => item({ type: 'tool_search_output', id: `to_${n}`, call_id: null, tools: [] });
    expect((await prepare([search(1), search(2), found(2)])).input).toEqual([search(2), found(2), user('new')]);
    // Those with ids answer each other alone.
    const byId = [search(2), found(2)].map((one) => item({ ...one, call_id: 't' }));
    expect((await prepare([byId[0]!, search(1), byId[1]!])).input).toEqual([...byId, user('new')]);
    expect((await prepare([found(1)])).input).toEqual([user('new')]);
  });

  it('merges repeated items, the newest content at the first place of calls and the last of outputs [SESS-075]', async () => {
    const history = [
      call('a', { status: 'in_progress' }),
      output('a'),
      user('same'),
      user('same'),
      call('a', { status: 'completed' }),
      output('a', { output: 'later' }),
    ];
    expect((await prepare(history)).input).toEqual([
      call('a', { status: 'completed' }),
      user('same'),
      user('same'),
      output('a', { output: 'later' }),
      user('new'),
    ]);
  });
});

describe('the callback', () => {
  const history = [user('1'), answer('2')];
  const stored = async (callback: SessionInputCallback, input: string | readonly AgentInputItem[] = 'new') =>
    (await prepare(history, { callback, input })).newItems;

  it('may be async and change its copies; history is never stored again [SESS#20, SESS-064, 066, 069]', async () => {
    const list = [user('new')];
    const callback: SessionInputCallback = async (old, items) => {
      (old[0] as { content: string }).content = 'changed';
      return [...old.toReversed(), ...items];
    };
    const { input, newItems } = await prepare(history, { callback, input: list });
    expect(input).toEqual([answer('2'), user('changed'), user('new')]);
    expect(newItems).toEqual([user('new')]);
    expect(history[0]).toEqual(user('1'));
    expect(newItems[0]).not.toBe(list[0]);
  });

  it('gets the history as the model would: without members of the SDK, and ids of reasoning under the policy [SESS-062, 066]', async () => {
    const session = plainSession([reasoning('rs_1'), call('c', { created_by: 'x' }), output('c')]);
    const seen: AgentInputItem[] = [];
    const callback: SessionInputCallback = (old, items) => {
      seen.push(...old);
      return [...old, ...items];
    };
    const { input } = await prepare([], { session, callback, reasoningItemIdPolicy: 'omit' });
    expect(seen).toEqual([{ type: 'reasoning', summary: [] }, call('c'), output('c')]);
    expect(input).toEqual([...seen, user('new')]);
  });

  it('gets copies down to the last member: what the session gave stays as it is [SESS-066, 069]', async () => {
    const stored = [item({ ...answer('2'), phase: null })];
    const callback: SessionInputCallback = (old, items) => {
      Object.assign((old[0] as { content: { text: string }[] }).content[0]!, { text: 'changed' });
      return [...old, ...items];
    };
    const { input } = await prepare([], { session: plainSession(stored), callback });
    expect(input[0]).toMatchObject({ phase: null, content: [{ text: 'changed' }] });
    expect(stored).toEqual([{ ...answer('2'), phase: null }]);
  });

  it('that drops the new items stores nothing [SESS#21, SESS-068]', async () => {
    const { input, newItems } = await prepare(history, { callback: (old) => old });
    expect(input).toEqual(history);
    expect(newItems).toEqual([]);
  });

  it('that rebuilds everything stores what is new alone [SESS#22, SESS-067]', async () => {
    expect(await stored((old, items) => structuredClone([...old, ...items]))).toEqual([user('new')]);
    // Equal to history, and still new: the history is used up by its own copy.
    expect(await stored((old, items) => structuredClone([...old, ...items]), '1')).toEqual([user('1')]);
    expect(await stored((old) => structuredClone([...old]), '1')).toEqual([]);
  });

  it('that rebuilds history without what only its store knows stores none of it [SESS-067]', async () => {
    const withoutId = (one: AgentInputItem) => {
      const { id: _, ...rest } = one as { id?: unknown };
      return item(rest);
    };
    const session = Object.assign(plainSession([answer('2')]), { normalizeForComparison: withoutId });
    const callback: SessionInputCallback = (old, items) => [...old.map(withoutId), ...items];
    expect((await prepare([], { session, callback })).newItems).toEqual([user('new')]);
  });

  it('tells items apart by identity before content [SESS-067, IL-043]', async () => {
    expect(await stored((old, items) => [...old, ...old, ...items], '1')).toEqual([user('1')]);
    expect(await stored((old, items) => [...items, ...old], '1')).toEqual([user('1')]);
    // A new item that is put into the history stays new.
    expect(await stored((old, items) => (old.push(...items), old))).toEqual([user('new')]);
    // Moved into the new list it is still history; taken twice, the second time as well.
    expect(
      await stored((old, items) => {
        items.push(old[0]!);
        return [...items, old[0]!];
      }),
    ).toEqual([user('new')]);
  });

  it('may put a summary in place of history; one that only stands in the result is new [SESS-068]', async () => {
    const summary = user('summary');
    expect(
      await stored((old, items) => {
        old[0] = summary;
        return [old[0], ...items];
      }),
    ).toEqual([user('new')]);
    expect(await stored((_old, items) => [summary, ...items])).toEqual([summary, user('new')]);
    expect(await stored((old, items) => [structuredClone(old[0]!), structuredClone(old[0]!), ...items])).toEqual([
      user('1'),
      user('new'),
    ]);
  });

  it('decides the order in which new items are stored [SESS-068]', async () => {
    expect(await stored((old, items) => [...items.toReversed(), ...old], [user('a'), user('b')])).toEqual([
      user('b'),
      user('a'),
    ]);
  });

  it('must be a function that gives a list of items; the store is untouched [SESS#23, SESS-066]', async () => {
    const session = new MemorySession(undefined, { items: history });
    const read = vi.spyOn(session, 'getItems');
    await expect(prepare([], { session, callback: 'text' as never })).rejects.toThrow(
      /'sessionInputCallback' must be a function/,
    );
    expect(read).not.toHaveBeenCalled();
    await expect(prepare([], { session, callback: () => 'text' as never })).rejects.toMatchObject({
      name: 'UserError',
      message: expect.stringContaining('array'),
    });
    await expect(prepare([], { session, callback: () => ['text'] as never })).rejects.toMatchObject({
      name: 'UserError',
    });
    expect(await session.getItems()).toEqual(history);
    await expect(stored((old, items) => Object.freeze([...old, ...items]))).resolves.toEqual([user('new')]);
  });
});

it('passes the error of a session on unchanged [SESS-090, RUN-1606]', async () => {
  const failure = new Error('down');
  const session = Object.assign(plainSession([]), { getItems: () => Promise.reject(failure) });
  await expect(prepare([], { session })).rejects.toBe(failure);
});

/** Four methods and nothing else; keeps the very objects. */
function plainSession(items: AgentInputItem[]): Session {
  return {
    sessionId: 'plain',
    getItems: (limit?: number) =>
      Promise.resolve(limit === undefined ? [...items] : items.slice(items.length - Math.min(limit, items.length))),
    addItems: (added: readonly AgentInputItem[]) => Promise.resolve(void items.push(...added)),
    popItem: () => Promise.resolve(items.pop()),
    clearSession: () => Promise.resolve(void items.splice(0)),
  };
}
