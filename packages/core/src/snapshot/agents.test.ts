import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import type { AnyAgent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { changed, minimalState, pythonState, withAgentTools, withHandoffs } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { newRecord } from '../state/copy.ts';
import { contextInternals } from '../state/context.ts';
import { emptyRecord } from '../state/approvals.ts';
import { agentGraph } from './agents.ts';
import { recordOf, RunState, stateOf } from './run-state.ts';

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetAll());

const named = (name: string, instructions?: string): AnyAgent => new Agent({ name, instructions });
const identities = (start: AnyAgent, agents: readonly AnyAgent[]): (string | undefined)[] => {
  const graph = agentGraph(start);
  return agents.map((agent) => graph.identityOf(agent));
};

describe('names of agents in a snapshot', () => {
  test('a single agent is its name', () => {
    const desk = named('Desk');
    const graph = agentGraph(desk);
    expect(graph.ref(desk)).toEqual({ name: 'Desk' });
    expect(graph.resolve({ name: 'Desk' })).toBe(desk);
    expect(graph.resolve('Desk')).toBe(desk);
    expect([
      graph.resolve({ name: '' }),
      graph.resolve({ name: 7 }),
      graph.resolve(null),
      graph.resolve('toString'),
    ]).toEqual([undefined, undefined, undefined, undefined]);
  });

  test('the graph is what handoffs and agent tools reach, cycles included [STATE-372]', () => {
    const [a, b, c, d] = [named('A'), named('B'), named('C'), named('D')];
    withHandoffs(a, b);
    withAgentTools(b, c);
    withHandoffs(c, a);
    const graph = agentGraph(a);
    expect([a, b, c].map((agent) => graph.resolve(graph.ref(agent)))).toEqual([a, b, c]);
    expect(graph.identityOf(d)).toBeUndefined();
  });

  test('of equal names the starting agent has the bare one, the others a suffix that nobody is called [STATE-371, 373]', () => {
    const [start, second, third, literal] = [named('A', '9'), named('A', '1'), named('A', '2'), named('A#2')];
    withHandoffs(start, third, literal, second);
    expect(identities(start, [start, second, third, literal])).toEqual(['A', 'A#3', 'A#4', 'A#2']);
    expect(agentGraph(start).ref(second)).toEqual({ name: 'A', identity: 'A#3' });
    expect(agentGraph(start).ref(literal)).toEqual({ name: 'A#2' });
  });

  test('handoffs in another order give the same names when configurations differ [STATE-373, 374], [STATE#58]', () => {
    const start = named('Start');
    const [one, two, three] = [
      named('A', 'one'),
      named('A', 'two'),
      new Agent({ name: 'A', instructions: () => 'three' }),
    ];
    const orders = [
      [one, two, three],
      [three, two, one],
      [two, three, one],
    ].map((order) => identities(withHandoffs(start, ...order), [one, two, three]));
    expect(orders[1]).toEqual(orders[0]);
    expect(orders[2]).toEqual(orders[0]);
    expect(new Set(orders[0])).toEqual(new Set(['A', 'A#2', 'A#3']));
  });

  test('ids come before configuration [STATE-374]', () => {
    const start = named('Start');
    const [z, y] = [
      new Agent({ name: 'A', id: 'z', instructions: '1' }),
      new Agent({ name: 'A', id: 'y', instructions: '2' }),
    ];
    expect(identities(withHandoffs(start, z, y), [y, z])).toEqual(['A', 'A#2']);
  });

  test('an identity that is not there is an error without the name [STATE-375], [STATE#60]', () => {
    const graph = agentGraph(named('Desk'));
    const resolve = (): unknown => graph.resolve({ name: 'Desk', identity: 'planted#2' });
    expect(resolve).toThrow(expect.objectContaining({ name: 'UserError', code: 'agent_identity_missing' }));
    expect(resolve).not.toThrow('planted');
  });
});

describe('agents that only the order of discovery tells apart', () => {
  const hooks = (): object => ({ onStart: (): void => undefined });
  const graph = (options: Members = {}): { start: AnyAgent; twins: [AnyAgent, AnyAgent] } => {
    const twins: [AnyAgent, AnyAgent] = [
      new Agent({ name: 'Twin', ...options }),
      new Agent({ name: 'Twin', ...options }),
    ];
    return { start: withHandoffs(named('Start'), ...twins), twins };
  };
  const state = minimalState('1.21', { current_agent: { name: 'Start' } });

  test('have suffixes, but their decisions are neither written nor read [STATE-378]', async () => {
    const { start, twins } = graph();
    const record = newRecord({ agent: start, context: null, input: 'x', maxTurns: 10 });
    for (const owner of [start, ...twins])
      contextInternals(record.context).approvals.functions.set(
        owner,
        new Map([['f', { ...emptyRecord(), approved: true }]]),
      );
    record.currentAgent = twins[1];
    const json = stateOf(record).toJSON() as unknown as {
      context: { function_tool_approvals: Members[] };
      current_agent: Members;
    };
    expect(json.current_agent).toEqual({ name: 'Twin', identity: 'Twin#2' });
    expect(json.context.function_tool_approvals.map((entry) => entry['agent'])).toEqual([{ name: 'Start' }]);
    const decision = { agent: { name: 'Twin' }, tool_key: 'f', decision: { approved: true, rejected: [] } };
    const restored = await RunState.fromJSON(start, changed(json, 'context.function_tool_approvals', [decision]));
    expect(restored.currentAgent).toBe(twins[1]);
    expect(contextInternals(restored.context).approvals.functions.size).toBe(0);
  });

  test('cannot be written or read while they have hooks; ids help [STATE-379], [STATE#118]', async () => {
    const { start } = graph({ hooks: hooks() });
    expect(() => stateOf(newRecord({ agent: start, context: null, input: 'x', maxTurns: 10 })).toString()).toThrow(
      expect.objectContaining({ code: 'agent_identity_ambiguous' }),
    );
    await expect(RunState.fromJSON(start, state)).rejects.toMatchObject({ code: 'agent_identity_ambiguous' });
    const byId = withHandoffs(
      named('Start'),
      new Agent({ name: 'Twin', id: '1', hooks: hooks() }),
      new Agent({ name: 'Twin', id: '2', hooks: hooks() }),
    );
    await expect(RunState.fromJSON(byId, state)).resolves.toBeInstanceOf(RunState);
  });

  test('a label below 1.21 is refused where hooks may have decided the order [STATE-379], [STATE#118]', async () => {
    const one = new Agent({ name: 'Twin', instructions: '1', hooks: hooks() });
    const two = new Agent({ name: 'Twin', instructions: '2', hooks: hooks() });
    const start = withHandoffs(named('Start'), one, two);
    await expect(RunState.fromJSON(start, { ...state, $schemaVersion: '1.20' })).rejects.toMatchObject({
      code: 'agent_identity_legacy',
    });
    await expect(RunState.fromJSON(start, state)).resolves.toBeInstanceOf(RunState);
  });

  test('the starting agent is never one of them', () => {
    const start = new Agent({ name: 'Twin', hooks: hooks() });
    withHandoffs(start, new Agent({ name: 'Twin', hooks: hooks() }));
    expect(() => agentGraph(start)).not.toThrow();
  });
});

describe('tool use', () => {
  test('rows are kept by identity; those of unknown agents are written back, texts alone count [STATE-377]', async () => {
    const [start, second] = [named('A', '1'), named('A', '2')];
    withHandoffs(start, second);
    const tracker = { A: ['f', 7, 'f'], 'A#2': ['g'], Gone: ['h'], broken: 'x', __proto__: null };
    const state = await RunState.fromJSON(
      start,
      minimalState('1.21', { current_agent: { name: 'A' }, tool_use_tracker: tracker }),
    );
    const { toolUse } = recordOf(state);
    expect([toolUse.get(start), toolUse.get(second), toolUse.size]).toEqual([new Set(['f']), new Set(['g']), 2]);
    expect(state.toJSON()['tool_use_tracker']).toEqual({ A: ['f'], 'A#2': ['g'], Gone: ['h'] });
  });

  test('an item of an agent that cannot be reached is skipped, and positions are those of what is left [STATE-351, 352]', async () => {
    const json = changed(pythonState('a4_gated_and_free_calls.json'), 'session_items.0.agent', { name: 'Gone' });
    const state = await RunState.fromJSON(new Agent({ name: 'Desk' }), json);
    expect(state.newItems).toHaveLength(4);
    expect(state.toJSON()['generated_session_item_indexes']).toEqual([null, 0, 1, 2, 3]);
  });
});
