import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, getRunErrorState, MemorySession, RunState, tool, UserError } from '../index.ts';
import type { run, RunResult, ToolContext } from '../index.ts';
import { recordOf } from '../snapshot/run-state.ts';
import { getScope } from '../state/agent-tool-runs.ts';
import { copyRecord } from '../state/copy.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, idle, kindsOf, logged, PlainSession, rejection, thrown } from '../../test/run-kit.ts';

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

const usage = { requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 };
const model = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { usage });
const ask = (callId = 'out', args: object = { input: 'q' }, name = 'expert') => toolCall(name, args, { callId });
const rm = (callId = 'in', id = '7') => toolCall('rm', { id }, { callId });
const outputsOf = (m: ScriptedModel, call = -1): Record<string, unknown> =>
  Object.fromEntries(
    (m.calls.at(call)?.request.input ?? []).flatMap((item) => {
      const { type, call_id: id, output } = item as { type?: string; call_id?: string; output?: unknown };
      return type === 'function_call_output' ? [[id, output]] : [];
    }),
  );

interface Setup {
  readonly desk: Agent;
  readonly expert: Agent;
  readonly outer: ScriptedModel;
  readonly inner: ScriptedModel;
  readonly effects: string[];
}

/** `Desk` with the tool `expert` over `Expert`, whose tool `rm` is gated and whose tool `t` is free. */
function setup(outer: readonly ModelStep[], inner: readonly ModelStep[], options: object = {}): Setup {
  const effects: string[] = [];
  const models = { outer: model(...outer), inner: model(...inner) };
  const tools = [effectTool('rm', effects, { needsApproval: true }), effectTool('t', effects)];
  const expert = new Agent({ name: 'Expert', model: models.inner, tools });
  const desk = new Agent({
    name: 'Desk',
    model: models.outer,
    tools: [expert.asTool({ toolName: 'expert', ...options })],
  });
  return { desk, expert, ...models, effects };
}

const nestedOf = (state: RunState): number => recordOf(state).agentToolRuns?.size ?? 0;
const approveAll = (state: RunState): RunState => {
  for (const item of state.interruptions) state.approve(item);
  return state;
};

const stateOfError = (error: unknown): RunState => getRunErrorState(error) as RunState;

type Way = 'live' | 'through JSON';
const pausedState = async (agent: Agent, result: { toState(): RunState }, way: Way): Promise<RunState> =>
  way === 'live' ? result.toState() : await RunState.fromString(agent, result.toState().toString());

/** `Desk` asks `Expert`, which asks `Deep`: there `work` has ended and `slow` is under way when the sibling `bad` fails the run. */
async function cutTwoDeep(
  runForm: typeof run,
): Promise<{ desk: Agent; state: RunState; counts: { work: number; slow: number } }> {
  let cut = true;
  const counts = { work: 0, slow: 0 };
  let begun = (): void => undefined;
  const underWay = new Promise<void>((resolve) => (begun = resolve));
  const work = tool({ name: 'work', execute: () => `w${++counts.work}` });
  const slow = tool({
    name: 'slow',
    execute: (_args, ctx) => {
      counts.slow += 1;
      if (!cut) return 's';
      begun();
      return new Promise<string>((_done, fail) => {
        ctx.signal.addEventListener('abort', () => fail(ctx.signal.reason as Error));
      });
    },
  });
  const bad = tool({
    name: 'bad',
    failureErrorFunction: null,
    execute: async () => {
      await underWay;
      if (cut) throw new Error('bad');
      return 'b';
    },
  });
  const deep = new Agent({
    name: 'Deep',
    tools: [work, slow],
    model: model([toolCall('work', {}, { callId: 'w' }), toolCall('slow', {}, { callId: 's' })], 'deep done'),
  });
  const expert = new Agent({
    name: 'Expert',
    tools: [deep.asTool({ toolName: 'deep' })],
    model: model(ask('d', { input: 'q' }, 'deep'), 'expert done'),
  });
  const desk = new Agent({
    name: 'Desk',
    tools: [bad, expert.asTool({ toolName: 'expert' })],
    model: model([toolCall('bad', {}, { callId: 'b' }), ask()], 'done'),
  });
  const error = await rejection(runForm(desk, 'hi'));
  cut = false;
  return { desk, state: await RunState.fromString(desk, stateOfError(error).toString()), counts };
}

bothForms((runForm, form) => {
  describe.each<Way>(['live', 'through JSON'])(`a pause inside an agent tool (${form}, %s)`, (way) => {
    it('surfaces with its own agent, goes on where it stopped, once [STATE#6, STATE-231, TOOL-AC10, AT18, AT20]', async () => {
      const log: string[] = [];
      const { desk, outer, inner, effects } = setup([ask(), 'done'], [rm(), 'r'], {
        customOutputExtractor: (result: RunResult) => {
          log.push('extract');
          return `<${String(result.finalOutput)}>`;
        },
      });
      const hooks = {
        onToolStart: (_: unknown, __: unknown, { name }: { name: string }) => void log.push(`start ${name}`),
        onToolEnd: (_: unknown, __: unknown, { name }: { name: string }) => void log.push(`end ${name}`),
      };
      const session = new PlainSession();
      const first = await runForm(desk, 'hi', { hooks, session });
      expect(first.status).toBe('interrupted');
      expect(first.interruptions).toMatchObject([{ name: 'rm', callId: 'in', agent: { name: 'Expert' } }]);
      expect(first.newItems.map((item) => item.type)).toEqual(['tool_call_item']);
      expect([effects, log, session.kinds]).toEqual([[], ['start expert'], 'u fc']);
      expect(first.context.usage.requests).toBe(2);

      const state = await pausedState(desk, first, way);
      expect(state.interruptions).toMatchObject([{ name: 'rm', agent: { name: 'Expert' } }]);
      const result = await runForm(desk, approveAll(state), { hooks, session });
      expect(result.finalOutput).toBe('done');
      expect([effects, log]).toEqual([['rm 7'], ['start expert', 'extract', 'end expert']]);
      expect([outer.calls.length, inner.calls.length]).toEqual([2, 2]);
      expect(outputsOf(outer)).toEqual({ out: '<r>' });
      expect(kindsOf(inner.calls[1]?.request.input ?? [])).toBe('u fc fco');
      expect(result.context.usage.requests).toBe(4);
      expect(session.kinds).toBe('u fc fco m');
      expect(nestedOf(result.toState())).toBe(0);
    });

    it('works three levels deep, at each pause anew [STATE#7, TOOL-AT21, IL-066]', async () => {
      const { expert, effects, inner } = setup([], [rm('a', '1'), rm('b', '2'), 'inner']);
      const middleModel = model(ask('m'), 'middle');
      const middle = new Agent({ name: 'Middle', model: middleModel, tools: [expert.asTool({ toolName: 'expert' })] });
      const outer = model(ask('o', { input: 'x' }, 'middle'), 'done');
      const desk = new Agent({ name: 'Desk', model: outer, tools: [middle.asTool()] });
      let result = await runForm(desk, 'hi');
      for (const callId of ['a', 'b']) {
        const state = await pausedState(desk, result, way);
        expect(state.interruptions).toMatchObject([{ callId, agent: { name: 'Expert' } }]);
        result = await runForm(desk, approveAll(state));
      }
      expect(result.finalOutput).toBe('done');
      expect(effects).toEqual(['rm 1', 'rm 2']);
      expect([inner.calls.length, middleModel.calls.length, outer.calls.length]).toEqual([3, 2, 2]);
      expect(outputsOf(outer)).toEqual({ o: 'middle' });
      expect(result.context.usage.requests).toBe(7);
    });

    it('gives a rejection to the nested model, which may ask again [STATE-235, RUN-1211]', async () => {
      const { desk, outer, inner, effects } = setup([ask(), 'done'], [rm('a'), rm('b'), 'r']);
      const state = await pausedState(desk, await runForm(desk, 'hi'), way);
      state.reject(state.interruptions[0] as never, { message: 'not that' });
      const lines = logged({ level: 'warn' });
      const second = await runForm(desk, state);
      expect(lines).toEqual([]);
      expect(outputsOf(inner)).toEqual({ a: 'not that' });
      expect(second.interruptions).toMatchObject([{ callId: 'b' }]);
      const result = await runForm(desk, approveAll(await pausedState(desk, second, way)));
      expect(result.finalOutput).toBe('done');
      expect(effects).toEqual(['rm 7']);
      expect(outputsOf(outer)).toEqual({ out: 'r' });
    });

    it('stays as it is while nothing is decided, and says so once [STATE-214, 233, RUN-115]', async () => {
      const { desk, outer, inner, effects } = setup([ask(), 'done'], [[rm('a'), rm('b')], 'r'], {
        run: { hooks: { onRunStart: () => void starts.push(1) } },
      });
      const starts: number[] = [];
      const first = await runForm(desk, 'hi');
      const state = await pausedState(desk, first, way);
      const items = [...state.interruptions];
      const lines = logged({ level: 'warn' });
      const again = await runForm(desk, state);
      expect(again.interruptions).toEqual(items);
      again.interruptions.forEach((item, index) => expect(item).toBe(items[index]));
      expect(lines.filter((line) => /none of its waiting calls was decided/.test(line.message))).toHaveLength(1);
      expect([outer.calls.length, inner.calls.length, effects, starts]).toEqual([1, 1, [], [1]]);
      expect(again.newItems).toHaveLength(1);
      approveAll(state);
      expect(again.toState().getDecisions()).toEqual([]);
      const third = again.toState();
      third.approve(third.interruptions[1] as never);
      const partly = await runForm(desk, third);
      expect(partly.interruptions).toEqual([items[0]]);
      expect([inner.calls.length, effects]).toEqual([1, ['rm 7']]);
      const result = await runForm(desk, approveAll(partly.toState()));
      expect([result.finalOutput, effects]).toEqual(['done', ['rm 7', 'rm 7']]);
    });

    it('keeps two calls of one tool apart, also when they are equal [TOOL-AC65, AT26, AT22, STATE-240]', async () => {
      const { desk, outer, effects } = setup(
        [[ask('one'), ask('two')], 'done'],
        [rm('a', '1'), rm('b', '2'), 'first', 'second'],
      );
      const first = await runForm(desk, 'hi');
      expect(first.interruptions).toMatchObject([{ callId: 'a' }, { callId: 'b' }]);
      const state = await pausedState(desk, first, way);
      state.approve(state.interruptions[1] as never);
      const second = await runForm(desk, state);
      expect(second.interruptions).toMatchObject([{ callId: 'a' }]);
      expect(effects).toEqual(['rm 2']);
      expect(outer.calls).toHaveLength(1);
      const result = await runForm(desk, approveAll(await pausedState(desk, second, way)));
      expect(outputsOf(outer)).toEqual({ one: 'second', two: 'first' });
      expect([result.finalOutput, effects]).toEqual(['done', ['rm 2', 'rm 1']]);
      expect(nestedOf(result.toState())).toBe(0);
    });

    it('knows no decision of the outer run, and the outer run none of its own [TOOL-AC66, AT19, STATE-232, 236, STATE#62]', async () => {
      const { desk, expert, inner, effects } = setup([], [rm('dup'), rm('again'), 'r', rm('third')]);
      const outerEffects: string[] = [];
      const outer = model(rm('dup'), ask(), rm('own'), ask('out2'), 'done');
      const own = effectTool('rm', outerEffects, { needsApproval: true });
      const both = new Agent({ name: 'Desk', model: outer, tools: [own, ...desk.tools] });
      let result = await runForm(both, 'hi');
      expect(result.interruptions).toMatchObject([{ callId: 'dup', agent: { name: 'Desk' } }]);
      result = await runForm(both, approveAll(await pausedState(both, result, way)));
      expect(outerEffects).toEqual(['rm 7']);
      expect(result.interruptions).toMatchObject([{ callId: 'dup', agent: { name: 'Expert' } }]);
      const state = await pausedState(both, result, way);
      state.approve(state.interruptions[0] as never, { always: true });
      result = await runForm(both, state);
      // The nested run goes on with its second call without a pause; the outer tool of that name still asks.
      expect(effects).toEqual(['rm 7', 'rm 7']);
      expect(result.interruptions).toMatchObject([{ callId: 'own', agent: { name: 'Desk' } }]);
      // And so does another run of the same agent tool.
      result = await runForm(both, approveAll(await pausedState(both, result, way)));
      expect(result.interruptions).toMatchObject([{ callId: 'third', agent: { name: 'Expert' } }]);
      expect(inner.calls).toHaveLength(4);
      expect(expert.tools).toHaveLength(2);
    });

    it('of an agent that is its own tool shares nothing with the run around it: decisions, standing ones, call ids [STATE-232, 236, TOOL-AT8]', async () => {
      const effects: string[] = [];
      const itself = (...steps: ModelStep[]): Agent => {
        const agent = new Agent({
          name: 'Desk',
          model: model(...steps),
          tools: [effectTool('rm', effects, { needsApproval: true })],
        });
        agent.tools.push(agent.asTool({ toolName: 'self' }));
        return agent;
      };
      const self = () => ask('out', { input: 'q' }, 'self');
      // What was allowed outside, once and for all, even of a call of the same id, is asked again inside.
      const outward = itself(rm('dup'), self(), rm('dup'), 'r', 'done');
      let state = await pausedState(outward, await runForm(outward, 'hi'), way);
      state.approve(state.interruptions[0] as never, { always: true });
      let result = await runForm(outward, state);
      expect([result.interruptions.map(({ callId }) => callId), effects]).toEqual([['dup'], ['rm 7']]);
      result = await runForm(outward, approveAll(await pausedState(outward, result, way)));
      expect([result.finalOutput, effects]).toEqual(['done', ['rm 7', 'rm 7']]);
      // And the other way round, also while both runs go on.
      const inward = itself(self(), rm('in'), 'r', rm('own'), 'done');
      result = await runForm(inward, 'hi', {
        onApproval: (_, { callId }) => (callId === 'in' ? { type: 'approve', always: true } : undefined),
      });
      expect([result.interruptions.map(({ callId }) => callId), effects.length]).toEqual([['own'], 3]);
      state = await pausedState(inward, result, way);
      expect((await runForm(inward, approveAll(state))).finalOutput).toBe('done');
      // Refusals stay where they were said as well.
      const refused = itself(rm('no'), self(), rm('no'), 'r', 'done');
      state = await pausedState(refused, await runForm(refused, 'hi'), way);
      state.reject(state.interruptions[0] as never, { always: true });
      result = await runForm(refused, state);
      expect(result.interruptions.map(({ callId }) => callId)).toEqual(['no']);
    });

    it('is decided through the context of the result as well [STATE#97, STATE-245]', async () => {
      const outerRm = effectTool('rm', [], { needsApproval: true });
      const { desk, inner, effects } = setup([[rm('in'), ask()], 'done'], [rm(), 'r', rm(), 'r']);
      desk.tools.push(outerRm);
      const first = await runForm(desk, 'hi');
      const nested = first.interruptions.find(({ agent }) => agent.name === 'Expert');
      first.context.decide(nested as never, { type: 'approve' });
      const second = await runForm(desk, await pausedState(desk, first, way));
      expect(effects).toEqual(['rm 7']);
      expect(second.interruptions).toMatchObject([{ agent: { name: 'Desk' }, callId: 'in' }]);
      expect(inner.calls).toHaveLength(2);
    });

    it('finds its agent, never the outer one, also when that has its name, or is one of two clones [STATE#59, STATE-241, 173, IL-065, IL-089]', async () => {
      const effects: string[] = [];
      const tools = [effectTool('rm', effects, { needsApproval: true })];
      const base = new Agent({ name: 'Desk', model: model(rm('a', '1'), rm('b', '2'), 'ra', 'rb'), tools });
      const clone = base.clone({ instructions: 'two' });
      const outer = model([ask('x', { input: '1' }, 'first'), ask('y', { input: '2' }, 'second')], 'done');
      const desk = new Agent({
        name: 'Desk',
        model: outer,
        tools: [base.asTool({ toolName: 'first' }), clone.asTool({ toolName: 'second' })],
      });
      const state = await pausedState(desk, await runForm(desk, 'hi'), way);
      expect(state.interruptions.map(({ agent }) => agent)).toEqual([base, clone]);
      expect((await runForm(desk, approveAll(state))).finalOutput).toBe('done');
      expect(effects).toEqual(['rm 1', 'rm 2']);
    });

    it('is asked about the run as a whole: `onApproval` of the run, in the first run and in a resume [STATE#124, STATE-246]', async () => {
      const asked: string[] = [];
      const direct = setup([ask(), 'done'], [rm(), 'r']);
      const answered = await runForm(direct.desk, 'hi', {
        onApproval: (ctx, item) => {
          asked.push(`${item.agent.name} ${item.callId} ${ctx.usage.requests}`);
          return { type: 'approve', by: 'program' };
        },
      });
      expect([answered.finalOutput, direct.effects, asked]).toEqual(['done', ['rm 7'], ['Expert in 1']]);
      expect(answered.toState().getDecisions()).toMatchObject([{ callId: 'in', path: ['out'], by: 'program' }]);

      const { desk, effects, inner } = setup([ask(), 'done'], [[rm('a', '1'), rm('b', '2')], 'r']);
      const state = await pausedState(desk, await runForm(desk, 'hi'), way);
      const calls: string[] = [];
      const onApproval = (_: unknown, item: { callId: string }) => {
        calls.push(item.callId);
        return item.callId === 'b' ? ({ type: 'reject', message: 'no' } as const) : undefined;
      };
      const second = await runForm(desk, state, { onApproval });
      expect(calls).toEqual(['a', 'b']);
      expect(second.interruptions).toMatchObject([{ callId: 'a' }]);
      expect([effects, inner.calls.length]).toEqual([[], 1]);
      const failing = await runForm(desk, await pausedState(desk, second, way), {
        onApproval: () => {
          throw new Error('x');
        },
      });
      expect(failing.interruptions).toMatchObject([{ callId: 'a' }]);
      const result = await runForm(desk, failing.toState(), { onApproval: () => ({ type: 'approve' }) });
      expect([result.finalOutput, effects]).toEqual(['done', ['rm 1']]);
      expect(outputsOf(inner)).toEqual({ a: 'rm ok', b: 'no' });
    });

    it('keeps the trail of decisions, with the calls around [STATE#135, STATE-545, IL-094]', async () => {
      const { desk } = setup([ask(), 'done'], [rm('a'), rm('b'), 'r']);
      let state = await pausedState(desk, await runForm(desk, 'hi'), way);
      state.approve(state.interruptions[0] as never, { by: 'ada', note: 'one' });
      const whole = (s: RunState) =>
        s.getDecisions().map(({ callId, path, by, note, type }) => [callId, path, by, note, type]);
      expect(whole(state)).toEqual([['a', ['out'], 'ada', 'one', 'approve']]);
      state = await pausedState(desk, await runForm(desk, state), way);
      state.reject(state.interruptions[0] as never, { by: 'bob' });
      const result = await runForm(desk, state);
      const expected = [
        ['a', ['out'], 'ada', 'one', 'approve'],
        ['b', ['out'], 'bob', undefined, 'reject'],
      ];
      expect(whole(await pausedState(desk, result, way))).toEqual(expected);
    });

    it('names its calls to the outside by the outermost run and the calls around [STATE#89, STATE-509]', async () => {
      const keys: string[] = [];
      const pay = tool({
        name: 'pay',
        parameters: z.object({ n: z.int() }),
        needsApproval: true,
        execute: (_, ctx: ToolContext) => void keys.push(ctx.idempotencyKey),
      });
      const steps = [toolCall('pay', { n: 1 }, { callId: 'p' }), toolCall('pay', { n: 2 }, { callId: 'p' })];
      const inner = model(...steps, 'r', 'r', 'r', 'r');
      const expert = new Agent({ name: 'Expert', model: inner, tools: [pay] });
      const tools = [expert.asTool({ toolName: 'expert' })];
      const desk = new Agent({ name: 'Desk', model: model([ask('one'), ask('two')], 'done', 'done'), tools });
      const first = await runForm(desk, 'hi');
      await runForm(desk, approveAll(await pausedState(desk, first, way)));
      expect(new Set(keys).size).toBe(2);
      await runForm(desk, approveAll(await pausedState(desk, first, way)));
      expect(keys.slice(2)).toEqual(keys.slice(0, 2));
    });

    it('takes the context that the resume is given, and keeps what was decided [STATE#67, STATE-203, 238]', async () => {
      const seen: unknown[] = [];
      const look = tool({
        name: 'look',
        needsApproval: true,
        execute: (_, ctx: ToolContext) => void seen.push([ctx.context, ctx.toolInput]),
      });
      const expert = new Agent({
        name: 'Expert',
        model: model(toolCall('look', {}, { callId: 'l' }), 'r'),
        tools: [look],
      });
      const asTool = expert.asTool({ toolName: 'expert', parameters: z.object({ q: z.string() }) });
      const desk = new Agent({ name: 'Desk', model: model(ask('out', { q: 'x' }), 'done'), tools: [asTool] });
      const first = await runForm(desk, 'hi', { context: { tenant: 1 } });
      const result = await runForm(desk, approveAll(await pausedState(desk, first, way)), { context: { tenant: 2 } });
      expect(seen).toEqual([[{ tenant: 2 }, { q: 'x' }]]);
      expect(result.context.context).toEqual({ tenant: 2 });
      expect(result.context.usage.requests).toBe(4);
    });

    it('counts what nested runs use once in each state of one result [RUN#77, STATE-131, 132, 261]', async () => {
      const { desk, effects, inner, outer } = setup([ask(), 'done', 'done'], [rm(), 'r', 'r']);
      const first = await runForm(desk, 'hi');
      const [a, b] = [await pausedState(desk, first, way), await pausedState(desk, first, way)];
      approveAll(a);
      expect(b.getDecisions()).toEqual([]);
      expect((await runForm(desk, a)).context.usage.requests).toBe(4);
      expect(effects).toEqual(['rm 7']);
      expect(first.context.usage.requests).toBe(2);
      expect((await runForm(desk, b)).status).toBe('interrupted');
      expect((await runForm(desk, approveAll(b))).context.usage.requests).toBe(4);
      expect([effects, inner.calls.length, outer.calls.length]).toEqual([['rm 7', 'rm 7'], 3, 3]);
      expect(first.interruptions).toHaveLength(1);
    });
  });

  describe(`nested runs and what goes wrong (${form})`, () => {
    it('cannot be decided where two wait for the same call [STATE#61, STATE-173]', async () => {
      const { desk } = setup([[ask('one'), ask('two')], 'done'], [rm('same'), rm('same')]);
      const state = (await runForm(desk, 'hi')).toState();
      const before = state.toString();
      const error = thrown(() => state.approve(state.interruptions[0] as never));
      expect(error).toMatchObject({ code: 'approval_ambiguous' });
      expect(state.toString()).toBe(before);
    });

    it('go on after a cancel during their model call, without doing anything twice [STATE#66, STATE-237]', async () => {
      const abort = new AbortController();
      const { desk, outer, inner, effects } = setup(
        [ask(), 'done'],
        [
          rm(),
          toolCall('t', { id: '8' }, { callId: 't' }),
          () => {
            abort.abort();
            return new Promise<ModelStep>(() => undefined);
          },
          'r',
        ],
      );
      const state = approveAll((await runForm(desk, 'hi')).toState());
      const error = await rejection(runForm(desk, state, { signal: abort.signal }));
      expect(error).toMatchObject({ name: 'AbortError' });
      expect(effects).toEqual(['rm 7', 't 8']);
      const fromError = getRunErrorState(error) as RunState;
      const text = fromError.toString();
      for (const again of [state, await RunState.fromString(desk, text)]) {
        inner.add('r');
        outer.add('done');
        expect((await runForm(desk, again)).finalOutput).toBe('done');
        expect(effects).toEqual(['rm 7', 't 8']);
        expect(kindsOf(inner.calls.at(-1)?.request.input ?? [])).toBe('u fc fco fc fco');
      }
    });

    it('that were cut before anybody was asked go on where they stopped, with their own session too [STATE-237, TOOL-AT34]', async () => {
      for (const way of ['live', 'through JSON'] as const) {
        const abort = new AbortController();
        const session = new MemorySession();
        const cut = (): Promise<ModelStep> => {
          abort.abort();
          return new Promise<ModelStep>(() => undefined);
        };
        const { desk, inner } = setup([ask(), 'done'], [cut, 'r'], { run: { session } });
        const error = await rejection(runForm(desk, 'hi', { signal: abort.signal }));
        const again = await runForm(desk, await pausedState(desk, { toState: () => stateOfError(error) }, way));
        expect(again.finalOutput).toBe('done');
        expect(inner.calls).toHaveLength(2);
        expect(kindsOf(inner.calls[1]?.request.input ?? [])).toBe('u');
        expect(kindsOf(await session.getItems())).toBe('u m');
      }
    });

    describe('that a failing sibling cut, two deep', () => {
      it('are refused for what was under way inside alone [STATE-237, 510]', async () => {
        const { desk, state, counts } = await cutTwoDeep(runForm);
        const error = await rejection(runForm(desk, state));
        expect(error).toMatchObject({ code: 'call_executed_uncommitted' });
        expect(counts).toEqual({ work: 1, slow: 1 });
      });

      it('do again what is to run again, and nothing that ended [STATE-237, 510]', async () => {
        const { desk, state, counts } = await cutTwoDeep(runForm);
        expect((await runForm(desk, state, { onInDoubt: 'retry' })).finalOutput).toBe('done');
        expect(counts).toEqual({ work: 1, slow: 2 });
      });

      it('wait for an answer about the call inside, not about the agent tool [STATE-139, 237, 510]', async () => {
        const { desk, state, counts } = await cutTwoDeep(runForm);
        const asked = (await runForm(desk, state, { onInDoubt: 'interrupt' })).toState();
        expect(asked.interruptions.map(({ agent, name, inDoubt }) => [agent.name, name, inDoubt])).toEqual([
          ['Desk', 'bad', true],
          ['Deep', 'slow', true],
        ]);
        for (const item of asked.interruptions) asked.decide(item, { type: 'rerun' });
        expect((await runForm(desk, asked, { onInDoubt: 'interrupt' })).finalOutput).toBe('done');
        expect(counts).toEqual({ work: 1, slow: 2 });
      });
    });

    it('that failed by themselves leave their call in doubt, for an answer [STATE-139, 154]', async () => {
      const { desk, inner } = setup([ask(), 'done'], [new Error('The line went dead.')], {
        failureErrorFunction: null,
      });
      const error = await rejection(runForm(desk, 'hi'));
      const again = await rejection(runForm(desk, stateOfError(error)));
      expect(again).toMatchObject({ code: 'call_executed_uncommitted' });
      expect(inner.calls).toHaveLength(1);
    });

    it('are gone on from where their output could not be taken, without running again [STATE-212, 237]', async () => {
      let fail = true;
      const { desk, inner, outer, effects } = setup([ask(), 'done'], [rm(), 'r'], {
        failureErrorFunction: null,
        customOutputExtractor: ({ finalOutput }: RunResult) => {
          if (fail) throw new Error('x');
          return String(finalOutput);
        },
      });
      const state = approveAll((await runForm(desk, 'hi')).toState());
      await rejection(runForm(desk, state));
      fail = false;
      expect((await runForm(desk, state)).finalOutput).toBe('done');
      expect([effects, inner.calls.length, outputsOf(outer)]).toEqual([['rm 7'], 2, { out: 'r' }]);
    });

    it('never go on with a call in doubt, whatever the tool does about failures [STATE-154, 510]', async () => {
      const { desk, inner, outer } = setup([ask(), 'done'], []);
      let entered = 0;
      const boom = tool({
        name: 'boom',
        needsApproval: true,
        failureErrorFunction: null,
        execute: () => {
          entered += 1;
          throw new Error('x');
        },
      });
      const expert = new Agent({ name: 'Expert', model: inner, tools: [boom] });
      desk.tools.splice(0, 1, expert.asTool({ toolName: 'expert', failureErrorFunction: null }));
      inner.add(toolCall('boom', {}, { callId: 'b' }), 'r');
      const state = approveAll((await runForm(desk, 'hi')).toState());
      expect(await rejection(runForm(desk, state))).toMatchObject({ name: 'ToolCallError' });
      expect(await rejection(runForm(desk, state))).toMatchObject({ code: 'call_executed_uncommitted' });
      const waits = await runForm(desk, state, { onInDoubt: 'interrupt' });
      expect(waits.interruptions).toMatchObject([{ name: 'boom', inDoubt: true }]);
      const decided = await RunState.fromString(desk, waits.toState().toString());
      decided.decide(decided.interruptions[0] as never, { type: 'done', output: 'happened' });
      expect((await runForm(desk, decided)).finalOutput).toBe('done');
      expect([entered, outputsOf(inner), outputsOf(outer)]).toEqual([1, { b: 'happened' }, { out: 'r' }]);
    });

    it('with a call in doubt fail the run, though the tool answers failures with a text [STATE-154, 510, TOOL-AT11]', async () => {
      const abort = new AbortController();
      const { desk, inner, outer } = setup([ask(), 'done'], []);
      const hang = tool({
        name: 'hang',
        needsApproval: true,
        execute: () => {
          abort.abort();
          return new Promise(() => undefined);
        },
      });
      const expert = new Agent({ name: 'Expert', model: inner, tools: [hang] });
      desk.tools.splice(0, 1, expert.asTool({ toolName: 'expert' }));
      inner.add(toolCall('hang', {}, { callId: 'h' }), 'r');
      const state = approveAll((await runForm(desk, 'hi')).toState());
      const error = await rejection(runForm(desk, state, { signal: abort.signal }));
      const cut = getRunErrorState(error) as RunState;
      expect(await rejection(runForm(desk, cut))).toMatchObject({ code: 'call_executed_uncommitted' });
      expect([outer.calls.length, inner.calls.length]).toEqual([1, 1]);
      const waits = await runForm(desk, cut, { onInDoubt: 'interrupt' });
      expect(waits.interruptions).toMatchObject([{ callId: 'h', inDoubt: true }]);
      const decided = waits.toState();
      decided.decide(decided.interruptions[0] as never, { type: 'done', output: 'it was' });
      expect((await runForm(desk, decided, { onInDoubt: 'interrupt' })).finalOutput).toBe('done');
      expect(outputsOf(inner)).toEqual({ h: 'it was' });
    });

    it('with a call in doubt that waits go on when such calls run again [STATE-510]', async () => {
      const abort = new AbortController();
      let bodies = 0;
      const { desk, inner } = setup([ask(), 'done'], []);
      const slow = tool({
        name: 'slow',
        needsApproval: true,
        execute: () => {
          bodies += 1;
          if (bodies > 1) return 'ok';
          abort.abort();
          return new Promise(() => undefined);
        },
      });
      const expert = new Agent({ name: 'Expert', model: inner, tools: [slow] });
      desk.tools.splice(0, 1, expert.asTool({ toolName: 'expert' }));
      inner.add(toolCall('slow', {}, { callId: 's' }), 'r');
      const state = approveAll((await runForm(desk, 'hi')).toState());
      const cut = getRunErrorState(await rejection(runForm(desk, state, { signal: abort.signal }))) as RunState;
      const waits = (await runForm(desk, cut, { onInDoubt: 'interrupt' })).toState();
      expect(waits.interruptions).toMatchObject([{ callId: 's', inDoubt: true }]);
      expect((await runForm(desk, waits, { onInDoubt: 'interrupt' })).interruptions).toEqual(waits.interruptions);
      expect((await runForm(desk, waits, { onInDoubt: 'retry' })).finalOutput).toBe('done');
      expect(bodies).toBe(2);
    });

    it('go on from their pause, not from their beginning [IL-102]', async () => {
      const { desk, inner, effects } = setup(
        [ask(), 'done'],
        [toolCall('t', { id: '1' }, { callId: 'a' }), rm('b', '2'), 'r'],
      );
      const state = await RunState.fromString(desk, (await runForm(desk, 'hi')).toState().toString());
      expect((await runForm(desk, approveAll(state))).finalOutput).toBe('done');
      expect([effects, inner.calls.length]).toEqual([['t 1', 'rm 2'], 3]);
      expect(kindsOf(inner.calls[2]?.request.input ?? [])).toBe('u fc fco fc fco');
    });

    it('are written and read with what serializes the context [STATE-384]', async () => {
      class Tenant {
        readonly #id: number;
        constructor(id: number) {
          this.#id = id;
        }
        get id(): number {
          return this.#id;
        }
      }
      const seen: unknown[] = [];
      const look = tool({
        name: 'look',
        needsApproval: true,
        execute: (_, ctx: ToolContext<Tenant>) => void seen.push(ctx.context.id),
      });
      const expert = new Agent<Tenant>({
        name: 'Expert',
        model: model(toolCall('look', {}, { callId: 'l' }), 'r'),
        tools: [look],
      });
      const tools = [expert.asTool({ toolName: 'expert' })];
      const desk = new Agent<Tenant>({ name: 'Desk', model: model(ask(), 'done'), tools });
      const first = await runForm(desk, 'hi', { context: new Tenant(7) });
      const text = first.toState().toString({ contextSerializer: ({ id }) => ({ id }), strictContext: true });
      const state = await RunState.fromString(desk, text, {
        contextDeserializer: (raw) => new Tenant(raw['id'] as number),
        strictContext: true,
      });
      for (const item of state.interruptions) state.approve(item);
      expect((await runForm(desk, state)).finalOutput).toBe('done');
      expect(seen).toEqual([7]);
    });

    it('are refused before anything is asked when the outer call was changed [STATE#63, STATE-243]', async () => {
      const { desk, inner } = setup([ask(), 'done'], [rm(), 'r']);
      let asked = 0;
      desk.tools.push(
        tool({
          name: 'other',
          isEnabled: () => {
            asked += 1;
            return true;
          },
          execute: () => 1,
        }),
      );
      const first = await runForm(desk, 'hi');
      const before = asked;
      const text = first.toState().toString();
      const changed = text.replaceAll('{\\"input\\":\\"q\\"}', '{\\"input\\":\\"z\\"}');
      expect(changed).not.toBe(text);
      const state = approveAll(await RunState.fromString(desk, changed));
      expect(await rejection(runForm(desk, state))).toMatchObject({ code: 'call_id_reused' });
      expect([asked, inner.calls.length]).toEqual([before, 1]);
    });

    it('belong to the agent that they began with [STATE#65, STATE-262]', async () => {
      const { desk, inner, effects } = setup([ask(), 'done'], [rm(), 'r']);
      const state = approveAll((await runForm(desk, 'hi')).toState());
      const other = new Agent({ name: 'Expert', model: inner });
      desk.tools.splice(0, 1, other.asTool({ toolName: 'expert' }));
      expect(await rejection(runForm(desk, state))).toMatchObject({
        name: 'ModelBehaviorError',
        code: 'nested_tool_replaced',
      });
      expect([effects, inner.calls.length]).toEqual([[], 1]);
    });

    it('are dropped with a rejection of the call itself [TOOL-AT24, STATE-256, 262]', async () => {
      const { desk, outer, inner, effects } = setup([ask(), 'done'], [rm(), 'r'], { needsApproval: true });
      const first = (await runForm(desk, 'hi')).toState();
      const [call] = first.interruptions;
      first.approve(call as never);
      const state = (await runForm(desk, first)).toState();
      expect(nestedOf(state)).toBe(1);
      state.reject(call as never, { message: 'stop that' });
      const result = await runForm(desk, state);
      expect([result.finalOutput, outputsOf(outer), effects]).toEqual(['done', { out: 'stop that' }, []]);
      expect(inner.calls).toHaveLength(1);
      expect(nestedOf(result.toState())).toBe(0);
    });

    it('wait when the tool is gone and nobody decided; else the call has no tool [STATE#64, STATE-233]', async () => {
      const { desk, inner, effects, outer } = setup([ask(), 'done'], [rm(), 'r']);
      const first = await runForm(desk, 'hi');
      const state = first.toState();
      const undecided = first.toState();
      desk.tools.length = 0;
      expect((await runForm(desk, undecided)).interruptions).toHaveLength(1);
      approveAll(state);
      expect(await rejection(runForm(desk, state))).toMatchObject({ name: 'ModelBehaviorError' });
      const told = await runForm(desk, state, { toolNotFoundBehavior: 'return_error_to_model' });
      expect(told.finalOutput).toBe('done');
      expect(outputsOf(outer)['out']).toMatch(/not found/);
      expect([effects, inner.calls.length]).toEqual([[], 1]);
    });

    it('of two runs with the same call ids never mix, decided in reverse order [STATE#82, STATE-240, IL-064]', async () => {
      const one = setup([ask(), 'done 1'], [rm('in', '1'), 'r1']);
      const two = setup([ask(), 'done 2'], [rm('in', '2'), 'r2']);
      const [a, b] = await Promise.all([runForm(one.desk, 'hi'), runForm(two.desk, 'hi')]);
      const second = await runForm(two.desk, approveAll(b.toState()));
      const first = await runForm(one.desk, approveAll(a.toState()));
      expect([first.finalOutput, second.finalOutput]).toEqual(['done 1', 'done 2']);
      expect([one.effects, two.effects]).toEqual([['rm 1'], ['rm 2']]);
    });

    it('leave siblings alone: free calls run, gated ones wait before the nested items of later calls [STATE-121, 123]', async () => {
      const { desk, effects } = setup(
        [[ask('x'), rm('g'), toolCall('t', {}, { callId: 't' }), ask('y')], 'done'],
        [rm('a'), rm('b'), 'r', 'r'],
      );
      desk.tools.push(effectTool('rm', effects, { needsApproval: true }), effectTool('t', effects));
      const first = await runForm(desk, 'hi');
      expect(first.interruptions.map(({ callId }) => callId)).toEqual(['a', 'g', 'b']);
      expect(effects).toEqual(['t -']);
      const text = first.toState().toString();
      const restored = await RunState.fromString(desk, text);
      expect(restored.interruptions.map(({ callId }) => callId)).toEqual(['a', 'g', 'b']);
      expect((await runForm(desk, approveAll(restored))).finalOutput).toBe('done');
      expect(effects.toSorted()).toEqual(['rm 7', 'rm 7', 'rm 7', 't -']);
    });

    it('are kept when a sibling fails the turn, and their tool starts and ends once [STATE-234, 237, 212]', async () => {
      const log: string[] = [];
      let broken = true;
      const { desk, outer, inner, effects } = setup(
        [[ask(), toolCall('boom', {}, { callId: 'x' })], 'done'],
        [rm(), 'r'],
      );
      const guard = (what: string) => ({
        name: what,
        execute: () => {
          log.push(what);
          return { behavior: { type: 'allow' as const } };
        },
      });
      const [expert] = desk.tools;
      const guarded = expert?.copyWith({
        inputGuardrails: [guard('in')] as never,
        outputGuardrails: [guard('out')] as never,
        customDataExtractor: () => {
          log.push('data');
          return { seen: true };
        },
      });
      const boom = tool({
        name: 'boom',
        failureErrorFunction: null,
        execute: async () => {
          while (inner.calls.length === 0) await idle();
          await idle(20);
          if (broken) throw new Error('x');
          return 'fine';
        },
      });
      desk.tools.splice(0, 1, guarded as never, boom);
      const hooks = {
        onToolStart: (_: unknown, __: unknown, { name }: { name: string }) => void log.push(`start ${name}`),
        onToolEnd: (_: unknown, __: unknown, { name }: { name: string }) => void log.push(`end ${name}`),
      };
      const error = await rejection(runForm(desk, 'hi', { hooks }));
      const state = getRunErrorState(error) as RunState;
      expect(nestedOf(state)).toBe(1);
      expect(state.interruptions).toMatchObject([{ callId: 'in' }]);
      broken = false;
      approveAll(state);
      const result = await runForm(desk, state, { hooks, onInDoubt: 'retry' });
      expect([result.finalOutput, effects, inner.calls.length]).toEqual(['done', ['rm 7'], 2]);
      expect(outputsOf(outer)).toEqual({ out: 'r', x: 'fine' });
      const ofExpert = log.filter((line) => !line.endsWith('boom'));
      expect(ofExpert).toEqual(['in', 'start expert', 'out', 'data', 'end expert']);
    });

    it('leave the scope with the run that has them [STATE-258]', async () => {
      const { desk } = setup([ask(), 'done'], [rm(), 'r']);
      const scopes: unknown[] = [];
      const hooks = {
        onAgentStart: (ctx: unknown) => void scopes.push(getScope(ctx)),
        onRunEnd: (ctx: unknown) => void scopes.push(getScope(ctx)),
      };
      const first = await runForm(desk, 'hi', { hooks });
      expect(scopes).toEqual([undefined, expect.stringMatching(/^[0-9a-f]{32}$/)]);
      expect(getScope(first.context)).toBeUndefined();
      const second = await runForm(desk, approveAll(first.toState()), { hooks });
      expect(scopes[3]).toMatch(/^[0-9a-f]{32}$/);
      expect(scopes[3]).not.toBe(scopes[1]);
      expect(getScope(second.context)).toBeUndefined();
    });

    it('keep a session of their own over the pause, and are refused without it by their policy alone [STATE-210, 239, SESS-052]', async () => {
      const session = new PlainSession('inner');
      const { desk, effects } = setup([ask(), 'done'], [rm(), 'r'], { run: { session } });
      const first = await runForm(desk, 'hi');
      expect(session.kinds).toBe('u fc');
      const state = await RunState.fromString(desk, first.toState().toString());
      expect((await runForm(desk, approveAll(state))).finalOutput).toBe('done');
      expect(session.kinds).toBe('u fc fco m');
      expect(effects).toEqual(['rm 7']);
    });

    it('are unknown to a state whose reader does not know the agent: the call is in doubt there [STATE-241, 242]', async () => {
      const { desk } = setup([ask(), 'done'], [rm(), 'r']);
      const text = (await runForm(desk, 'hi')).toState().toString();
      const other = new Agent({ name: 'Desk', model: model('x') });
      const state = await RunState.fromString(other, text);
      expect(state.interruptions).toEqual([]);
      expect(await rejection(runForm(other, state))).toMatchObject({ code: 'call_executed_uncommitted' });
      const broken = JSON.parse(text) as { last_processed_response: { functions: { agent_run_state: object }[] } };
      const [entry] = broken.last_processed_response.functions;
      if (entry) entry.agent_run_state = { $schemaVersion: '9.9' };
      const lines = logged({ level: 'warn' });
      const read = await RunState.fromJSON(desk, broken);
      expect(lines).toHaveLength(1);
      expect(read.interruptions).toEqual([]);
      expect(await rejection(runForm(desk, read))).toMatchObject({ code: 'call_executed_uncommitted' });
      expect(await rejection(RunState.fromJSON(desk, broken, { strictContext: true }))).toMatchObject({
        code: 'schema_unsupported',
      });
    });
  });
});

describe('a paused nested run', () => {
  it('that cannot be written down fails a strict state, else its call is in doubt, with one warning [STATE-242]', async () => {
    const { desk, effects } = setup([ask(), 'done'], [rm(), 'r']);
    const { run } = await import('../index.ts');
    const state = (await run(desk, 'hi', { context: { pin: '1234' } })).toState();
    const failsInside = () => {
      let written = 0;
      return () => {
        written += 1;
        if (written > 1) throw new Error('no pin 1234');
        return {};
      };
    };
    expect(() => state.toString({ contextSerializer: failsInside(), strictContext: true })).toThrow(
      /contextSerializer threw/,
    );
    const lines = logged({ level: 'warn' });
    const text = state.toString({ contextSerializer: failsInside() });
    expect(lines).toMatchObject([{ message: expect.stringMatching(/\bout\b.*in doubt/) as string, data: undefined }]);
    expect(lines[0]?.message).not.toMatch(/1234/);
    const read = await RunState.fromString(desk, text);
    expect(read.interruptions).toEqual([]);
    expect(await rejection(run(desk, read))).toMatchObject({ code: 'call_executed_uncommitted' });
    expect(effects).toEqual([]);
  });

  it('of a call that the turn has not is kept no longer than the turn [STATE-256]', async () => {
    const { desk } = setup([ask(), 'done'], [rm(), 'r']);
    const { run } = await import('../index.ts');
    const state = approveAll((await run(desk, 'hi')).toState());
    const record = recordOf(state);
    const runs = record.agentToolRuns;
    if (runs === undefined) throw new Error('no registry');
    const left = { type: 'function_call', call_id: 'gone', name: 'expert', arguments: '{}' } as const;
    runs.record(left, { record: copyRecord(record) }, runs.scope);
    runs.record(left, { record: copyRecord(record) }, 'of somebody else');
    expect(runs.size).toBe(3);
    const result = await run(desk, state);
    expect(result.finalOutput).toBe('done');
    expect([runs.size, recordOf(result.toState()).agentToolRuns?.size ?? 0]).toEqual([0, 0]);
  });

  it('takes decisions of old snapshots that were kept outside [STATE-245]', async () => {
    const { desk, effects } = setup([ask(), 'done'], [rm(), 'r']);
    const { run } = await import('../index.ts');
    const state = JSON.parse((await run(desk, 'hi')).toState().toString()) as {
      $schemaVersion: string;
      context: { approvals: object; tool_invocations?: object };
      last_processed_response: {
        functions: { agent_run_state: { $schemaVersion: string; context: { tool_invocations?: object } } }[];
      };
    };
    state.$schemaVersion = '1.13';
    state.context.approvals = { rm: { approved: ['in'], rejected: [] }, expert: { approved: ['out'], rejected: [] } };
    const nested = state.last_processed_response.functions[0]?.agent_run_state;
    if (nested === undefined) throw new Error('no nested state');
    nested.$schemaVersion = '1.13';
    delete state.context.tool_invocations;
    delete nested.context.tool_invocations;
    const restored = await RunState.fromJSON(desk, state);
    expect(recordOf(restored).agentToolRuns?.size).toBe(1);
    const result = await run(desk, restored);
    expect([result.status, effects]).toEqual(['completed', ['rm 7']]);
  });

  it('is written with its call, without the parts that Python does not know it by [STATE-241, 345]', async () => {
    const { desk } = setup([ask(), 'done'], [rm(), 'r']);
    const { run } = await import('../index.ts');
    const json = (await run(desk, 'hi', { context: { tenant: 't1' } })).toState().toJSON() as never as {
      last_processed_response: { functions: { agent_run_state: { current_agent: object; context: object } }[] };
      generated_items: object[];
      current_response_generated_item_ownership: object;
    };
    const nested = json.last_processed_response.functions[0]?.agent_run_state;
    expect(nested).toMatchObject({
      $schemaVersion: '1.21',
      current_agent: { name: 'Expert' },
      original_input: 'q',
      context: { context: { tenant: 't1' }, tool_invocations: { in: { executed: false } } },
      current_step: { type: 'next_step_interruption', data: { interruptions: [{ agent: { name: 'Expert' } }] } },
    });
    expect(json.generated_items).toHaveLength(1);
    expect(json.current_response_generated_item_ownership).toEqual({ start: 0, end: 1, interruptions: [] });
    expect(json).toMatchObject({
      current_step: { data: { interruptions: [{ tool_name: 'rm', agent: { name: 'Expert' } }] } },
      context: { tool_invocations: { out: { executed: true, completed: false } } },
    });
  });

  it('is not written deeper than it could be read [STATE-414]', async () => {
    const { run } = await import('../index.ts');
    const deep = (levels: number): Agent => {
      let agent = new Agent({
        name: 'A0',
        model: model(rm()),
        tools: [effectTool('rm', [], { needsApproval: true })],
      });
      for (let i = 1; i <= levels; i += 1)
        agent = new Agent({
          name: `A${i}`,
          model: model(ask(`c${i}`)),
          tools: [agent.asTool({ toolName: 'expert' })],
        });
      return agent;
    };
    const fits = deep(16);
    const state = (await run(fits, 'hi')).toState();
    const text = state.toString();
    expect((await RunState.fromString(fits, text)).interruptions).toHaveLength(1);
    const tooDeep = (await run(deep(17), 'hi')).toState();
    expect(() => tooDeep.toString()).toThrow(UserError);
  });
});
