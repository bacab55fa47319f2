import { afterEach, describe, expect, it } from 'vitest';
import { Agent, configureLogging, RunAbortedError, runStreamed, tool } from '../index.ts';
import type { AgentOptions, Model, RunOptions, Session } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { idle, PlainSession, readAll, rejection, resultOf, unhandledDuring } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

const never = (): Promise<never> => new Promise(() => {});

/** A hang shows as this. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | 'hangs'> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    return await Promise.race([
      promise,
      new Promise<'hangs'>((resolve) => {
        timer = setTimeout(() => resolve('hangs'), ms);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** A signal whose listeners are counted. */
function counted(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    count += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    count -= 1;
    remove(...args);
  };
  return { controller, listeners: () => count };
}

function nameless(getSessionId: () => Promise<string>): Session {
  const { getItems, addItems, popItem, clearSession } = new PlainSession();
  return { sessionId: undefined, getItems, addItems, popItem, clearSession, getSessionId };
}

bothForms((runForm, form) => {
  describe(`a callback that never settles (${form})`, () => {
    const cases: readonly (readonly [
      string,
      (reached: () => Promise<never>) => { model?: Model; options: RunOptions },
    ])[] = [
      ['hooks.onRunStart', (reached) => ({ options: { hooks: { onRunStart: reached } } })],
      ['hooks.onRunEnd', (reached) => ({ options: { hooks: { onRunEnd: reached } } })],
      [
        'model.onRunEnd',
        (reached) => {
          const model: Model = new ScriptedModel(['done']);
          model.onRunEnd = reached;
          return { model, options: {} };
        },
      ],
      ['session.getSessionId', (reached) => ({ options: { session: nameless(reached) } })],
      [
        'session.getItems',
        (reached) => {
          const session = new PlainSession();
          session.getItems = reached;
          return { options: { session } };
        },
      ],
    ];
    it.each(cases)('ends with the abort: %s [RUN-306, RUN-512, RUN-216, MODEL-110]', async (name, make) => {
      configureLogging({ sink: () => {} });
      const { controller, listeners } = counted();
      const { model, options } = make(() => {
        setTimeout(() => controller.abort(), 5);
        return never();
      });
      const agent = new Agent({ name: 'A', model: model ?? new ScriptedModel(['done']) });
      const ended = await within(
        3000,
        (async () => await resultOf(runForm(agent, 'go', { ...options, signal: controller.signal })))().then(
          (result) => result.status,
          (error: unknown) => (error instanceof RunAbortedError ? 'aborted' : error),
        ),
      );
      // What was complete before the abort stays so.
      expect(ended).toBe(name.endsWith('onRunEnd') ? 'completed' : 'aborted');
      expect(listeners()).toBe(0);
    });

    const guards: readonly (readonly [string, (ask: () => Promise<never>) => Partial<AgentOptions>])[] = [
      [
        'a blocking input guardrail',
        (ask) => ({ inputGuardrails: [{ name: 'g', runInParallel: false, execute: ask }] }),
      ],
      ['an input guardrail beside the model', (ask) => ({ inputGuardrails: [{ name: 'g', execute: ask }] })],
      ['an output guardrail', (ask) => ({ outputGuardrails: [{ name: 'g', execute: ask }] })],
      [
        'an input guardrail of a tool',
        (ask) => ({ tools: [tool({ name: 't', execute: () => 1, inputGuardrails: [{ name: 'g', execute: ask }] })] }),
      ],
      [
        'an output guardrail of a tool',
        (ask) => ({ tools: [tool({ name: 't', execute: () => 1, outputGuardrails: [{ name: 'g', execute: ask }] })] }),
      ],
    ];
    it.each(guards)('ends with the abort: %s [RUN-512, RUN-1418, RUN-914, RUN-306]', async (name, make) => {
      const { controller, listeners } = counted();
      const unhandled = await unhandledDuring(async () => {
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([name.endsWith('a tool') ? toolCall('t', {}, { callId: 'c1' }) : 'done']),
          ...make(() => {
            setTimeout(() => controller.abort(), 5);
            return never();
          }),
        });
        const ended = rejection((async () => await resultOf(runForm(agent, 'go', { signal: controller.signal })))());
        expect(await within(3000, ended)).toBeInstanceOf(RunAbortedError);
      });
      expect([listeners(), unhandled]).toEqual([0, []]);
    });

    it('that is told of the end of an aborted run is given a moment only [RUN-216, RUN-512]', async () => {
      configureLogging({ sink: () => {} });
      const controller = new AbortController();
      const outcomes: string[] = [];
      const agent = new Agent({ name: 'A', model: new ScriptedModel(['done']) });
      const slow = async (kind: string): Promise<void> => {
        await idle();
        outcomes.push(kind);
      };
      const hooks = {
        onLlmStart: () => {
          controller.abort();
        },
        onRunEnd: async (_ctx: unknown, outcome: string) => {
          await slow(outcome);
          await never();
        },
      };
      const ended = rejection(
        (async () => await resultOf(runForm(agent, 'go', { hooks, signal: controller.signal })))(),
      );
      expect(await within(3000, ended)).toBeInstanceOf(RunAbortedError);
      expect(outcomes).toEqual(['cancelled']);
    });
  });
});

describe('a stream of a model', () => {
  const failing = (onReturn: () => Promise<never>): Model =>
    ({
      getResponse: never,
      streamResponse: () => ({
        [Symbol.asyncIterator]() {
          return this;
        },
        next: async () => ({ done: false, value: { type: 'error', message: 'broken', code: 'x', sequence_number: 0 } }),
        return: onReturn,
        throw: never,
      }),
    }) as unknown as Model;

  it('that fails and never closes does not hold the run [MODEL-106, RUN-512, RUN-1308]', async () => {
    let closed = 0;
    const model = failing(() => {
      closed += 1;
      return never();
    });
    const stream = runStreamed(new Agent({ name: 'A', model }), 'go');
    const error = await within(3000, rejection(readAll(stream)));
    expect(error).toMatchObject({ code: 'model_behavior' });
    expect(await within(3000, rejection(stream.completed))).toBe(error);
    expect(closed).toBe(1);
  });

  it('that hangs in `next` and `return` ends with a cancel [RUN-1412, RUN-512]', async () => {
    const model = { getResponse: never, streamResponse: () => ({ next: never, return: never }) } as unknown as Model;
    const stream = runStreamed(new Agent({ name: 'A', model }), 'go');
    await idle();
    stream.cancel();
    expect(await within(3000, rejection(stream.completed))).toBeInstanceOf(RunAbortedError);
  });
});
