import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import type { LogRecord } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { contextInternals, createToolContext, RunContext } from '../state/context.ts';
import { newRecord } from '../state/copy.ts';
import { changed, minimalState, pythonState } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { RunState, stateOf } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });
let logs: LogRecord[] = [];
const warnings = (): string[] => logs.filter(({ level }) => level === 'warn').map(({ message }) => message);

beforeEach(() => {
  logs = [];
  configureLogging({ level: 'debug', sink: (record) => logs.push(record) });
});
afterEach(() => resetAll());

class Account {
  readonly tenant = 't1';
  readonly #key = 'k';
  get key(): string {
    return this.#key;
  }
}
class Model {
  readonly name = 'm';
  toJSON(): object {
    return { name: this.name, via: 'toJSON' };
  }
}
class Broken {
  readonly call = (): void => undefined;
}

const state = (context: unknown): RunState =>
  stateOf(newRecord({ agent: desk, context, input: 'hello', maxTurns: 10 }));
const written = (context: unknown, options: Parameters<RunState['toJSON']>[0] = {}): Members =>
  (state(context).toJSON(options) as unknown as { context: Members }).context;
const meta = (members: Members): Members => ({
  original_type: 'mapping',
  serialized_via: 'mapping',
  requires_deserializer: false,
  omitted: false,
  ...members,
});
const custom = (via: string, classPath?: string): Members =>
  meta({
    original_type: 'custom',
    serialized_via: via,
    requires_deserializer: true,
    omitted: via === 'omitted',
    ...(classPath !== undefined && { class_path: classPath }),
  });

describe('what is written of the application context', () => {
  test.each<[string, unknown, unknown, Members, number]>([
    ['undefined', undefined, null, meta({ original_type: 'none', serialized_via: 'none' }), 0],
    ['null', null, null, meta({ original_type: 'none', serialized_via: 'none' }), 0],
    [
      'a plain object',
      { tenant: 't1', none: undefined, at: new Date(0), list: [1, undefined] },
      { tenant: 't1', at: '1970-01-01T00:00:00.000Z', list: [1, null] },
      meta({}),
      0,
    ],
    ['an object without prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }, meta({}), 0],
    ['an object with toJSON', new Model(), { name: 'm', via: 'toJSON' }, custom('model_dump', 'Model'), 1],
    ['an instance with data', new Account(), { tenant: 't1' }, custom('asdict', 'Account'), 1],
    ['an instance whose data is no JSON', new Broken(), {}, custom('omitted', 'Broken'), 1],
    ['a map', new Map([['a', 1]]), {}, custom('omitted', 'Map'), 1],
    ['a list', [1], {}, custom('omitted', 'Array'), 1],
    ['a text', 'tenant', {}, custom('omitted'), 1],
    ['a function', () => 1, {}, custom('omitted'), 1],
  ])('%s [STATE-381], [STATE#68]', (_, context, value, expected, warned) => {
    const json = written(context);
    expect(json['context']).toEqual(value);
    expect(json['context_meta']).toEqual(expected);
    expect(warnings()).toHaveLength(warned);
  });

  test('strictContext refuses what is no plain object, and nothing else [STATE#68]', () => {
    for (const context of [new Account(), new Map(), 'text']) {
      expect(() => state(context).toString({ strictContext: true })).toThrow(
        expect.objectContaining({ name: 'UserError', code: 'context_not_object' }),
      );
    }
    for (const context of [undefined, null, { a: 1 }])
      expect(() => state(context).toString({ strictContext: true })).not.toThrow();
  });

  test('a serializer is always asked, also for plain objects [IL-078]', () => {
    const contextSerializer = (context: unknown): { id: unknown } => ({ id: (context as { id: unknown }).id });
    for (const context of [{ id: 7, client: () => 1 }, Object.assign(new Account(), { id: 7 })]) {
      const json = written(context, { contextSerializer, strictContext: true } as never);
      expect(json['context']).toEqual({ id: 7 });
      expect(json['context_meta']).toMatchObject({
        serialized_via: 'context_serializer',
        requires_deserializer: true,
        omitted: false,
      });
    }
    expect(written(null, { contextSerializer: () => ({ a: 1 }) })['context']).toBeNull();
    expect(warnings()).toEqual([]);
  });

  test('a serializer that throws, or gives something else', () => {
    const fails = (): never => {
      throw new Error('planted-secret');
    };
    expect(() => state({}).toJSON({ contextSerializer: fails })).toThrow(
      expect.objectContaining({ code: 'context_serializer_failed', message: expect.not.stringContaining('planted') }),
    );
    for (const result of [undefined, 'x', [], new Map()]) {
      expect(() => state({}).toJSON({ contextSerializer: () => result as never })).toThrow(
        expect.objectContaining({ code: 'context_serializer_result' }),
      );
    }
  });

  const cycle: Members = { a: {} };
  (cycle['a'] as Members)['b'] = cycle;
  test.each<[string, Members, string]>([
    ['a big integer', { a: { b: 1n } }, 'a.b'],
    ['a function', { a: [{}, { run: (): void => undefined }] }, 'a.1.run'],
    ['a symbol', { a: Symbol('s') }, 'a'],
    ['a map', { a: { m: new Map() } }, 'a.m'],
    ['a class instance', { account: new Account() }, 'account'],
    ['NaN', { n: Number.NaN }, 'n'],
    ['a cycle', cycle, 'a.b'],
  ])(
    '%s inside a plain context is an error that names the place and the option [STATE-385], [IL-079]',
    (_, context, path) => {
      const save = (): string => state(context).toString();
      expect(save).toThrow(expect.objectContaining({ name: 'UserError', code: 'context_not_json' }));
      expect(save).toThrow(`'${path}'`);
      expect(save).toThrow(/contextSerializer/);
    },
  );

  test('one value in two places is no cycle', () => {
    const shared = { x: 1 };
    expect(written({ a: shared, b: [shared, shared] })['context']).toEqual({ a: shared, b: [shared, shared] });
  });
});

describe('the context of a restored run', () => {
  const source = (): Members => pythonState('a1_function_interrupted.json');
  const helpless = (): Members => changed(source(), 'context.context_meta', custom('asdict', 'Account'));

  test('is the stored object, or null', async () => {
    expect((await RunState.fromJSON(desk, source())).context.context).toEqual({ tenant: 't1' });
    expect((await RunState.fromJSON(desk, changed(source(), 'context.context', null))).context.context).toBeNull();
    expect((await RunState.fromJSON(desk, minimalState())).context.context).toEqual({});
  });

  test('is the one that was given, whatever is stored [STATE-382]', async () => {
    const mine = new Account();
    const state = await RunState.fromJSON(desk, changed(source(), 'context.context', 'broken'), { context: mine });
    expect(state.context.context).toBe(mine);
    expect((await RunState.fromJSON(desk, source(), { context: null })).context.context).toBeNull();
  });

  test('is the RunContext that was given, with the approvals, the ledger and the usage of the snapshot [STATE-382]', async () => {
    const mine = new RunContext({ mine: true });
    contextInternals(mine).approvals.named.set('other', {
      approved: true,
      rejected: false,
      rejectionMessages: new Map(),
    });
    const state = await RunState.fromJSON(desk, source(), { context: mine });
    expect(state.context).toBe(mine);
    expect(mine.usage.requests).toBe(1);
    expect(contextInternals(mine).approvals.named.size).toBe(0);
    expect(contextInternals(mine).ledger.status('call_a1')).toMatchObject({ executed: false, completed: false });
  });

  test('is left as it was when the restore fails', async () => {
    const mine = new RunContext({ mine: true });
    const broken = changed(
      pythonState('a3_function_finished.json'),
      'context.tool_invocations.call_a1.fingerprint',
      '0'.repeat(64),
    );
    await expect(RunState.fromJSON(desk, broken, { context: mine })).rejects.toMatchObject({ code: 'ledger_mismatch' });
    expect(mine.usage.requests).toBe(0);
  });

  test('cannot be the context of a tool call', async () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' } as never;
    const tool = createToolContext(new RunContext(null), {
      agent: desk,
      toolCall: call,
      toolName: 'f',
      toolCallId: 'c',
      toolArguments: '{}',
      signal: new AbortController().signal,
      runKey: 'k',
    });
    await expect(RunState.fromJSON(desk, source(), { context: tool })).rejects.toMatchObject({
      code: 'context_wrapper_subclass',
    });
  });

  test('is what the deserializer gives', async () => {
    const state = await RunState.fromJSON(desk, helpless(), {
      contextDeserializer: (raw) => ({ restored: raw['tenant'] }),
      strictContext: true,
    });
    expect(state.context.context).toEqual({ restored: 't1' });
  });

  test('a deserializer that throws, or has no object to work on', async () => {
    const contextDeserializer = (): never => {
      throw new Error('planted-secret');
    };
    await expect(RunState.fromJSON(desk, source(), { contextDeserializer })).rejects.toSatisfy(
      (error: Error & { code: string }) =>
        error.code === 'context_deserializer_failed' && error.cause === undefined && !error.message.includes('planted'),
    );
    await expect(
      RunState.fromJSON(desk, changed(source(), 'context.context', null), { contextDeserializer }),
    ).rejects.toMatchObject({ code: 'context_not_object' });
  });

  test('a context that needs help is a warning, strictly an error [STATE-383]', async () => {
    const state = await RunState.fromJSON(desk, helpless());
    expect(state.context.context).toEqual({ tenant: 't1' });
    expect(warnings().join()).toMatch(/contextDeserializer/);
    await expect(RunState.fromJSON(desk, helpless(), { strictContext: true })).rejects.toMatchObject({
      code: 'context_needs_deserializer',
    });
    await expect(RunState.fromJSON(desk, helpless(), { strictContext: true, context: {} })).resolves.toBeInstanceOf(
      RunState,
    );
  });

  test('still needs help when it is written again as it was, and not when it was replaced', async () => {
    const state = await RunState.fromJSON(desk, helpless());
    expect((state.toJSON() as unknown as { context: Members }).context['context_meta']).toEqual(
      custom('asdict', 'Account'),
    );
    contextInternals(state.context).value = { tenant: 't1' };
    expect((state.toJSON() as unknown as { context: Members }).context['context_meta']).toEqual(meta({}));
  });

  test('the input of an agent tool survives unless the context is replaced [STATE-386]', async () => {
    const json = changed(source(), 'context.tool_input', { question: [1, 'é'] });
    const state = await RunState.fromJSON(desk, json);
    expect(state.context.toolInput).toEqual({ question: [1, 'é'] });
    expect((state.toJSON() as unknown as { context: Members }).context['tool_input']).toEqual({ question: [1, 'é'] });
    expect((await RunState.fromJSON(desk, json, { context: {} })).context.toolInput).toBeUndefined();
  });

  test('usage is read in both forms, invalid details count as zeros, unknown members stay', async () => {
    const usage = {
      requests: 2,
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 3, audio: 1 },
      output_tokens: 4,
      output_tokens_details: ['x'],
      total_tokens: 14,
      request_usage_entries: [
        {
          input_tokens: 10,
          output_tokens: 4,
          total_tokens: 14,
          input_tokens_details: { cached_tokens: 3, audio: 1 },
          output_tokens_details: 7,
        },
      ],
    };
    const state = await RunState.fromJSON(desk, changed(source(), 'context.usage', usage));
    expect(state.usage).toMatchObject({
      requests: 2,
      inputTokens: 10,
      outputTokens: 4,
      totalTokens: 14,
      inputTokensDetails: { cachedTokens: 3, cacheWriteTokens: 0 },
      outputTokensDetails: { reasoningTokens: 0 },
    });
    const again = (state.toJSON() as unknown as { context: { usage: Members } }).context.usage;
    expect(again['input_tokens_details']).toEqual([{ cached_tokens: 3, cache_write_tokens: 0, audio: 1 }]);
    expect((again['request_usage_entries'] as Members[])[0]).toMatchObject({
      input_tokens_details: { cached_tokens: 3, cache_write_tokens: 0, audio: 1 },
    });
  });
});

describe('decisions in the JSON', () => {
  const source = (): Members => pythonState('a1_function_interrupted.json');
  const approvalsOf = async (json: Members): Promise<ReturnType<typeof contextInternals>['approvals']> =>
    contextInternals((await RunState.fromJSON(desk, json)).context).approvals;

  test('what is not of the right kind decides nothing [STATE-410]', async () => {
    const named = {
      a: { approved: 'true', rejected: 1 },
      b: { approved: [['call_a1']], rejected: null },
      c: 'x',
      d: null,
      e: [],
    };
    const { named: read } = await approvalsOf(changed(source(), 'context.approvals', named));
    expect([...read].map(([key, { approved, rejected }]) => [key, approved, rejected])).toEqual([
      ['a', [], []],
      ['b', [], []],
    ]);
    expect((await approvalsOf(changed(source(), 'context.approvals', ['x']))).named.size).toBe(0);
  });

  test('hosted decisions are kept and sorted, malformed ones skipped, older labels have none', async () => {
    const decision = { approved: true, rejected: [], sticky_scope: 'a'.repeat(64) };
    const entry = (identity: Members): Members => ({ identity, decision });
    const query = entry({ type: 'query', tool_name: 't', request_id: 'r' });
    const request = entry({ type: 'request', request_id: 'r' });
    const server = [
      entry({ type: 'server_tool', server_label: 'a', tool_name: 't' }),
      entry({ type: 'server_tool', server_label: 'b', tool_name: 't' }),
    ];
    const json = changed(source(), 'context.hosted_mcp_approvals', [
      query,
      'x',
      { identity: { type: 'later' }, decision },
      { identity: query['identity'] },
      server[1],
      request,
      server[0],
    ]);
    const again = (await RunState.fromJSON(desk, json)).toJSON() as unknown as { context: Members };
    expect(again.context['hosted_mcp_approvals']).toEqual([...server, request, query]);
    expect((await approvalsOf({ ...json, $schemaVersion: '1.13' })).hosted).toEqual([]);
  });
});
