import { array, assert, asyncProperty, boolean, constant, constantFrom, letrec, oneof, record } from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { InMemoryTraceProcessor } from '../testing/trace-processor.ts';
import { createSpan, createTrace } from './create.ts';
import { addTraceProcessor, setTraceProcessors } from './processors.ts';
import { configureTracing, setTracingDisabled } from './provider.ts';
import { bindTraceContext, getCurrentSpan, getCurrentTrace, withTraceContext } from './scope.ts';
import { withSpan, withTrace } from './with.ts';
import type { LogRecord } from '../base/logger.ts';
import type { Span } from './types.ts';
import { thrown } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;
let lines: LogRecord[];

beforeEach(() => {
  lines = [];
  configureLogging({ level: 'debug', sink: (line) => lines.push(line) });
  recorder = new InMemoryTraceProcessor();
  addTraceProcessor(recorder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  resetAll();
});

const warnings = (): string[] => lines.filter((line) => line.level === 'warn').map((line) => line.message);
const isOpen = (span: Span): boolean => span.startTimeMs !== undefined && span.endTimeMs === undefined;

it('makes without starting; within, starts, is current and finishes [TRACE-A1]', async () => {
  const trace = createTrace('t');
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace });
  expect([trace.startTimeMs, span.startTimeMs, getCurrentTrace()]).toEqual([undefined, undefined, undefined]);
  const sync = withTrace('sync', (current) =>
    withSpan({ type: 'custom', name: 'x' }, (inner) => {
      expect([getCurrentTrace(), getCurrentSpan()]).toEqual([current, inner]);
      expect(isOpen(inner)).toBe(true);
      return 7;
    }),
  );
  expect(sync).toBe(7);
  const promise = withTrace('async', () => withSpan({ type: 'custom', name: 'y' }, async () => sleep(1, 'later')));
  expect(isOpen(recorder.spans.at(-1)!)).toBe(true);
  expect(await promise).toBe('later');
  for (const ended of [...recorder.spans, ...recorder.traces]) expect(ended.endTimeMs).toBeDefined();
});

it('finds the parent: given, else the current span, else the current trace, else none [TRACE-A3]', () => {
  const other = createTrace('other').start();
  withTrace('t', (trace) => {
    expect(createSpan({ type: 'custom', name: 'a' }).parent).toBe(trace);
    withSpan({ type: 'custom', name: 'b' }, (current) => {
      expect(createSpan({ type: 'custom', name: 'c' }).parent).toBe(current);
      expect(createSpan({ type: 'custom', name: 'd' }, { parent: other }).parent).toBe(other);
    });
  });
  lines = [];
  expect(createSpan({ type: 'custom', name: 'e' }).isNoop).toBe(true);
  expect(lines.map((line) => line.level)).toEqual(['debug']);
});

it('gives no-ops where asked to, or below no-ops [TRACE-A4]', () => {
  const trace = createTrace('t').start();
  expect(createSpan({ type: 'custom', name: 'x' }, { parent: trace, disabled: true }).isNoop).toBe(true);
  const off = createTrace('off', { disabled: true });
  expect(createSpan({ type: 'custom', name: 'x' }, { parent: off }).isNoop).toBe(true);
  withTrace('off', () => expect(createSpan({ type: 'custom', name: 'x' }).isNoop).toBe(true), { disabled: true });
  expect([recorder.traces, recorder.spans]).toEqual([[trace], []]);
});

it('records what the function throws and throws the same object [TRACE-A5]', async () => {
  const error = Object.assign(new Error('broken'), { data: { step: 3 } });
  expect(() =>
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'x' }, () => {
        throw error;
      }),
    ),
  ).toThrow(error);
  await expect(
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'y' }, async () => {
        throw error;
      }),
    ),
  ).rejects.toBe(error);
  for (const span of recorder.spans)
    expect([span.error, isOpen(span)]).toEqual([{ message: 'broken', data: { step: 3 } }, false]);
  withTrace('t', () => {
    const own = { message: 'set before' };
    expect(() =>
      withSpan({ type: 'custom', name: 'z' }, (span) => {
        span.setError(own);
        throw error;
      }),
    ).toThrow(error);
    expect(recorder.spans.at(-1)?.error).toBe(own);
  });
});

it('touches no exception where sensitive data is off [TRACE-A5, E4, D-7]', () => {
  vi.stubEnv('OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA', 'no');
  const touched = vi.fn<() => string>(() => 'secret');
  const error: Error = Object.defineProperties(new Error('secret'), {
    message: { get: touched },
    data: { get: touched },
    stack: { get: touched },
  });
  const caught = thrown(() =>
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'x' }, () => {
        throw error;
      }),
    ),
  );
  expect(caught).toBe(error);
  expect(recorder.spans[0]?.error).toEqual({ message: 'Error details are redacted.' });
  expect(touched).not.toHaveBeenCalled();
});

it('takes an exception that cannot be rendered [TRACE-E5]', () => {
  const odd = {
    toString: () => {
      throw new Error('no text');
    },
  };
  const caught = thrown(() =>
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'x' }, () => {
        // oxlint-disable-next-line typescript/only-throw-error -- JavaScript may throw anything
        throw odd;
      }),
    ),
  );
  expect(caught).toBe(odd);
  expect(recorder.spans[0]?.error).toEqual({ message: 'Error details are unavailable.' });
});

it('changes neither value nor error when processors fail in every method [TRACE-A6, E6, T10]', async () => {
  const fail = (): never => {
    throw new Error('processor');
  };
  const methods = ['onTraceStart', 'onTraceEnd', 'onSpanStart', 'onSpanEnd', 'bind'] as const;
  for (const method of methods) {
    for (const broken of [fail, async () => Promise.reject(new Error('later'))]) {
      setTraceProcessors([{ [method]: broken }, recorder]);
      recorder.clear();
      expect(await withTrace('t', () => withSpan({ type: 'custom', name: 'x' }, async () => 7))).toBe(7);
      const own = new Error('own');
      await expect(
        withTrace('t', () =>
          withSpan({ type: 'custom', name: 'x' }, async () => {
            throw own;
          }),
        ),
      ).rejects.toBe(own);
      expect(recorder.spans.map(isOpen)).toEqual([false, false]);
    }
  }
});

it('changes neither value nor error when spans and traces of another maker fail [TRACE-E6, T10]', async () => {
  for (const method of ['start', 'finish', 'setError', 'toJSON'] as const) {
    const breakIt = <T extends object>(item: T): T =>
      Object.assign(item, {
        [method]: () => {
          throw new Error(method);
        },
      });
    const inner = { createTrace, createSpan };
    configureTracing({
      provider: {
        createTrace: (name, options) => withoutProvider(() => breakIt(inner.createTrace(name, options))),
        createSpan: (init, options) => withoutProvider(() => breakIt(inner.createSpan(init, options))),
      },
    });
    expect(await withTrace('t', () => withSpan({ type: 'custom', name: 'x' }, async () => 7))).toBe(7);
    const own = new Error('own');
    await expect(
      withTrace('t', () =>
        withSpan({ type: 'custom', name: 'x' }, async () => {
          throw own;
        }),
      ),
    ).rejects.toBe(own);
  }
});

/** Makes by the default provider while another one is configured. */
function withoutProvider<R>(make: () => R): R {
  const state = (globalThis as unknown as Record<symbol, { provider: unknown }>)[Symbol.for('agents.tracing.v1')]!;
  const { provider } = state;
  state.provider = undefined;
  try {
    return make();
  } finally {
    state.provider = provider;
  }
}

it('runs each step of a generator inside, and the code of its consumer outside [TRACE-A7, T44]', async () => {
  await withTrace('t', async (trace) => {
    const steps = withSpan({ type: 'custom', name: 'gen' }, async function* (span): AsyncGenerator<
      Span<'custom'>,
      string,
      unknown
    > {
      expect(getCurrentSpan()).toBe(span);
      const sent: unknown = yield createSpan({ type: 'custom', name: 'inner' });
      expect([sent, getCurrentSpan()]).toEqual(['sent', span]);
      await sleep(1);
      yield createSpan({ type: 'custom', name: 'inner' });
      return 'end';
    });
    const span = recorder.spans.at(-1)!;
    expect((await steps.next()).value).toMatchObject({ parent: span });
    expect([getCurrentSpan(), createSpan({ type: 'custom', name: 'outer' }).parent]).toEqual([undefined, trace]);
    expect((await steps.next('sent')).value).toMatchObject({ parent: span });
    expect(isOpen(span)).toBe(true);
    expect(await steps.next()).toEqual({ done: true, value: 'end' });
    expect(isOpen(span)).toBe(false);
  });
});

it('finishes the span of a generator that is left or throws, sync and async [TRACE-A7]', async () => {
  await withTrace('t', async () => {
    for (const _ of withSpan({ type: 'custom', name: 'left' }, function* () {
      yield 1;
      yield 2;
    }))
      break;
    for await (const _ of withSpan({ type: 'custom', name: 'left' }, async function* () {
      yield 1;
      yield 2;
    }))
      break;
    const error = new Error('broken');
    const failing = withSpan({ type: 'custom', name: 'failed' }, function* () {
      yield 1;
      throw error;
    });
    expect(() => [...failing]).toThrow(error);
    const later = withSpan({ type: 'custom', name: 'failed' }, async function* () {
      yield 1;
      throw error;
    });
    await expect(
      (async () => {
        for await (const _ of later);
      })(),
    ).rejects.toBe(error);
  });
  expect(
    recorder.spans.map((span) => [span.type === 'custom' && span.spanData.name, isOpen(span), span.error?.message]),
  ).toEqual([
    ['left', false, undefined],
    ['left', false, undefined],
    ['failed', false, 'broken'],
    ['failed', false, 'broken'],
  ]);
});

it('warns about a trace inside a trace, and makes it all the same [TRACE-A8, IL-112]', () => {
  withTrace('outer', (outer) => {
    withTrace('inner', (inner) => expect([getCurrentTrace(), getCurrentSpan()]).toEqual([inner, undefined]));
    expect(createSpan({ type: 'custom', name: 'after' }).parent).toBe(outer);
  });
  expect(warnings()).toHaveLength(1);
  expect(recorder.traces.map((trace) => trace.name)).toEqual(['outer', 'inner']);
});

it('returns a value with pending work at once and ends with the work [TRACE-A9, A18, T19]', async () => {
  let finish: (() => void) | undefined;
  const stream = {
    [Symbol.for('agents.pendingWork')]: new Promise<void>((resolve) => {
      finish = resolve;
    }),
  };
  expect(withTrace('sync', () => withSpan({ type: 'custom', name: 'x' }, () => stream))).toBe(stream);
  expect(await withTrace('async', async () => stream)).toBe(stream);
  expect(recorder.traces.map((trace) => trace.endTimeMs)).toEqual([undefined, undefined]);
  finish?.();
  await vi.waitFor(() =>
    expect([...recorder.traces, ...recorder.spans].every((item) => item.endTimeMs !== undefined)).toBe(true),
  );
  const failed = { [Symbol.for('agents.pendingWork')]: Promise.reject(new Error('run failed')) };
  expect(withTrace('failed', () => failed)).toBe(failed);
  await vi.waitFor(() => expect(recorder.traces.at(-1)?.endTimeMs).toBeDefined());
});

it('starts and finishes a given trace or span only if it was not started before [TRACE-A11, A2]', () => {
  const fresh = createTrace('fresh');
  withTrace(fresh, () => withSpan(createSpan({ type: 'custom', name: 'fresh' }), () => {}));
  const started = createTrace('started').start();
  const span = createSpan({ type: 'custom', name: 'started' }, { parent: started }).start();
  withTrace(started, () => withSpan(span, () => expect(getCurrentSpan()).toBe(span)));
  expect([fresh.endTimeMs === undefined, started.endTimeMs === undefined, isOpen(span)]).toEqual([false, true, true]);
  expect(recorder.spans.map((item) => isOpen(item))).toEqual([false, true]);
  expect(() => withTrace(started, () => {}, { groupId: 'g' })).toThrow('Options make a new trace');
});

it('finishes at the end of a block with using, and is never current [TRACE-A16, D-4, T45]', () => {
  const error = new Error('broken');
  let span: Span<'custom'> | undefined;
  expect(() => {
    using trace = createTrace('t').start();
    using inner = createSpan({ type: 'custom', name: 'x' }, { parent: trace }).start();
    span = inner;
    expect([getCurrentTrace(), getCurrentSpan()]).toEqual([undefined, undefined]);
    throw error;
  }).toThrow(error);
  expect([isOpen(span!), recorder.traces[0]?.endTimeMs === undefined]).toEqual([false, false]);
  expect(warnings()).toEqual([]);
});

it('is only the function itself while tracing is off [TRACE-P10]', () => {
  setTracingDisabled(true);
  expect(
    withTrace('t', (trace) => withSpan({ type: 'custom', name: 'x' }, (span) => [trace.traceId, span.spanId])),
  ).toEqual(['no-op', 'no-op']);
  expect(createSpan({ type: 'custom', name: 'x' })).toBe(createSpan({ type: 'custom', name: 'y' }));
  expect(createTrace('t')).toBe(createTrace('u'));
  expect(new Set(lines.map((line) => line.level))).toEqual(new Set(['debug']));
});

it('makes no-ops from the moment on at which tracing is off, also inside of what is open and under it [TRACE-P10, N17]', () => {
  const draw = vi.fn<() => string>(() => 'drawn');
  withTrace('t', (trace) =>
    withSpan({ type: 'custom', name: 'open' }, (open) => {
      const bound = bindTraceContext(() => getCurrentSpan(), open);
      setTracingDisabled(true);
      lines.length = 0;
      configureTracing({ ids: { traceId: draw, spanId: draw, groupId: draw } });
      const secret = { type: 'custom', name: 'x', data: { secret: 'private' } } as const;
      const spans = [undefined, open, trace].map((parent) => createSpan(secret, parent && { parent }));
      expect(new Set(spans)).toEqual(new Set([createSpan({ type: 'custom', name: 'y' })]));
      expect(createTrace('u', { traceId: 'trace_1' })).toBe(createTrace('v'));
      for (const parent of [open, trace])
        withSpan(secret, (span) => expect([span.isNoop, getCurrentSpan()?.isNoop]).toEqual([true, true]), { parent });
      withTraceContext(open, () => expect([getCurrentTrace()?.isNoop, getCurrentSpan()?.isNoop]).toEqual([true, true]));
      for (const seen of [bound(), bindTraceContext(() => getCurrentSpan(), open)(), getCurrentSpan()])
        expect(seen?.isNoop).toBe(true);
      expect(draw).not.toHaveBeenCalled();
      // A line for each, without what was given.
      expect(lines.filter(({ level }) => level === 'debug')).toHaveLength(8);
      expect(JSON.stringify(lines)).not.toContain('private');
    }),
  );
  expect(recorder.spans.map((span) => span.type === 'custom' && span.spanData.name)).toEqual(['open']);
  expect(recorder.traces).toHaveLength(1);
});

it('asks no provider of the user while tracing is off [TRACE-P10]', () => {
  const asked = vi.fn<() => never>(() => {
    throw new Error('asked');
  });
  configureTracing({ provider: { createTrace: asked, createSpan: asked } });
  setTracingDisabled(true);
  withTrace('t', (trace) => withSpan({ type: 'custom', name: 'x' }, () => {}, { parent: trace }));
  expect([createTrace('t').isNoop, createSpan({ type: 'custom', name: 'x' }).isNoop]).toEqual([true, true]);
  expect(asked).not.toHaveBeenCalled();
});

it('makes no span and no id without processors, but gives the trace its id [TRACE-P14, TRACE-T16]', () => {
  setTraceProcessors([]);
  const drawn: string[] = [];
  const draw = (id: string) => (): string => {
    drawn.push(id);
    return id;
  };
  configureTracing({ ids: { traceId: draw('trace_1'), spanId: draw('span_1'), groupId: draw('group_1') } });
  const spans = withTrace('t', (trace) => {
    expect([trace.traceId, getCurrentTrace()]).toEqual(['trace_1', trace]);
    return [1, 2].map(() => withSpan({ type: 'custom', name: 'x' }, (span) => span));
  });
  expect(spans[0]).toBe(spans[1]);
  expect(spans[0]?.isNoop).toBe(true);
  expect(drawn).toEqual(['trace_1']);
});

/** A program of nested scopes that end in every way there is. */
interface Node {
  kind: 'value' | 'throw' | 'promise' | 'reject' | 'generator' | 'left' | 'using' | 'pending';
  parallel: boolean;
  children: Node[];
}

const kinds = constantFrom('value', 'throw', 'promise', 'reject', 'generator', 'left', 'using', 'pending');
const { programs } = letrec<{ programs: Node; leaf: Node; node: Node }>((tie) => ({
  leaf: record({ kind: kinds, parallel: boolean(), children: constant([]) }),
  node: record({ kind: kinds, parallel: boolean(), children: array(tie('programs'), { maxLength: 3 }) }),
  programs: oneof({ maxDepth: 4 }, tie('leaf'), tie('node')),
}));

async function play(node: Node): Promise<void> {
  const children = async (): Promise<void> => {
    if (node.parallel) await Promise.allSettled(node.children.map(play));
    else for (const child of node.children) await play(child);
  };
  const init = { type: 'custom', name: node.kind } as const;
  const error = new Error(node.kind);
  try {
    switch (node.kind) {
      case 'value':
        withSpan(init, () => 1);
        await children();
        break;
      case 'throw':
        withSpan(init, () => {
          throw error;
        });
        break;
      case 'promise':
        await withSpan(init, children);
        break;
      case 'reject':
        await withSpan(init, async () => {
          await children();
          throw error;
        });
        break;
      case 'generator':
        for await (const _ of withSpan(init, async function* () {
          await children();
          yield 1;
        }));
        break;
      case 'left':
        for (const _ of withSpan(init, function* () {
          yield 1;
          yield 2;
        }))
          break;
        break;
      case 'using': {
        using span = createSpan(init).start();
        await children();
        span.setError({ message: node.kind });
        break;
      }
      case 'pending':
        withSpan(init, () => ({ [Symbol.for('agents.pendingWork')]: children() }));
        break;
    }
  } catch (caught) {
    if (caught !== error) throw caught;
  }
}

it('starts and ends every span once, on every way out [TRACE-N20]', async () => {
  await assert(
    asyncProperty(programs, async (program) => {
      const counts = new Map<Span, [number, number]>();
      const count =
        (index: 0 | 1) =>
        (span: Span): void => {
          const pair = counts.get(span) ?? [0, 0];
          pair[index]++;
          counts.set(span, pair);
        };
      setTraceProcessors([{ onSpanStart: count(0), onSpanEnd: count(1) }]);
      await withTrace('t', () => play(program));
      await vi.waitFor(() =>
        expect([...counts.values()].every(([starts, ends]) => starts === 1 && ends === 1)).toBe(true),
      );
      expect(getCurrentTrace()).toBeUndefined();
    }),
    { numRuns: 60 },
  );
});
