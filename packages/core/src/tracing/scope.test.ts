import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { InMemoryTraceProcessor } from '../testing/trace-processor.ts';
import { createSpan, createTrace } from './create.ts';
import { addTraceProcessor } from './processors.ts';
import { configureTracing, setTracingDisabled } from './provider.ts';
import {
  bindTraceContext,
  enterNoop,
  enterScope,
  getCurrentSpan,
  getCurrentTrace,
  runInScope,
  withTraceContext,
} from './scope.ts';
import { withSpan, withTrace } from './with.ts';
import type { Span, Trace, TraceProcessor } from './types.ts';

afterEach(resetAll);

function record(): InMemoryTraceProcessor {
  const recorder = new InMemoryTraceProcessor();
  addTraceProcessor(recorder);
  return recorder;
}

/** A storage that keeps nothing. */
const none = { getStore: () => undefined, run: <R>(_store: unknown, fn: () => R): R => fn() };

it('has no current trace outside, and makes no storage to find that out [TRACE-C1, C8]', () => {
  expect([getCurrentTrace(), getCurrentSpan()]).toEqual([undefined, undefined]);
});

it('restores the scope after values, errors and promises [TRACE-C8]', async () => {
  record();
  const outer = createTrace('outer').start();
  await withTraceContext(outer, async () => {
    withSpan({ type: 'custom', name: 'a' }, () => expect(getCurrentSpan()).toBeDefined());
    expect(() =>
      withSpan({ type: 'custom', name: 'b' }, () => {
        throw new Error('x');
      }),
    ).toThrow('x');
    await withSpan({ type: 'custom', name: 'c' }, async () => sleep(1));
    expect([getCurrentTrace(), getCurrentSpan()]).toEqual([outer, undefined]);
    withTraceContext(null, () => expect(getCurrentTrace()).toBeUndefined());
    expect(getCurrentTrace()).toBe(outer);
  });
  expect(getCurrentTrace()).toBeUndefined();
});

it('keeps 100 parallel traces with three parallel spans each apart [TRACE-C2, C19]', async () => {
  const recorder = record();
  await Promise.all(
    Array.from({ length: 100 }, (_, run) =>
      withTrace(`run ${run}`, () =>
        Promise.all(
          ['x', 'y', 'z'].map((tool) =>
            withSpan({ type: 'function', name: `${run}${tool}` }, async () => {
              await sleep(Math.random() * 3);
              await withSpan({ type: 'custom', name: `${run}${tool}` }, () => sleep(Math.random() * 3));
            }),
          ),
        ),
      ),
    ),
  );
  const customs = recorder.spans.filter((span) => span.type === 'custom');
  expect(customs).toHaveLength(300);
  for (const span of customs)
    expect(span.parent).toMatchObject({ type: 'function', spanData: { name: span.spanData.name } });
  expect(new Set(recorder.tree().map((tree) => tree.children.length))).toEqual(new Set([3]));
  expect(getCurrentTrace()).toBeUndefined();
});

it('leaves the user alone with the stores of his own [TRACE-C4, C17]', async () => {
  record();
  const store = new AsyncLocalStorage<string>();
  const seen = await store.run('x', () =>
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'a' }, async () => {
        await sleep(1);
        return store.getStore();
      }),
    ),
  );
  expect(seen).toBe('x');
});

it('needs no scope to finish spans [TRACE-C12]', () => {
  const recorder = record();
  const span = withTrace('t', () => createSpan({ type: 'custom', name: 'x' }).start());
  withTrace('other', () => span.finish());
  expect(span.endTimeMs).toBeDefined();
  expect(recorder.spans).toEqual([span]);
});

it('keeps the scope for callbacks that are called from elsewhere, with their arguments and their this [TRACE-C13]', () => {
  record();
  const emitter = new EventEmitter();
  const seen: unknown[] = [];
  const trace = withTrace('t', (current) => {
    emitter.on(
      'data',
      bindTraceContext(function on(this: unknown, ...args: number[]) {
        seen.push(this, args, getCurrentTrace());
      }),
    );
    return current;
  });
  emitter.emit('data', 1, 2);
  expect(seen).toEqual([emitter, [1, 2], trace]);
  const outside = bindTraceContext(() => getCurrentTrace());
  expect(withTrace('other', outside)).toBeUndefined();
  expect(bindTraceContext(() => getCurrentTrace(), trace)()).toBe(trace);
});

it('hangs late spans of timers and forgotten promises on the span they were begun in, also after its trace [TRACE-C20, C21]', async () => {
  const lines: string[] = [];
  configureLogging({ level: 'debug', sink: ({ message }) => lines.push(message) });
  const recorder = record();
  const made: Span[] = [];
  const add = (): void => void made.push(createSpan({ type: 'custom', name: 'late' }).start());
  withTrace('t', () =>
    withSpan({ type: 'function', name: 'f' }, () => {
      void sleep(1).then(add);
      setTimeout(add, 1);
    }),
  );
  await vi.waitFor(() => expect(made).toHaveLength(2));
  for (const span of made) {
    span.finish();
    expect(span.parent).toMatchObject({ type: 'function' });
  }
  expect(recorder.spans).toHaveLength(3);
  expect(lines).toContain('A span ended after its trace.');
});

it('works with explicit parents where nothing keeps the context [TRACE-C9, T42]', async () => {
  const recorder = record();
  configureTracing({ storage: none });
  const trace = createTrace('t').start();
  await withSpan(
    { type: 'function', name: 'f' },
    async (span) => {
      await sleep(1);
      expect([getCurrentTrace(), getCurrentSpan()]).toEqual([undefined, undefined]);
      withSpan({ type: 'custom', name: 'inside' }, () => {}, { parent: span });
      expect(createSpan({ type: 'custom', name: 'lost' }).isNoop).toBe(true);
    },
    { parent: trace },
  );
  trace.finish();
  expect(recorder.tree()).toMatchObject([{ name: 't', children: [{ name: 'f', children: [{ name: 'inside' }] }] }]);
});

it('hides the surrounding trace from code where nothing is traced, and brings it back [TRACE-N23, M16, N17]', async () => {
  const recorder = record();
  await withTrace('outer', async (outer) => {
    await enterNoop(async () => {
      await sleep(1);
      expect([getCurrentTrace()?.traceId, getCurrentSpan()?.spanId]).toEqual(['no-op', 'no-op']);
      const span = createSpan({ type: 'custom', name: 'x' });
      expect(span).toMatchObject({ isNoop: true, parentId: undefined });
      withSpan({ type: 'custom', name: 'deep' }, () => withSpan({ type: 'custom', name: 'deeper' }, () => {}));
    });
    expect(getCurrentTrace()).toBe(outer);
  });
  expect(recorder.spans).toEqual([]);
});

it('answers by a flag test while tracing is off for the process [TRACE-N23]', () => {
  const used: string[] = [];
  configureTracing({
    storage: {
      getStore: () => used.push('getStore'),
      run: (_store, fn) => {
        used.push('run');
        return fn();
      },
    },
  });
  setTracingDisabled(true);
  const span = createSpan({ type: 'custom', name: 'x' });
  const seen = runInScope(span, () =>
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'x' }, () => [getCurrentTrace()?.traceId, getCurrentSpan()?.spanId]),
    ),
  );
  expect(seen).toEqual(['no-op', 'no-op']);
  expect(bindTraceContext(() => 1)()).toBe(1);
  expect(used).toEqual([]);
});

it('is inside a disabled span: the trace stays, nothing below is traced [TRACE-M16, A4]', () => {
  const recorder = record();
  withTrace('t', (trace) => {
    withSpan(
      { type: 'custom', name: 'off' },
      (off) => {
        expect(getCurrentTrace()).toBe(trace);
        expect(getCurrentSpan()?.isNoop).toBe(true);
        expect(createSpan({ type: 'custom', name: 'below' }).isNoop).toBe(true);
        expect(createSpan({ type: 'custom', name: 'below' }, { parent: off }).isNoop).toBe(true);
      },
      { disabled: true },
    );
    withSpan({ type: 'custom', name: 'on' }, () => {});
  });
  expect(recorder.spans.map((span) => span.type === 'custom' && span.spanData.name)).toEqual(['on']);
});

it('enters a scope once: code that is inside already is called directly [TRACE-P14]', () => {
  record();
  let store: unknown;
  let entries = 0;
  configureTracing({
    storage: {
      getStore: () => store,
      run: (next, fn) => {
        store = next;
        entries++;
        return fn();
      },
    },
  });
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace });
  enterScope(span, () => runInScope(span, () => enterScope(span, () => {})));
  expect(entries).toBe(1);
});

// ---- contexts of processors

function binder(name: string, calls: string[]): TraceProcessor {
  return {
    bind: (at, fn) => {
      calls.push(`${name} in ${at.type}`);
      try {
        return fn();
      } finally {
        calls.push(`${name} out`);
      }
    },
  };
}

it('nests the contexts of processors in order of registration, once per callback [TRACE-P15, P16]', () => {
  const calls: string[] = [];
  addTraceProcessor(binder('first', calls));
  addTraceProcessor({});
  addTraceProcessor(binder('second', calls));
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'function', name: 'f' }, { parent: trace });
  expect(enterScope(trace, () => runInScope(span, () => (calls.push('fn'), 7)))).toBe(7);
  expect(calls).toEqual(['first in function', 'second in function', 'fn', 'second out', 'first out']);
});

it('runs the callback once whatever a bind does [TRACE-P15, A6, IL-106]', () => {
  configureLogging({ sink: () => {} });
  const broken: TraceProcessor['bind'][] = [
    () => {
      throw new Error('before');
    },
    (_at, fn) => {
      fn();
      throw new Error('after');
    },
    (_at, fn) => {
      fn();
      return fn();
    },
    () => 'not called' as never,
    (_at, fn) => {
      try {
        fn();
      } catch {
        return 'swallowed' as never;
      }
      return 'another value' as never;
    },
  ];
  for (const bind of broken) {
    const remove = addTraceProcessor({ bind: bind! });
    const span = createSpan({ type: 'custom', name: 'x' }, { parent: createTrace('t').start() });
    const fn = vi.fn<() => string>(() => 'value');
    expect(runInScope(span, fn)).toBe('value');
    const error = new Error('own');
    const fail = vi.fn<() => never>(() => {
      throw error;
    });
    expect(() => runInScope(span, fail)).toThrow(error);
    expect([fn.mock.calls.length, fail.mock.calls.length]).toEqual([1, 1]);
    remove();
  }
});

it('survives a storage that fails [TRACE-A6]', () => {
  configureLogging({ sink: () => {} });
  record();
  const fail = (): never => {
    throw new Error('no storage');
  };
  configureTracing({ storage: { getStore: fail, run: fail } });
  expect(
    withTrace('t', (trace: Trace) => withSpan({ type: 'custom', name: 'x' }, () => trace.name, { parent: trace })),
  ).toBe('t');
});
