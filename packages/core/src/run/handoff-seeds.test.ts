import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent, handoff, RunState } from '../index.ts';
import type { AgentInputItem, HandoffInputFilter, RunOptions, RunResult } from '../index.ts';
import { composeHandoffFilters, keepLastMessages, nestHandoffHistory, removeAllTools } from '../extensions/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, text, toolCall } from '../testing/builders.ts';
import { ScriptedModel } from '../testing/scripted-model.ts';
import type { ModelStep } from '../testing/script.ts';
import { effectTool, logged, PlainSession } from '../../test/run-kit.ts';
import { numbers, pick } from '../../test/random/script.ts';
import type { Random } from '../../test/random/script.ts';
import type { run } from './run.ts';

// Agents that hand a conversation to each other, with filters and nesting that rewrite it, tools that wait and states that are
// written down: what is done, seen by the models and left behind is the same as at one go (STATE-534). AGENTS_SEED=7 runs one
// seed, AGENTS_SEEDS=2000 so many of them.

beforeEach(() => void logged({ level: 'silent' }));
afterEach(() => resetDefaults());

const { AGENTS_SEED: only, AGENTS_SEEDS: count = '80' } = process.env;
const seeds = only === undefined ? Array.from({ length: Number(count) }, (_, index) => index + 1) : [Number(only)];

const filters: readonly (HandoffInputFilter | undefined)[] = [
  undefined,
  undefined,
  removeAllTools,
  keepLastMessages(2),
  nestHandoffHistory(),
  composeHandoffFilters(nestHandoffHistory(), ({ inputHistory }) => ({
    inputHistory: (inputHistory as AgentInputItem[]).map((item) => ({ ...item })),
  })),
  composeHandoffFilters(keepLastMessages(3), nestHandoffHistory()),
  ({ newItems }) => ({ inputItems: newItems.filter(({ type }) => type === 'message_output_item') }),
  ({ newItems }) => ({ newItems: newItems.filter(({ type }) => type !== 'message_output_item') }),
  ({ preHandoffItems, newItems }) => ({ preHandoffItems: [], newItems: [...preHandoffItems, ...newItems] }),
];

interface World {
  readonly start: Agent;
  readonly model: ScriptedModel;
  readonly effects: string[];
}

const names = ['A', 'B', 'C'] as const;

/** The same graph and script each time that it is made from the same numbers. */
function worldOf(random: Random): World {
  const effects: string[] = [];
  const tools = [effectTool('free', effects), effectTool('gated', effects, { needsApproval: true })];
  const model = new ScriptedModel(scriptOf(random));
  const agents = names.map((name) => new Agent({ name, model, tools }));
  for (const agent of agents)
    for (const target of agents) {
      const options = {
        inputFilter: pick(random, ...(filters as [undefined])),
        nestHandoffHistory: pick(random, undefined, undefined, true, false),
      };
      const onHandoff = (): void => void effects.push(`${agent.name} to ${target.name}`);
      agent.handoffs.push(handoff(target, { ...options, onHandoff }));
    }
  return { start: agents[0] as Agent, model, effects };
}

function scriptOf(random: Random): ModelStep[] {
  const turns = Array.from({ length: 1 + random(6) }, (_, turn) => {
    const id = (what: string): { callId: string } => ({ callId: `${what}${turn}` });
    const transfer = (what: string): ReturnType<typeof toolCall> =>
      toolCall(`transfer_to_${pick(random, 'a', 'b', 'c')}`, {}, id(what));
    const output = [
      ...(random(3) === 0 ? [reasoning('hm')] : []),
      ...(random(2) === 0 ? [text(pick(random, 'same', `said ${turn}`))] : []),
      ...(random(2) === 0 ? [toolCall('free', {}, id('free'))] : []),
      ...(random(3) === 0 ? [toolCall('gated', {}, id('gated'))] : []),
      ...(random(3) > 0 ? [transfer('to')] : []),
      ...(random(6) === 0 ? [transfer('also')] : []),
    ];
    return output.some(({ type }) => type === 'function_call') ? output : [...output, toolCall('free', {}, id('x'))];
  });
  return [...turns, 'done'];
}

type Form = typeof run;

/** One run, gone on with after each pause, now from the state itself, now from its text. */
async function play(
  runForm: Form,
  world: World,
  session: PlainSession,
  options: RunOptions,
  stored: Random | undefined,
) {
  let result: RunResult = await runForm(world.start, 'Hi', { ...options, session });
  while (result.status === 'interrupted') {
    const kept = stored?.(2) === 0;
    const state = kept ? await RunState.fromString(world.start, result.toState().toString()) : result.toState();
    for (const item of state.interruptions) state.approve(item);
    result = await runForm(world.start, state, { ...options, session });
  }
  return result;
}

/** Messages of the assistant have two forms with one meaning: a state writes the long one. */
function normal(item: AgentInputItem): unknown {
  const { role, content, type: _, status: __, ...rest } = item as unknown as Record<string, unknown>;
  if (role !== 'assistant') return item;
  const said = typeof content === 'string' ? [{ type: 'output_text', text: content }] : content;
  return { ...rest, role, content: said };
}
const facts = (result: RunResult, { effects, model }: World): unknown => ({
  effects,
  output: result.finalOutput,
  last: result.lastAgent.name,
  items: result.newItems.flatMap(({ type, rawItem }) => (type === 'tool_approval_item' ? [] : [rawItem])),
  seen: model.calls.map(({ request }) => request.input.map(normal)),
  list: result.toInputList().map(normal),
  next: result.toInputList({ mode: 'normalized' }).map(normal),
});

/** What must hold of any list that a model is to read. */
function faultsOf(list: readonly AgentInputItem[]): string[] {
  const seen = new Set<string>();
  return list.flatMap((item) => {
    const { type, call_id: id } = item as { type?: string; call_id?: string };
    if (id === undefined) return [];
    const key = `${type} ${id}`;
    const faults = seen.has(key) ? [`${key} twice`] : [];
    if (type === 'function_call_output' && !seen.has(`function_call ${id}`)) faults.push(`${key} without its call`);
    seen.add(key);
    return faults;
  });
}

/** Whether all items are in the list, in their order. */
function isWithin(items: readonly AgentInputItem[], list: readonly AgentInputItem[]): boolean {
  const texts = list.map((item) => JSON.stringify(normal(item)));
  let at = -1;
  return items.every((item) => (at = texts.indexOf(JSON.stringify(normal(item)), at + 1)) !== -1);
}

bothForms((runForm, form) => {
  describe(`agents that hand on what they are told (${form})`, () => {
    test('pauses, states in text and the form of the run change nothing [STATE-534] [RUN-002, 1220]', async () => {
      const found: string[] = [];
      for (const seed of seeds) {
        const random = (): Random => numbers(seed);
        const options: RunOptions = { maxTurns: null, nestHandoffHistory: seed % 2 === 0 };
        const [once, often] = [worldOf(random()), worldOf(random())];
        const sessions = [new PlainSession(), new PlainSession()] as const;
        // At one go: nothing waits for anybody.
        const decided = await play(
          runForm,
          once,
          sessions[0],
          { ...options, onApproval: () => ({ type: 'approve' }) },
          undefined,
        );
        const paused = await play(runForm, often, sessions[1], options, numbers(seed + 7919));
        const [expected, actual] = [facts(decided, once), facts(paused, often)];
        const lists = [...once.model.calls.map(({ request }) => request.input), decided.toInputList()];
        const wrong = lists.flatMap(faultsOf);
        const same = JSON.stringify(actual) === JSON.stringify(expected);
        // What a pause stored stays there, whatever a filter takes out of its turn later.
        if (!isWithin(sessions[0].items, sessions[1].items)) wrong.push('the session lacks items');
        if (!same || wrong.length > 0)
          found.push(`seed ${seed}: ${wrong.join(', ')}${same ? '' : JSON.stringify([expected, actual])}`);
      }
      expect(found).toEqual([]);
    }, 120_000);
  });
});
