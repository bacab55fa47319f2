import { afterEach, describe, expect, test, vi } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { handoff } from '../agent/handoff.ts';
import type { HandoffInputData, HandoffInputFilter, HandoffOptions } from '../agent/handoff.ts';
import { UserError } from '../base/errors.ts';
import { resetAll } from '../base/reset.ts';
import { composeHandoffFilters, nestHandoffHistory, removeAllTools } from '../extensions/index.ts';
import type { AgentInputItem } from '../items/items.ts';
import { RunState } from '../snapshot/run-state.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, text, toolCall } from '../testing/builders.ts';
import { ScriptedModel } from '../testing/scripted-model.ts';
import type { ModelStep } from '../testing/script.ts';
import { effectTool, kindsOf, PlainSession, readAll, rejection, user } from '../../test/run-kit.ts';
import { runStreamed } from './run.ts';
import type { RunOptions } from './options.ts';

afterEach(() => resetAll());

const toB = () => toolCall('transfer_to_b');
const toC = () => toolCall('transfer_to_c');

/** Agents A, B and C, each handing off to the next one, with a tool each. */
function chain(
  steps: readonly ModelStep[],
  options: HandoffOptions<unknown> = {},
): { a: Agent; b: Agent; c: Agent; model: ScriptedModel } {
  const model = new ScriptedModel(steps);
  const tools = [effectTool('t', []), effectTool('g', [], { needsApproval: true })];
  const c = new Agent({ name: 'C', model, tools });
  const b = new Agent({ name: 'B', model, tools, handoffs: [handoff(c, options)] });
  const a = new Agent({ name: 'A', model, tools, handoffs: [handoff(b, options)] });
  return { a, b, c, model };
}

const inputOf = (model: ScriptedModel, call: number): readonly AgentInputItem[] =>
  model.calls[call]?.request.input ?? [];
const kindsSeen = (model: ScriptedModel, call: number): string => kindsOf(inputOf(model, call));
const contents = (items: readonly object[]): unknown[] =>
  items.map((item) => {
    const { content, type } = item as { content?: unknown; type?: unknown };
    if (typeof content === 'string') return content;
    return Array.isArray(content) ? (content[0] as { text?: string }).text : type;
  });
const added = (session: PlainSession): string[] => session.log.filter((line) => line.startsWith('add'));

/** Everything that a filter may hand on, from a run whose second turn hands off. */
const twoTurns = (): ModelStep[] => [toolCall('t'), [text('x'), toolCall('t'), toB()], 'from B'];

bothForms((runForm, form) => {
  describe(`a filter of a handoff (${form})`, () => {
    test('sees the input, items of earlier turns and those of this one, of which nothing can be changed [TOOL-HO19]', async () => {
      let seen: HandoffInputData | undefined;
      const { a } = chain(twoTurns(), {
        inputFilter: (data) => {
          seen = data;
          expect(() => (data.newItems as unknown[]).pop()).toThrow(TypeError);
          expect(() => (data.preHandoffItems as unknown[]).push(1)).toThrow(TypeError);
          expect(() => Object.assign(data, { newItems: [] })).toThrow(TypeError);
          return {};
        },
      });
      const result = await runForm(a, 'Hi');
      expect(seen?.inputHistory).toBe('Hi');
      expect(seen?.preHandoffItems.map(({ type }) => type)).toEqual(['tool_call_item', 'tool_call_output_item']);
      expect(seen?.newItems.map(({ type }) => type)).toEqual([
        'message_output_item',
        'tool_call_item',
        'handoff_call_item',
        'tool_call_output_item',
        'handoff_output_item',
      ]);
      expect(seen?.inputItems).toBeUndefined();
      expect(seen?.context).toBe(result.context);
      expect(result.newItems.slice(0, 7)).toEqual([...(seen?.preHandoffItems ?? []), ...(seen?.newItems ?? [])]);
    });

    test('without tools: the turn leaves its message alone, earlier turns stay, the target sees no tool items [RUN#83] [TOOL-AC37] [SESS W2a] [SESS-083]', async () => {
      const session = new PlainSession();
      const { a, model } = chain(twoTurns(), { inputFilter: removeAllTools });
      const result = await runForm(a, 'Hi', { session });
      expect(kindsSeen(model, 2)).toBe('u m');
      expect(result.newItems.map(({ type }) => type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
        'message_output_item',
      ]);
      expect(added(session)).toEqual(['add[u]', 'add[fc fco]', 'add[m]', 'add[m]']);
      expect(kindsOf(result.toInputList())).toBe('u fc fco m m');
      expect(kindsOf(result.toInputList({ mode: 'normalized' }))).toBe('u m m');
    });

    test('`inputItems` change what the model sees, and nothing else [RUN#84] [TOOL-HO43] [RUN-302, 506]', async () => {
      const session = new PlainSession();
      const { a, model } = chain(twoTurns(), { inputFilter: () => ({ inputItems: [] }) });
      const result = await runForm(a, 'Hi', { session });
      expect(kindsSeen(model, 2)).toBe('u fc fco');
      expect(added(session)[2]).toBe('add[m fc fc fco fco]');
      expect(result.newItems).toHaveLength(8);
      expect(kindsOf(result.toInputList())).toBe('u fc fco m fc fc fco fco m');
      expect(kindsOf(result.toInputList({ mode: 'normalized' }))).toBe('u fc fco m');
    });

    test.each<[string, HandoffInputFilter]>([
      ['a patch', () => ({ newItems: [] })],
      ['the whole data', (data) => ({ ...data, newItems: [] })],
    ])('no `newItems`, by %s: nothing of the turn is left [TOOL-HO42] [TOOL-HO20]', async (_, inputFilter) => {
      const session = new PlainSession();
      const { a, model } = chain(twoTurns(), { inputFilter });
      const result = await runForm(a, 'Hi', { session });
      expect(kindsSeen(model, 2)).toBe('u fc fco');
      expect(added(session)).toEqual(['add[u]', 'add[fc fco]', 'add[m]']);
      expect(result.newItems.map(({ type }) => type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
    });

    test('with both, `newItems` decides what stays and `inputItems` what is seen [RUN-302, 506]', async () => {
      const { a, model } = chain(twoTurns(), {
        inputFilter: ({ newItems }) => ({
          newItems: newItems.filter(({ type }) => type !== 'message_output_item'),
          inputItems: newItems.filter(({ type }) => type === 'message_output_item'),
        }),
      });
      const result = await runForm(a, 'Hi');
      expect(kindsSeen(model, 2)).toBe('u fc fco m');
      expect(kindsOf(result.toInputList())).toBe('u fc fco fc fc fco fco m');
    });

    test('`inputHistory` and `preHandoffItems` change the head; earlier turns stay in items and session [TOOL-HO20] [RUN-1201, 1202]', async () => {
      const session = new PlainSession();
      const own = [user('instead')];
      const { a, model } = chain(twoTurns(), {
        inputFilter: async () => ({ inputHistory: own, preHandoffItems: [] }),
      });
      const result = await runForm(a, 'Hi', { session });
      expect(kindsSeen(model, 2)).toBe('u m fc fc fco fco');
      expect(inputOf(model, 2)[0]).toEqual(user('instead'));
      expect(result.input).toEqual([user('instead')]);
      expect(result.input).not.toBe(own);
      expect(result.newItems).toHaveLength(8);
      expect(session.items[0]).toEqual(user('Hi'));
      expect(own).toEqual([user('instead')]);
    });

    test('that gives nothing new changes nothing', async () => {
      const plain = chain(twoTurns());
      const filtered = chain(twoTurns(), { inputFilter: (data) => data });
      const [first, second] = [await runForm(plain.a, 'Hi'), await runForm(filtered.a, 'Hi')];
      expect(inputOf(filtered.model, 2)).toEqual(inputOf(plain.model, 2));
      expect(second.toInputList()).toEqual(first.toInputList());
      expect(second.input).toBe('Hi');
    });

    test('that copies items into the input does not make the model see them twice [RUN-224]', async () => {
      const { a, model } = chain(twoTurns(), {
        inputFilter: ({ preHandoffItems }) => ({
          inputHistory: [user('Hi'), ...preHandoffItems.map((item) => item.toInputItem())],
        }),
      });
      await runForm(a, 'Hi');
      expect(kindsSeen(model, 2)).toBe('u fc fco m fc fc fco fco');
    });

    test('an item that it moves from an earlier turn is there once, and once for the model [RUN-506]', async () => {
      const { a, model } = chain(twoTurns(), {
        inputFilter: ({ preHandoffItems, newItems }) => ({
          preHandoffItems: [],
          newItems: [...preHandoffItems, ...newItems, ...newItems],
        }),
      });
      const result = await runForm(a, 'Hi');
      expect(kindsSeen(model, 2)).toBe('u fc fco m fc fc fco fco');
      expect(new Set(result.newItems).size).toBe(result.newItems.length);
      expect(kindsOf(result.toInputList())).toBe('u fc fco m fc fc fco fco m');
    });

    test('the handoff`s own one wins over that of the run, also when it does nothing [RUN-204] [TOOL-HO18]', async () => {
      const ofRun = vi.fn<HandoffInputFilter>(() => ({ newItems: [] }));
      const own = chain(twoTurns(), { inputFilter: () => ({}) });
      await runForm(own.a, 'Hi', { handoffInputFilter: ofRun });
      expect(ofRun).not.toHaveBeenCalled();
      const without = chain(twoTurns());
      await runForm(without.a, 'Hi', { handoffInputFilter: ofRun });
      expect(ofRun).toHaveBeenCalledTimes(1);
      expect(kindsSeen(without.model, 2)).toBe('u fc fco');
    });

    test.each<[string, unknown, RegExp]>([
      ['undefined', undefined, /plain object .*not undefined/],
      ['a list', [], /not an array/],
      ['a class', new Map(), /plain object/],
      ['`newItems` that are none', { newItems: 'x' }, /`newItems`.* a string/],
      ['`newItems` of wire objects', { newItems: [user('x')] }, /`newItems`.*item 0/],
      ['`preHandoffItems` with a hole', { preHandoffItems: Array(1) }, /`preHandoffItems`/],
      ['an unknown member', { input: [] }, /unknown member 'input'/],
      ['`inputItems` that are null', { inputItems: null }, /`inputItems`.* null/],
      ['an `inputHistory` of texts', { inputHistory: ['x'] }, /`inputHistory`.*item 0/],
      ['an `inputHistory` that cannot be stored', { inputHistory: [{ role: 'user', content: 1n }] }, /stored/],
    ])('returns %s: UserError at once [TOOL-HO21] [TOOL-HO49] [IL-139]', async (_, patch, message) => {
      const { a, model } = chain(twoTurns(), { inputFilter: () => patch as object });
      const error = await rejection(runForm(a, 'Hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).toContain('transfer_to_b');
      expect(model.calls).toHaveLength(2);
    });

    test('what it throws passes as it is [TOOL-HO21]', async () => {
      const failure = new Error('filter');
      const thrown = chain(twoTurns(), {
        inputFilter: () => {
          throw failure;
        },
      });
      expect(await rejection(runForm(thrown.a, 'Hi'))).toBe(failure);
      const rejected = chain(twoTurns(), { inputFilter: () => Promise.reject(failure) });
      expect(await rejection(runForm(rejected.a, 'Hi'))).toBe(failure);
    });

    test('does not see calls that waited once they are decided [RUN-503] [STATE-213]', async () => {
      let seen: string[] = [];
      const { a } = chain([[toolCall('g'), toB()], 'from B'], {
        inputFilter: ({ newItems }) => {
          seen = newItems.map(({ type }) => type);
          return { inputItems: newItems };
        },
      });
      const state = (await runForm(a, 'Hi')).toState();
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(a, state);
      const kinds = ['tool_call_item', 'handoff_call_item', 'tool_call_output_item', 'handoff_output_item'];
      expect(seen).toEqual(kinds);
      const json = result.toState().toJSON() as unknown as { generated_items: { type: string }[] };
      expect(json.generated_items.map(({ type }) => type)).toEqual([...kinds, 'message_output_item']);
      expect(result.newItems.filter(({ type }) => type === 'tool_approval_item')).toHaveLength(1);
    });

    test('decides on what the pause of its turn made public, too; the session keeps what the pause stored [RUN-506, 1202]', async () => {
      const session = new PlainSession();
      const { a, model } = chain([toolCall('t'), [text('x'), toolCall('t'), toolCall('g'), toB()], 'from B'], {
        inputFilter: removeAllTools,
      });
      const paused = await runForm(a, 'Hi', { session });
      const state = await RunState.fromString(a, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(a, state, { session });
      expect(kindsSeen(model, 2)).toBe('u m');
      expect(kindsOf(result.toInputList())).toBe('u fc fco m m');
      expect(added(session)).toEqual(['add[u]', 'add[fc fco]', 'add[m fc fc fc fco]', 'add[m]']);
    });

    test('a state written down after it goes on with what the target would have seen [STATE-211, 352]', async () => {
      const inputFilter = vi.fn<HandoffInputFilter>(({ newItems }) => ({
        inputItems: newItems.filter(({ type }) => type === 'message_output_item'),
      }));
      const steps = (): ModelStep[] => [[text('x'), toolCall('t'), toB()], toolCall('g'), 'done'];
      const { a, model } = chain(steps(), { inputFilter });
      const paused = await runForm(a, 'Hi');
      const state = await RunState.fromString(a, paused.toState().toString());
      expect(state.toInputList()).toEqual(paused.toInputList());
      expect(state.toInputList({ mode: 'normalized' })).toEqual(paused.toInputList({ mode: 'normalized' }));
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(a, state);
      expect([result.finalOutput, inputFilter.mock.calls.length]).toEqual(['done', 1]);
      expect(kindsSeen(model, 2)).toBe('u m fc fco');
      expect(kindsOf(result.toInputList())).toBe('u m fc fc fco fco fc fco m');
    });

    test('a state whose handoff left no trace of its calls can be written down and read [STATE-362]', async () => {
      const { a } = chain([[toolCall('t'), toB()], toolCall('g')], { inputFilter: removeAllTools });
      const paused = await runForm(a, 'Hi');
      const state = await RunState.fromString(a, paused.toState().toString());
      expect(state.interruptions).toHaveLength(1);
      expect(state.toString()).toBe(paused.toState().toString());
    });
  });

  describe(`nested history (${form})`, () => {
    const preamble = 'For context, here is the conversation so far between the user and the previous agent:';
    const summary = (...records: string[]): string =>
      [
        preamble,
        '<CONVERSATION HISTORY>',
        ...records.map((record, index) => `${index + 1}. ${record}`),
        '</CONVERSATION HISTORY>',
      ].join('\n');
    const nest: RunOptions = { nestHandoffHistory: true };

    test('the target sees a summary and what is forwarded; session and items keep everything [RUN#64] [IL-006, 007] [SESS W2]', async () => {
      const session = new PlainSession();
      const { a, model } = chain([toolCall('t'), [reasoning('why'), text('x'), toB()], 'from B']);
      const result = await runForm(a, 'Hi', { ...nest, session });
      expect(kindsSeen(model, 2)).toBe('a m a');
      expect(contents(inputOf(model, 2))[1]).toBe('x');
      expect(added(session)).toEqual(['add[u]', 'add[fc fco]', 'add[reasoning m fc fco]', 'add[m]']);
      expect(result.newItems.map(({ type }) => type)).toHaveLength(7);
      expect(kindsOf(result.input as AgentInputItem[])).toBe('a m a');
    });

    test('the replay list has the message once and the pair of the handoff; normalized has no pair [RUN#64] [RUN-1217, 1218, 1220] [TOOL-AC39]', async () => {
      const { a } = chain([[text('x'), toB()], 'from B']);
      const result = await runForm(a, 'Hi', nest);
      expect(kindsOf(result.toInputList())).toBe('a m a fc fco m');
      expect(kindsOf(result.toInputList({ mode: 'normalized' }))).toBe('a m a m');
      expect(() => result.toInputList({ mode: 'other' as never })).toThrow(/preserve_all.*normalized/);
      for (const item of result.toInputList())
        expect(Reflect.ownKeys(item).filter((key) => typeof key === 'symbol')).toEqual([]);
    });

    test('the list can be the input of another run, and repeats nothing [IL-129] [RUN-1222]', async () => {
      const { a, c, model } = chain([[text('x'), toolCall('t'), toB()], 'from B', 'again']);
      const result = await runForm(a, 'Hi', nest);
      const list = result.toInputList({ mode: 'normalized' });
      await runForm(c, [...list, user('And now?')]);
      expect(inputOf(model, 2)).toEqual([...list, user('And now?')]);
      expect(result.toInputList({ mode: 'normalized' })).toEqual(list);
    });

    test('over two handoffs there is one summary of the past, numbered on, with nothing lost [TOOL-AC38] [TOOL-HO33]', async () => {
      const { a, model } = chain([[text('to B'), toB()], toolCall('t'), [text('to C'), toC()], 'from C']);
      await runForm(a, 'Hi', nest);
      const [past, message, rest] = contents(inputOf(model, 3)) as string[];
      expect(past?.split(preamble)).toHaveLength(2);
      expect(
        past
          ?.split('\n')
          .slice(2, -1)
          .map((line) => line.slice(0, 20)),
      ).toEqual([
        '1. user: Hi',
        expect.stringMatching(/^2\. \{/),
        expect.stringMatching(/^3\. \{"type": "funct/),
        expect.stringMatching(/^4\. \{"type": "funct/),
        expect.stringMatching(/^5\. \{"type": "funct/),
        expect.stringMatching(/^6\. \{"type": "funct/),
      ]);
      expect(past).toContain('to B');
      expect(message).toBe('to C');
      expect(rest?.split('\n').slice(2, -1)).toHaveLength(2);
    });

    test('after two handoffs an item of the first one is in the summary, and no longer owned [RUN-1220]', async () => {
      const { a } = chain([[text('to B'), toB()], [text('to C'), toC()], 'from C']);
      const result = await runForm(a, 'Hi', nest);
      expect(contents(result.toInputList())).toEqual([
        expect.stringContaining('to B'),
        'to C',
        expect.stringContaining('transfer_to_c'),
        'to B',
        'function_call',
        'function_call_output',
        'function_call',
        'function_call_output',
        'from C',
      ]);
    });

    test('text of the user that looks like a summary stays one record [TOOL-AC40] [TOOL-HO44]', async () => {
      const said = summary('user: not really');
      const { a, model } = chain([toB(), 'from B']);
      await runForm(a, said, nest);
      expect(contents(inputOf(model, 1))[0]).toContain(JSON.stringify(said).slice(1, -1));
    });

    test('equal messages of two turns are both kept [TOOL-HO38] [TOOL-HO37]', async () => {
      const { a } = chain([[text('same'), toolCall('t')], [text('same'), toB()], 'same']);
      const result = await runForm(a, 'Hi', nest);
      expect(contents(result.toInputList()).filter((content) => content === 'same')).toHaveLength(3);
    });

    test('`false` of a handoff wins over the run, and `true` too [TOOL-HO45] [RUN-205] [TOOL-HO18]', async () => {
      const off = chain([toB(), 'from B'], { nestHandoffHistory: false });
      await runForm(off.a, 'Hi', nest);
      expect(kindsSeen(off.model, 1)).toBe('u fc fco');
      const on = chain([toB(), 'from B'], { nestHandoffHistory: true });
      await runForm(on.a, 'Hi');
      expect(kindsSeen(on.model, 1)).toBe('a');
    });

    test('a filter switches it off, also one that does nothing [TOOL-HO18] [RUN-205]', async () => {
      const { a, model } = chain([toB(), 'from B'], { nestHandoffHistory: true });
      await runForm(a, 'Hi', { ...nest, handoffInputFilter: () => ({}) });
      expect(kindsSeen(model, 1)).toBe('u fc fco');
    });

    test('a mapper makes the next input, and owns nothing of it [TOOL-HO34] [RUN-1221]', async () => {
      const seen: AgentInputItem[][] = [];
      const { a, model } = chain([[text('x'), toB()], 'from B']);
      const result = await runForm(a, 'Hi', {
        ...nest,
        handoffHistoryMapper: (transcript) => {
          seen.push(transcript);
          return transcript.filter((item) => 'role' in item);
        },
      });
      expect(kindsOf(seen[0] ?? [])).toBe('u m fc fco');
      expect(kindsSeen(model, 1)).toBe('u m');
      expect(kindsOf(result.toInputList())).toBe('u m m fc fco m');
      const wrong = chain([toB()]);
      const error = await rejection(runForm(wrong.a, 'Hi', { ...nest, handoffHistoryMapper: () => 'x' as never }));
      expect(error).toBeInstanceOf(UserError);
    });

    test('other markers, given to the run [TOOL-HO35]', async () => {
      const { a, model } = chain([toB(), 'from B']);
      await runForm(a, 'Hi', { ...nest, handoffHistoryMarkers: { start: '<past>', end: '</past>' } });
      expect(String(contents(inputOf(model, 1))[0]).split('\n')[1]).toBe('<past>');
      for (const marker of ['', ' ', 'a\nb', 1 as never])
        expect(
          await rejection(runForm(a, 'Hi', { handoffHistoryMarkers: { start: marker, end: 'x' } })),
        ).toBeInstanceOf(UserError);
    });

    test('as a filter of the extensions it owns what it forwards, also when composed and copied [TOOL-HO36] [RUN-1220]', async () => {
      const filters: HandoffInputFilter[] = [
        nestHandoffHistory(),
        composeHandoffFilters(nestHandoffHistory(), (data) => ({
          inputHistory: [user('Be kind.'), ...(data.inputHistory as AgentInputItem[]).map((item) => ({ ...item }))],
        })),
      ];
      for (const inputFilter of filters) {
        const { a } = chain([[text('x'), toB()], 'from B'], { inputFilter });
        const result = await runForm(a, 'Hi');
        expect(contents(result.toInputList()).filter((content) => content === 'x')).toHaveLength(1);
      }
    });

    test('what a composed filter takes out of the turn is no longer owned, and the state can be read [TOOL-HO37] [STATE-353]', async () => {
      const { a } = chain([[text('x'), text('y'), toB()], toolCall('g')], {
        inputFilter: composeHandoffFilters(nestHandoffHistory(), ({ newItems }) => ({ newItems: newItems.slice(1) })),
      });
      const paused = await runForm(a, 'Hi');
      const state = await RunState.fromString(a, paused.toState().toString());
      expect(contents(state.toInputList())).toEqual(contents(paused.toInputList()));
      expect(contents(state.toInputList()).filter((content) => content === 'x' || content === 'y')).toEqual(['x', 'y']);
    });

    test('what an earlier handoff moved stays owned when a later one only adds to the input [TOOL-HO36]', async () => {
      const model = new ScriptedModel([[text('x'), toB()], [text('y'), toC()], 'from C']);
      const c = new Agent({ name: 'C', model });
      const note: HandoffInputFilter = ({ inputHistory }) => ({
        inputHistory: [user('Be kind.'), ...(inputHistory as AgentInputItem[])],
      });
      const b = new Agent({ name: 'B', model, handoffs: [handoff(c, { inputFilter: note })] });
      const a = new Agent({ name: 'A', model, handoffs: [handoff(b, { nestHandoffHistory: true })] });
      const list = contents((await runForm(a, 'Hi')).toInputList());
      expect([list[0], ...list.filter((content) => content === 'x' || content === 'y')]).toEqual([
        'Be kind.',
        'x',
        'y',
      ]);
    });

    test('what a filter adds that looks like an item is not taken for it [TOOL-HO37] [RUN-1221]', async () => {
      const { a } = chain([[text('x'), toB()], 'from B'], {
        inputFilter: ({ newItems }) => ({
          inputHistory: newItems.slice(0, 1).map((item) => item.toInputItem()),
          inputItems: [],
        }),
      });
      const result = await runForm(a, 'Hi');
      expect(contents(result.toInputList()).filter((content) => content === 'x')).toHaveLength(2);
    });

    test('two equal forwarded items that a filter copied cannot be told apart: both are kept [TOOL-HO37]', async () => {
      const { a } = chain([[text('x'), toB()], 'from B'], {
        inputFilter: composeHandoffFilters(nestHandoffHistory(), ({ inputHistory }) => ({
          inputHistory: (inputHistory as AgentInputItem[]).flatMap((item) => [{ ...item }, { ...item }]),
        })),
      });
      const result = await runForm(a, 'Hi');
      expect(contents(result.toInputList()).filter((content) => content === 'x')).toHaveLength(3);
    });

    test('a pause after it, through JSON: the same input, and the list has everything once [TOOL-AC41] [RUN-1220]', async () => {
      const steps = (): ModelStep[] => [[text('x'), toB()], toolCall('g'), 'done'];
      const [live, stored] = [chain(steps()), chain(steps())];
      const lists: AgentInputItem[][] = [];
      for (const { a } of [live, stored]) {
        const paused = await runForm(a, 'Hi', nest);
        const state = a === live.a ? paused.toState() : await RunState.fromString(a, paused.toState().toString());
        expect(kindsOf(state.toInputList())).toBe('a m a fc fco fc');
        for (const item of state.interruptions) state.approve(item);
        lists.push((await runForm(a, state)).toInputList());
      }
      expect(inputOf(stored.model, 2)).toEqual(inputOf(live.model, 2).map((item) => normal(item)));
      expect(lists.map(kindsOf)).toEqual(['a m a fc fco fc fco m', 'a m a fc fco fc fco m']);
    });
  });
});

/** The form in which a state writes messages of the assistant. */
function normal(item: AgentInputItem): unknown {
  const { role, content, type } = item as { role?: string; content?: unknown; type?: string };
  return role === 'assistant' && type === undefined
    ? { role, content: [{ type: 'output_text', text: content }], status: 'completed' }
    : item;
}

describe('events and lists of a stream with a filter', () => {
  test('each occurrence is announced once; outputs that a filter drops are not [RUN#49] [RUN-1303]', async () => {
    const { a } = chain(twoTurns(), {
      inputFilter: ({ preHandoffItems, newItems }) => ({ newItems: [...preHandoffItems, ...newItems] }),
    });
    const stream = runStreamed(a, 'Hi');
    const items = (await readAll(stream)).flatMap((event) =>
      event.type === 'run_item_stream_event' ? [event.item] : [],
    );
    expect(items).toEqual([...stream.newItems]);
    const dropping = runStreamed(chain(twoTurns(), { inputFilter: removeAllTools }).a, 'Hi');
    const names = (await readAll(dropping)).flatMap((event) =>
      event.type === 'run_item_stream_event' ? [event.name] : [],
    );
    expect(names).toEqual([
      'tool_called',
      'tool_output',
      'message_output_created',
      'tool_called',
      'handoff_requested',
      'message_output_created',
    ]);
  });

  test('the lists are not changed by looking at them while it runs [TOOL-HO39] [RUN-1222]', async () => {
    const { a } = chain([[text('x'), toB()], 'from B']);
    const stream = runStreamed(a, 'Hi', { nestHandoffHistory: true });
    const seen: string[] = [];
    for await (const event of stream) {
      const [list, again] = [stream.toInputList(), stream.toInputList()];
      expect(again).toEqual(list);
      if (event.type === 'agent_updated_stream_event') seen.push(`${event.newAgent.name}: ${kindsOf(list)}`);
      list.length = 0;
    }
    expect(seen).toEqual(['A: u', 'B: a m a fc fco']);
    expect(kindsOf(stream.toInputList())).toBe('a m a fc fco m');
  });
});

test('positions of events count on behind what a filter took out, also over a pause that was written down [STATE-519]', async () => {
  const { a } = chain(
    [[toolCall('t'), text('x'), toB()], [toolCall('t'), toolCall('g'), toC()], [text('c'), toolCall('t')], 'end'],
    { inputFilter: removeAllTools },
  );
  const first = runStreamed(a, 'Hi');
  const events = await readAll(first);
  const paused = await RunState.fromString(a, first.toState().toString());
  for (const item of paused.interruptions) paused.approve(item);
  const second = runStreamed(a, paused);
  events.push(...(await readAll(second)));
  const told = events.flatMap((event) =>
    event.type === 'run_item_stream_event' ? [`${event.position} ${event.name}`] : [],
  );
  expect(told).toEqual([
    '0 tool_called',
    '1 message_output_created',
    '2 handoff_requested',
    '5 tool_called',
    '6 tool_called',
    '7 handoff_requested',
    '8 tool_output',
    '9 tool_approval_requested',
    '12 message_output_created',
    '13 tool_called',
    '14 tool_output',
    '15 message_output_created',
  ]);
  expect(second.newItems.map(({ type }) => type)).toEqual([
    'message_output_item',
    'tool_approval_item',
    'message_output_item',
    'tool_call_item',
    'tool_call_output_item',
    'message_output_item',
  ]);
});
