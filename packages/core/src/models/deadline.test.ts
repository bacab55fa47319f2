import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ModelTimeoutError, RunAbortedError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { text } from '../testing/builders.ts';
import { modelRequest } from '../testing/request.ts';
import { callModel } from './call.ts';
import type { Model, ModelRequest, ModelResponse, ResponseMetadata } from './model.ts';
import { synthesizeStream } from './synthesize.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const answer: ModelResponse = { output: [text('Hi.')], usage: toUsage() };
type Events = AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;
const never = (): never => {
  throw new Error('This form is not called.');
};
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const request = (timeoutMs: number | null, more: Partial<ModelRequest> = {}): ModelRequest =>
  modelRequest({ modelSettings: { timeoutMs }, ...more });

/** How a call ended, and when. */
function follow(call: Promise<unknown>): { ended: string | undefined; outcome: unknown } {
  const seen: { ended: string | undefined; outcome: unknown } = { ended: undefined, outcome: undefined };
  const end =
    (how: string) =>
    (outcome: unknown): void => {
      seen.ended = how;
      seen.outcome = outcome;
    };
  call.then(end('resolved'), end('rejected'));
  return seen;
}

/** Rejects when its signal fires, after `cleanupMs`, with an error of the client. */
const obedient = (cleanupMs = 0): Model & { readonly signals: AbortSignal[] } => {
  const signals: AbortSignal[] = [];
  const stopped = (signal: AbortSignal | undefined): Promise<never> =>
    new Promise((_, reject) => {
      if (!signal) return;
      signals.push(signal);
      signal.addEventListener('abort', () => setTimeout(() => reject(new Error('cleanup')), cleanupMs));
    });
  return {
    signals,
    getResponse: ({ signal }) => stopped(signal),
    async *streamResponse({ signal }) {
      yield* synthesizeStream(answer).filter((event) => event.type === 'response.created');
      await stopped(signal);
    },
  };
};

describe.each([
  ['plain', undefined],
  ['streamed', () => {}],
] as const)('the time limit of a call (%s)', (_, onEvent) => {
  it('is an error of its own, with the configured time; the attempt is aborted [MODEL-840, 841, 842]', async () => {
    const model = obedient();
    const seen = follow(callModel(model, request(50), onEvent));
    await vi.advanceTimersByTimeAsync(49);
    expect(seen.ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2);
    expect(seen.outcome).toBeInstanceOf(ModelTimeoutError);
    expect(seen.outcome).toMatchObject({
      code: 'model_timeout',
      timeoutMs: 50,
      message: expect.stringMatching(/timed out.*50 ms/),
    });
    expect((seen.outcome as Error).cause).toBeUndefined();
    expect(model.signals.map((signal) => signal.reason)).toEqual([seen.outcome]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('waits for the cleanup of the attempt, for a second at most [MODEL-841]', async () => {
    const slow = follow(callModel(obedient(400), request(50), onEvent));
    await vi.advanceTimersByTimeAsync(449);
    expect(slow.ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(slow.outcome).toBeInstanceOf(ModelTimeoutError);
    const deaf = follow(callModel(obedient(1e9), request(50), onEvent));
    await vi.advanceTimersByTimeAsync(1049);
    expect(deaf.ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(deaf.outcome).toBeInstanceOf(ModelTimeoutError);
  });

  it('gives way to an abort of the run, before the end of the time and during the cleanup [MODEL-841, 842]', async () => {
    for (const before of [20, 500]) {
      const run = new AbortController();
      const model = obedient(1e9);
      const seen = follow(callModel(model, request(50, { signal: run.signal }), onEvent));
      await vi.advanceTimersByTimeAsync(before);
      run.abort('enough');
      await vi.advanceTimersByTimeAsync(0);
      expect(seen.outcome).toBeInstanceOf(RunAbortedError);
      expect((seen.outcome as Error).cause).toBe('enough');
      const reason: unknown = model.signals[0]?.reason;
      expect(before === 20 ? reason : reason instanceof ModelTimeoutError).toBe(before === 20 ? 'enough' : true);
    }
  });

  it('leaves no timer behind when the model answers, fails, or is aborted', async () => {
    const quick: Model = {
      getResponse: async () => answer,
      async *streamResponse() {
        yield* synthesizeStream(answer);
      },
    };
    const broken: Model = {
      getResponse: async () => Promise.reject(new Error('down')),
      // oxlint-disable-next-line require-yield -- fails before its first event
      async *streamResponse() {
        throw new Error('down');
      },
    };
    await callModel(quick, request(50), onEvent);
    await expect(callModel(broken, request(50), onEvent)).rejects.toThrow('down');
    const run = new AbortController();
    const seen = follow(callModel(obedient(), request(50, { signal: run.signal }), onEvent));
    await vi.advanceTimersByTimeAsync(1);
    run.abort();
    await vi.advanceTimersByTimeAsync(0);
    expect([seen.ended, vi.getTimerCount()]).toEqual(['rejected', 0]);
  });

  it('is none when it is null; the longest are waited for, and do not fire at once [MODEL-840]', async () => {
    const unlimited = follow(callModel(obedient(), request(null), onEvent));
    await vi.advanceTimersByTimeAsync(1e9);
    expect([unlimited.ended, vi.getTimerCount()]).toEqual([undefined, 0]);
    const long = follow(callModel(obedient(), request(2 ** 31 + 10), onEvent));
    await vi.advanceTimersByTimeAsync(2 ** 31 + 9);
    expect(long.ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2);
    expect(long.outcome).toBeInstanceOf(ModelTimeoutError);
  });
});

describe('the clock of a stream', () => {
  const events = synthesizeStream(answer);
  const streaming = (pauses: (index: number) => number): Model => ({
    getResponse: never,
    async *streamResponse(): Events {
      for (const [index, event] of events.entries()) {
        await wait(pauses(index));
        yield event;
      }
    },
  });

  it('counts all waits for the model together [MODEL-840]', async () => {
    const types: string[] = [];
    const seen = follow(
      callModel(
        streaming(() => 20),
        request(50),
        (event) => types.push(event.type),
      ),
    );
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen.outcome).toBeInstanceOf(ModelTimeoutError);
    expect(types).toEqual(events.slice(0, 2).map((event) => event.type));
  });

  it('stands still while an event is handled [MODEL-843] [MODEL#24]', async () => {
    const handling = (): void => void vi.advanceTimersByTime(200);
    const seen = follow(
      callModel(
        streaming(() => 4),
        request(50),
        handling,
      ),
    );
    for (let i = 0; i < 100; i += 1) await vi.advanceTimersByTimeAsync(4);
    expect(seen.ended).toBe('resolved');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on with what was left when the event is handled [MODEL-843]', async () => {
    let handled = 0;
    const handling = (): void => {
      if (handled++ === 0) vi.advanceTimersByTime(500);
    };
    const hangs = streaming((index) => (index === 0 ? 20 : 1e9));
    const seen = follow(callModel(hangs, request(50), handling));
    await vi.advanceTimersByTimeAsync(20 + 29);
    expect(seen.ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1 + 1000);
    expect(seen.outcome).toBeInstanceOf(ModelTimeoutError);
  });

  it('passes no event on after its end, and closes the stream', async () => {
    const closed = vi.fn<() => void>();
    const model: Model = {
      getResponse: never,
      async *streamResponse(): Events {
        try {
          await wait(100);
          yield* events;
        } finally {
          closed();
        }
      },
    };
    const types: string[] = [];
    const seen = follow(callModel(model, request(50), (event) => types.push(event.type)));
    await vi.advanceTimersByTimeAsync(99);
    expect(seen.ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect([seen.outcome instanceof ModelTimeoutError, types, closed.mock.calls.length]).toEqual([true, [], 1]);
  });
});
