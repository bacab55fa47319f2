import { afterEach, describe, expect, it, vi } from 'vitest';
import { Agent, getRunErrorState, RunState, UserError } from '../index.ts';
import type { AgentInputItem } from '../index.ts';
import { SessionError, SessionItemError, SessionOutcomeUnknownError } from '../session.ts';
import { partialAppend } from '../sessions/contract.ts';
import type { PartialAppendSession } from '../sessions/contract.ts';
import { FakeOpenAI, resetDefaults, ScriptedModel, toolCall } from '../testing/index.ts';
import type { RecordedRequest } from '../testing/index.ts';
import { bothForms } from '../testing/forms.ts';
import { effectTool, exactly, kindsOf, rejection } from '../../test/run-kit.ts';
import { OpenAIConversationsSession } from './conversations-session.ts';
import { setOpenAIDefaults } from './defaults.ts';

const item = (value: object): AgentInputItem => value as AgentInputItem;
const user = (text: string) => item({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });
const output = (index: number) => item({ type: 'function_call_output', call_id: `c${index}`, output: `${index}` });
const outputs = (count: number) => Array.from({ length: count }, (_, index) => output(index));

async function opened(conversationId?: string, settings?: { limit?: number | null }) {
  const fake = new FakeOpenAI();
  const client = await fake.client({ maxRetries: 0 });
  const session = new OpenAIConversationsSession(conversationId, { client, sessionSettings: settings });
  const sent = (method: string, path = '') =>
    fake.requests.filter((request) => request.method === method && request.path.includes(path));
  return { fake, client, session, sent };
}
const itemsOf = ({ body }: RecordedRequest) => (body as { items: Record<string, unknown>[] }).items;

afterEach(() => {
  resetDefaults();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe('OpenAIConversationsSession', () => {
  it('makes its conversation when it is first needed, once for callers at the same time, and anew after a failure [SESS-301, SESS#58]', async () => {
    const { fake, session, sent } = await opened();
    expect(session.sessionId).toBeUndefined();
    await session.addItems([]);
    await session.clearSession();
    expect(await session.getItems(0)).toEqual([]);
    expect(fake.requests).toHaveLength(0);
    fake.inject({ kind: 'status', status: 500 });
    await expect(session.getSessionId()).rejects.toMatchObject({ status: 500 });
    await Promise.all([session.addItems([user('a')]), session.addItems([user('b')]), session.getSessionId()]);
    expect(sent('POST').filter(({ path }) => path === '/v1/conversations')).toHaveLength(2);
    expect(session.sessionId).toBe(await session.getSessionId());
    expect(await session.getItems()).toMatchObject([{ content: [{ text: 'a' }] }, { content: [{ text: 'b' }] }]);
  });

  it('has the client that it was given, else the default one, else one for the default key [SESS-301]', async () => {
    const { session, sent } = await opened();
    const other = await opened();
    setOpenAIDefaults({ client: other.client });
    await session.getSessionId();
    expect([sent('POST').length, other.sent('POST').length]).toEqual([1, 0]);
    await new OpenAIConversationsSession().getSessionId();
    expect(other.sent('POST')).toHaveLength(1);
    setOpenAIDefaults({ client: null, apiKey: 'default key' });
    const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('{}', { status: 401 }));
    vi.stubEnv('OPENAI_API_KEY', 'key of the environment');
    await expect(new OpenAIConversationsSession().getSessionId()).rejects.toMatchObject({ status: 401 });
    const [, init] = fetched.mock.calls[0] ?? [];
    expect(new Headers(init?.headers).get('authorization')).toBe('Bearer default key');
  });

  it('reads all by ascending pages, a number by descending ones that are no larger than it, in order [SESS-302]', async () => {
    const { session, sent } = await opened();
    for (let index = 0; index < 130; index += 20) await session.addItems(outputs(130).slice(index, index + 20));
    const callIds = (items: readonly AgentInputItem[]) => items.map((one) => (one as { call_id: string }).call_id);
    const all = outputs(130).map((_, index) => `c${index}`);
    expect(callIds(await session.getItems())).toEqual(all);
    expect(callIds(await session.getItems(3))).toEqual(all.slice(-3));
    expect(callIds(await session.getItems(120))).toEqual(all.slice(-120));
    const pages = sent('GET', '/items').map(({ query }) => [
      query['order'],
      query['limit'],
      query['after'] !== undefined,
    ]);
    expect(pages).toEqual([
      ['asc', '100', false],
      ['asc', '100', true],
      ['desc', '3', false],
      ['desc', '100', false],
      ['desc', '100', true],
    ]);
  });

  it('has the limit of its settings [SESS-005]', async () => {
    const { session } = await opened(undefined, { limit: 2 });
    await session.addItems(outputs(5));
    expect(await session.getItems()).toHaveLength(2);
    expect(await session.getItems(3)).toHaveLength(3);
  });

  it('sends 45 items in chunks of 20 without repeats of the client; a chunk that fails leaves the earlier ones [SESS-303, SESS#59]', async () => {
    const { fake, session, sent } = await opened();
    await session.addItems(outputs(45));
    expect(sent('POST', '/items').map((request) => itemsOf(request).length)).toEqual([20, 20, 5]);
    await session.clearSession();
    fake.inject({ kind: 'status', status: 503, on: { method: 'POST', path: /items/u, nth: 2 } });
    const error = await session.addItems(outputs(45)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SessionOutcomeUnknownError);
    expect(error).toMatchObject({ sessionId: session.sessionId, operation: 'append', cause: { status: 503 } });
    expect(await session.getItems()).toHaveLength(20);
  });

  it('sends several chunks once, and a single one again where the client does so [SESS-303]', async () => {
    const { fake, sent } = await opened();
    const session = new OpenAIConversationsSession(undefined, { client: await fake.client({ maxRetries: 1 }) });
    const refused = { kind: 'status', status: 503, headers: { 'retry-after-ms': '1' } } as const;
    for (const [count, requests] of [
      [20, 2],
      [21, 1],
    ] as const) {
      const before = sent('POST', '/items').length;
      fake.inject({ ...refused, on: { method: 'POST', path: /items/u, nth: 1 } });
      await session.addItems(outputs(count)).catch((thrown: unknown) => thrown);
      expect(sent('POST', '/items')).toHaveLength(before + requests);
    }
  });

  it('carries out its calls one after the other [SESS-303]', async () => {
    const { session } = await opened();
    const calls = [session.addItems(outputs(45)), session.getItems(), session.popItem(), session.getItems()] as const;
    const [, all, newest, left] = await Promise.all(calls);
    expect([all.length, newest, left.length]).toEqual([45, expect.objectContaining({ call_id: 'c44' }), 44]);
  });

  it('goes on with an append of its own alone, and where the history ends in what was acknowledged of it [SESS-303]', async () => {
    const { fake, client, session } = await opened();
    const id = await session.getSessionId();
    const goesOn = (items: readonly AgentInputItem[]) =>
      (session as unknown as PartialAppendSession)[partialAppend](items);
    const breakOff = async (nth: number): Promise<void> => {
      fake.inject({ kind: 'refuse', on: { method: 'POST', path: /items/u, nth } });
      await expect(session.addItems(outputs(45))).rejects.toBeInstanceOf(SessionOutcomeUnknownError);
    };
    // Nothing was acknowledged.
    await breakOff(1);
    expect(await goesOn(outputs(45))).toBe(false);
    await breakOff(2);
    expect(await goesOn(outputs(44))).toBe(false);
    expect(await goesOn(outputs(46))).toBe(false);
    await client.conversations.items.create(id, { items: [{ type: 'message', role: 'user', content: 'meanwhile' }] });
    expect(await goesOn(outputs(45))).toBe(false);
    expect(await session.getItems()).toHaveLength(21);
    await session.popItem();
    // What breaks off again is gone on with from there, refused or not: its beginning is stored.
    for (const [kind, count] of [
      ['status', 20],
      ['refuse', 40],
    ] as const) {
      const on = { method: 'POST', path: /items/u, nth: count / 20 };
      fake.inject(kind === 'status' ? { kind, status: 503, on } : { kind, on });
      await expect(goesOn(outputs(45))).rejects.toBeInstanceOf(SessionOutcomeUnknownError);
      expect(await session.getItems()).toHaveLength(count);
    }
    expect(await goesOn(outputs(45))).toBe(true);
    expect(await session.getItems()).toMatchObject(outputs(45));
    expect(await goesOn(outputs(45))).toBe(false);
  });

  it('knows that a refused request stored nothing, and does not know it of one that got no answer [SESS-303, SESS-151]', async () => {
    const { fake, session } = await opened();
    await session.getSessionId();
    fake.inject({ kind: 'status', status: 429 });
    await expect(session.addItems([user('a')])).rejects.toMatchObject({ status: 429 });
    fake.inject({ kind: 'refuse' });
    await expect(session.addItems([user('a')])).rejects.toBeInstanceOf(SessionOutcomeUnknownError);
  });

  it('sends items without what is not theirs, with ids where the service needs them [SESS-304, SESS#60, IL-029, IL-030]', async () => {
    const { session, sent } = await opened();
    const keep = [
      'file_search_call',
      'web_search_call',
      'computer_call',
      'code_interpreter_call',
      'image_generation_call',
      'local_shell_call',
      'local_shell_call_output',
      'mcp_list_tools',
      'mcp_approval_request',
      'mcp_call',
      'item_reference',
      'program',
      'program_output',
    ];
    const lose = [
      'computer_call_output',
      'custom_tool_call',
      'custom_tool_call_output',
      'shell_call',
      'shell_call_output',
      'apply_patch_call',
      'apply_patch_call_output',
      'compaction',
      'tool_search_call',
      'tool_search_output',
      'mcp_approval_response',
    ];
    for (const types of [keep, lose]) await session.addItems(types.map((type) => item({ type, id: `id_${type}` })));
    expect(sent('POST', '/items').flatMap((request) => itemsOf(request).map(({ id }) => id))).toEqual([
      ...keep.map((type) => `id_${type}`),
      ...lose.map(() => undefined),
    ]);
    const ours = { provider_data: { a: 1 }, created_by: 'x', _agents_tool_title: 't', _agents_tool_description: 'd' };
    const given = [
      item({ type: 'reasoning', id: 'rs_1', summary: [] }),
      item({ type: 'reasoning', id: '__fake_id__', summary: [], encrypted_content: 'x' }),
      item({ type: 'reasoning', summary: [] }),
      item({ type: 'reasoning', id: '__fake_id__', summary: [], encrypted_content: null }),
      item({ ...user('hi'), ...ours, id: 'msg_1' }),
      item({ type: 'mcp_call', id: '__fake_id__', name: 'x' }),
      item({ type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'look', arguments: '{}' }),
      item({ type: 'function_call_output', id: 'fco_1', call_id: 'c1', output: 'seen' }),
    ];
    await session.addItems(given);
    const last = sent('POST', '/items').at(-1);
    const stored = [
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { type: 'reasoning', summary: [], encrypted_content: 'x' },
      user('hi'),
      { type: 'mcp_call', name: 'x' },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'seen' },
    ];
    expect(last && itemsOf(last)).toEqual(stored);
    expect(session.prepareItemsForPersistence(given)).toEqual(stored);
    const before = sent('POST', '/items').length;
    for (const nothing of [{}, { encrypted_content: null }])
      await session.addItems([item({ type: 'reasoning', summary: [], ...nothing })]);
    expect(sent('POST', '/items')).toHaveLength(before);
    const fresh = await opened();
    await fresh.session.addItems([item({ type: 'reasoning', id: '__fake_id__', summary: [] })]);
    expect(fresh.fake.requests).toHaveLength(0);
  });

  it('refuses what is no item before it sends anything [SESS-008]', async () => {
    const { fake, session } = await opened('conv_1');
    const circle: Record<string, unknown> = { type: 'message' };
    circle['self'] = circle;
    // Also in what is not sent.
    for (const bad of [circle, { ...user('a'), provider_data: circle }])
      await expect(session.addItems([user('a'), item(bad)])).rejects.toBeInstanceOf(SessionItemError);
    expect(fake.requests).toHaveLength(0);
  });

  it('stores items as they were when it was called [SESS-008]', async () => {
    const { session } = await opened();
    const given = { type: 'message', role: 'user', content: 'before' };
    const adding = session.addItems([item(given)]);
    given.content = 'after';
    await adding;
    expect(await session.getItems()).toMatchObject([{ content: [{ text: 'before' }] }]);
  });

  it('gives assistant messages to the model without the id of the service, keeps ids of reasoning, compares without ids [SESS-305, 306]', async () => {
    const { session } = await opened();
    expect(session.preserveReasoningItemIds).toBe(true);
    const assistant = item({ type: 'message', role: 'assistant', id: 'msg_1', provider_data: {}, content: [] });
    expect(session.prepareHistoryItemForModelInput(assistant)).toEqual({
      type: 'message',
      role: 'assistant',
      content: [],
    });
    const untyped = item({ role: 'assistant', id: 'msg_1', provider_data: {}, content: 'hi' });
    expect(session.prepareHistoryItemForModelInput(untyped)).toEqual({ role: 'assistant', content: 'hi' });
    for (const role of ['user', 'system', 'developer']) {
      const asked = item({ type: 'message', role, id: 'msg_2', provider_data: {}, content: [] });
      expect(session.prepareHistoryItemForModelInput(asked)).toEqual(asked);
    }
    const reasoning = item({ type: 'reasoning', id: 'rs_1', summary: [] });
    expect(session.prepareHistoryItemForModelInput(reasoning)).toEqual(reasoning);
    const called = { type: 'mcp_call', name: 'x', status: 'completed', provider_data: 1 };
    expect(session.normalizeForComparison(item({ ...called, id: 'mcp_1', created_by: 'y' }))).toEqual(called);
    const text = { type: 'output_text', text: 'hi', annotations: [], logprobs: [] };
    const stored = item({ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [text] });
    expect(session.normalizeForComparison(stored)).toEqual(
      session.normalizeForComparison(item({ role: 'assistant', content: 'hi' })),
    );
    expect(session.normalizeForComparison(item({ ...user('hi'), id: 'msg_2', status: 'completed' }))).toEqual(
      session.normalizeForComparison(item({ role: 'user', content: 'hi' })),
    );
    const forms = ['user', 'assistant', 'system'].flatMap((role) =>
      ['hi', 'ho'].map((content) => JSON.stringify(session.normalizeForComparison(item({ role, content })))),
    );
    expect(new Set(forms).size).toBe(6);
  });

  it('pops the newest item by its id; clears by deleting, keeps the id where that fails, and goes on in another conversation [SESS-307]', async () => {
    const { fake, session, sent } = await opened();
    await session.addItems([output(0), output(1)]);
    const first = session.sessionId;
    expect(await session.popItem()).toMatchObject({ call_id: 'c1' });
    expect(await session.getItems()).toMatchObject([{ call_id: 'c0' }]);
    fake.inject({ kind: 'status', status: 500, on: { method: 'DELETE' } });
    await expect(session.clearSession()).rejects.toMatchObject({ status: 500 });
    expect(session.sessionId).toBe(first);
    const adding = session.addItems([output(2)]);
    await Promise.all([adding, session.clearSession()]);
    expect(sent('POST', '/items').at(-1)?.path).toContain(first);
    expect(session.sessionId).toBeUndefined();
    expect(await session.popItem()).toBeUndefined();
    expect(session.sessionId).not.toBe(first);
  });

  it('deletes a conversation that is being made when it is cleared [SESS-307]', async () => {
    const { session, sent } = await opened();
    const making = session.getSessionId();
    await session.clearSession();
    expect(sent('DELETE').map(({ path }) => path)).toEqual([expect.stringContaining(await making)]);
    expect(session.sessionId).toBeUndefined();
  });

  it('deletes nothing where the newest item has no id [SESS-307]', async () => {
    const { fake, session, sent } = await opened('conv_1');
    for (const id of [{}, { id: '' }]) {
      const data = [{ type: 'message', ...id }];
      const page = { object: 'list', data, first_id: null, last_id: null, has_more: false };
      fake.inject({ kind: 'status', status: 200, body: page, on: { method: 'GET' } });
      const error = await session.popItem().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(SessionError);
      expect(error).toMatchObject({ sessionId: 'conv_1' });
    }
    expect(sent('DELETE')).toHaveLength(0);
  });

  it('refuses ids and options that are none [SESS-137]', () => {
    expect(() => new OpenAIConversationsSession(' ')).toThrow(UserError);
    expect(() => new OpenAIConversationsSession(undefined, { limit: 3 } as never)).toThrow(/Unknown option 'limit'/u);
    const sessionSettings = { limits: 3 } as never;
    expect(() => new OpenAIConversationsSession(undefined, { sessionSettings })).toThrow(/'sessionSettings'/u);
  });
});

bothForms((runForm, form) => {
  describe(`a run with a conversation of the service (${form})`, () => {
    it('keeps its items there, over a pause and a later run [SESS-301]', async () => {
      const { session } = await opened();
      const done: string[] = [];
      const model = new ScriptedModel([toolCall('t'), 'done', 'again']);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('t', done, { needsApproval: true })] });
      const paused = await runForm(agent, 'x', { session });
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const waiting of state.interruptions) state.approve(waiting);
      const resumed = await runForm(agent, state, { session });
      expect(resumed.finalOutput).toBe('done');
      await runForm(agent, 'y', { session });
      expect(kindsOf(await session.getItems())).toBe('u fc fco m u m');
      expect(kindsOf(model.calls[2]?.request.input ?? [])).toBe('u fc fco m u');
      expect(done).toHaveLength(1);
    });

    it('settles an append that got no answer by what the service has, which is not quite what was sent [SESS-304, SESS-306, SESS#80]', async () => {
      const lost = { type: 'reasoning', id: '__fake_id__', summary: [] };
      const call = {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'c1',
        name: 't',
        arguments: '{}',
        status: 'completed',
      };
      for (const isStored of [false, true]) {
        const { fake, client, session } = await opened();
        const done: string[] = [];
        const model = new ScriptedModel([exactly(lost, call), 'done']);
        const agent = new Agent({ name: 'A', model, tools: [effectTool('t', done)] });
        const id = await session.getSessionId();
        fake.inject({ kind: 'refuse', on: { method: 'POST', path: /items/u, nth: 2 } });
        const error = await rejection(runForm(agent, 'x', { session }));
        const state = getRunErrorState(error);
        if (!state) throw new Error('The error has no state.');
        const json = JSON.parse(state.toString()) as { pending_session_write?: { items: AgentInputItem[] } };
        const owed = json.pending_session_write?.items ?? [];
        expect(kindsOf(owed)).toBe('fc fco');
        if (isStored) await client.conversations.items.create(id, { items: owed });
        const resumed = await runForm(agent, state, { session });
        expect(resumed.finalOutput).toBe('done');
        expect(done).toHaveLength(1);
        expect(kindsOf(await session.getItems())).toBe('u fc fco m');
      }
    });

    it('settles an append of several chunks that broke off: with the same object it goes on, with another it is refused [SESS-303, SESS#59]', async () => {
      const { fake, client, session } = await opened();
      await session.getSessionId();
      const model = new ScriptedModel([
        outputs(30).map((_, index) => toolCall('t', {}, { callId: `c${index}` })),
        'done',
      ]);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('t', [])] });
      fake.inject({ kind: 'refuse', on: { method: 'POST', path: /items/u, nth: 3 } });
      const error = await rejection(runForm(agent, 'x', { session }));
      expect(error).toBeInstanceOf(SessionOutcomeUnknownError);
      const state = getRunErrorState(error);
      if (!state) throw new Error('The error has no state.');
      const text = state.toString();
      const other = new OpenAIConversationsSession(session.sessionId, { client });
      await expect(runForm(agent, await RunState.fromString(agent, text), { session: other })).rejects.toMatchObject({
        code: 'session_write_ambiguous',
      });
      const resumed = await runForm(agent, state, { session });
      expect(resumed.finalOutput).toBe('done');
      const stored = await session.getItems();
      expect(stored.filter((one) => one.type === 'function_call_output')).toHaveLength(30);
      expect(stored).toHaveLength(62);
    });
  });
});
