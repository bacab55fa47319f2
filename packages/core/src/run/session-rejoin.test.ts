import { describe, expect, it, vi } from 'vitest';

import { Agent, defineModel, MemorySession, run, runStreamed, RunState, toUsage } from '../index.ts';
import type { AgentInputItem, Model, RunInput, RunOptions, RunResult } from '../index.ts';
import type { Session } from '../session.ts';
import { reasoning, text, toolCall } from '../testing/index.ts';
import { effectTool, exactly, kindsOf, logged, PlainSession, user } from '../../test/run-kit.ts';

// A saved state can be resumed more than once: after a crash, after the conversation was cleared, in another session.
// Whatever the session holds by then, it is a conversation that a model accepts, and nothing stands in it twice.

const forms = ['plain', 'streamed'] as const;
type Form = (typeof forms)[number];
const stores = {
  'a session of four methods': () => new PlainSession(),
  'a session with history transactions': () => new MemorySession('s'),
};
const ways = forms.flatMap((form) => Object.entries(stores).map(([store, open]) => ({ form, store, open })));

async function go(form: Form, agent: Agent, input: RunInput, options: RunOptions): Promise<RunResult> {
  return form === 'plain' ? await run(agent, input, options) : await runStreamed(agent, input, options).completed;
}

/** `C1 O1:text M:text U`: what the session holds, by what tells items apart. */
async function held(session: Session): Promise<string> {
  return (await session.getItems())
    .map((item) => {
      if (item.type === 'function_call') return `C${item.call_id}`;
      if (item.type === 'function_call_output') return `O${item.call_id}:${JSON.stringify(item.output).slice(1, -1)}`;
      if (item.type === 'message' && item.role === 'assistant')
        return `M:${JSON.stringify(item.content).match(/"text":"(\w*)"/)?.[1]}`;
      return item.type === 'reasoning' ? 'R' : 'U';
    })
    .join(' ');
}

/** Two gated calls, then a free one, then an answer: whatever is said or done carries the mark of its attempt. */
function agentOf(mark: string, ids: { readonly later: string } = { later: '4' }): Agent {
  const model: Model = defineModel({
    async getResponse({ input }) {
      const outputs = input.filter((item) => item.type === 'function_call_output').length;
      const output =
        outputs === 0
          ? [reasoning('hm'), toolCall('gated', {}, { callId: '2' }), toolCall('gated', {}, { callId: '3' })]
          : outputs === 2
            ? [toolCall('free', {}, { callId: ids.later })]
            : [{ ...text(mark), id: `msg_${mark}` }];
      return { output, usage: toUsage({ requests: 1 }), responseId: 'resp' };
    },
  });
  return new Agent({
    name: 'A',
    model,
    tools: [
      effectTool('gated', [], { needsApproval: true, result: () => mark }),
      effectTool('free', [], { result: () => mark }),
    ],
  });
}

const paused = async (form: Form, session: Session): Promise<string> =>
  (await go(form, agentOf('p'), 'x', { session })).toState().toString();

/** Resumes the text, with a process that ends after so many appends; what it knew is lost. */
async function attempt(
  form: Form,
  agent: Agent,
  saved: string,
  session: Session,
  appends: number,
  approved: readonly string[] = ['2', '3'],
): Promise<RunResult | undefined> {
  const state = await RunState.fromString(agent, saved);
  for (const item of state.interruptions) if (approved.includes(item.callId)) state.approve(item);
  return await go(form, agent, state, { session: dyingAfter(session, appends) }).catch(() => undefined);
}

/** The same store, behind a process that is killed. */
function dyingAfter(session: Session, appends: number): Session {
  let left = appends;
  const dies = (name: string): boolean => ['addItems', 'applyHistoryTransaction', 'popItem'].includes(name);
  return new Proxy(session, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        if (left <= 0) throw new Error('killed');
        if (dies(String(name)) && name !== 'popItem') left -= 1;
        return await (member.apply(target, args) as Promise<unknown>);
      };
    },
  });
}

const start = 'U R C2 C3';
const whole = (mark: string): string => `${start} O2:${mark} O3:${mark} C4 O4:${mark} M:${mark}`;

describe.each(ways)('a state that is resumed again, $form, $store', ({ form, open }) => {
  it.each([1, 2, 3])(
    'after a crash behind append %i: what differs takes the place of what was stored [STATE-302, STATE-304]',
    async (appends) => {
      const session = open();
      const saved = await paused(form, session);
      await attempt(form, agentOf('a'), saved, session, appends);
      const again = await attempt(form, agentOf('b'), saved, session, 99);
      expect(again?.finalOutput).toBe('b');
      expect(await held(session)).toBe(whole('b'));
    },
  );

  it.each([1, 2, 3])(
    'after a crash behind append %i: what is equal is stored once [STATE-302, STATE-304]',
    async (appends) => {
      const session = open();
      const saved = await paused(form, session);
      await attempt(form, agentOf('a'), saved, session, appends);
      await attempt(form, agentOf('a'), saved, session, 99);
      expect(await held(session)).toBe(whole('a'));
    },
  );

  it('with other calls by the model: one answer stands at each place [STATE-304]', async () => {
    const session = open();
    const saved = await paused(form, session);
    await attempt(form, agentOf('a', { later: '7' }), saved, session, 2);
    await attempt(form, agentOf('a', { later: '8' }), saved, session, 99);
    expect(await held(session)).toBe(`${start} O2:a O3:a C8 O8:a M:a`);
  });

  it('many times: nothing is missing where an attempt gives what an earlier one gave [STATE-304]', async () => {
    const session = open();
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 99);
    await attempt(form, agentOf('b'), saved, session, 1);
    await attempt(form, agentOf('a'), saved, session, 2);
    await attempt(form, agentOf('b'), saved, session, 2);
    await attempt(form, agentOf('a'), saved, session, 99);
    expect(await held(session)).toBe(whole('a'));
  });

  it('with other decisions: the session tells what the last one did [STATE-304]', async () => {
    const session = open();
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 99, ['2']);
    expect(await held(session)).toBe(`${start} O2:a`);
    const second = await attempt(form, agentOf('b'), saved, session, 99, ['3']);
    expect(await held(session)).toBe(`${start} O3:b`);
    await attempt(form, agentOf('b'), String(second?.toState()), session, 99);
    expect(await held(session)).toBe(`${start} O3:b O2:b C4 O4:b M:b`);
  });

  it('after the conversation went on: that stays, and no output is stored twice [STATE-305]', async () => {
    const session = open();
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 1);
    await session.addItems([user('and?')]);
    await attempt(form, agentOf('b'), saved, session, 99);
    expect(await held(session)).toBe(`${start} O2:a O3:a U C4 O4:b M:b`);
  });

  it.each<[string, object]>([
    ['an output that names no call', { type: 'function_call_output', output: 'x' }],
    ['an output of a call of others', { type: 'function_call_output', call_id: 'other', output: 'x' }],
    ['an answer to a request for approval', { type: 'mcp_approval_response', approval_request_id: 'm', approve: true }],
    ['a reference to an item', { type: 'item_reference', id: 'msg_1' }],
    ['something without type and role', { note: 'x' }],
  ])('after others had put something behind its items, which stays: %s [STATE-304, STATE-305]', async (_, foreign) => {
    const session = open();
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 1);
    await session.addItems([foreign as AgentInputItem]);
    await attempt(form, agentOf('b'), saved, session, 99);
    expect((await session.getItems())[6]).toEqual(foreign);
    expect(kindsOf(await session.getItems())).toBe(`u reasoning fc fc fco fco ${kindsOf([foreign])} fc fco m`);
  });

  it('whose provider searched for tools: its items are the run`s own, though they have no call id [STATE-304]', async () => {
    const search = ['tool_search_call', 'tool_search_output'].map((type) => ({ type, call_id: null, id: `${type}_1` }));
    const searching = (mark: string): Agent => {
      const agent = agentOf(mark);
      const getResponse: Model['getResponse'] = async (request) => {
        const response = await (agent.model as Model).getResponse(request);
        const found = request.input.length > 4 ? (search as never[]) : [];
        return { ...response, output: [...found, ...response.output] };
      };
      // No stream is made of such items by itself.
      const streamResponse: Model['streamResponse'] = async function* (request) {
        const [event] = exactly(...(await getResponse(request)).output).events;
        if (event) yield event;
      };
      return agent.clone({ model: defineModel({ getResponse, streamResponse }) });
    };
    const session = open();
    const saved = await paused(form, session);
    await attempt(form, searching('a'), saved, session, 99);
    await attempt(form, searching('b'), saved, session, 99);
    const found = 'tool_search_call tool_search_output';
    expect(kindsOf(await session.getItems())).toBe(`u reasoning fc fc fco fco ${found} fc fco ${found} m`);
    expect(await held(session)).not.toContain(':a');
  });

  it('leaves what another paused run stored meanwhile [STATE-305]', async () => {
    const session = open();
    const other = effectTool('other', [], { needsApproval: true, result: () => 'o' });
    const talk = new Agent({
      name: 'B',
      tools: [other],
      model: defineModel({
        async getResponse({ input }) {
          const done = input.some((item) => item.type === 'function_call_output');
          return {
            output: [done ? { ...text('o'), id: 'msg_o' } : toolCall('other', {}, { callId: '9' })],
            usage: toUsage({ requests: 1 }),
          };
        },
      }),
    });
    const first = (await go(form, talk, 'x', { session })).toState();
    const saved = await paused(form, session);
    for (const item of first.interruptions) first.approve(item);
    await go(form, talk, first, { session });
    const before = `U C9 ${start} O9:o M:o`;
    expect(await held(session)).toBe(before);
    await attempt(form, agentOf('a'), saved, session, 99);
    expect(await held(session)).toBe(`${before} O2:a O3:a C4 O4:a M:a`);
  });
});

describe.each(ways)('a state whose calls the session does not have, $form, $store', ({ form, open }) => {
  /** What a model is sent by the next run: every output has its call. */
  const next = async (session: Session): Promise<string> => {
    let sent: readonly AgentInputItem[] = [];
    const model = defineModel({
      async getResponse({ input }) {
        sent = input;
        return { output: [text('hello')], usage: toUsage({ requests: 1 }) };
      },
    });
    await go(form, new Agent({ name: 'A', model }), 'hi', { session });
    return kindsOf(sent);
  };

  it('stores them with their outputs: after the history was cleared [SESS-074, STATE-305]', async () => {
    const session = open();
    const saved = await paused(form, session);
    await session.clearSession();
    await attempt(form, agentOf('a'), saved, session, 99);
    expect(await held(session)).toBe('R C2 C3 O2:a O3:a C4 O4:a M:a');
    expect(await next(session)).toBe('reasoning fc fc fco fco fc fco m u');
    // Once more, from the same text.
    const cleared = open();
    await attempt(form, agentOf('a'), saved, cleared, 1);
    await attempt(form, agentOf('b'), saved, cleared, 99);
    expect(await held(cleared)).toBe('R C2 C3 O2:b O3:b C4 O4:b M:b');
  });

  it('stores them with their outputs: in another session, which goes on [STATE-210, STATE-305]', async () => {
    const saved = await paused(form, open());
    const other = new MemorySession('other', { items: [user('before')] });
    await attempt(form, agentOf('a'), saved, other, 99);
    expect(await held(other)).toBe('U R C2 C3 O2:a O3:a C4 O4:a M:a');
  });

  it('stores all that wait when the first is answered [STATE-305]', async () => {
    const session = open();
    const saved = await paused(form, session);
    await session.clearSession();
    const first = await attempt(form, agentOf('a'), saved, session, 99, ['3']);
    expect(await held(session)).toBe('R C2 C3 O3:a');
    await attempt(form, agentOf('a'), String(first?.toState()), session, 99);
    expect(await held(session)).toBe('R C2 C3 O3:a O2:a C4 O4:a M:a');
  });
});

describe.each(ways)(
  'an output that an earlier attempt stored and the session has no more, $form, $store',
  ({ form, open }) => {
    const gated = effectTool('gated', [], { needsApproval: true, result: () => 'ok' });
    const model = (mark: string): Model =>
      defineModel({
        async getResponse({ input }) {
          const answered = input.filter((item) => item.type === 'function_call_output').length;
          const output =
            answered < 2
              ? { ...toolCall('gated', {}, { callId: `${answered + 1}` }), id: `fc_${answered + 1}${mark}` }
              : { ...text(mark), id: `msg_${mark}` };
          return { output: [output], usage: toUsage({ requests: 1 }) };
        },
      });
    const on = async (mark: string, input: string | RunState, session: Session): Promise<RunState> => {
      const agent = new Agent({ name: 'A', tools: [gated], model: model(mark) });
      if (typeof input === 'string') return (await go(form, agent, input, { session })).toState();
      const state = await RunState.fromString(agent, input.toString());
      for (const call of state.interruptions) state.approve(call);
      return (await go(form, agent, state, { session })).toState();
    };

    it('is stored again behind the second pause of a state that was resumed twice [STATE-304]', async () => {
      const session = open();
      const first = await on('a', 'hi', session);
      for (const mark of ['a', 'b']) {
        await on(mark, await on(mark, first, session), session);
        expect(await held(session)).toBe(`U C1 O1:ok C2 O2:ok M:${mark}`);
      }
    });

    it('is stored again after somebody took it out, with what is behind it [STATE-304, 305]', async () => {
      const session = open();
      const second = await on('a', await on('a', 'hi', session), session);
      await on('a', second, session);
      await session.popItem();
      await session.popItem();
      await on('b', second, session);
      expect(await held(session)).toBe('U C1 O1:ok C2 O2:ok M:b');
    });
  },
);

describe.each(forms)('what an earlier attempt stored in a session with history transactions, %s', (form) => {
  it('is replaced in one step: nothing is popped, and read again [SESS-111]', async () => {
    const session = new MemorySession('s');
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 1);
    const pop = vi.spyOn(session, 'popItem');
    const apply = vi.spyOn(session, 'applyHistoryTransaction');
    await attempt(form, agentOf('b'), saved, session, 99);
    expect(await held(session)).toBe(whole('b'));
    expect(pop).not.toHaveBeenCalled();
    expect(apply.mock.calls.map(([{ transaction }]) => transaction.type)).toEqual([
      'replace_suffix',
      'append_items',
      'append_items',
    ]);
  });
});

describe.each(forms)('what an earlier attempt stored in a session of four methods, %s', (form) => {
  it('is read for a while after it was popped: nothing is appended before it is gone [SESS-111]', async () => {
    const log = logged();
    const session = new LateDeletes(2);
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 99);
    session.log.length = 0;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const again = attempt(form, agentOf('b'), saved, session, 99);
    await vi.runAllTimersAsync();
    vi.useRealTimers();
    expect((await again)?.finalOutput).toBe('b');
    expect(await held(session)).toBe(whole('b'));
    expect(session.log.join(' ')).toMatch(/pop pop get\(7\) get\(7\) get\(7\) add\[fco fco\]/);
    expect(log).toEqual([]);
  });

  it('is put back when somebody else wrote meanwhile: the run fails, and the history is as it was [SESS-111]', async () => {
    const log = logged();
    const session = new PlainSession();
    const saved = await paused(form, session);
    await attempt(form, agentOf('a'), saved, session, 1);
    const { popItem } = session;
    session.popItem = async () => {
      session.popItem = popItem;
      session.items.push(user('else'));
      return await popItem();
    };
    const state = await RunState.fromString(agentOf('b'), saved);
    for (const item of state.interruptions) state.approve(item);
    await expect(go(form, agentOf('b'), state, { session })).rejects.toMatchObject({ code: 'session_write_ambiguous' });
    expect(await held(session)).toBe(`${start} O2:a O3:a U`);
    expect(log.map(({ level, data }) => [level, data])).toEqual([['warn', { sessionId: 's', count: 1 }]]);
  });
});

/** A store that shows what was popped for some reads more. */
class LateDeletes extends PlainSession {
  #shown: AgentInputItem[] = [];
  #reads = 0;

  constructor(reads: number) {
    super();
    const { getItems, popItem } = this;
    this.getItems = async (limit) => {
      if (this.#shown.length > 0 && this.#reads-- <= 0) this.#shown = [];
      if (this.#shown.length === 0) return await getItems(limit);
      this.log.push(`get(${limit})`);
      const all = [...this.items, ...this.#shown];
      return structuredClone(limit === undefined ? all : all.slice(-limit));
    };
    this.popItem = async () => {
      const item = await popItem();
      if (item) this.#shown.unshift(item);
      this.#reads = reads;
      return item;
    };
  }
}
