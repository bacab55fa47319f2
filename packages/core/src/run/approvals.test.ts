import { afterEach, describe, expect, it } from 'vitest';
import { Agent, MemorySession, RunState, tool, UserError } from '../index.ts';
import type { AgentInputItem, AgentOptions, Decision, OnApproval, RunOptions, RunResult } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, kindsOf, logged, PlainSession, rejection } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

function desk(steps: readonly ModelStep[], options: Partial<AgentOptions> = {}) {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const tools = [
    effectTool('refund', effects, { needsApproval: true, result: (id) => `refunded ${id}` }),
    effectTool('lookup', effects, { result: (id) => `found ${id}` }),
  ];
  return { agent: new Agent({ name: 'Desk', model, tools, ...options }), model, effects };
}

const refund = (id: string, callId: string) => toolCall('refund', { id }, { callId });
const lookup = (id: string, callId: string) => toolCall('lookup', { id }, { callId });

function outputsIn(items: readonly AgentInputItem[]): Record<string, unknown> {
  return Object.fromEntries(
    items.flatMap((item) => (item.type === 'function_call_output' ? [[item.call_id, item.output]] : [])),
  );
}

bothForms((runForm, form) => {
  /** Pauses, and decides on a state, live or through JSON. */
  const decided = async (
    agent: Agent,
    way: string,
    decide: (state: RunState) => void,
    options: RunOptions = {},
  ): Promise<RunState> => {
    const result = await runForm(agent, 'go', options);
    const state = way === 'live' ? result.toState() : await RunState.fromString(agent, result.toState().toString());
    decide(state);
    return state;
  };
  const all = (type: 'approve' | 'reject', message?: string) => (state: RunState) => {
    for (const item of state.interruptions) state.decide(item, type === 'approve' ? { type } : { type, message });
  };

  describe(`a program that decides (${form})`, () => {
    const cases: readonly { name: string; decision: Decision; output: string; effects: readonly string[] }[] = [
      { name: 'approves', decision: { type: 'approve', by: 'policy' }, output: 'refunded 1', effects: ['refund 1'] },
      {
        name: 'rejects',
        decision: { type: 'reject', message: 'over the limit', by: 'policy' },
        output: 'over the limit',
        effects: [],
      },
    ];

    it.each(cases)(
      '$name before the run pauses: no item, a record of it [STATE#124, STATE-105]',
      async ({ decision, output, effects: expected }) => {
        const { agent, model, effects } = desk([refund('1', 'c1'), 'done']);
        const asked: string[] = [];
        const result = await runForm(agent, 'go', {
          onApproval: (_ctx, item) => (asked.push(`${item.name} ${item.arguments}`), decision),
        });
        expect([result.finalOutput, effects, asked]).toEqual(['done', expected, ['refund {"id":"1"}']]);
        expect(result.newItems.map((item) => item.type)).toEqual([
          'tool_call_item',
          'tool_call_output_item',
          'message_output_item',
        ]);
        expect(outputsIn(model.calls[1]?.request.input ?? [])).toEqual({ c1: output });
        expect(result.toState().getDecisions()).toMatchObject([
          { callId: 'c1', type: decision.type, by: 'policy', toolName: 'refund' },
        ]);
      },
    );

    it.each(cases)(
      '$name when the run goes on, without a warning [STATE#123, STATE#124, RUN#98]',
      async ({ decision, output, effects: expected }) => {
        const { agent, model, effects } = desk([refund('1', 'c1'), 'done']);
        const state = (await runForm(agent, 'go')).toState();
        const records = logged();
        const result = await runForm(agent, state, { onApproval: async () => decision });
        expect([result.finalOutput, effects, records]).toEqual(['done', expected, []]);
        expect(outputsIn(model.calls[1]?.request.input ?? [])).toEqual({ c1: output });
      },
    );

    it('leaves the call to a person when it says nothing; it is asked again in each pass [STATE#124, STATE-105]', async () => {
      const { agent, effects } = desk([refund('1', 'c1')]);
      let asked = 0;
      const onApproval: OnApproval<unknown> = () => void (asked += 1);
      const paused = await runForm(agent, 'go', { onApproval });
      logged();
      const again = await runForm(agent, paused.toState(), { onApproval });
      expect([paused.status, again.status, asked, effects]).toEqual(['interrupted', 'interrupted', 2, []]);
    });

    it('is asked about each call for itself, and a standing answer holds for those to come [STATE-105]', async () => {
      const { agent, effects } = desk([[refund('1', 'c1'), refund('2', 'c2')], refund('3', 'c3'), 'done']);
      const asked: string[] = [];
      const result = await runForm(agent, 'go', {
        onApproval: (_ctx, item) => {
          asked.push(item.callId);
          return item.callId === 'c2' ? { type: 'approve', always: true } : { type: 'reject' };
        },
      });
      expect([result.finalOutput, effects, asked]).toEqual(['done', ['refund 2', 'refund 3'], ['c1', 'c2']]);
    });

    it.each([
      { name: 'throws', onApproval: () => Promise.reject(new Error('policy is down')), code: undefined },
      { name: 'answers what is no decision', onApproval: () => ({ type: 'maybe' }), code: 'user_error' },
    ])(
      'fails a fresh turn when it $name; a resumed one waits, and says so in the log [STATE#124, STATE-105, STATE-179]',
      async ({ onApproval, code }) => {
        const { agent, effects } = desk([refund('1', 'c1'), refund('1', 'c1')]);
        const error = await rejection(runForm(agent, 'go', { onApproval: onApproval as never }));
        expect(error).toMatchObject(code === undefined ? { message: 'policy is down' } : { code });
        const state = (await runForm(agent, 'go')).toState();
        const records = logged();
        const again = await runForm(agent, state, { onApproval: onApproval as never });
        expect([again.status, effects]).toEqual(['interrupted', []]);
        expect(records.some((record) => record.level === 'error' && record.message.includes('onApproval'))).toBe(true);
        expect(JSON.stringify(records)).not.toContain('policy is down');
      },
    );
  });

  describe.each(['live', 'through JSON'])(`tools that end the run, after a decision (${form}, %s)`, (way) => {
    it('end it with the text of the rejection, and no model is asked [STATE#111, STATE-216, RUN-612, SESS#84]', async () => {
      for (const message of [undefined, 'not today']) {
        const { agent, model } = desk([refund('1', 'c1')], { toolUseBehavior: 'stop_on_first_tool' });
        const session = new PlainSession();
        const state = await decided(agent, way, all('reject', message), { session });
        const result = await runForm(agent, state, { session });
        expect([result.status, result.finalOutput, model.calls.length]).toEqual([
          'completed',
          message ?? 'Tool execution was not approved.',
          1,
        ]);
        expect(session.kinds).toBe('u fc fco');
        expect(session.log).toEqual(['get', 'add[u]', 'add[fc]', 'get(2)', 'add[fco]']);
      }
    });

    it('end it with the output of the first call, whichever pass made it [STATE#111, STATE-216, RUN-606]', async () => {
      const { agent, model, effects } = desk([[lookup('1', 'f'), refund('2', 'g')]], {
        toolUseBehavior: 'stop_on_first_tool',
      });
      const result = await runForm(agent, await decided(agent, way, all('approve')));
      expect([result.finalOutput, effects, model.calls.length]).toEqual(['found 1', ['lookup 1', 'refund 2'], 1]);
      expect(result.newItems.map((item) => item.type)).not.toContain('message_output_item');
    });

    it('are shown to a function as a whole, rejected ones with their text [RUN#44, RUN-606, RUN-608]', async () => {
      const seen: unknown[] = [];
      const { agent } = desk([[lookup('1', 'f'), refund('2', 'g')]], {
        toolUseBehavior: async (_ctx, results) => {
          seen.push(...results.map((result) => [result.tool.name, result.output]));
          return { isFinalOutput: true, finalOutput: 'enough' };
        },
      });
      const result = await runForm(agent, await decided(agent, way, all('reject', 'no')));
      expect(result.finalOutput).toBe('enough');
      expect(seen).toEqual([
        ['lookup', 'found 1'],
        ['refund', 'no'],
      ]);
    });

    it('are named in a list: the first of the response that is in it counts [RUN-606]', async () => {
      const { agent } = desk([[lookup('1', 'f'), refund('2', 'g')]], {
        toolUseBehavior: { stopAtToolNames: ['refund'] },
      });
      const result = await runForm(agent, await decided(agent, way, all('approve')));
      expect(result.finalOutput).toBe('refunded 2');
    });
  });

  describe(`a call that the history of the session has already (${form})`, () => {
    it('is not run again, and that is told in the log [STATE-158]', async () => {
      const session = new MemorySession('s');
      const first = desk([lookup('1', 'call_0'), 'found']);
      await runForm(first.agent, 'go', { session });
      const second = desk([lookup('1', 'call_0'), 'found']);
      const records = logged();
      await runForm(second.agent, 'again', { session });
      expect([first.effects, second.effects]).toEqual([['lookup 1'], []]);
      expect(records.map(({ message }) => message).join()).toContain('The model repeated a tool call');
    });
  });

  describe(`two calls of a tool with opposite standing decisions (${form})`, () => {
    it.each(['live', 'text', 'again'])(
      'get each its own, the last one holds for later calls (%s) [STATE-163]',
      async (way) => {
        const { agent, model, effects } = desk([
          { output: [refund('1', 'c1'), refund('2', 'c2')] },
          refund('3', 'c3'),
          'done',
        ]);
        const state = await decided(agent, way, (paused) => {
          const [first, second] = paused.interruptions;
          paused.reject(first!, { always: true, message: 'never' });
          if (way === 'again') paused.reject(first!, { message: 'never' });
          paused.approve(second!, { always: true });
        });
        await runForm(agent, way === 'live' ? state : await RunState.fromString(agent, state.toString()));
        expect(effects).toEqual(['refund 2', 'refund 3']);
        expect(outputsIn(model.calls[1]?.request.input ?? [])).toMatchObject({ c1: 'never', c2: 'refunded 2' });
      },
    );
  });

  describe(`a call that no decision can be bound to (${form})`, () => {
    it('fails at once with a text for the model, as long as it needs one [STATE-102, STATE-166]', async () => {
      const broken = { type: 'function_call', name: 'refund', call_id: 'c1', arguments: String.raw`{"id":"\ud83d"}` };
      const { agent, model, effects } = desk([{ output: [broken as never] }, 'done']);
      const result = await runForm(agent, 'go');
      expect([result.status, effects]).toEqual(['completed', []]);
      expect(outputsIn(model.calls[1]?.request.input ?? [])['c1']).toContain('half of a surrogate pair');
      const free = desk([{ output: [{ ...broken, name: 'lookup' } as never] }, 'done']);
      await runForm(free.agent, 'go');
      expect(free.effects).toHaveLength(1);
    });
  });

  describe(`what a run does with a wrong answer (${form})`, () => {
    it('of the function that ends runs: a UserError [RUN#44, RUN-606]', async () => {
      for (const wrong of [undefined, 'yes', {}, { isFinalOutput: 1 }]) {
        const { agent } = desk([lookup('1', 'f')], { toolUseBehavior: () => wrong as never });
        expect(await rejection(runForm(agent, 'go'))).toBeInstanceOf(UserError);
      }
    });

    it('of a policy: the run fails, a resumed one with an error of ours too [STATE#56, STATE-101]', async () => {
      const gated = (answer: unknown) =>
        tool({ name: 'gated', needsApproval: () => answer as boolean, execute: () => 'ok' });
      const model = () => new ScriptedModel([toolCall('gated', {}, { callId: 'c1' }), 'done']);
      const error = await rejection(runForm(new Agent({ name: 'A', model: model(), tools: [gated('yes')] }), 'go'));
      expect(error).toMatchObject({ code: 'needs_approval_type' });
      const forgetful = new Agent({ name: 'A', model: model(), tools: [gated(undefined)] });
      expect(String(await rejection(runForm(forgetful, 'go')))).toMatch(/says true or false, not undefined\.$/);
      const text = (await runForm(new Agent({ name: 'A', model: model(), tools: [gated(true)] }), 'go'))
        .toState()
        .toString();
      const later = new Agent({ name: 'A', model: model(), tools: [gated('yes')] });
      expect(await rejection(runForm(later, await RunState.fromString(later, text)))).toMatchObject({
        code: 'needs_approval_type',
      });
    });

    it('of a policy that throws: a fresh turn fails, a resumed one waits [STATE-101, TOOL-F33]', async () => {
      let fails = false;
      const gated = tool({
        name: 'gated',
        needsApproval: () => {
          if (fails) throw new Error('secret');
          return true;
        },
        execute: () => 'ok',
      });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('gated', {}, { callId: 'c1' }), toolCall('gated', {}, { callId: 'c2' })]),
        tools: [gated],
      });
      const state = (await runForm(agent, 'go')).toState();
      fails = true;
      const records = logged();
      expect((await runForm(agent, state)).interruptions.map((item) => item.callId)).toEqual(['c1']);
      expect(JSON.stringify(records)).not.toContain('secret');
      expect(await rejection(runForm(agent, 'go'))).toBeInstanceOf(UserError);
    });

    it('of the formatter of rejections: the default text; the message of a person beats it [STATE#83, STATE-112, RUN-241, RUN-242]', async () => {
      const rejectedWith = async (formatter: RunOptions['toolErrorFormatter'], message?: string): Promise<unknown> => {
        const { agent, model } = desk([refund('1', 'c1'), 'done']);
        const state = await decided(agent, 'live', all('reject', message));
        logged();
        await runForm(agent, state, { toolErrorFormatter: formatter });
        return outputsIn(model.calls[1]?.request.input ?? [])['c1'];
      };
      const standard = 'Tool execution was not approved.';
      expect(await rejectedWith(({ kind, toolName, defaultMessage }) => `${kind} ${toolName}: ${defaultMessage}`)).toBe(
        `approval_rejected refund: ${standard}`,
      );
      expect(await rejectedWith(() => undefined)).toBe(standard);
      expect(await rejectedWith(() => 5 as never)).toBe(standard);
      expect(await rejectedWith(() => Promise.reject(new Error('x')))).toBe(standard);
      expect(await rejectedWith(() => 'formatted', 'no')).toBe('no');
    });
  });

  describe(`hooks of tools (${form})`, () => {
    it('do not run for a call that waits or is rejected [STATE-116, RUN-807]', async () => {
      const log: string[] = [];
      const hooks: RunOptions['hooks'] = {
        onToolStart: (ctx) => void log.push(`start ${ctx.toolCallId}`),
        onToolEnd: (ctx) => void log.push(`end ${ctx.toolCallId}`),
      };
      const { agent } = desk([[refund('1', 'c1'), refund('2', 'c2')], 'done']);
      const state = await decided(agent, 'live', () => undefined, { hooks });
      expect(log).toEqual([]);
      const [first, second] = state.interruptions;
      if (first && second) {
        state.approve(first);
        state.reject(second);
      }
      const result: RunResult = await runForm(agent, state, { hooks });
      expect([log, kindsOf(result.toInputList())]).toEqual([['start c1', 'end c1'], 'u fc fc fco fco m']);
    });
  });
});
