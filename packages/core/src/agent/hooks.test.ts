import { describe, expect, test } from 'vitest';
import { UserError } from '../base/errors.ts';
import { checkAgentHooks, checkRunHooks } from './hooks.ts';

const noop = (): void => {};

describe('hooks of a run', () => {
  test('of one agent belong to the agent [RUN-801]', () => {
    expect(() => checkRunHooks({ onStart: noop, onToolStart: noop })).toThrow(TypeError);
    expect(() => checkRunHooks({ onEnd: noop })).toThrow(/agent\.hooks/);
  });

  test.each([
    ['x', 'a string'],
    [7, '7'],
    [null, 'null'],
    [[], 'an array'],
    [noop, 'a function'],
    [{}, 'an object'],
    [{ foo: noop }, 'an object'],
  ])('%o is none [RUN-801]', (hooks, kind) => {
    expect(() => checkRunHooks(hooks)).toThrow(TypeError);
    expect(() => checkRunHooks(hooks)).toThrow(kind);
  });

  test('may be an instance with members of its own', () => {
    class Mine {
      onStart = noop;
      counter = 0;
      onAgentStart(): void {
        this.counter++;
      }
    }
    expect(() => checkRunHooks(new Mine())).not.toThrow();
    expect(() => checkRunHooks({ onLlmEnd: noop, onRunStart: undefined })).not.toThrow();
  });

  test('are functions, and hooks that exist', () => {
    expect(() => checkRunHooks({ onAgentStart: 1 })).toThrow(UserError);
    expect(() => checkRunHooks({ onLlmStart: noop, onLLMEnd: noop })).toThrow(
      /no hook onLLMEnd. Did you mean onLlmEnd/,
    );
    expect(() => checkRunHooks({ onAgentStart: noop, onHandOff: noop })).toThrow(/onHandoff/);
  });
});

test('hooks of an agent are objects with hooks of agents', () => {
  const check = (hooks: unknown): void => checkAgentHooks(hooks, 'agent x');
  expect(() => check({ onStart: noop, onLlmEnd: noop })).not.toThrow();
  expect(() => check({ onAgentStart: noop })).toThrow(/agent x: .*Give them to `run`/);
  expect(() => check(noop)).toThrow(UserError);
  expect(() => check({ onStart: 'x' })).toThrow(/onStart takes a function/);
  expect(() => check({ onStarted: noop })).toThrow(/Did you mean onStart/);
});
