import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import {
  AgentsError,
  MaxTurnsExceededError,
  MissingCredentialsError,
  ModelBehaviorError,
  ModelRefusalError,
  ModelStreamTruncatedError,
  RunAbortedError,
  ToolCallError,
  UserError,
  attachRunData,
  getRunErrorDetails,
  getRunErrorState,
  withoutRunData,
} from './errors.ts';
import type { RunErrorDetails } from './errors.ts';
import type { RunState } from '../snapshot/run-state.ts';

const runData = {
  lastAgent: { name: 'Desk', instructions: 'SECRET' },
  newItems: ['SECRET', 2],
  rawResponses: [1],
} as unknown as RunErrorDetails;
const state = { currentTurn: 1 } as unknown as RunState;

const all: [AgentsError, string, string][] = [
  [new AgentsError('m'), 'AgentsError', 'agents_error'],
  [new UserError('m'), 'UserError', 'user_error'],
  [new ToolCallError('m', { toolName: 't' }), 'ToolCallError', 'tool_call'],
  [new MissingCredentialsError('m'), 'MissingCredentialsError', 'missing_credentials'],
  [new MaxTurnsExceededError('m', { maxTurns: 3 }), 'MaxTurnsExceededError', 'max_turns_exceeded'],
  [new ModelBehaviorError('m'), 'ModelBehaviorError', 'model_behavior'],
  [
    new ModelStreamTruncatedError('m', { responseStarted: true }),
    'ModelStreamTruncatedError',
    'model_stream_truncated',
  ],
  [new ModelRefusalError('m', { refusal: 'no' }), 'ModelRefusalError', 'model_refusal'],
  [new RunAbortedError('m'), 'AbortError', 'aborted'],
];

describe('error classes', () => {
  test.each(all)('%s: name %s, code %s [RUN-1800] [RUN-1804]', (error, name, code) => {
    expect(error.name).toBe(name);
    expect(error.code).toBe(code);
    expect(error.stack).toMatch(new RegExp(`^${name}: m\n`));
    expect(error).toBeInstanceOf(AgentsError);
    expect(Object.keys(error)).not.toContain('name');
  });

  test('a code can be more specific than that of the class [RUN-1800]', () => {
    expect(new UserError('m', { code: 'state_busy' }).code).toBe('state_busy');
    expect(new ModelBehaviorError('m', { code: 'call_id_reused' }).code).toBe('call_id_reused');
    expectTypeOf(new RunAbortedError().code).toEqualTypeOf<'aborted'>();
  });

  test('classes of the hierarchy tell themselves apart [RUN-1804]', () => {
    const tool = new ToolCallError('m', { toolName: 't', cause: 7 });
    expect(tool).toBeInstanceOf(UserError);
    expect(tool).not.toBeInstanceOf(ModelBehaviorError);
    expect(new UserError('m')).not.toBeInstanceOf(ToolCallError);
    expect(tool).toMatchObject({ toolName: 't', cause: 7 });
    expect('cause' in new UserError('m')).toBe(false);
  });

  test('instanceof works over two copies of the package [RUN-1804]', async () => {
    vi.resetModules();
    const copy = await import('./errors.ts');
    const foreign = new copy.ModelStreamTruncatedError('m', { responseStarted: false });
    expect(copy.AgentsError).not.toBe(AgentsError);
    expect(foreign).toBeInstanceOf(ModelStreamTruncatedError);
    expect(foreign).toBeInstanceOf(AgentsError);
    expect(foreign).not.toBeInstanceOf(UserError);
    copy.attachRunData(foreign, { runData, state });
    expect(getRunErrorDetails(foreign)).toBe(runData);
  });

  test('the members of a failed response are there but not in log lines', () => {
    const response = { output: [], usage: {} } as never;
    const error = new ModelBehaviorError('m', { response, status: 'failed', responseError: { code: 'x' } });
    expect(error.response).toBe(response);
    expect(error.status).toBe('failed');
    expect(error.responseError).toEqual({ code: 'x' });
    expect(Object.keys(error)).toEqual(['code', 'status']);
  });
});

describe('data of the run', () => {
  test('runData and state are members of every error, undefined until it leaves a run [RUN-1801]', () => {
    for (const [error] of all) {
      expect('runData' in error && 'state' in error).toBe(true);
      expect([error.runData, error.state]).toEqual([undefined, undefined]);
    }
  });

  test('are made when first asked for, once [RUN-1801] [RUN-1803]', () => {
    const error = new UserError('m');
    const source = { runData: vi.fn<() => RunErrorDetails>(() => runData), state: vi.fn<() => RunState>(() => state) };
    expect(attachRunData(error, source)).toBe(error);
    expect(source.runData).not.toHaveBeenCalled();
    expect([error.runData, error.runData, getRunErrorDetails(error)]).toEqual([runData, runData, runData]);
    expect([error.state, getRunErrorState(error)]).toEqual([state, state]);
    expect(source.runData).toHaveBeenCalledTimes(1);
    expect(source.state).toHaveBeenCalledTimes(1);
  });

  test('an error that has data keeps that of the inner run [RUN-1801]', () => {
    const error = attachRunData(new UserError('m'), { runData, state: undefined }) as UserError;
    attachRunData(error, { runData: {} as never, state });
    expect(error.runData).toBe(runData);
    expect(error.state).toBeUndefined();
  });

  test('an error that is not ours stays the same object and shows nothing new [RUN-1801] [RUN-1807]', () => {
    const error = new TypeError('m');
    expect(attachRunData(error, { runData, state })).toBe(error);
    expect(getRunErrorDetails(error)).toBe(runData);
    expect(getRunErrorState(error)).toBe(state);
    expect(Object.keys(error)).toEqual([]);
    expect(inspect(error)).not.toContain('SECRET');
    expect(getRunErrorDetails(new Error('other', { cause: error }))).toBeUndefined();
  });

  test.each([['a text'], [undefined], [null], [Object.freeze(new Error('frozen'))]])(
    'a thrown value that can carry nothing is wrapped (%#) [RUN-1801]',
    (thrown) => {
      const error = attachRunData(thrown, { runData, state }) as AgentsError;
      expect(error).toBeInstanceOf(AgentsError);
      expect(error.code).toBe('agents_error');
      expect(error.cause).toBe(thrown);
      expect(error.runData).toBe(runData);
      expect(error.message).not.toContain('a text');
    },
  );

  test('a redacted error never gets any [RUN-1806]', () => {
    const error = withoutRunData(new UserError('m'));
    expect(attachRunData(error, { runData, state })).toBe(error);
    expect([error.runData, error.state, getRunErrorDetails(error)]).toEqual([undefined, undefined, undefined]);
  });

  test('other values have none', () => {
    for (const value of [undefined, null, 'x', {}, new Error('m')]) expect(getRunErrorDetails(value)).toBeUndefined();
  });
});

describe('printing', () => {
  test('JSON is name, code and message [RUN-1805]', () => {
    const error = attachRunData(new ToolCallError('m', { toolName: 't', cause: 'SECRET' }), { runData, state });
    expect(JSON.parse(JSON.stringify(error))).toEqual({ name: 'ToolCallError', code: 'tool_call', message: 'm' });
  });

  test('inspect shows runData as a summary [RUN-1805]', () => {
    const error = attachRunData(new MaxTurnsExceededError('Max turns (3) exceeded', { maxTurns: 3 }), {
      runData,
      state,
    });
    const text = inspect(error);
    expect(text).toContain('MaxTurnsExceededError: Max turns (3) exceeded');
    expect(text).toContain('maxTurns: 3');
    expect(text).toContain('runData: [lastAgent: Desk, newItems: 2, rawResponses: 1]');
    expect(text).not.toContain('SECRET');
    expect(inspect(new UserError('m'))).not.toContain('runData');
  });

  test('inspect survives data that cannot be made', () => {
    const error = new UserError('m');
    attachRunData(error, {
      runData: () => {
        throw new Error('broken');
      },
      state,
    });
    expect(inspect(error)).toContain('runData: [unavailable]');
  });
});

test('what cannot be told of a run never hides its error: there is no runData then, and the state stands [RUN-1224]', () => {
  const failing = (): never => {
    throw new Error('no agent of that name');
  };
  const error = attachRunData(new UserError('the cause'), { runData: failing, state }) as UserError;
  expect([error.message, error.runData, error.state]).toEqual(['the cause', undefined, state]);
  expect(inspect(error)).toContain('the cause');
  expect(getRunErrorDetails(attachRunData(new Error('foreign'), { runData: failing, state }))).toBeUndefined();
});
