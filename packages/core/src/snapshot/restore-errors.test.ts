import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import type { LogRecord } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { changed, minimalState, pythonState, pythonStateText } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { RunState } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });
const secret = 'planted-secret';
let logs: LogRecord[] = [];

beforeEach(() => {
  logs = [];
  configureLogging({ level: 'debug', sink: (record) => logs.push(record) });
});
afterEach(() => resetAll());

const paused = (): Members => pythonState('a1_function_interrupted.json');
const finished = (): Members => pythonState('a3_function_finished.json');
const row = (members: Members): Members => ({
  type: 'function_call',
  approval_scope: 'a'.repeat(64),
  fingerprint: 'b'.repeat(64),
  executed: false,
  completed: false,
  ...members,
});
const withRow = (value: unknown): Members => changed(paused(), `context.tool_invocations.${secret}`, value);
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const decision = { approved: ['call_a1'], rejected: [] };
const withDecisions = (list: unknown): Members => changed(paused(), 'context.function_tool_approvals', list);
const additions = (members: Members): Members => changed(paused(), 'agents_ts', members);
const digest = '0'.repeat(64);
const ref = { index: 0, input_index: 0, digest };

const cases: readonly (readonly [string, () => unknown, string])[] = [
  ['an array', () => [secret], 'state_malformed'],
  ['a string', () => secret, 'state_malformed'],
  ['null', () => null, 'state_malformed'],
  ['no version', () => changed(paused(), '$schemaVersion', undefined), 'schema_missing'],
  ['a number as version', () => changed(paused(), '$schemaVersion', 1.21), 'schema_type'],
  ['a future version', () => changed(paused(), '$schemaVersion', '1.22'), 'schema_unsupported'],
  ['a version of another form', () => changed(paused(), '$schemaVersion', secret), 'schema_unsupported'],
  [
    'a state in camelCase',
    () => ({ $schemaVersion: '1.8', currentTurn: 1, currentAgent: { name: secret } }),
    'foreign_run_state',
  ],
  ['no turn', () => changed(paused(), 'current_turn', undefined), 'state_malformed'],
  ['a negative turn', () => changed(paused(), 'current_turn', -1), 'state_malformed'],
  ['a fraction as limit', () => changed(paused(), 'max_turns', 1.5), 'state_malformed'],
  ['no limit at all', () => changed(paused(), 'max_turns', undefined), 'state_malformed'],
  [
    'a negative count of stored items',
    () => changed(paused(), 'current_turn_persisted_item_count', -1),
    'state_malformed',
  ],
  ['input that is an object', () => changed(paused(), 'original_input', { secret }), 'state_malformed'],
  ['input with texts', () => changed(paused(), 'original_input', [secret]), 'state_malformed'],
  ['no context', () => changed(paused(), 'context', undefined), 'state_malformed'],
  ['staged input that is no list', () => changed(paused(), 'pending_input', secret), 'state_malformed'],
  ['items that are no list', () => changed(paused(), 'generated_items', { secret }), 'state_malformed'],
  ['responses without output', () => changed(paused(), 'model_responses', [{ secret }]), 'state_malformed'],
  ['an unknown step', () => changed(paused(), 'current_step', { type: secret }), 'state_malformed'],
  [
    'a step whose flag is a text',
    () => changed(paused(), 'current_step.data.response_accepted', 'true'),
    'state_malformed',
  ],
  ['a trace without id', () => changed(paused(), 'trace', { workflow_name: secret }), 'state_malformed'],
  ['a sandbox that is a list', () => changed(paused(), 'sandbox', [secret]), 'state_malformed'],
  [
    'bindings that are a list',
    () => changed(paused(), 'last_processed_response.mcp_tool_bindings', [secret]),
    'state_malformed',
  ],
  ['an unknown current agent', () => changed(paused(), 'current_agent', { name: secret }), 'agent_missing'],
  ['an empty agent name', () => changed(paused(), 'current_agent', { name: '' }), 'agent_missing'],
  [
    'an unknown identity',
    () => changed(paused(), 'current_agent', { name: 'Desk', identity: secret }),
    'agent_identity_missing',
  ],
  [
    'an item of an unknown identity',
    () =>
      changed(paused(), 'session_items', [
        { type: 'reasoning_item', raw_item: {}, agent: { name: 'Desk', identity: secret } },
      ]),
    'agent_identity_missing',
  ],
  ['a context that is a text', () => changed(paused(), 'context.context', secret), 'context_not_object'],
  ['decisions of agents that are null', () => withDecisions(null), 'approval_record_invalid'],
  ['a decision without tool', () => withDecisions([{ agent: { name: 'Desk' }, decision }]), 'approval_record_invalid'],
  [
    'a decision that is a list',
    () => withDecisions([{ agent: { name: 'Desk' }, tool_key: secret, decision: [] }]),
    'approval_record_invalid',
  ],
  [
    'a rejection that is a text',
    () => withDecisions([{ agent: { name: 'Desk' }, tool_key: 'f', decision: { approved: [], rejected: secret } }]),
    'approval_record_invalid',
  ],
  [
    'a decision of an unknown agent',
    () => withDecisions([{ agent: { name: secret }, tool_key: 'f', decision }]),
    'approval_owner_missing',
  ],
  [
    'a decision of an unknown identity',
    () => withDecisions([{ agent: { name: 'Desk', identity: secret }, tool_key: 'f', decision }]),
    'agent_identity_missing',
  ],
  [
    'decisions of agents under 1.17',
    () => changed(withDecisions([{ agent: { name: 'Desk' }, tool_key: 'f', decision }]), '$schemaVersion', '1.17'),
    'schema_feature_mismatch',
  ],
  [
    'a boundary under 1.19',
    () =>
      changed(
        changed(paused(), 'last_processed_response.tool_output_guardrail_result_start', 0),
        '$schemaVersion',
        '1.19',
      ),
    'schema_feature_mismatch',
  ],
  [
    'calls of programs under 1.12',
    () => changed(changed(paused(), 'original_input', [{ type: 'program', code: secret }]), '$schemaVersion', '1.12'),
    'schema_feature_mismatch',
  ],
  [
    'a boundary beyond the results',
    () => changed(paused(), 'last_processed_response.tool_output_guardrail_result_start', 1),
    'guardrail_boundary_invalid',
  ],
  [
    'a boundary that is true',
    () => changed(paused(), 'last_processed_response.tool_output_guardrail_result_start', true),
    'guardrail_boundary_invalid',
  ],
  [
    'a boundary beside a result of another kind',
    () =>
      changed(
        changed(paused(), 'last_processed_response.tool_output_guardrail_result_start', 0),
        'tool_output_guardrail_results',
        [{ guardrail: { type: 'input' } }],
      ),
    'guardrail_boundary_invalid',
  ],
  ['a ledger that is null', () => changed(paused(), 'context.tool_invocations', null), 'ledger_invalid'],
  ['a row that is null', () => withRow(null), 'ledger_invalid'],
  ['a row of an unknown type', () => withRow(row({ type: 'handoff' })), 'ledger_invalid'],
  ['a row with a short digest', () => withRow(row({ fingerprint: 'b' })), 'ledger_invalid'],
  ['a row with upper-case digits', () => withRow(row({ approval_scope: 'A'.repeat(64) })), 'ledger_invalid'],
  ['a row whose flag is 1', () => withRow(row({ executed: 1 })), 'ledger_invalid'],
  ['a row completed and not executed', () => withRow(row({ completed: true })), 'ledger_invalid'],
  ['a row of an empty id', () => changed(paused(), 'context.tool_invocations', { '': row({}) }), 'ledger_invalid'],
  ['a completed row without its call', () => withRow(row({ executed: true, completed: true })), 'ledger_mismatch'],
  [
    'a completed row of another call',
    () => changed(finished(), 'context.tool_invocations.call_a1.fingerprint', digest),
    'ledger_mismatch',
  ],
  [
    'a completed row without its output',
    () =>
      changed(paused(), 'context.tool_invocations.call_a1', {
        ...(paused() as { context: { tool_invocations: { call_a1: Members } } }).context.tool_invocations.call_a1,
        executed: true,
        completed: true,
      }),
    'ledger_mismatch',
  ],
  [
    'references that are no list',
    () => changed(paused(), 'nested_history_owned_session_item_refs', { secret }),
    'history_ref_invalid',
  ],
  [
    'a reference without digest',
    () => changed(paused(), 'nested_history_owned_session_item_refs', [{ index: 0, input_index: 0 }]),
    'history_ref_invalid',
  ],
  [
    'a reference to no input item',
    () => changed(paused(), 'nested_history_owned_session_item_refs', [ref]),
    'history_ref_invalid',
  ],
  [
    'a reference to another input item',
    () =>
      changed(
        changed(paused(), 'original_input', [{ role: 'user', content: secret }]),
        'nested_history_owned_session_item_refs',
        [ref],
      ),
    'history_ref_invalid',
  ],
  ['a marker that is a text', () => changed(paused(), 'terminal_unrecoverable', secret), 'terminal_marker_invalid'],
  ['a marker that is false', () => changed(paused(), 'terminal_unrecoverable', false), 'terminal_marker_invalid'],
  [
    'a marker under 1.16',
    () => changed(changed(paused(), 'terminal_unrecoverable', true), '$schemaVersion', '1.16'),
    'terminal_marker_invalid',
  ],
  ['records of decisions that are no list', () => additions({ decisions: { secret } }), 'state_malformed'],
  [
    'a record of a decision without text',
    () => additions({ decisions: [{ call_id: secret, path: [], type: 'approve', always: false }] }),
    'state_malformed',
  ],
  [
    'a record of a decision of an unknown type',
    () =>
      additions({
        decisions: [{ call_id: 'c', path: [], tool_name: 't', type: secret, always: false, at: '', arguments: '' }],
      }),
    'state_malformed',
  ],
  ['201 levels', () => changed(paused(), 'context.context', { deep: nested(198) }), 'json_too_large'],
];

describe('a state that is not right is refused with the code for it, and nothing of it is shown', () => {
  test.each(cases)('%s [STATE-408, 411, 413]', async (_, make, code) => {
    const state = make();
    const failures = [
      await failure(RunState.fromString(desk, JSON.stringify(state) ?? '')),
      await failure(RunState.fromJSON(desk, state)),
    ];
    for (const error of failures) {
      expect(error).toMatchObject({ name: 'UserError', code });
      expect(error.cause).toBeUndefined();
      expect(`${error.message}${error.stack}${JSON.stringify(logs)}`).not.toContain(secret);
    }
  });

  test('100 000 levels, without an overflow of the stack [STATE-402], [STATE#73]', async () => {
    const text = '['.repeat(100_000) + ']'.repeat(100_000);
    const inside = pythonStateText('a1_function_interrupted.json').replace('"tenant": "t1"', `"tenant": ${text}`);
    for (const restore of [
      RunState.fromString(desk, text),
      RunState.fromString(desk, inside),
      RunState.fromJSON(desk, nested(100_000)),
    ]) {
      await expect(restore).rejects.toMatchObject({ name: 'UserError', code: 'json_too_large' });
    }
  });

  test('200 levels are read', async () => {
    const deep = changed(paused(), 'context.context', { deep: nested(197) });
    await expect(RunState.fromString(desk, JSON.stringify(deep))).resolves.toBeInstanceOf(RunState);
    await expect(RunState.fromJSON(desk, deep)).resolves.toBeInstanceOf(RunState);
  });

  describe.each([
    ['original_input.0.content', 3],
    ['session_items.0.raw_item.extra', 4],
    ['generated_items.0.raw_item.extra', 4],
    ['model_responses.0.usage.extra', 4],
    ['current_step.data.interruptions.0.raw_item.extra', 6],
    ['last_processed_response.new_items.0.raw_item.extra', 5],
  ])('at %s', (path, above) => {
    const text = JSON.stringify(changed({ ...paused(), original_input: [{ role: 'user' }] }, path, '@'));
    const withLevels = (levels: number): string =>
      text.replace('"@"', '['.repeat(levels - above) + ']'.repeat(levels - above));

    test('200 levels are read, and written again [STATE-402]', async () => {
      const restored = await RunState.fromString(desk, withLevels(200));
      await expect(RunState.fromString(desk, restored.toString())).resolves.toBeInstanceOf(RunState);
    });

    test.each([201, 100_000])('%d levels are refused [STATE-402]', async (levels) => {
      const error = await failure(RunState.fromString(desk, withLevels(levels)));
      expect(error).toMatchObject({ name: 'UserError', code: 'json_too_large' });
    });
  });

  test('levels in place of items, at the same place of both lists [STATE-402]', async () => {
    const lists = { generated_session_item_indexes: [0], generated_items: ['@'], session_items: ['@'] };
    const text = JSON.stringify({ ...finished(), ...lists });
    const deep = text.replaceAll('"@"', '['.repeat(100_000) + ']'.repeat(100_000));
    await expect(RunState.fromString(desk, deep)).rejects.toMatchObject({ code: 'json_too_large' });
  });

  test('a text that is cut off, and none at all [STATE#73]', async () => {
    const text = pythonStateText('a1_function_interrupted.json');
    for (const cut of [text.slice(0, -2), text.slice(0, 300), '', `${text} ${secret}`]) {
      const error = await failure(RunState.fromString(desk, cut));
      expect(error).toMatchObject({ name: 'UserError', code: 'json_parse' });
      expect(error.cause).toBeUndefined();
      expect(error.message).not.toContain(secret);
    }
  });

  test("the parser's own error is attached where sensitive data may be logged", async () => {
    configureLogging({ dontLogModelData: false, dontLogToolData: false });
    expect((await failure(RunState.fromString(desk, '{'))).cause).toBeInstanceOf(SyntaxError);
  });

  test('a text, and a value, that is larger than the limit [STATE-402]', async () => {
    const text = JSON.stringify(changed(paused(), 'context.context', { note: 'ü'.repeat(10_000) }));
    const bytes = new TextEncoder().encode(text).length;
    await expect(RunState.fromString(desk, text, { maxBytes: bytes - 1 })).rejects.toMatchObject({
      code: 'json_too_large',
      message: expect.stringMatching(/maxBytes/) as string,
    });
    await expect(RunState.fromString(desk, text, { maxBytes: bytes })).resolves.toBeInstanceOf(RunState);
    await expect(RunState.fromJSON(desk, JSON.parse(text), { maxBytes: 1000 })).rejects.toMatchObject({
      code: 'json_too_large',
    });
  });

  test('without an option 100 MB are read, and more than 256 MiB are not [STATE-402]', async () => {
    const text = JSON.stringify(changed(paused(), 'context.context', { note: '@' }));
    await expect(RunState.fromString(desk, text.replace('@', 'x'.repeat(100e6)))).resolves.toBeInstanceOf(RunState);
    await expect(RunState.fromString(desk, 'x'.repeat(256 * 2 ** 20 + 1))).rejects.toMatchObject({
      code: 'json_too_large',
    });
  });

  test('a small value that stands for a huge tree', async () => {
    let shared: unknown = ['x'];
    for (let i = 0; i < 60; i++) shared = [shared, shared];
    await expect(
      RunState.fromJSON(desk, changed(paused(), 'context', { context: { shared } }), { maxBytes: 100_000 }),
    ).rejects.toMatchObject({ code: 'json_too_large' });
  });

  test('the version is looked at before anything else [STATE-363, 409]', async () => {
    const state = { $schemaVersion: '2.0', sandbox: 7, current_agent: 7, terminal_unrecoverable: 7 };
    await expect(RunState.fromJSON(desk, state)).rejects.toMatchObject({ code: 'schema_unsupported' });
    await expect(RunState.fromJSON(desk, { ...state, $schemaVersion: undefined })).rejects.toThrow(
      /Supported: 1\.0 to 1\.21/,
    );
  });
});

describe('a value that is not plain JSON is refused, and nothing of it is called', () => {
  const untouched = (): never => {
    throw new Error('was called');
  };
  const values: readonly (readonly [string, unknown])[] = [
    ['an accessor', Object.defineProperty({}, 'x', { get: untouched, enumerable: true })],
    ['toJSON', { toJSON: untouched }],
    ['a date', new Date(0)],
    ['a map', new Map()],
    [
      'a class instance',
      new (class Point {
        readonly x = 1;
      })(),
    ],
    ['a function', untouched],
    ['a big integer', 1n],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a symbol as key', { [Symbol('key')]: 1 }],
    ['an array with holes', Object.assign([], { length: 2 })],
    ['undefined in an array', [undefined]],
  ];

  test.each(values)('%s [STATE-401]', async (_, value) => {
    const state = { ...paused(), context: { context: { value } } };
    await expect(RunState.fromJSON(desk, state)).rejects.toMatchObject({ name: 'UserError', code: 'json_not_plain' });
  });

  test('an object without prototype, and members that are undefined, are plain', async () => {
    const context = Object.assign(Object.create(null) as object, { tenant: 't1', none: undefined });
    const state = await RunState.fromJSON(desk, { ...paused(), context: { context } });
    expect(state.context.context).toEqual({ tenant: 't1' });
  });

  test('the value is copied: it is not changed, and changes of it reach no state [STATE-401]', async () => {
    const state = paused();
    const before = structuredClone(state);
    const restored = await RunState.fromJSON(desk, state);
    expect(state).toEqual(before);
    (state['context'] as { context: Members }).context['tenant'] = 'other';
    expect(restored.context.context).toEqual({ tenant: 't1' });
  });
});

describe('arguments of a restore', () => {
  test('what is no agent is a TypeError', async () => {
    await expect(RunState.fromString({ name: 'Desk' } as never, '{}')).rejects.toThrow(TypeError);
    await expect(RunState.fromJSON(undefined as never, {})).rejects.toThrow('not undefined');
  });

  test('parsed JSON in the place of the text is a TypeError that names the other function', async () => {
    await expect(RunState.fromString(desk, paused() as never)).rejects.toThrow(/fromJSON/);
  });

  test('an unknown option is a UserError that names the nearest one', async () => {
    await expect(RunState.fromString(desk, '{}', { strictcontext: true } as never)).rejects.toThrow(/strictContext/);
    await expect(RunState.fromJSON(desk, {}, { verifyKey: 'k' } as never)).rejects.toThrow(
      /Unknown option 'verifyKey'/,
    );
    await expect(RunState.fromJSON(desk, {}, { maxBytes: 0 })).rejects.toThrow(/maxBytes/);
  });

  test('the smallest state is enough', async () => {
    const state = await RunState.fromJSON(desk, minimalState());
    expect(state).toMatchObject({ status: 'ready', currentTurn: 0, maxTurns: 10, currentAgent: desk });
  });
});

async function failure(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}
