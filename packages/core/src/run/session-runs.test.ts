import { describe, expect, it } from 'vitest';
import { Agent, MemorySession, run, runStreamed, RunState, UserError } from '../index.ts';
import type { AgentInputItem, RunOptions, SessionInputCallback } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import { effectTool, kindsOf, PlainSession, rejection, user } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

/** What is sent to the model in a call of the script. */
const inputOf = (model: ScriptedModel, call: number): readonly AgentInputItem[] =>
  model.calls[call]?.request.input ?? [];

const call = (id: string, name = 't'): AgentInputItem => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: '{}',
});
const output = (id: string): AgentInputItem => ({ type: 'function_call_output', call_id: id, output: 'ok' });

bothForms((runForm, form) => {
  describe(`a run with a session (${form})`, () => {
    it('stores the input, then one batch per turn, all before it resolves; the next run sees it all [RUN#71, SESS#1, RUN-1601, 1602, 1604]', async () => {
      const session = new PlainSession();
      const model = new ScriptedModel([toolCall('t'), 'done', 'second']);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('t', [])] });
      await runForm(agent, 'first', { session });
      expect(session.log).toEqual(['get', 'add[u]', 'add[fc fco]', 'add[m]']);
      expect(kindsOf(inputOf(model, 0))).toBe('u');
      const result = await runForm(agent, 'next', { session });
      expect(inputOf(model, 2)).toEqual([...session.items.slice(0, 4), user('next')]);
      expect(result.input).toEqual(inputOf(model, 2));
      expect(session.kinds).toBe('u fc fco m u m');
    });

    it('has the input stored when the request leaves, and the turn before when the next one does [RUN-1602, SESS-081]', async () => {
      const session = new PlainSession();
      const seen: string[] = [];
      const look = (answer: ReturnType<typeof toolCall> | string) => () => {
        seen.push(session.kinds);
        return answer;
      };
      const model = new ScriptedModel([look(toolCall('t')), look('done')]);
      await runForm(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'x', { session });
      expect(seen).toEqual(['u', 'u fc fco']);
    });

    it('stores nothing when nothing was sent [RUN-1602]', async () => {
      const session = new PlainSession();
      const failing = (options: Partial<ConstructorParameters<typeof Agent>[0]>, more: RunOptions = {}) =>
        rejection(
          runForm(new Agent({ name: 'A', model: new ScriptedModel(['x']), ...options }), 'x', { session, ...more }),
        );
      const boom = (): never => {
        throw new Error('boom');
      };
      await failing({ instructions: boom });
      await failing({ hooks: { onStart: boom } });
      await failing({}, { callModelInputFilter: boom });
      await failing({}, { hooks: { onLlmStart: boom } });
      await failing({}, { maxTurns: 0 });
      expect(session.items).toEqual([]);
    });

    it('keeps earlier batches when the model fails later [RUN-1605]', async () => {
      const down = new Error('down');
      const session = new PlainSession();
      const model = new ScriptedModel([toolCall('t'), down]);
      expect(
        await rejection(runForm(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'x', { session })),
      ).toBe(down);
      expect(session.kinds).toBe('u fc fco');
      expect(
        await rejection(runForm(new Agent({ name: 'A', model: new ScriptedModel([down]) }), 'y', { session })),
      ).toBe(down);
      expect(session.kinds).toBe('u fc fco u');
    });

    it('stores all calls of a pausing turn with the outputs that exist, and on the resume the rest; the history is not read again [RUN-1603, SESS-082, SESS-W3]', async () => {
      const session = new PlainSession();
      const gated = effectTool('gated', [], { needsApproval: true });
      const model = new ScriptedModel([
        [toolCall('gated', {}, { callId: 'g' }), toolCall('t', {}, { callId: 'f' })],
        'done',
      ]);
      const agent = new Agent({ name: 'A', model, tools: [gated, effectTool('t', [])] });
      const paused = await runForm(agent, 'x', { session });
      expect(session.log.slice(1)).toEqual(['add[u]', 'add[fc fc fco]']);
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      session.log.length = 0;
      await runForm(agent, state, { session });
      // The tail is read before the append, the history never (a tool's output is one item).
      expect(session.log).toEqual(['get(2)', 'add[fco]', 'add[m]']);
      expect(session.kinds).toBe('u fc fc fco fco m');
    });

    it('goes on in another process with another object over the same store: each call and output once, in order [SESS#2, STATE-302]', async () => {
      const before = new PlainSession('chat');
      const gated = effectTool('gated', [], { needsApproval: true });
      const paused = await runForm(
        new Agent({ name: 'A', model: new ScriptedModel([toolCall('gated', {}, { callId: 'g' })]), tools: [gated] }),
        'x',
        { session: before },
      );
      const text = paused.toState().toString();

      const effects: string[] = [];
      const model = new ScriptedModel(['done']);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('gated', effects, { needsApproval: true })] });
      const after = new PlainSession('chat', before.items);
      const state = await RunState.fromString(agent, text);
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(agent, state, { session: after });
      expect(result.finalOutput).toBe('done');
      expect(effects).toEqual(['gated -']);
      expect(after.log.filter((entry) => entry === 'get')).toEqual([]);
      expect(after.kinds).toBe('u fc fco m');
      expect(inputOf(model, 0)).toEqual(after.items.slice(0, 3));
    });

    it('leaves an abandoned pause out of the next request, and in the store [SESS-071, W6]', async () => {
      const session = new MemorySession();
      const model = new ScriptedModel([[reasoning('hm'), toolCall('gated')], 'done']);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('gated', [], { needsApproval: true })] });
      await runForm(agent, 'first', { session });
      await runForm(agent, 'second', { session });
      expect(inputOf(model, 1)).toEqual([user('first'), user('second')]);
      expect(kindsOf(await session.getItems())).toBe('u reasoning fc u m');
    });

    it('fails with the error of a history that cannot be read, before anything is written or asked [RUN-1606, SESS-090]', async () => {
      const session = new PlainSession();
      session.failReads = true;
      const model = new ScriptedModel(['x']);
      const log: string[] = [];
      const agent = new Agent({ name: 'A', model, hooks: { onStart: () => void log.push('start') } });
      expect(await rejection(runForm(agent, 'x', { session }))).toBe(session.error);
      expect([session.log, model.calls.length, log]).toEqual([['get'], 0, []]);
    });

    it('works with a session that cannot say its id [SESS-001]', async () => {
      const session = new PlainSession();
      Object.defineProperty(session, 'sessionId', {
        get: () => {
          throw new Error('no id');
        },
      });
      const result = await runForm(new Agent({ name: 'A', model: new ScriptedModel(['done']) }), 'x', { session });
      expect(session.kinds).toBe('u m');
      expect(result.toState().sessionId).toBeUndefined();
    });
  });

  describe(`the input callback (${form})`, () => {
    const steps = (
      answers: readonly string[],
      callback: SessionInputCallback,
      items: readonly AgentInputItem[] = [],
    ) => {
      const session = new PlainSession('s', items);
      const model = new ScriptedModel(answers);
      const agent = new Agent({ name: 'A', model });
      return {
        session,
        model,
        go: (input: string) => runForm(agent, input, { session, sessionInputCallback: callback }),
      };
    };

    it('may turn the history round: only new items are stored [SESS#20, SESS-064, 067]', async () => {
      const { session, model, go } = steps(['a', 'b', 'c'], (history, input) => [...history.toReversed(), ...input]);
      for (const [index, input] of ['one', 'two', 'three'].entries()) {
        await go(input);
        expect(session.items).toHaveLength(2 * (index + 1));
      }
      expect(session.kinds).toBe('u m u m u m');
      expect(kindsOf(inputOf(model, 2))).toBe('m u m u u');
    });

    it('may drop the new input: the model sees the history, nothing of the input is stored [SESS#21, SESS-068]', async () => {
      const { session, model, go } = steps(['a'], (history) => history, [user('old')]);
      await go('dropped');
      expect(inputOf(model, 0)).toEqual([user('old')]);
      expect(session.items.map((item) => (item as { content?: unknown }).content)).toEqual(['old', expect.anything()]);
    });

    it('may rebuild everything: only what is new is stored [SESS#22, SESS-067]', async () => {
      const { session, model, go } = steps(
        ['a'],
        async (history, input) => [...history, ...input].map((item) => structuredClone(item)),
        [user('old'), call('c'), output('c')],
      );
      await go('new');
      expect(kindsOf(inputOf(model, 0))).toBe('u fc fco u');
      expect(session.log).toEqual(['get', 'add[u]', 'add[m]']);
      expect(session.items[3]).toEqual(user('new'));
    });

    it.each([
      { name: 'a string', callback: 'x' },
      { name: 'a function that returns a string', callback: () => 'x' },
    ])('is refused when it is $name; the store is untouched [SESS#23, SESS-066]', async ({ callback }) => {
      const { session, model, go } = steps(['a'], callback as never);
      const error = await rejection((async () => await go('x'))());
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/sessionInputCallback/);
      expect(session.items).toEqual([]);
      expect(session.log.filter((entry) => entry.startsWith('add'))).toEqual([]);
      expect(model.calls).toHaveLength(0);
    });
  });

  describe(`halves of pairs (${form})`, () => {
    const go = async (items: readonly AgentInputItem[], input: string | AgentInputItem[], options: RunOptions = {}) => {
      const session = new PlainSession('s', items);
      const model = new ScriptedModel(['done']);
      await runForm(new Agent({ name: 'A', model }), input, { session, ...options });
      return { session, sent: inputOf(model, 0) };
    };

    it('drops from the request an output whose call the limit cut off; the store keeps it [SESS#24, SESS-074]', async () => {
      const { session, sent } = await go([user('old'), call('c'), output('c'), user('later')], 'x', {
        sessionSettings: { limit: 2 },
      });
      expect(sent).toEqual([user('later'), user('x')]);
      expect(session.kinds).toBe('u fc fco u u m');
    });

    it('drops it without a limit too, whoever lost the call [SESS#25, SESS-074]', async () => {
      const { session, sent } = await go([output('c')], 'x');
      expect(sent).toEqual([user('x')]);
      expect(session.kinds).toBe('fco u m');
    });

    it('drops from the request a call of the history without output, and the reasoning before it [SESS#26, SESS-071, 073]', async () => {
      const { session, sent } = await go([user('old'), reasoning('why'), call('c')], 'x');
      expect(sent).toEqual([user('old'), user('x')]);
      expect(session.kinds).toBe('u reasoning fc u m');
    });

    it('sends and stores a pending call that is new [SESS#27, SESS-071]', async () => {
      const pending = {
        type: 'shell_call',
        call_id: 'sh',
        action: { commands: ['ls'] },
        status: 'in_progress',
      } as unknown as AgentInputItem;
      const { session, sent } = await go([user('old')], [user('x'), pending]);
      expect(sent).toEqual([user('old'), user('x'), pending]);
      expect(session.items.slice(1, 3)).toEqual([user('x'), pending]);
    });
  });
});

describe('both forms', () => {
  it('write the same, message turns and tool turns alike [RUN#71, RUN-002]', async () => {
    const { plain } = await symmetry({
      setUp: ({ session, hooks }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([[text('wait'), reasoning('hm'), toolCall('t'), toolCall('t')], 'done']),
          tools: [effectTool('t', [])],
        }),
        input: 'x',
        options: { session: session('s'), hooks },
      }),
    });
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'm reasoning fc fc fco fco', 'm']);
    expect(plain.writes.flat()).toEqual(plain.result?.toInputList());
  });

  it('do not put an option of conversations that the provider keeps beside a session [RUN-104]', async () => {
    const session = new PlainSession();
    const model = new ScriptedModel(['x']);
    const agent = new Agent({ name: 'A', model });
    const options = { session, conversationId: 'conv_1' };
    expect(await rejection(run(agent, 'x', options))).toBeInstanceOf(UserError);
    expect(() => runStreamed(agent, 'x', options)).toThrow(/conversationId/);
    expect([session.log, model.calls.length]).toEqual([[], 0]);
  });
});
