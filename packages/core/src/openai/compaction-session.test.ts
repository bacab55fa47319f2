import { afterEach, describe, expect, it, vi } from 'vitest';
import { Agent, getRunErrorState, MemorySession, RunAbortedError, RunState, UserError } from '../index.ts';
import type { AgentInputItem } from '../index.ts';
import { EncryptedSession, MemorySessionStore, SessionOutcomeUnknownError } from '../session.ts';
import type { Session, SessionSettings } from '../session.ts';
import { itemDigest } from '../items/convert.ts';
import { compactionEvidence, compactionGeneration } from '../sessions/contract.ts';
import type { CompactionOptions } from '../sessions/contract.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults, ScriptedModel, sessionContract, toolCall } from '../testing/index.ts';
import type { FakeStep } from '../testing/index.ts';
import { FourFunctions, item, logged, said, summary, talk, wrapped } from '../../test/compaction-kit.ts';
import { effectTool, kindsOf, rejection, user } from '../../test/run-kit.ts';
import { OpenAICompactionSession } from './compaction-session.ts';
import { OpenAIConversationsSession } from './conversations-session.ts';
import { setOpenAIDefaults } from './defaults.ts';

afterEach(() => {
  resetDefaults();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** Versions, and no transactions. */
function versioned(): Session {
  const plain = new FourFunctions();
  const { memory } = plain;
  return Object.assign(plain, {
    readHistory: memory.readHistory.bind(memory),
    appendIfVersion: memory.appendIfVersion.bind(memory),
    replaceHistory: memory.replaceHistory.bind(memory),
  });
}

describe('OpenAICompactionSession', () => {
  describe('contract [SESS-342]', () => {
    // The fixture can neither damage nor break a store in memory, and what is wrapped is closed by its owner.
    const impossible = /^(?:E|G[1235]|H)/u;
    const make = () => {
      const store = new MemorySessionStore();
      return {
        open: (id: string, options?: { sessionSettings?: SessionSettings }) =>
          new OpenAICompactionSession(store.session(id, options)) as unknown as Session<object>,
      };
    };
    const skip = (reason: string): never => {
      throw new Error(`Skipped: ${reason}`);
    };
    it.each(sessionContract<object>(make).filter(({ id }) => !impossible.test(id)))('$title', async (one) => {
      await expect(one.run({ skip })).resolves.toBeUndefined();
    });
  });

  it('refuses a history that the service keeps, and models that do not compact [SESS-311]', () => {
    const session = new MemorySession();
    expect(() => new OpenAICompactionSession(new OpenAIConversationsSession() as never)).toThrow(UserError);
    for (const model of [
      'gpt-4.1',
      'o3',
      'ft:gpt-4.1:org',
      'ft:o4-mini:x',
      'openrouter/openai/gpt-5',
      'x/ft:gpt-4.1:org',
    ])
      expect(new OpenAICompactionSession(session, { model }).session).toBe(session);
    for (const model of [
      'claude-5',
      'llama',
      'openai/',
      'omni',
      '',
      'gpt4',
      'not-gpt-4',
      'ft:llama:org',
      'gpt-4/llama',
      4,
    ])
      expect(() => new OpenAICompactionSession(session, { model: model as string })).toThrow(
        /'model' of OpenAICompactionSession/u,
      );
    expect(() => new OpenAICompactionSession(session, { limit: 3 } as never)).toThrow(/Unknown option 'limit'/u);
  });

  it('has the client that it was given, else the default one, whichever that is by then, else one for the default key [SESS-311]', async () => {
    const full = () => new MemorySession('s', { items: talk(10) });
    const compacting = new OpenAICompactionSession(full());
    const { client, asked } = await wrapped(new MemorySession());
    setOpenAIDefaults({ client });
    const own = await wrapped(full());
    await own.compacting.runCompaction();
    expect([own.asked().length, asked().length]).toEqual([1, 0]);
    await compacting.runCompaction();
    expect(asked()).toHaveLength(1);
    setOpenAIDefaults({ client: null, apiKey: 'default key' });
    vi.stubEnv('OPENAI_API_KEY', 'key of the environment');
    const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('{}', { status: 401 }));
    await expect(new OpenAICompactionSession(full()).runCompaction()).rejects.toMatchObject({ status: 401 });
    const [, init] = fetched.mock.calls[0] ?? [];
    expect(new Headers(init?.headers).get('authorization')).toBe('Bearer default key');
  });

  it('has the id, the settings and the capabilities of the wrapped session, and no others [SESS-038, 311]', () => {
    const memory = new OpenAICompactionSession(new MemorySession('m', { sessionSettings: { limit: 3 } }));
    expect(memory.sessionId).toBe('m');
    expect(memory.sessionSettings).toEqual({ limit: 3 });
    expect(memory.applyHistoryTransaction).toBeTypeOf('function');
    expect(memory.replaceHistory).toBeTypeOf('function');
    const plain = new OpenAICompactionSession(new FourFunctions());
    expect(plain.applyHistoryTransaction).toBeUndefined();
    expect(plain.readHistory).toBeUndefined();
    expect(plain.acceptsRunContext).toBeUndefined();
  });

  it('compacts at ten candidates, which are no user messages and no compactions, or when its own rule or `force` says so [SESS-312]', async () => {
    const { session, compacting, asked } = await wrapped(new MemorySession());
    await session.addItems([...talk(9), summary, item({ role: 'user', content: 'b' })]);
    expect(await compacting.runCompaction()).toBeUndefined();
    await compacting.addItems([item({ role: 'assistant', content: 'tenth' })]);
    expect(await compacting.runCompaction()).toMatchObject({ usage: { requests: 1 } });
    expect(asked()).toHaveLength(1);
    expect(await compacting.runCompaction()).toBeUndefined();
    await compacting.runCompaction({ force: true });
    expect(asked()).toHaveLength(2);

    const seen: unknown[] = [];
    const own = await wrapped(new MemorySession(), {
      shouldCompact: async ({ candidates, items, responseId }) => {
        seen.push([candidates.length, items.length, responseId]);
        return 0 as never;
      },
    });
    await own.session.addItems(talk(2));
    await own.compacting.runCompaction({ responseId: 'resp_1' });
    expect(seen).toEqual([[2, 3, 'resp_1']]);
    expect(own.asked()).toHaveLength(0);
  });

  it('asks by response id where the service has the response, else by items [SESS-313, SESS#63, IL-028]', async () => {
    const { fake, session, compacting, asked } = await wrapped(new MemorySession());
    const client = await fake.client();
    const { id } = await client.responses.create({ model: 'gpt-4.1', input: 'x' });
    const compact = async (options: object) => {
      await session.addItems([user('again')]);
      await compacting.runCompaction({ force: true, ...options });
      const body = asked().at(-1) ?? {};
      return 'input' in body ? 'input' : body['previous_response_id'];
    };
    await session.addItems([user('q'), item({ ...said('a'), _agents_tool_title: 't', created_by: 'x' })]);
    expect(await compact({})).toBe('input');
    expect(await compact({ responseId: id })).toBe(id);
    expect(await compact({})).toBe(id);
    expect(await compact({ mode: 'input' })).toBe('input');
    expect(await compact({ responseId: id, store: false })).toBe('input');
    expect(await compact({ responseId: id })).toBe('input');
    expect(await compact({ responseId: id, store: true })).toBe(id);
    const inputs = asked().flatMap(({ input }) => (input === undefined ? [] : [JSON.stringify(input)]));
    expect(inputs.join()).not.toMatch(/_agents_tool_title|created_by/u);
    const fresh = await wrapped(new MemorySession(), { mode: 'previous_response_id' });
    await expect(fresh.compacting.runCompaction({ force: true })).rejects.toBeInstanceOf(UserError);
    // What a call says comes before what was said when the session was made, and before what it remembers.
    await fresh.session.addItems(talk(1));
    const second = await (await fresh.fake.client()).responses.create({ model: 'gpt-4.1', input: 'y' });
    await fresh.compacting.runCompaction({ force: true, responseId: second.id });
    await expect(fresh.compacting.runCompaction({ force: true, responseId: 'resp_none' })).rejects.toMatchObject({
      status: 400,
    });
    await fresh.compacting.runCompaction({ force: true, mode: 'input' });
    expect(fresh.asked().map((body) => body['previous_response_id'])).toEqual([second.id, 'resp_none', undefined]);
  });

  it('stores what the service gave in a form that it takes again, and nothing where that cannot be [SESS-314]', async () => {
    const { session, compacting, gives } = await wrapped(new MemorySession());
    await session.addItems(talk(10));
    gives([
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'hi' },
          { type: 'input_image', image_url: 'https://x/y.png', file_id: null, detail: 'low', extra: 1 },
          { type: 'input_file', file_id: 'f', file_data: null, filename: 'a.pdf', extra: 1 },
        ],
      },
      { type: 'message', id: 'msg_1', role: 'assistant', content: [] },
      summary,
    ]);
    await compacting.runCompaction();
    expect(await session.getItems()).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'hi' },
          { type: 'input_image', image_url: 'https://x/y.png', detail: 'low' },
          { type: 'input_file', file_id: 'f', filename: 'a.pdf' },
        ],
      },
      { type: 'message', role: 'assistant', content: [] },
      summary,
    ]);
    const before = await session.getItems();
    for (const output of [[], ['x'], [{ type: 'message', role: 'user', content: [{ type: 'input_image' }] }]]) {
      gives(output as object[]);
      await expect(compacting.runCompaction({ force: true })).rejects.toMatchObject({ code: 'model_behavior' });
      expect(await session.getItems()).toEqual(before);
    }
    gives([
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { type: 'message', id: 'msg_1', role: 'assistant', content: [] },
    ]);
    await compacting.runCompaction({ force: true });
    expect((await session.getItems())[1]).toMatchObject({ id: 'msg_1' });
  });

  it.each([
    ['with versions', () => new MemorySession()],
    ['of four functions', () => new FourFunctions()],
  ])(
    'keeps what was appended meanwhile on a session %s, and lets a clear win [SESS-316, SESS#61, IL-026]',
    async (_, make) => {
      const { session, compacting, gives, compacting: other } = await wrapped<Session>(make());
      await session.addItems(talk(10));
      gives([summary], () => other.addItems([user('meanwhile')]));
      await compacting.runCompaction();
      expect(await session.getItems()).toEqual([summary, user('meanwhile')]);
      await session.addItems(talk(10));
      gives([summary], () => other.clearSession());
      const logs = await logged(() => compacting.runCompaction());
      expect(await session.getItems()).toEqual([]);
      expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
    },
  );

  it.each([
    ['with transactions', () => new MemorySession()],
    ['with versions', () => versioned()],
    ['of four functions', () => new FourFunctions()],
  ])(
    'leaves a session %s alone whose history was changed before its end meanwhile, however long it is then, with one warning [SESS-316, 319]',
    async (_, make) => {
      const { session, compacting, gives } = await wrapped<Session>(make());
      await session.addItems(talk(10));
      const theirs = [...talk(9), said('another'), user('meanwhile')];
      gives([summary], async () => {
        await session.clearSession();
        await session.addItems(theirs);
      });
      const logs = await logged(async () => {
        // The service charged for it all the same.
        expect(await compacting.runCompaction()).toHaveProperty('usage');
        expect(await session.getItems()).toEqual(theirs);
        await session.addItems(talk(10));
        await compacting.runCompaction();
      });
      expect(await session.getItems()).toEqual(theirs);
      expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
    },
  );

  it.each(['addItems', 'clearSession'])(
    'puts a plain history back when %s fails [SESS-315, SESS#62, IL-025]',
    async (name) => {
      const { session, compacting } = await wrapped(new FourFunctions());
      await session.addItems(talk(10));
      session.failing = [name];
      const adds = vi.spyOn(session, 'addItems');
      await expect(compacting.runCompaction()).rejects.toThrow(`${name} failed`);
      expect(await session.getItems()).toEqual(talk(10));
      // A clear that did nothing leaves nothing to put back.
      expect(adds).toHaveBeenCalledTimes(name === 'addItems' ? 2 : 0);
      session.failing = ['addItems', 'addItems'];
      const logs = await logged(() => expect(compacting.runCompaction()).rejects.toThrow('addItems failed'));
      expect(logs.filter(({ level }) => level === 'error')).toHaveLength(1);
    },
  );

  it('looks again where others append right before the end of a history is replaced [SESS-315, 316]', async () => {
    const session = new MemorySession();
    const apply = session.applyHistoryTransaction.bind(session);
    let isFirst = true;
    session.applyHistoryTransaction = async (operation) => {
      if (isFirst) await session.addItems([user('meanwhile')]);
      isFirst = false;
      await apply(operation);
    };
    const { compacting, gives } = await wrapped(session);
    await session.addItems(talk(10));
    gives([summary]);
    await compacting.runCompaction();
    expect(await session.getItems()).toEqual([summary, user('meanwhile')]);
  });

  it('looks again where others append right before a history is replaced by its version [SESS-315, 316]', async () => {
    const memory = new MemorySession();
    let isFirst = true;
    const versioned = Object.assign(new FourFunctions(), {
      memory,
      readHistory: memory.readHistory.bind(memory),
      appendIfVersion: memory.appendIfVersion.bind(memory),
      replaceHistory: async (...args: Parameters<MemorySession['replaceHistory']>) => {
        if (isFirst) await memory.addItems([user('meanwhile')]);
        isFirst = false;
        return await memory.replaceHistory(...args);
      },
    });
    const { compacting, gives } = await wrapped(versioned);
    await memory.addItems(talk(10));
    gives([summary]);
    await compacting.runCompaction();
    expect(await memory.getItems()).toEqual([summary, user('meanwhile')]);
  });

  it.each([0, 1])(
    'puts back what was appended meanwhile, too, and nothing twice, when %i items were stored before the add failed [SESS-315, SESS#62]',
    async (stored) => {
      const { session, compacting, gives } = await wrapped(new FourFunctions());
      await session.addItems(talk(10));
      const addItems = session.addItems.bind(session);
      session.addItems = async (items) => {
        if (session.failing.length > 0) await session.memory.addItems(items.slice(0, stored));
        await addItems(items);
      };
      gives([summary], async () => {
        await session.addItems([user('meanwhile')]);
        session.failing = ['addItems'];
      });
      await expect(compacting.runCompaction()).rejects.toThrow('addItems failed');
      expect(await session.getItems()).toEqual([...talk(10), user('meanwhile')]);
    },
  );

  it.each([
    ['with versions', (memory: MemorySession) => memory],
    ['of four functions', (memory: MemorySession) => Object.assign(new FourFunctions(), { memory })],
  ])(
    'compacts by hand what a session %s stored, not only what it reads by itself [SESS-318, IL-027]',
    async (_, make) => {
      const memory = new MemorySession('s', { sessionSettings: { limit: 4 } });
      const { compacting, asked, gives } = await wrapped<Session>(make(memory));
      await memory.addItems(talk(10));
      gives([summary]);
      await compacting.runCompaction();
      expect(asked()[0]?.['input']).toHaveLength(11);
      expect(await memory.getItems(100)).toEqual([summary]);
    },
  );

  it('lets the second of two calls wait [SESS-319]', async () => {
    const { session, compacting, asked } = await wrapped(new MemorySession());
    await session.addItems(talk(10));
    const [first, second] = await Promise.all([compacting.runCompaction(), compacting.runCompaction()]);
    expect(first).toMatchObject({ usage: { requests: 1 } });
    expect(second).toBeUndefined();
    expect(asked()).toHaveLength(1);
  });

  it('lets changes wait for a replacement, and a replacement for changes [SESS-317]', async () => {
    const calls: string[] = [];
    const gates = new Map<string, () => void>();
    /** Each call of the wrapped session begins when the test lets it. */
    class Gated extends FourFunctions {
      async #at<R>(name: string, work: () => Promise<R>): Promise<R> {
        calls.push(name);
        await new Promise<void>((resolve) => void gates.set(name, resolve));
        return await work();
      }
      override addItems = (items: readonly AgentInputItem[]) => this.#at('add', () => this.memory.addItems(items));
      override popItem = () => this.#at('pop', () => this.memory.popItem());
      override clearSession = () => this.#at('clear', () => this.memory.clearSession());
    }
    const turn = async (name: string): Promise<void> => {
      await vi.waitFor(() => expect(gates.has(name)).toBe(true));
      gates.get(name)?.();
      gates.delete(name);
    };
    const { session, compacting, gives } = await wrapped(new Gated());
    await session.memory.addItems(talk(10));
    gives([summary]);
    const before = compacting.addItems([user('before')]);
    const compaction = compacting.runCompaction();
    await turn('add');
    await before;
    // The replacement has begun: it clears, then adds.
    await vi.waitFor(() => expect(calls).toEqual(['add', 'clear']));
    const meanwhile = [compacting.addItems([user('meanwhile')]), compacting.popItem()];
    await turn('clear');
    await turn('add');
    await compaction;
    await vi.waitFor(() => expect(calls.slice(0, 5)).toEqual(['add', 'clear', 'add', 'add', 'pop']));
    await turn('add');
    await turn('pop');
    await Promise.all(meanwhile);
    expect(calls).toHaveLength(5);
    expect(await session.memory.getItems()).toEqual([summary]);
  });

  it('counts candidates anew after what may have changed them, and where others are seen to change the history [SESS-317]', async () => {
    const plain = new FourFunctions();
    const { compacting } = await wrapped(plain);
    let reads = 0;
    const getItems = plain.getItems.bind(plain);
    plain.getItems = async (limit) => {
      reads++;
      return await getItems(limit);
    };
    const readsOf = async (change: () => Promise<unknown>): Promise<number> => {
      await change().catch(() => undefined);
      reads = 0;
      await compacting.deferCompaction('resp_1');
      return reads;
    };
    expect(await readsOf(() => compacting.addItems([said('1')]))).toBe(1);
    expect(await readsOf(() => compacting.addItems([said('2')]))).toBe(0);
    plain.failing = ['addItems'];
    expect(await readsOf(() => compacting.addItems([said('3')]))).toBe(1);
    expect(await readsOf(() => compacting.popItem())).toBe(1);
    expect(await readsOf(() => compacting.clearSession())).toBe(1);
    expect(compacting.deferredResponseId).toBeUndefined();

    const versioned = await wrapped(new MemorySession());
    await versioned.compacting.addItems([said('1')]);
    await versioned.compacting.deferCompaction('resp_1');
    expect(versioned.compacting.deferredResponseId).toBeUndefined();
    await versioned.session.addItems(talk(9, 'others'));
    await versioned.compacting.deferCompaction('resp_2');
    expect(versioned.compacting.deferredResponseId).toBe('resp_2');
  });

  it('keeps what it cannot read when it is called by hand: what another key encrypted [SESS-315, SESS-328]', async () => {
    const inner = new MemorySession<object>('s');
    const encrypted = new EncryptedSession(inner, { encryptionKey: 'correct horse', ttlMs: null });
    const foreign = new EncryptedSession<object>(inner, { encryptionKey: 'another', ttlMs: null });
    const { compacting, gives } = await wrapped<Session>(encrypted, { mode: 'input' });
    await foreign.addItems([{ theirs: 1 }]);
    await encrypted.addItems(talk(1));
    await foreign.addItems([{ theirs: 2 }]);
    await encrypted.addItems(talk(1));
    gives([summary], () => encrypted.addItems([user('meanwhile')]));
    await compacting.runCompaction({ force: true });
    expect(kindsOf(await encrypted.getItems())).toBe('compaction u');
    expect(await foreign.getItems()).toEqual([{ theirs: 1 }, { theirs: 2 }]);
    expect(await inner.getItems()).toHaveLength(4);
  });

  it('compacts nothing where that would take what another key encrypted: a session of four methods is replaced as a whole [SESS-315, SESS-328]', async () => {
    const inner = new FourFunctions() as unknown as Session<object>;
    const encrypted = new EncryptedSession(inner, { encryptionKey: 'correct horse', ttlMs: null });
    const foreign = new EncryptedSession<object>(inner, { encryptionKey: 'another', ttlMs: null });
    const { fake, compacting, gives } = await wrapped<Session>(encrypted, { mode: 'input' });
    await encrypted.addItems(talk(1));
    gives([summary]);
    await compacting.runCompaction({ force: true });
    expect(kindsOf(await encrypted.getItems())).toBe('compaction');
    await encrypted.addItems(talk(1));
    gives([summary], () => foreign.addItems([{ theirs: 1 }]));
    await compacting.runCompaction({ force: true });
    expect(kindsOf(await encrypted.getItems())).toBe('compaction u m');
    expect(await foreign.getItems()).toEqual([{ theirs: 1 }]);
    await encrypted.addItems(talk(1));
    const asked = fake.requests.length;
    expect(await compacting.runCompaction({ force: true })).toBeUndefined();
    expect(fake.requests).toHaveLength(asked);
    expect(await foreign.getItems()).toEqual([{ theirs: 1 }]);
    expect(await inner.getItems()).toHaveLength(6);
  });

  it('takes ten candidates for enough, and nine for too few, also where it counts along [SESS-312]', async () => {
    const plain = new FourFunctions();
    const { compacting } = await wrapped(plain);
    await compacting.addItems(talk(8));
    await compacting.deferCompaction('resp_8');
    const read = vi.spyOn(plain, 'getItems');
    await compacting.addItems([user('q'), said('ninth'), summary]);
    await compacting.deferCompaction('resp_9');
    expect(compacting.deferredResponseId).toBeUndefined();
    await compacting.addItems([user('q'), said('tenth'), summary]);
    await compacting.deferCompaction('resp_10');
    expect(compacting.deferredResponseId).toBe('resp_10');
    expect(read).not.toHaveBeenCalled();
  });

  it('remembers a response that it put off until a compaction succeeds; pop and clear forget it, also when they fail [SESS-121, 326, SESS#97]', async () => {
    const { fake, session, compacting } = await wrapped(new FourFunctions());
    await compacting.deferCompaction('resp_0');
    expect(compacting.deferredResponseId).toBeUndefined();
    await session.addItems(talk(10));
    const other = await wrapped(session);
    await other.compacting.deferCompaction('resp_1', { store: false });
    expect(other.compacting.deferredResponseId).toBe('resp_1');
    other.fake.inject({ kind: 'status', status: 500 });
    await expect(other.compacting.runCompaction({ force: true })).rejects.toMatchObject({ status: 500 });
    expect(other.compacting.deferredResponseId).toBe('resp_1');
    await other.compacting.runCompaction({ force: true });
    expect(other.compacting.deferredResponseId).toBeUndefined();
    for (const forget of ['pop', 'clear'] as const) {
      await session.addItems(talk(10));
      await other.compacting.deferCompaction('resp_2');
      expect(other.compacting.deferredResponseId).toBe('resp_2');
      if (forget === 'clear') session.failing = ['clearSession'];
      const act = forget === 'pop' ? other.compacting.popItem() : other.compacting.clearSession();
      await act.catch(() => undefined);
      expect(other.compacting.deferredResponseId).toBeUndefined();
    }
    expect(fake.requests).toHaveLength(0);
  });

  it('goes on remembering a response that it put off where what the service gave is discarded [SESS-326, SESS#97]', async () => {
    const { session, compacting, gives } = await wrapped(new MemorySession(), { mode: 'input' });
    await session.addItems(talk(10));
    await compacting.deferCompaction('resp_1');
    gives([summary], async () => {
      await session.clearSession();
      await session.addItems(talk(1, 'other'));
    });
    await logged(() => compacting.runCompaction({ force: true }));
    expect(await session.getItems()).toEqual(talk(1, 'other'));
    expect(compacting.deferredResponseId).toBe('resp_1');
  });

  it.each(['pop', 'pop that fails', 'clear', 'clear that fails'])(
    'knows no response any more after a %s, nor which one is not stored [SESS-326]',
    async (forget) => {
      const { session, compacting, asked, gives } = await wrapped(new FourFunctions());
      await session.addItems(talk(10));
      await compacting.deferCompaction('resp_1', { store: false });
      if (forget.endsWith('fails')) session.failing = ['popItem', 'clearSession'];
      const forgotten = forget.startsWith('pop') ? compacting.popItem() : compacting.clearSession();
      await forgotten.catch(() => undefined);
      session.failing = [];
      await session.addItems(talk(10));
      const byResponse = { mode: 'previous_response_id', force: true } as const;
      await expect(compacting.runCompaction(byResponse)).rejects.toThrow(/needs a response/u);
      gives([summary]);
      await compacting.runCompaction({ responseId: 'resp_1', force: true });
      expect(asked()).toEqual([expect.objectContaining({ previous_response_id: 'resp_1' })]);
    },
  );

  it('remembers a response that it put off after a pop that found nothing [SESS-326]', async () => {
    const { compacting } = await wrapped(new MemorySession(), { shouldCompact: () => true });
    await compacting.deferCompaction('resp_1');
    expect(await compacting.popItem()).toBeUndefined();
    expect(compacting.deferredResponseId).toBe('resp_1');
  });
});

/** Runs until there are candidates enough. */
const busyModel = (turns: number, more: readonly FakeStep[] = []) =>
  new ScriptedModel([...Array.from({ length: turns }, () => toolCall('t')), 'done', ...(more as string[])]);

bothForms((runForm, form) => {
  describe(`a run with a session that compacts (${form})`, () => {
    const agentWith = (model: ScriptedModel) => new Agent({ name: 'A', model, tools: [effectTool('t', [])] });

    it('puts it off while tool outputs are not answered, then compacts once; its usage counts [SESS-121, 122, SESS#64]', async () => {
      const { session, compacting, asked, gives } = await wrapped(new MemorySession());
      const model = busyModel(6, ['next']);
      gives([user('x'), summary]);
      const agent = agentWith(model);
      const seen: (string | undefined)[] = [];
      const hooks = { onLlmStart: () => void seen.push(compacting.deferredResponseId) };
      const result = await runForm(agent, 'x', { session: compacting, hooks });
      expect(seen.slice(-2)).toEqual(['resp_5', 'resp_5']);
      expect(asked()).toHaveLength(1);
      expect(asked()[0]).toMatchObject({ previous_response_id: 'resp_7' });
      expect(result.context.usage.requests).toBe(8);
      expect(compacting.deferredResponseId).toBeUndefined();
      expect(kindsOf(await session.getItems())).toBe('u compaction');
      await runForm(agent, 'y', { session: compacting });
      expect(kindsOf(model.calls.at(-1)?.request.input ?? [])).toBe('u compaction u');
      expect(asked()).toHaveLength(1);
    });

    it('asks by items where the responses of the run are not stored by the service [SESS-121, SESS#63]', async () => {
      const { compacting, asked } = await wrapped(new MemorySession());
      const agent = new Agent({
        name: 'A',
        model: busyModel(6),
        tools: [effectTool('t', [])],
        modelSettings: { store: false },
      });
      await runForm(agent, 'x', { session: compacting });
      expect(asked()).toHaveLength(1);
      expect(asked()[0]).not.toHaveProperty('previous_response_id');
      expect(kindsOf(asked()[0]?.['input'] as AgentInputItem[])).toBe(`u${' fc fco'.repeat(6)} m`);
    });

    it('replaces only what the model saw, from a message of the user on, and asks by items [SESS-320, 323, 325, SESS#93]', async () => {
      const session = new MemorySession('s', { sessionSettings: { limit: 2 } });
      const { compacting, asked } = await wrapped(session);
      const old = talk(3, 'old');
      await session.addItems(old);
      await runForm(agentWith(busyModel(6)), 'x', { session: compacting });
      expect(asked()).toHaveLength(1);
      expect(asked()[0]).not.toHaveProperty('previous_response_id');
      expect(kindsOf(asked()[0]?.['input'] as AgentInputItem[])).toBe(`u${' fc fco'.repeat(6)} m`);
      const stored = await session.getItems(100);
      expect(stored.slice(0, 4)).toEqual(old);
      expect(kindsOf(stored.slice(4))).toBe('u compaction');
    });

    it.each([true, false])(
      'asks its rule about the part that it would compact, also where a compaction was put off (before: %s) [SESS-325, 326]',
      async (isPutOff) => {
        const session = new MemorySession('s', { sessionSettings: { limit: 2 } });
        const seen: string[] = [];
        const { compacting, asked } = await wrapped(session, {
          shouldCompact: ({ items }) => {
            seen.push(kindsOf(items));
            return items.length > 4;
          },
        });
        const old = talk(5, 'old');
        await session.addItems(old);
        if (isPutOff) await compacting.deferCompaction('resp_0');
        await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
        expect(seen).toEqual(isPutOff ? ['u m m m m m', 'u m'] : ['u m m m m m u m', 'u m']);
        expect(asked()).toHaveLength(0);
        expect((await session.getItems(100)).slice(0, old.length)).toEqual(old);
        expect(compacting.deferredResponseId).toBe(isPutOff ? 'resp_0' : undefined);
      },
    );

    it('asks nothing about a part where it is to ask by response alone [SESS-325]', async () => {
      const session = new MemorySession('s', { sessionSettings: { limit: 2 } });
      const { compacting, asked } = await wrapped(session, { mode: 'previous_response_id', shouldCompact: () => true });
      await session.addItems(talk(5, 'old'));
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(asked()).toHaveLength(0);
      expect(kindsOf(await session.getItems(100))).toBe('u m m m m m u m');
    });

    it('asks after the next turn what was put off, where the turn before it was skipped [SESS-326]', async () => {
      let isTime = true;
      const { session, compacting, asked } = await wrapped(new MemorySession(), {
        mode: 'input',
        shouldCompact: () => isTime,
      });
      await session.addItems(talk(3, 'old'));
      await compacting.deferCompaction('resp_0');
      isTime = false;
      const model = new ScriptedModel([
        async () => {
          await compacting.addItems([user('from elsewhere')]);
          return 'done';
        },
        'done',
      ]);
      await logged(() => runForm(agentWith(model), 'x', { session: compacting }));
      expect(asked()).toHaveLength(0);
      expect(compacting.deferredResponseId).toBe('resp_0');
      await runForm(agentWith(model), 'y', { session: compacting });
      expect(asked()).toHaveLength(1);
      expect(compacting.deferredResponseId).toBeUndefined();
    });

    it('replaces every turn that the model saw from its beginning on, not the last one alone [SESS-323]', async () => {
      const session = new MemorySession('s', { sessionSettings: { limit: 5 } });
      const { compacting, asked, gives } = await wrapped(session, { shouldCompact: () => true });
      await session.addItems([...talk(1, 'old'), ...talk(1, 'seen'), ...talk(1, 'seen too')]);
      gives([summary]);
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(kindsOf(asked()[0]?.['input'] as AgentInputItem[])).toBe('u m u m u m');
      expect(await session.getItems(100)).toEqual([...talk(1, 'old'), summary]);
    });

    it('matches what an encrypted session holds, and has the output encrypted; what others encrypted stays, what is too old goes [SESS-328]', async () => {
      const inner = new MemorySession<object>('s');
      let now = 1_700_000_000_000;
      const encrypted = new EncryptedSession(inner, { encryptionKey: 'correct horse', ttlMs: 60_000, now: () => now });
      const foreign = new EncryptedSession<object>(inner, { encryptionKey: 'another', ttlMs: null });
      const { compacting, asked } = await wrapped<Session>(encrypted, { mode: 'input' });
      await encrypted.addItems(talk(2, 'old'));
      now += 120_000;
      const agent = agentWith(
        new ScriptedModel([
          async () => {
            await foreign.addItems([{ role: 'user', content: 'theirs' }]);
            return toolCall('t');
          },
          ...Array.from({ length: 5 }, () => toolCall('t')),
          'done',
        ]),
      );
      await runForm(agent, 'x', { session: compacting });
      expect(asked()).toHaveLength(1);
      expect(kindsOf(asked()[0]?.['input'] as AgentInputItem[])).toBe(`u${' fc fco'.repeat(6)} m`);
      expect(kindsOf(await encrypted.getItems())).toBe('u compaction');
      expect(await foreign.getItems()).toEqual([{ role: 'user', content: 'theirs' }]);
      // Two of ours, one of theirs; nothing readable is left of what was compacted.
      const stored = await inner.getItems();
      expect(stored).toHaveLength(3);
      expect(stored.every((one) => '__enc__' in one)).toBe(true);
    });

    it('tells what the model saw, and with which changes: only automatic calls do [SESS-123, SESS-124]', async () => {
      const { session, compacting } = await wrapped(new MemorySession());
      const told: CompactionOptions[] = [];
      compacting.runCompaction = async (options) => void told.push(options ?? {});
      await session.addItems(talk(1, 'old'));
      const controller = new AbortController();
      const model = new ScriptedModel([toolCall('t'), 'done']);
      await runForm(agentWith(model), 'x', {
        session: compacting,
        reasoningItemIdPolicy: 'omit',
        signal: controller.signal,
      });
      expect(told).toHaveLength(1);
      const [options = {}] = told;
      expect(Object.keys(options).toSorted()).toEqual(['responseId']);
      const { itemDigests, reasoningItemIdPolicy, generation, signal } = options[compactionEvidence] ?? {};
      // The last request (two old items, the input, the call and its output), then its answer.
      expect(itemDigests).toHaveLength(6);
      const seen = [...(model.calls[1]?.request.input ?? [])];
      expect(itemDigests?.slice(0, 5)).toEqual(seen.map((one) => itemDigest(one, 'normalized')));
      expect(reasoningItemIdPolicy).toBe('omit');
      expect(generation).toBe((compacting as { [compactionGeneration]?: number })[compactionGeneration]);
      expect(signal?.aborted).toBe(false);
    });

    it('asks nothing where a session cannot replace a part, or nothing is as the model saw it [SESS-323, SESS#94]', async () => {
      for (const session of [new FourFunctions(), versioned()]) {
        const { compacting, asked } = await wrapped(session, { mode: 'input' });
        await session.addItems(talk(3, 'old'));
        const logs = await logged(() =>
          runForm(agentWith(busyModel(6)), 'x', {
            session: compacting,
            sessionInputCallback: (_history, newItems) => newItems,
          }),
        );
        expect(asked()).toHaveLength(0);
        expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
        expect(await session.getItems()).toHaveLength(4 + 14);
      }
      const other = await wrapped(new MemorySession());
      await other.session.addItems(talk(10, 'old'));
      const more = await logged(() =>
        runForm(agentWith(new ScriptedModel(['done'])), 'x', {
          session: other.compacting,
          callModelInputFilter: ({ modelData }) => ({
            ...modelData,
            input: [user('something else')],
          }),
          hooks: { onLlmEnd: () => undefined },
        }),
      );
      // The answer itself is seen, and there is no message of the user before it.
      expect(other.asked()).toHaveLength(0);
      expect(more.filter(({ level }) => level === 'error')).toHaveLength(0);
      expect(await other.session.getItems()).toHaveLength(13);
    });

    it('asks nothing where the model saw the items in another order [SESS-320, SESS-323, SESS#94]', async () => {
      const session = new FourFunctions();
      const { compacting, asked } = await wrapped(session, { mode: 'input', shouldCompact: () => true });
      await session.addItems(talk(3, 'old'));
      const logs = await logged(() =>
        runForm(agentWith(new ScriptedModel(['done'])), 'x', {
          session: compacting,
          sessionInputCallback: (history, newItems) => [...history.toReversed(), ...newItems],
        }),
      );
      expect(asked()).toHaveLength(0);
      expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
      const stored = await session.getItems();
      expect(stored.slice(0, 4)).toEqual(talk(3, 'old'));
      expect(kindsOf(stored.slice(4))).toBe('u m');
    });

    it('keeps what others append behind what it compacts meanwhile [SESS-316, SESS-323]', async () => {
      const { session, compacting, gives } = await wrapped(new MemorySession(), { shouldCompact: () => true });
      await session.addItems(talk(2, 'old'));
      gives([summary], () => session.addItems([user('meanwhile'), said('too')]));
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(await session.getItems()).toEqual([summary, user('meanwhile'), said('too')]);
    });

    it('sends what matched in the form that the model saw: without ids of reasoning, where these were left out [SESS-320]', async () => {
      const { session, compacting, asked, gives } = await wrapped(new MemorySession(), {
        mode: 'input',
        shouldCompact: () => true,
      });
      await session.addItems([user('old'), item({ type: 'reasoning', id: 'rs_1', summary: [] }), said('old0')]);
      gives([summary]);
      const agent = agentWith(new ScriptedModel(['done']));
      await runForm(agent, 'x', { session: compacting, reasoningItemIdPolicy: 'omit' });
      const input = asked()[0]?.['input'] as AgentInputItem[];
      expect(kindsOf(input)).toBe('u reasoning m u m');
      expect(input[1]).toEqual({ type: 'reasoning', summary: [] });
      expect(await session.getItems()).toEqual([summary]);
    });

    it('matches by what the session takes for the same [SESS-104, 320]', async () => {
      const session = Object.assign(new MemorySession(), {
        normalizeForComparison: (one: AgentInputItem) => item({ ...one, status: 'whatever' }),
      });
      const { compacting, gives } = await wrapped(session, { mode: 'input', shouldCompact: () => true });
      gives([summary]);
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(await session.getItems()).toEqual([summary]);
    });

    it('replaces the newest of what it compacts where the same stands before it, and keeps much that others append [SESS-316, SESS-323]', async () => {
      const session = new MemorySession('s', { sessionSettings: { limit: 0 } });
      const { compacting, gives } = await wrapped(session, { shouldCompact: () => true });
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session });
      const before = await session.getItems(100);
      const meanwhile = talk(40, 'meanwhile');
      gives([summary], () => session.addItems(meanwhile));
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(kindsOf(before)).toBe('u m');
      expect(await session.getItems(100)).toEqual([...before, summary, ...meanwhile]);
    });

    it('keeps what others put in place of what it compacts meanwhile, with one warning [SESS-316, SESS-323]', async () => {
      const { session, compacting, gives } = await wrapped(new MemorySession(), { shouldCompact: () => true });
      const theirs = [user('x'), said('another'), user('meanwhile')];
      gives([summary], async () => {
        await session.clearSession();
        await session.addItems(theirs);
      });
      const logs = await logged(() => runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting }));
      expect(await session.getItems()).toEqual(theirs);
      expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
    });

    it('asks nothing where calls are open in what it would compact [SESS-324, SESS#95]', async () => {
      const { session, compacting, asked } = await wrapped(new MemorySession());
      await session.addItems([
        ...talk(12, 'old'),
        item({ type: 'mcp_approval_request', id: 'mcpr_1', name: 'n', arguments: '{}', server_label: 's' }),
      ]);
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(asked()).toHaveLength(0);
    });

    it('asks nothing where somebody else wrote through the session since the run read it [SESS-124, SESS#96]', async () => {
      const { session, compacting, asked } = await wrapped(new MemorySession(), { mode: 'input' });
      await session.addItems(talk(12, 'old'));
      const disturbed = async () => {
        await compacting.addItems([user('from elsewhere')]);
        return 'done';
      };
      const model = new ScriptedModel([disturbed, disturbed, 'done']);
      const logs = await logged(async () => {
        for (const input of ['w', 'x']) await runForm(agentWith(model), input, { session: compacting });
      });
      expect(asked()).toHaveLength(0);
      expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
      await runForm(agentWith(model), 'y', { session: compacting });
      expect(asked()).toHaveLength(1);
    });

    it.each([
      ['an append', (session: Session) => session.addItems([user('from elsewhere')])],
      ['a pop', (session: Session) => session.popItem()],
      ['a clear', (session: Session) => session.clearSession()],
      [
        'an operation',
        (session: OpenAICompactionSession) =>
          session.applyHistoryTransaction?.({
            operationId: 'theirs',
            transaction: { type: 'append_items', items: [user('from elsewhere')] },
          }),
      ],
      [
        'an append at a version',
        async (session: OpenAICompactionSession) =>
          await session.appendIfVersion?.((await session.readHistory?.(0))?.version ?? '', [user('from elsewhere')]),
      ],
      [
        'a replacement',
        (session: OpenAICompactionSession) => session.replaceHistory?.([user('from elsewhere'), user('x')]),
      ],
    ] as [string, (session: OpenAICompactionSession) => Promise<unknown>][])(
      'asks nothing after %s of somebody else, from the moment on when the run read the history [SESS-124]',
      async (_, change) => {
        for (const isEarly of [true, false]) {
          const { session, compacting, asked } = await wrapped(new MemorySession(), {
            mode: 'input',
            shouldCompact: () => true,
          });
          await session.addItems(talk(3, 'old'));
          const model = new ScriptedModel([
            async () => {
              if (!isEarly) await change(compacting);
              return 'done';
            },
          ]);
          const logs = await logged(() =>
            runForm(agentWith(model), 'x', {
              session: compacting,
              sessionInputCallback: async (history, newItems) => {
                if (isEarly) await change(compacting);
                return [...history, ...newItems];
              },
            }),
          );
          expect(asked()).toHaveLength(0);
          expect(logs.filter(({ level }) => level === 'warn')).toHaveLength(1);
        }
      },
    );

    it('takes an append that was made again, as its answer was lost, for one of its own [SESS-102, SESS-124]', async () => {
      const session = new MemorySession();
      const apply = session.applyHistoryTransaction.bind(session);
      session.applyHistoryTransaction = async (operation) => {
        session.applyHistoryTransaction = apply;
        await apply(operation);
        throw new SessionOutcomeUnknownError('no answer', { operation: 'append' });
      };
      const { compacting, gives } = await wrapped(session, { mode: 'input', shouldCompact: () => true });
      gives([summary]);
      await runForm(agentWith(new ScriptedModel(['done'])), 'x', { session: compacting });
      expect(await session.getItems()).toEqual([summary]);
    });

    it('keeps the write acknowledged when compaction fails; a resume compacts again and stores nothing twice [STATE-329, STATE#109, RUN-1608, SESS-107, SESS-122]', async () => {
      let failing = true;
      const { session, compacting, asked } = await wrapped(new MemorySession(), {
        shouldCompact: () => {
          if (failing) throw new Error('cannot decide');
          return true;
        },
      });
      await session.addItems(talk(12, 'old'));
      const model = new ScriptedModel([toolCall('gated')]);
      const agent = new Agent({
        name: 'A',
        model,
        tools: [effectTool('gated', [], { needsApproval: true })],
      });
      const error = await rejection(runForm(agent, 'x', { session: compacting }));
      expect(error).toMatchObject({ message: 'cannot decide' });
      const state = getRunErrorState(error);
      if (!state) throw new Error('The error has no state.');
      const json = JSON.parse(state.toString()) as { pending_session_write: Record<string, unknown> };
      expect(json.pending_session_write).toMatchObject({
        append_acknowledged: true,
        compaction_model_exchange: { item_digests: { length: 15 }, reasoning_item_id_policy: null },
      });
      const stored = await session.getItems();
      expect(kindsOf(stored.slice(-2))).toBe('u fc');
      await expect(runForm(agent, state, { session: compacting })).rejects.toThrow('cannot decide');
      failing = false;
      const restored = await RunState.fromString(agent, state.toString());
      const again = await runForm(agent, restored, { session: compacting });
      expect(again.status).toBe('interrupted');
      expect(asked()).toHaveLength(0);
      expect(kindsOf((await session.getItems()).slice(-2))).toBe('u fc');
      expect(again.toState().toString()).not.toContain('pending_session_write');
      await session.addItems([user('from elsewhere')]);
      const conflicting = await RunState.fromString(agent, state.toString());
      await expect(runForm(agent, conflicting, { session: compacting })).rejects.toMatchObject({
        code: 'session_write_ambiguous',
      });
    });

    it('compacts what a turn left owed by what its model saw, also from JSON [SESS-123, SESS#82]', async () => {
      let failing = true;
      const { session, compacting, asked, gives } = await wrapped(new MemorySession(), {
        mode: 'input',
        shouldCompact: (): boolean => {
          if (failing) throw new Error('cannot decide');
          return asked().length === 0;
        },
      });
      const model = new ScriptedModel(['done', 'once more']);
      const judge = {
        name: 'judge',
        execute: () => {
          if (failing) throw new Error('cannot judge');
          return { tripwireTriggered: false, outputInfo: null };
        },
      };
      const agent = new Agent({ name: 'A', model, outputGuardrails: [judge] });
      const error = await rejection(runForm(agent, 'x', { session: compacting }));
      expect(error).toMatchObject({ message: 'cannot decide' });
      const state = getRunErrorState(error);
      failing = false;
      gives([summary]);
      const restored = await RunState.fromString(agent, state?.toString() ?? '');
      await runForm(agent, restored, { session: compacting });
      expect(asked().map(({ input }) => kindsOf(input as AgentInputItem[]))).toEqual(['u m']);
      expect(kindsOf(await session.getItems())).toBe('compaction m');
    });

    it.each([true, false])(
      'waits for a replacement that has begun when it is aborted, and owes nothing after it (judged: %s) [SESS-016, 326]',
      async (isJudged) => {
        const controller = new AbortController();
        const session = new MemorySession();
        const apply = session.applyHistoryTransaction.bind(session);
        session.applyHistoryTransaction = async (operation) => {
          if (operation.transaction.type === 'replace_suffix') controller.abort();
          await new Promise<void>((resolve) => void setTimeout(resolve, 5));
          await apply(operation);
        };
        const { compacting, gives } = await wrapped(session, { mode: 'input', shouldCompact: () => true });
        gives([summary]);
        const judge = {
          name: 'judge',
          execute: () => {
            throw new Error('cannot judge');
          },
        };
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel(['done']),
          outputGuardrails: isJudged ? [judge] : [],
        });
        const ended = await runForm(agent, 'x', { session: compacting, signal: controller.signal }).catch(
          (error: unknown) => error,
        );
        expect(kindsOf(await session.getItems())).toBe('compaction');
        expect(ended).toBeInstanceOf(RunAbortedError);
        expect(isJudged ? getRunErrorState(ended)?.toString() : '').not.toContain('pending_session_write');
      },
    );

    it('is aborted at once while the service compacts; the write is owed, and a resume compacts [SESS-123, 326]', async () => {
      const controller = new AbortController();
      const session = new MemorySession();
      const { client, compacting, gives } = await wrapped(session, { mode: 'input', shouldCompact: () => true });
      Object.assign(client.responses, {
        compact: async (_: unknown, { signal }: { signal: AbortSignal }) =>
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('ended by the signal')));
            controller.abort();
          }),
      });
      const judge = {
        name: 'judge',
        execute: () => {
          throw new Error('cannot judge');
        },
      };
      const model = new ScriptedModel(['done', 'once more']);
      const agent = new Agent({ name: 'A', model, outputGuardrails: [judge] });
      const error = await rejection(runForm(agent, 'x', { session: compacting, signal: controller.signal }));
      expect(error).toBeInstanceOf(RunAbortedError);
      const state = getRunErrorState(error);
      expect(state?.toString()).toContain('pending_session_write');
      expect(kindsOf(await session.getItems())).toBe('u m');
      gives([summary], async () => undefined);
      const calm = agent.clone({ outputGuardrails: [] });
      const restored = await RunState.fromString(calm, state?.toString() ?? '');
      await runForm(calm, restored, { session: compacting });
      expect(kindsOf(await session.getItems())).toMatch(/^compaction/u);
    });

    it('changes nothing of a run whose session does not compact: no evidence is kept [STATE-329]', async () => {
      const session = new FourFunctions();
      const model = new ScriptedModel([
        () => {
          session.failing = ['addItems'];
          return toolCall('gated');
        },
      ]);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('gated', [], { needsApproval: true })] });
      const error = await rejection(runForm(agent, 'x', { session }));
      const text = getRunErrorState(error)?.toString() ?? '';
      expect(text).toContain('pending_session_write');
      expect(text).not.toContain('compaction_model_exchange');
    });
  });
});
