import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import type { LogRecord } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import type { StateRecord } from '../state/record.ts';
import { changed, graphOf, minimalState, pythonState } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { recordOf, RunState } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });
let logs: LogRecord[] = [];

beforeEach(() => {
  logs = [];
  configureLogging({ sink: (record) => logs.push(record) });
});
afterEach(() => resetAll());

const restore = async (json: Members, agent: Parameters<typeof RunState.fromJSON>[0] = desk): Promise<StateRecord> =>
  recordOf(await RunState.fromJSON<unknown, unknown>(agent, json));
const key = 'current_response_generated_item_ownership';
const item = (type: string, raw: Members): Members => ({ type, raw_item: raw, agent: { name: 'Desk' } });

/** A pause in turn 2, where nothing but the key tells where the response stands. */
function secondTurn(members: Members = {}): Members {
  const json = pythonState('a4_gated_and_free_calls.json');
  return { ...json, current_turn: 2, ...members };
}
const located = ({ processed, generatedItems, step }: StateRecord): boolean =>
  processed !== undefined &&
  processed.newItems.every((one, index) => one === generatedItems[index]) &&
  step.type === 'interruption' &&
  step.interruptions.every((one) => generatedItems.includes(one));

describe('what was one object before the snapshot is one after it', () => {
  test('an item in both lists [STATE-352]', async () => {
    const { generatedItems, sessionItems } = await restore(pythonState('a6_pending_input_admitted_finished.json'));
    expect(generatedItems.map((one) => sessionItems.indexOf(one))).toEqual([0, 1, 2, 4, 5, 6, 7]);
  });

  test('the current response and its waiting items [STATE-345]', async () => {
    const record = await restore(secondTurn());
    expect(located(record)).toBe(true);
    expect(record.sessionItems).toEqual(record.generatedItems);
  });

  const { start: _start, ...without } = { start: 0, end: 5, interruptions: [3] };
  const response = (changes: Members): Members => ({ start: 0, end: 5, interruptions: [3], ...changes });
  test.each<[string, Members]>([
    ['no key', changed(secondTurn(), key, undefined)],
    [
      'a label below 1.17',
      { ...changed(secondTurn(), 'context.function_tool_approvals', undefined), $schemaVersion: '1.16' },
    ],
    ['a key that is a list', secondTurn({ [key]: [] })],
    ['no start', secondTurn({ [key]: without })],
    ['another end', secondTurn({ [key]: response({ end: 4 }) })],
    ['a start shifted by one', secondTurn({ [key]: response({ start: 1 }) })],
    ['a waiting item shifted by one', secondTurn({ [key]: response({ interruptions: [4] }) })],
    ['a waiting item in the response', secondTurn({ [key]: response({ interruptions: [2] }) })],
    ['a waiting item twice', secondTurn({ [key]: response({ interruptions: [3, 3] }) })],
    ['a fraction', secondTurn({ [key]: response({ start: 0.5 }) })],
    ['items in another order in the session', changed(secondTurn(), 'generated_session_item_indexes', [1, 0, 2, 3, 4])],
    [
      'an item behind the response in the session',
      changed(secondTurn(), 'session_items', [
        ...(secondTurn()['session_items'] as Members[]),
        item('reasoning_item', { id: 'later' }),
      ]),
    ],
    [
      'a skipped item in the response',
      changed(changed(secondTurn(), 'generated_items.0.agent', { name: 'Gone' }), 'session_items.0.agent', {
        name: 'Gone',
      }),
    ],
    [
      'a skipped item behind the response that nobody was told of',
      {
        ...secondTurn({ [key]: response({ end: 6 }) }),
        generated_items: [
          ...(secondTurn()['generated_items'] as Members[]),
          { ...item('reasoning_item', { type: 'reasoning', id: 'r', summary: [] }), agent: { name: 'Gone' } },
        ],
        generated_session_item_indexes: [0, 1, 2, 3, 4, null],
      },
    ],
    ['another item in the response', changed(secondTurn(), 'last_processed_response.new_items.0.raw_item.id', 'other')],
  ])('%s: the response is not located, and nothing is said [STATE-345], [STATE#120]', async (_, json) => {
    const { processed, generatedItems } = await restore(json);
    expect(processed?.newItems.length).toBeGreaterThan(0);
    expect(processed?.newItems.some((one) => generatedItems.includes(one))).toBe(false);
  });

  test('outputs, and items, that are not public yet may be missing in the session [STATE-230]', async () => {
    const json = secondTurn();
    const session = json['session_items'] as Members[];
    const record = await restore({
      ...json,
      session_items: session.slice(0, 4),
      generated_session_item_indexes: [0, 1, 2, 3, null],
    });
    expect(located(record)).toBe(true);
    expect(record.generatedItems.map((one) => record.sessionItems.indexOf(one))).toEqual([0, 1, 2, 3, -1]);
    expect(
      located(
        await restore({ ...json, session_items: [], generated_session_item_indexes: [null, null, null, null, null] }),
      ),
    ).toBe(true);
  });

  test('the first turn is located without the key', async () => {
    expect(located(await restore(changed(pythonState('a4_gated_and_free_calls.json'), key, undefined)))).toBe(true);
    expect(located(await restore(pythonState('0.22.0/a2_function_approved_once.json')))).toBe(true);
  });

  test('a waiting item is the one of the history, with or without the key', async () => {
    const { step, generatedItems } = await restore(changed(secondTurn(), key, undefined));
    expect(step.type === 'interruption' && generatedItems.includes(step.interruptions[0] as never)).toBe(true);
  });
});

describe('positions that do not fit', () => {
  test.each<[string, unknown]>([
    ['a list of another length', [0]],
    ['no list', 'x'],
    ['a position twice', [0, 0, 2, 3, 4]],
    ['a position beyond the end', [0, 1, 2, 3, 5]],
    ['a negative one', [-1, 1, 2, 3, 4]],
    ['a text', ['0', 1, 2, 3, 4]],
  ])('%s: ignored with a warning [STATE-352]', async (_, indexes) => {
    const { generatedItems, sessionItems } = await restore({
      ...pythonState('a4_gated_and_free_calls.json'),
      generated_session_item_indexes: indexes,
    });
    expect(generatedItems.some((one) => sessionItems.includes(one))).toBe(false);
    expect(logs).toEqual([
      expect.objectContaining({ level: 'warn', message: expect.stringContaining('generated_session_item_indexes') }),
    ]);
  });

  test('two items that differ are not made one [STATE-352]', async () => {
    const json = changed(pythonState('a3_function_finished.json'), 'session_items.0.description', 'other');
    const { generatedItems, sessionItems } = await restore(json);
    expect(generatedItems.map((one) => sessionItems.indexOf(one))).toEqual([-1, 2, 3]);
  });

  test('without the list nothing is one object; without session items both lists are the generated ones', async () => {
    const { session_items: _, generated_session_item_indexes: __, ...json } = pythonState('a3_function_finished.json');
    const alone = await restore(json);
    expect(alone.sessionItems).toEqual(alone.generatedItems);
    expect(alone.sessionItems[0]).toBe(alone.generatedItems[0]);
    const apart = await restore({
      ...pythonState('a3_function_finished.json'),
      generated_session_item_indexes: undefined,
    });
    expect(apart.generatedItems.some((one) => apart.sessionItems.includes(one))).toBe(false);
  });
});

describe('a response that the writer left out of the items', () => {
  const pause = (items: Members[], response: Members[]): Members =>
    minimalState('1.21', {
      current_turn: 2,
      generated_items: items,
      last_processed_response: { new_items: response },
      current_step: { type: 'next_step_interruption', data: { interruptions: [] } },
    });
  const call = (id: string): Members =>
    item('tool_call_item', { type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
  const search = item('tool_search_output_item', { type: 'tool_search_output', tools: [] });
  const count = async (items: Members[], response: Members[]): Promise<number> =>
    (await restore(pause(items, response))).generatedItems.length;

  test('is added once, anonymous items that repeat earlier ones included [STATE-357]', async () => {
    expect(await count([call('a')], [call('b')])).toBe(2);
    expect(await count([search], [search, call('b')])).toBe(3);
    expect(await count([search, call('b')], [search, call('b')])).toBe(2);
    expect(await count([call('a'), call('b')], [call('b'), call('c')])).toBe(3);
    expect(await count([search], [search])).toBe(1);
    expect(await count([], [search])).toBe(1);
  });

  test('only of a pause: after it the items say what the model sees', async () => {
    const { current_step: _, ...json } = pause([call('a')], [call('b')]);
    expect((await restore(json)).generatedItems).toHaveLength(1);
  });
});

describe('what is written', () => {
  const ownership = async (json: Members): Promise<unknown> =>
    ((await RunState.fromJSON(graphOf('c1'), json)).toJSON() as Members)[key];

  test('a pause without waiting items, and one inside an agent tool, have the key too [STATE-345]', async () => {
    expect(await ownership(pythonState('c1_nested_interrupted.json'))).toEqual({ start: 0, end: 1, interruptions: [] });
    const cut = changed(pythonState('a4_gated_and_free_calls.json'), 'current_step.data.interruptions', []);
    expect(await ownership(changed(cut, key, undefined))).toEqual({ start: 0, end: 5, interruptions: [] });
  });

  test('no key when the response, or a waiting item, stands nowhere or twice', async () => {
    const record = await restore(pythonState('a4_gated_and_free_calls.json'));
    const keyOf = async (change: (copy: StateRecord) => void): Promise<unknown> => {
      const state = await RunState.fromJSON(desk, pythonState('a4_gated_and_free_calls.json'));
      change(recordOf(state));
      return (state.toJSON() as Members)[key];
    };
    expect(record.generatedItems).toHaveLength(5);
    expect(await keyOf(() => undefined)).toEqual({ start: 0, end: 5, interruptions: [3] });
    expect(await keyOf((copy) => copy.generatedItems.shift())).toBeUndefined();
    expect(await keyOf((copy) => copy.generatedItems.push(...copy.generatedItems.slice(0, 3)))).toBeUndefined();
    expect(await keyOf((copy) => copy.generatedItems.splice(3, 1))).toBeUndefined();
    const twice = (copy: StateRecord): void => {
      copy.generatedItems.push(...copy.generatedItems.slice(0, 3));
      copy.step = { type: 'interruption', interruptions: [], responseAccepted: false, llmEndHooksStarted: true };
    };
    expect(await keyOf(twice)).toBeUndefined();
    expect(await keyOf((copy) => void (copy.step = { type: 'run_again' }))).toBeUndefined();
    expect(await keyOf((copy) => void (copy.processed = undefined))).toBeUndefined();
  });
});

describe('references to nested history', () => {
  const refs = 'nested_history_owned_session_item_refs';
  const source = (): Members => pythonState('d3_nested_history_then_interrupted.json');
  const read = async (json: Members): Promise<unknown> =>
    ((await RunState.fromJSON(graphOf('d3'), json)).toJSON() as Members)[refs];

  test('are kept, by the positions of what survived [STATE-352, 353]', async () => {
    const [ref] = source()[refs] as [Members];
    expect(await read(source())).toEqual([ref]);
    const items = source()['session_items'] as Members[];
    const shifted = {
      ...source(),
      session_items: [{ type: 'later', raw_item: {} }, ...items],
      generated_session_item_indexes: [4, 5],
      [refs]: [{ ...ref, index: 1 }],
    };
    expect(await read(shifted)).toEqual([ref]);
  });

  test('to a skipped item are ignored, those of labels below 1.13 are not read', async () => {
    expect(await read(changed(source(), 'session_items.0.type', 'later'))).toEqual([]);
    expect(logs.map(({ message }) => message).join()).toContain('skipped');
    expect(await read({ ...source(), $schemaVersion: '1.12', [refs]: 'x' })).toEqual([]);
  });

  test.each<[string, (json: Members) => Members]>([
    ['another digest in the session', (json) => changed(json, 'session_items.0.raw_item.id', 'other')],
    ['another digest in the input', (json) => changed(json, 'original_input.1.id', 'other')],
    ['no such session item', (json) => changed(json, `${refs}.0.index`, 99)],
    ['a negative position', (json) => changed(json, `${refs}.0.index`, -1)],
  ])('%s: refused [STATE-353]', async (_, change) => {
    await expect(read(change(source()))).rejects.toMatchObject({ name: 'UserError', code: 'history_ref_invalid' });
  });
});
