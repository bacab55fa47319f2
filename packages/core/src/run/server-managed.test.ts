import { afterEach, describe, expect, it } from 'vitest';
import {
  Agent,
  getRunErrorState,
  handoff,
  ModelBehaviorError,
  run,
  Runner,
  runStreamed,
  RunState,
  UserError,
} from '../index.ts';
import type { AgentInputItem, Model, RunOptions } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms, reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import {
  effectTool,
  exactly,
  idle,
  kindsOf,
  logged,
  PlainSession,
  rejection,
  thrown,
  user,
} from '../../test/run-kit.ts';

// Runs whose history the provider keeps: what each request carries, and what it goes on from.

afterEach(() => resetDefaults());

const call = (name: string, callId: string, args: object = {}) => toolCall(name, args, { callId });
const step = (responseId: string | null, ...output: (string | ReturnType<typeof call>)[]): ModelStep => ({
  output: output.map((item) => (typeof item === 'string' ? text(item) : item)),
  responseId,
});

function desk(steps: ModelStep[], options: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const agent = new Agent({
    name: 'Desk',
    model,
    tools: [effectTool('t', effects), effectTool('g', effects, { needsApproval: true })],
    ...options,
  } as never);
  return { agent, model, effects };
}

/** `kinds @ chain` of each request; an output with the call that it belongs to. */
function requests(model: ScriptedModel): string[] {
  return model.calls.map(({ request: { input, previousResponseId, conversationId } }) => {
    const kinds = input.map((item) => {
      const { call_id: callId, role, content } = item as { call_id?: string; role?: string; content?: unknown };
      const kind = kindsOf([item]);
      return callId !== undefined ? `${kind}:${callId}` : role === 'user' ? `u:${String(content)}` : kind;
    });
    return `${kinds.join(' ')} @ ${previousResponseId ?? '-'} ${conversationId ?? '-'}`;
  });
}

const throughJson = async (agent: Agent, state: RunState): Promise<RunState> =>
  await RunState.fromString(agent, state.toString());
const approveAll = (state: RunState): RunState => {
  for (const item of state.interruptions) state.approve(item);
  return state;
};

bothForms((runForm, form) => {
  describe(`a chain of responses (${form})`, () => {
    it('sends the input first, then only what the provider does not know, behind the newest response [RUN#67, RUN-1502, 1503]', async () => {
      const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
      const result = await runForm(agent, 'hi', { previousResponseId: 'r0' });
      expect(requests(model)).toEqual(['u:hi @ r0 -', 'fco:c1 @ r1 -']);
      expect(result.lastResponseId).toBe('r2');
      expect(result.newItems.map(({ type }) => type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
    });

    it('goes on in the next run from the last id of this one [RUN-1510]', async () => {
      const { agent, model } = desk([step('r1', 'one'), step('r2', 'two')]);
      const first = await runForm(agent, 'a', { autoPreviousResponseId: true });
      await runForm(agent, 'b', { previousResponseId: first.lastResponseId });
      expect(requests(model)).toEqual(['u:a @ - -', 'u:b @ r1 -']);
    });

    it('begins with the first response, and a response without id keeps the last one known [RUN-1503]', async () => {
      const { agent, model } = desk([
        step('r1', call('t', 'c1')),
        step(null, call('t', 'c2')),
        step('r3', call('t', 'c3')),
        step('r4', 'done'),
      ]);
      const result = await runForm(agent, 'hi', { autoPreviousResponseId: true });
      expect(requests(model)).toEqual(['u:hi @ - -', 'fco:c1 @ r1 -', 'fco:c2 @ r1 -', 'fco:c3 @ r3 -']);
      expect(result.toState().toJSON()).toMatchObject({
        conversation_id: null,
        previous_response_id: 'r4',
        auto_previous_response_id: true,
      });
    });

    it('sends everything to a model that gives no ids, for nobody has kept anything [RUN-1502, 1503]', async () => {
      const { agent, model } = desk([step(null, call('t', 'c1')), step(null, 'done')]);
      await runForm(agent, 'hi', { autoPreviousResponseId: true });
      expect(requests(model)).toEqual(['u:hi @ - -', 'u:hi fc:c1 fco:c1 @ - -']);
    });

    it('tells instructions and hooks of what is sent, and keeps the whole history for people [RUN-411, 1502]', async () => {
      const seen: string[] = [];
      const { agent } = desk([step('r1', call('t', 'c1')), step('r2', 'done')], {
        instructions: (context) => {
          seen.push(kindsOf(context.turnInput));
          return 'x';
        },
      });
      const result = await runForm(agent, 'hi', {
        previousResponseId: 'r0',
        hooks: { onLlmStart: (_ctx, _agent, _prompt, items) => void seen.push(kindsOf(items)) },
      });
      expect(seen).toEqual(['u', 'u', 'fco', 'fco']);
      expect(kindsOf(result.toInputList())).toBe('u fc fco m');
    });
  });

  describe(`what the provider has already (${form})`, () => {
    it('is not sent: outputs that it made itself, and older forms of what is repeated in the input [RUN-1502, 224]', async () => {
      const made = { type: 'shell_call_output', id: 'so', call_id: 's1', status: 'completed', output: [] };
      const { agent, model } = desk([exactly(call('t', 'c1'), made), step('r2', 'done')]);
      const output = (text: string): AgentInputItem => ({ type: 'function_call_output', call_id: 'c0', output: text });
      await runForm(agent, [user('hi'), call('t', 'c0'), output('old'), output('new')], { conversationId: 'c' });
      expect(requests(model)).toEqual(['u:hi fc:c0 fco:c0 @ - c', 'fco:c1 @ - c']);
    });

    it('is what a run gave, and not what a handler said in its place: that goes with what is resumed [RUN-1502, 710]', async () => {
      const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
      const handled = await runForm(agent, 'hi', {
        previousResponseId: 'r0',
        maxTurns: 1,
        errorHandlers: { maxTurns: () => ({ finalOutput: 'enough' }) },
      });
      expect(handled.finalOutput).toBe('enough');
      await runForm(agent, await throughJson(agent, handled.toState()), { maxTurns: 3 });
      expect(requests(model)).toEqual(['u:hi @ r0 -', 'fco:c1 m @ r1 -']);
    });

    it('gives its response whole, with what the stream does not say [RUN-1203]', async () => {
      const { agent } = desk([{ output: 'done', responseId: 'r1', requestId: 'req_1', usage: { inputTokens: 3 } }]);
      const result = await runForm(agent, 'hi', { conversationId: 'c' });
      expect(result.rawResponses).toMatchObject([{ responseId: 'r1', requestId: 'req_1', usage: { inputTokens: 3 } }]);
    });
  });

  describe(`a conversation of the provider (${form})`, () => {
    it('goes with each call, without a previous response; the key of its prompt cache is its own [RUN-1503, 308]', async () => {
      const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
      const caching: Model = {
        getResponse: (request) => model.getResponse(request),
        streamResponse: (request) => model.streamResponse(request),
        supportsDefaultPromptCacheKey: () => true,
      };
      const result = await runForm(agent, 'hi', { conversationId: 'conv_1', model: caching, groupId: 'g' });
      expect(requests(model)).toEqual(['u:hi @ - conv_1', 'fco:c1 @ - conv_1']);
      // `printf conv_1 | sha256sum`
      expect(model.calls.map(({ request }) => request.modelSettings.extraArgs?.['prompt_cache_key'])).toEqual(
        Array(2).fill('agents-sdk:conversation:214d6c05cb183e28721dc2a7dc43797d'),
      );
      expect(result.toState().toJSON()).toMatchObject({ conversation_id: 'conv_1', previous_response_id: null });
    });

    it('gets the same text as often as it is said [RUN-1511]', async () => {
      const { agent, model } = desk([step('r1', 'ok')]);
      await runForm(agent, [user('again'), user('again')], { conversationId: 'conv_1' });
      expect(requests(model)).toEqual(['u:again u:again @ - conv_1']);
    });
  });

  describe(`what goes with no history of the provider (${form})`, () => {
    const refused = async (options: RunOptions, agentOptions = {}): Promise<[unknown, number]> => {
      const { agent, model } = desk(['x'], agentOptions);
      const error =
        form === 'plain'
          ? await rejection(runForm(agent, 'x', options))
          : thrown(() => runStreamed(agent, 'x', options));
      return [error, model.calls.length];
    };

    it('two ids: refused before anything starts [RUN-1501]', async () => {
      const [error, calls] = await refused({ conversationId: 'c', previousResponseId: 'r' });
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/conversationId and previousResponseId/);
      expect(calls).toBe(0);
    });

    it.each<[string, RunOptions]>([
      ['conversationId', { conversationId: 'c' }],
      ['previousResponseId', { previousResponseId: 'r' }],
      ['autoPreviousResponseId', { autoPreviousResponseId: true }],
    ])('a session beside %s: refused before it is called [RUN#30, RUN-105, 1501]', async (name, options) => {
      const session = new PlainSession();
      const [error, calls] = await refused({ ...options, session });
      expect(error).toMatchObject({ name: 'UserError', code: 'session_conflict' });
      expect((error as Error).message).toMatch(new RegExp(`session and ${name} exclude`));
      for (const option of ['conversationId', 'previousResponseId', 'autoPreviousResponseId'])
        expect((error as Error).message).toContain(option);
      expect([session.log, calls]).toEqual([[], 0]);
    });

    const guard = { name: 'guard', execute: () => ({ tripwireTriggered: false }) };

    it.each<[string, RunOptions, object]>([
      ['of the agent', { conversationId: 'c' }, { outputGuardrails: [guard] }],
      ['of the run', { previousResponseId: 'r', outputGuardrails: [guard] }, {}],
      ['of the run, in a chain to be', { autoPreviousResponseId: true, outputGuardrails: [guard] }, {}],
      [
        'beside a model of the run',
        { conversationId: 'c', model: new ScriptedModel(['x']) },
        { model: 'named', outputGuardrails: [guard] },
      ],
    ])(
      'output guardrails %s: refused before the first call [RUN#29, RUN-105, 915]',
      async (_, options, agentOptions) => {
        const [error, calls] = await refused(options, agentOptions);
        expect(error).toBeInstanceOf(UserError);
        expect((error as Error).message).toMatch(/Output guardrails of agent Desk/);
        expect(calls).toBe(0);
      },
    );

    it('output guardrails, of a model that is known by name only: refused once the provider has given it [RUN-915]', async () => {
      const { agent, model } = desk(['x'], { model: 'named', outputGuardrails: [guard] });
      let asked = 0;
      const modelProvider = { getModel: async () => ((asked += 1), model) };
      const error = await rejection(runForm(agent, 'x', { conversationId: 'c', modelProvider }));
      expect((error as Error).message).toMatch(/Output guardrails of agent Desk/);
      expect([asked, model.calls.length]).toEqual([1, 0]);
    });

    it('output guardrails of an agent that is handed to: refused before its call [RUN-915]', async () => {
      const { agent: target, model } = desk([step('r2', 'never')], { name: 'B', outputGuardrails: [guard] });
      const { agent } = desk([step('r1', call('transfer_to_b', 'h1'))], { handoffs: [target] });
      const error = await rejection(runForm(agent, 'x', { conversationId: 'c' }));
      expect((error as Error).message).toMatch(/Output guardrails of agent B/);
      expect(model.calls).toHaveLength(0);
    });

    it('output guardrails go with a model that keeps nothing [RUN-915]', async () => {
      const { agent, model } = desk(['fine'], { outputGuardrails: [guard] });
      Object.assign(model, { supportsServerManagedHistory: () => false });
      const result = await runForm(agent, 'x', { conversationId: 'c' });
      expect(result.finalOutput).toBe('fine');
      expect(result.outputGuardrailResults).toHaveLength(1);
    });

    it('output guardrails, of a turn that waits: refused before its tools run [RUN-915]', async () => {
      const { agent, model, effects } = desk([step('r1', call('g', 'c1'))], { model: 'named' });
      const modelProvider = { getModel: async () => model };
      const paused = await runForm(agent, 'x', { conversationId: 'c', modelProvider });
      const state = approveAll(paused.toState());
      const error = await rejection(runForm(agent, state, { modelProvider, outputGuardrails: [guard] }));
      expect((error as Error).message).toMatch(/Output guardrails of agent Desk/);
      expect(effects).toEqual([]);
    });

    it.each([
      ['of the handoff', true],
      ['of the run', false],
    ])(
      'a filter %s: fails when the handoff happens, before its callback [RUN#70, RUN-1508, TOOL-HO22, TOOL-AC42]',
      async (_, own) => {
        const { agent: target } = desk(['never'], { name: 'B' });
        let called = 0;
        const to = handoff(target, {
          onHandoff: () => void (called += 1),
          ...(own && { inputFilter: (data) => data }),
        });
        const { agent } = desk([step('r1', call('transfer_to_b', 'h1'))], { handoffs: [to] });
        const error = await rejection(
          runForm(agent, 'x', { conversationId: 'c', ...(!own && { handoffInputFilter: (data) => data }) }),
        );
        expect(error).toBeInstanceOf(UserError);
        expect((error as Error).message).toMatch(/transfer_to_b.*input filter/);
        expect(called).toBe(0);
      },
    );

    it('nesting is left out with one warning, and the next agent goes on from the handoff [RUN-1508, TOOL-HO22, TOOL-AC42]', async () => {
      const records = logged({ level: 'warn' });
      const b = new ScriptedModel([step('r2', call('transfer_to_a', 'h2'))]);
      const second = new Agent({ name: 'B', model: b });
      const { agent, model } = desk([step('r1', call('transfer_to_b', 'h1')), step('r3', 'done')], {
        name: 'A',
        handoffs: [handoff(second, { nestHandoffHistory: true })],
      });
      second.handoffs.push(agent);
      const result = await runForm(agent, 'hi', { previousResponseId: 'r0', nestHandoffHistory: true });
      expect(result.finalOutput).toBe('done');
      expect([requests(model), requests(b)]).toEqual([['u:hi @ r0 -', 'fco:h2 @ r2 -'], ['fco:h1 @ r1 -']]);
      expect(records.filter(({ message }) => message.includes('History is not nested'))).toHaveLength(1);
    });
  });

  describe(`a pause (${form})`, () => {
    it.each([
      ['in process', false],
      ['through JSON', true],
    ])(
      '%s: outputs of siblings from before it go with those from after it, in call order [RUN#68, RUN-1505, 1506]',
      async (_, json) => {
        const { agent, model, effects } = desk([step('r1', call('g', 'c1'), call('t', 'c2')), step('r2', 'done')]);
        const paused = await runForm(agent, 'hi', { autoPreviousResponseId: true });
        expect(effects).toEqual(['t -']);
        const state = json ? await throughJson(agent, paused.toState()) : paused.toState();
        const result = await runForm(agent, approveAll(state));
        expect(effects).toEqual(['t -', 'g -']);
        expect(requests(model)).toEqual(['u:hi @ - -', 'fco:c1 fco:c2 @ r1 -']);
        expect(result.lastResponseId).toBe('r2');
      },
    );

    it('twice: each output is sent once, also after a second approval [RUN-1505, IL-060]', async () => {
      const { agent, model } = desk([
        step('r1', call('t', 'c1')),
        step('r2', call('g', 'c2'), call('g', 'c3')),
        step('r3', call('g', 'c4')),
        step('r4', 'done'),
      ]);
      let result = await runForm(agent, 'hi', { previousResponseId: 'r0' });
      let pauses = 0;
      while (result.status === 'interrupted') {
        const state = await throughJson(agent, result.toState());
        const [first] = state.interruptions;
        if (first) state.approve(first);
        pauses += 1;
        result = await runForm(agent, state);
      }
      expect(pauses).toBe(3);
      expect(requests(model)).toEqual(['u:hi @ r0 -', 'fco:c1 @ r1 -', 'fco:c2 fco:c3 @ r2 -', 'fco:c4 @ r3 -']);
    });

    it('goes on with the ids of its state; given ones take their place, and clear the other [RUN-108, STATE-202]', async () => {
      const { agent, model } = desk([
        step('r1', call('g', 'c1')),
        step('r2', 'a'),
        step('r3', 'b'),
        step('r4', 'c'),
        step('r5', 'd'),
      ]);
      const paused = await runForm(agent, 'hi', { conversationId: 'conv_1' });
      const state = (): RunState => approveAll(paused.toState());
      await runForm(agent, state());
      await runForm(agent, state(), { conversationId: 'conv_2' });
      const chained = await runForm(agent, state(), { previousResponseId: 'r9', autoPreviousResponseId: true });
      await runForm(agent, chained.toState());
      expect(requests(model)).toEqual([
        'u:hi @ - conv_1',
        'fco:c1 @ - conv_1',
        'fco:c1 @ - conv_2',
        'fco:c1 @ r9 -',
        ' @ r4 -',
      ]);
      expect(chained.toState().toJSON()).toMatchObject({
        conversation_id: null,
        previous_response_id: 'r4',
        auto_previous_response_id: true,
      });
    });

    it('whose state names both goes on with the conversation; an id that is given clears the other at once [RUN-108, 1501]', async () => {
      const { agent, model } = desk([step('r1', call('g', 'c1')), step('r2', 'a'), { error: new Error('down') }]);
      const paused = (await runForm(agent, 'hi', { autoPreviousResponseId: true })).toState();
      const both = await RunState.fromJSON(agent, { ...paused.toJSON(), conversation_id: 'conv_1' });
      await runForm(agent, approveAll(both));
      expect(requests(model)[1]).toBe('fco:c1 @ - conv_1');
      const error = await rejection(runForm(agent, approveAll(paused), { conversationId: 'conv_2' }));
      expect(getRunErrorState(error)?.toJSON()).toMatchObject({
        conversation_id: 'conv_2',
        previous_response_id: null,
        auto_previous_response_id: true,
      });
    });

    it('of a nested run keeps the ids of its own chain [STATE-239, TOOL-AT23]', async () => {
      const { agent: inner, model: innerModel } = desk([step('i1', call('g', 'n1')), step('i2', 'inner done')]);
      const ask = inner.asTool({ toolName: 'ask', toolDescription: 'x', run: { previousResponseId: 'i0' } });
      const { agent, model } = desk([step('r1', call('ask', 'c1', { input: 'q' })), step('r2', 'done')], {
        name: 'Outer',
        tools: [ask],
      });
      const paused = await runForm(agent, 'hi', { conversationId: 'conv_1' });
      const result = await runForm(agent, approveAll(await throughJson(agent, paused.toState())));
      expect(result.finalOutput).toBe('done');
      expect(requests(innerModel)).toEqual(['u:q @ i0 -', 'fco:n1 @ i1 -']);
      expect(requests(model)).toEqual(['u:hi @ - conv_1', 'fco:c1 @ - conv_1']);
    });
  });

  describe(`a call that fails (${form})`, () => {
    it.each([
      ['in process', false],
      ['through JSON', true],
    ])('is made again with the very same input, %s [RUN-1504, 1505]', async (_, json) => {
      const { agent, model } = desk([
        { error: new Error('down') },
        step('r1', call('t', 'c1'), call('t', 'c2')),
        { error: new Error('down again') },
        step('r2', 'done'),
      ]);
      let input: RunState | string = 'hi';
      for (const message of ['down', 'down again']) {
        const error = await rejection(runForm(agent, input, { autoPreviousResponseId: true }));
        expect(error).toMatchObject({ message });
        const state = getRunErrorState(error);
        if (state === undefined) throw new Error('no state');
        input = json ? await throughJson(agent, state) : state;
      }
      const result = await runForm(agent, input);
      expect(result.finalOutput).toBe('done');
      expect(requests(model)).toEqual(['u:hi @ - -', 'u:hi @ - -', 'fco:c1 fco:c2 @ r1 -', 'fco:c1 fco:c2 @ r1 -']);
    });
  });

  describe(`a response that was accepted (${form})`, () => {
    const failingOnce = (): { hooks: { onLlmEnd: () => void }; ends: () => number } => {
      let ends = 0;
      return {
        hooks: {
          onLlmEnd: () => {
            ends += 1;
            if (ends === 1) throw new Error('hook');
          },
        },
        ends: () => ends,
      };
    };

    it.each([
      ['in process', false],
      ['through JSON', true],
    ])(
      'is not asked for again when its hook failed, %s, and the hook does not run again [RUN-1509, STATE-190, STATE#37]',
      async (_, json) => {
        const { agent, model, effects } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
        const { hooks, ends } = failingOnce();
        const error = await rejection(runForm(agent, 'hi', { previousResponseId: 'r0', hooks }));
        expect(error).toMatchObject({ message: 'hook' });
        const failed = getRunErrorState(error) as RunState;
        expect(failed.toJSON()).toMatchObject({
          previous_response_id: 'r1',
          current_step: {
            type: 'next_step_interruption',
            data: { interruptions: [], response_accepted: true, llm_end_hooks_started: true },
          },
        });
        expect(effects).toEqual([]);
        const state = json ? await throughJson(agent, failed) : failed;
        const result = await runForm(agent, state, { hooks });
        expect(result.finalOutput).toBe('done');
        expect([requests(model), effects, ends()]).toEqual([['u:hi @ r0 -', 'fco:c1 @ r1 -'], ['t -'], 2]);
        expect(kindsOf(result.toInputList())).toBe('u fc fco m');
      },
    );

    it.each([
      ['in process', false],
      ['through JSON', true],
    ])('is not asked for again either when it is the answer, %s [RUN-1509]', async (_, json) => {
      const { agent, model } = desk([step('r1', 'the answer')]);
      const { hooks } = failingOnce();
      const error = await rejection(runForm(agent, 'hi', { conversationId: 'c', hooks }));
      const failed = getRunErrorState(error) as RunState;
      const result = await runForm(agent, json ? await throughJson(agent, failed) : failed, { hooks });
      expect(result.finalOutput).toBe('the answer');
      expect(result.rawResponses).toHaveLength(1);
      expect(result.newItems).toHaveLength(1);
      expect(requests(model)).toEqual(['u:hi @ - c']);
    });

    it.each([
      ['in process', false],
      ['through JSON', true],
    ])(
      'and cannot be processed: a new run is needed, or the tool that it asks for, %s [RUN-1509, STATE-190]',
      async (_, json) => {
        const { agent, model, effects } = desk([step('r1', call('later', 'c1')), step('r2', 'done')]);
        const first = await rejection(runForm(agent, 'hi', { autoPreviousResponseId: true }));
        expect(first).toBeInstanceOf(ModelBehaviorError);
        const failed = getRunErrorState(first) as RunState;
        expect([failed.status, failed.newItems.length]).toEqual(['interrupted', 0]);
        expect((first as ModelBehaviorError).runData?.rawResponses).toEqual([]);
        const again = async (): Promise<RunState> => await throughJson(agent, failed);
        const error = await rejection(runForm(agent, await again()));
        expect(error).toMatchObject({
          name: 'UserError',
          code: 'resume_response_unprocessable',
          cause: { name: 'ModelBehaviorError' },
        });
        expect((error as Error).message).toMatch(/accepted.*could not be processed.*new run/);
        expect(model.calls).toHaveLength(1);
        agent.tools.push(effectTool('later', effects));
        const result = await runForm(agent, json ? await again() : failed);
        expect(result.finalOutput).toBe('done');
        expect([requests(model), effects]).toEqual([['u:hi @ - -', 'fco:c1 @ r1 -'], ['later -']]);
        expect(kindsOf(result.toInputList())).toBe('u fc fco m');
      },
    );

    it('and was not the end, for a hook of the end failed: the next segment ends with it [RUN-1509]', async () => {
      const { agent, model } = desk([step('r1', 'the answer')]);
      let ends = 0;
      const hooks = {
        onAgentEnd: () => {
          ends += 1;
          if (ends === 1) throw new Error('hook');
        },
      };
      const error = await rejection(runForm(agent, 'hi', { conversationId: 'c', hooks }));
      const result = await runForm(agent, getRunErrorState(error) as RunState, { hooks });
      expect([result.finalOutput, model.calls.length, ends]).toEqual(['the answer', 1, 2]);
      expect(kindsOf(result.toInputList())).toBe('u m');
    });

    it('by another writer, whose hooks had not begun: they run first [STATE-190]', async () => {
      const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
      const { hooks, ends } = failingOnce();
      const failed = getRunErrorState(await rejection(runForm(agent, 'hi', { conversationId: 'c', hooks })));
      const json = failed?.toJSON() as unknown as { current_step: { data: { llm_end_hooks_started: boolean } } };
      json.current_step.data.llm_end_hooks_started = false;
      const result = await runForm(agent, await RunState.fromJSON(agent, json), { hooks });
      expect([result.finalOutput, model.calls.length, ends()]).toEqual(['done', 2, 3]);
    });

    it('of a first turn whose input guardrail trips: the guardrail is asked before anything of it runs [RUN-1509, STATE-139]', async () => {
      const { agent, model, effects } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
      let trips = true;
      let asked = 0;
      const inputGuardrails = [
        {
          name: 'late',
          execute: async () => {
            asked += 1;
            await idle(6);
            return { tripwireTriggered: trips };
          },
        },
      ];
      const hooks = { onLlmEnd: async () => await idle(12) };
      const options = { conversationId: 'c', inputGuardrails, hooks };
      const first = await rejection(runForm(agent, 'hi', options));
      expect(first).toMatchObject({ name: 'InputGuardrailTripwireTriggered' });
      const state = getRunErrorState(first) as RunState;
      const second = await rejection(runForm(agent, await throughJson(agent, state), options));
      expect(second).toMatchObject({ name: 'InputGuardrailTripwireTriggered' });
      expect([asked, effects]).toEqual([2, []]);
      trips = false;
      const result = await runForm(agent, await throughJson(agent, state), options);
      expect(result.finalOutput).toBe('done');
      expect([requests(model), effects]).toEqual([['u:hi @ - c', 'fco:c1 @ - c'], ['t -']]);
    });
  });

  describe(`a filter of the model's input (${form})`, () => {
    const filtered = async (
      input: AgentInputItem[],
      filter: (items: readonly AgentInputItem[], turn: number) => AgentInputItem[],
    ): Promise<string[]> => {
      const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', call('t', 'c2')), step('r3', 'done')]);
      let turn = 0;
      await runForm(agent, input, {
        conversationId: 'c',
        callModelInputFilter: ({ modelData }) => ({ ...modelData, input: filter(modelData.input, (turn += 1)) }),
      });
      return requests(model).map((line) => line.replace(' @ - c', ''));
    };

    it('what it drops stays owed, and is sent once it lets it through [RUN-225]', async () => {
      const offered: string[] = [];
      const sent = await filtered([user('a'), user('b')], (items, turn) => {
        offered.push(kindsOf(items));
        if (turn === 1) return items.filter((item) => (item as { content?: unknown }).content !== 'a');
        return turn === 2 ? items.filter(({ type }) => type !== 'function_call_output') : [...items];
      });
      expect(offered).toEqual(['u u', 'u fco', 'fco fco']);
      expect(sent).toEqual(['u:b', 'u:a', 'fco:c1 fco:c2']);
    });

    it('copies count as what they are copies of, changed outputs as those of their calls, and what it adds is owed by nobody [RUN-225, 1511]', async () => {
      const sent = await filtered([user('same'), user('same'), user('x')], (items, turn) => {
        const copies = structuredClone([...items]);
        if (turn === 1) return [...copies.slice(1), user('note')];
        return copies.map((item) => (item.type === 'function_call_output' ? { ...item, output: 'cut' } : item));
      }).catch((error: unknown) => [String(error)]);
      // One of the equal messages was held back; messages beside it were added: which is which cannot be told.
      expect(sent[0]).toMatch(/UserError.*ambiguous/);
      const clear = await filtered([user('same'), user('same'), user('x')], (items, turn) => {
        const copies = structuredClone([...items]);
        if (turn === 1) return copies.slice(1);
        return copies.map((item) => (item.type === 'function_call_output' ? { ...item, output: 'cut' } : item));
      });
      expect(clear).toEqual(['u:same u:x', 'u:same fco:c1', 'fco:c2']);
    });

    it('messages that it writes anew stand for the originals in whose place they are; else it is ambiguous [RUN-225]', async () => {
      expect(await filtered([user('secret 1')], (items, turn) => (turn === 1 ? [user('***')] : [...items]))).toEqual([
        'u:***',
        'fco:c1',
        'fco:c2',
      ]);
      for (const written of [
        [user('a and b')],
        [user('1'), user('2'), user('3')],
        [user('1'), { role: 'system', content: '2' } as const],
      ]) {
        const error = await rejection(filtered([user('a'), user('b')], () => written));
        expect(error).toBeInstanceOf(UserError);
        expect((error as Error).message).toMatch(/ambiguous/);
      }
    });

    it('what it held back is still owed after a pause, in process and through JSON [RUN-225, 1505]', async () => {
      for (const json of [false, true]) {
        const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', call('g', 'c2')), step('r3', 'done')]);
        const options: RunOptions = {
          conversationId: 'c',
          callModelInputFilter: ({ modelData }) => ({
            ...modelData,
            input: modelData.input.filter((item) => (item as { role?: unknown }).role === undefined).slice(1),
          }),
        };
        const paused = await runForm(agent, 'hi', options);
        const state = json ? await throughJson(agent, paused.toState()) : paused.toState();
        await runForm(agent, approveAll(state));
        expect(requests(model)).toEqual([' @ - c', ' @ - c', 'u:hi fco:c1 fco:c2 @ - c']);
      }
    });

    it('that drops ids of reasoning does so in what is owed, too; those of the input stay [RUN-1507]', async () => {
      const { agent, model } = desk([
        { output: [reasoning('hm'), call('t', 'c1')], responseId: null },
        { output: [text('done')], responseId: 'r2' },
      ]);
      const rs = { type: 'reasoning', id: 'rs_own', summary: [] } as AgentInputItem;
      const options: RunOptions = { autoPreviousResponseId: true, reasoningItemIdPolicy: 'omit' };
      await runForm(agent, [user('hi'), rs], options);
      const ids = model.calls.map(({ request }) =>
        request.input.flatMap((item) => (item.type === 'reasoning' ? [item.id ?? 'none'] : [])),
      );
      expect(ids).toEqual([['rs_own'], ['rs_own', 'none']]);
    });
  });
});

describe('a run that is cut', () => {
  it('after a turn: state and result have the newest id, and the next segment goes on from it [RUN-1510]', async () => {
    const { agent, model } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
    const stream = runStreamed(agent, 'hi', { autoPreviousResponseId: true });
    for await (const event of stream)
      if (event.type === 'run_item_stream_event' && event.name === 'tool_called') stream.cancel({ mode: 'after_turn' });
    await rejection(stream.completed);
    expect(stream.lastResponseId).toBe('r1');
    expect(stream.toState().toJSON()['previous_response_id']).toBe('r1');
    const result = await run(agent, await throughJson(agent, stream.toState()));
    expect(result.lastResponseId).toBe('r2');
    expect(requests(model)).toEqual(['u:hi @ - -', 'fco:c1 @ r1 -']);
  });

  it.each([
    ['as the response ends', 'response.completed'],
    ['as its call is announced', 'tool_called'],
  ])('at once, %s: the call of the model is not repeated, its tools run then, once [RUN-1420]', async (_, when) => {
    for (const json of [false, true]) {
      const { agent, model, effects } = desk([
        { output: [call('t', 'c1')], responseId: 'r1', usage: { inputTokens: 7 } },
        step('r2', 'done'),
      ]);
      const stream = runStreamed(agent, 'hi', { conversationId: 'c' });
      let atOnce: RunState | undefined;
      for await (const event of stream) {
        const name =
          event.type === 'raw_response_event'
            ? event.data.type
            : event.type === 'run_item_stream_event'
              ? event.name
              : '';
        if (name !== when) continue;
        stream.cancel();
        atOnce = stream.toState();
      }
      await rejection(stream.completed);
      expect(stream.context.usage).toMatchObject({ requests: 1, inputTokens: 7 });
      for (const cut of [atOnce, stream.toState() as RunState]) {
        if (cut === undefined) throw new Error('not cut');
        expect(cut.toJSON()).toMatchObject({
          current_step: { type: 'next_step_interruption', data: { response_accepted: true } },
        });
      }
      expect(model.calls).toHaveLength(1);
      const state = json ? await throughJson(agent, stream.toState()) : (stream.toState() as RunState);
      const result = await run(agent, state, { onInDoubt: 'retry' });
      expect(result.finalOutput).toBe('done');
      expect(requests(model)).toEqual(['u:hi @ - c', 'fco:c1 @ - c']);
      expect(effects).toEqual(['t -']);
      expect(kindsOf(result.toInputList())).toBe('u fc fco m');
      expect(result.rawResponses.map(({ responseId }) => responseId)).toEqual(['r1', 'r2']);
    }
  });

  it('announces a response that was accepted and not told of, once, in the segment that goes on [RUN-1303, 1420]', async () => {
    const { agent } = desk([step('r1', call('t', 'c1')), step('r2', 'done')]);
    const stream = runStreamed(agent, 'hi', { conversationId: 'c' });
    for await (const event of stream)
      if (event.type === 'raw_response_event' && event.data.type === 'response.completed') stream.cancel();
    await rejection(stream.completed);
    const names: string[] = [];
    for await (const event of runStreamed(agent, stream.toState() as RunState))
      if (event.type === 'run_item_stream_event') names.push(event.name);
    expect(names).toEqual(['tool_called', 'tool_output', 'message_output_created']);
  });
});

describe('options of a runner', () => {
  it('hold for its runs, and a call replaces them [RUN-103, 1501]', async () => {
    const { agent, model } = desk([step('r1', 'a'), step('r2', 'b')]);
    const runner = new Runner({ conversationId: 'c1' });
    await runner.run(agent, 'hi');
    await runner.run(agent, 'hi', { conversationId: 'c2' });
    expect(requests(model)).toEqual(['u:hi @ - c1', 'u:hi @ - c2']);
    expect(await rejection(runner.run(agent, 'hi', { previousResponseId: 'r' }))).toBeInstanceOf(UserError);
  });

  it('of a wrong kind are refused [RUN-104]', () => {
    expect(() => new Runner({ conversationId: '' })).toThrow(/conversationId/);
    expect(() => new Runner({ previousResponseId: 7 } as never)).toThrow(/previousResponseId/);
    expect(() => new Runner({ autoPreviousResponseId: 'yes' } as never)).toThrow(/autoPreviousResponseId/);
  });
});
