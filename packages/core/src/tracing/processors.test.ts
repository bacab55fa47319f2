import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { createSpan, createTrace } from './create.ts';
import { addTraceProcessor, setTraceProcessors } from './processors.ts';
import { configureTracing, flushTraces, getTraceProvider, setTracingDisabled, shutdownTracing } from './provider.ts';
import { getCurrentTrace } from './scope.ts';
import { withSpan, withTrace } from './with.ts';
import type { LogRecord } from '../base/logger.ts';
import type { Span, TraceProcessor, TraceProvider } from './types.ts';

let lines: LogRecord[];

beforeEach(() => {
  lines = [];
  configureLogging({ level: 'debug', sink: (line) => lines.push(line) });
});
afterEach(() => {
  vi.unstubAllEnvs();
  resetAll();
});

const errors = (): string[] => lines.filter((line) => line.level === 'error').map((line) => line.message);

/** Writes down the events that it gets. */
function listener(name: string, events: string[]): TraceProcessor {
  const add = (event: string) => (): void => void events.push(`${name} ${event}`);
  return {
    onTraceStart: add('trace start'),
    onTraceEnd: add('trace end'),
    onSpanStart: add('span start'),
    onSpanEnd: add('span end'),
    forceFlush: add('flush'),
    shutdown: add('shutdown'),
  };
}

const traceOnce = (): void => withTrace('t', () => withSpan({ type: 'custom', name: 'x' }, () => {}));

it('calls processors in order of registration, at the event, with the live object [TRACE-P3]', () => {
  const events: string[] = [];
  const spans: Span[] = [];
  addTraceProcessor(listener('a', events));
  addTraceProcessor({ onSpanStart: (span) => void spans.push(span) });
  addTraceProcessor(listener('b', events));
  withTrace('t', () =>
    withSpan({ type: 'custom', name: 'x' }, (span) => {
      expect(events).toEqual(['a trace start', 'b trace start', 'a span start', 'b span start']);
      expect(spans[0]).toBe(span);
    }),
  );
  expect(events.slice(4)).toEqual(['a span end', 'b span end', 'a trace end', 'b trace end']);
});

it('isolates a processor that throws, and logs a row of failures once [TRACE-P4, T10, IL-106]', () => {
  const events: string[] = [];
  let broken = true;
  addTraceProcessor({
    onSpanEnd: () => {
      if (broken) throw new Error('secret');
    },
  });
  addTraceProcessor(listener('b', events));
  for (let i = 0; i < 3; i++) traceOnce();
  expect(events.filter((event) => event === 'b span end')).toHaveLength(3);
  expect(errors()).toEqual(['Trace processor: onSpanEnd failed (Error).']);
  broken = false;
  traceOnce();
  broken = true;
  traceOnce();
  expect(errors()).toHaveLength(2);
});

it('tells which processor failed, with codes of the failures behind it and no text [TRACE-P4, E14]', async () => {
  const refused = (code: unknown): Error => Object.assign(new Error('secret'), { code });
  const failures: [unknown, string][] = [
    [refused('ECONNREFUSED'), 'Error ECONNREFUSED'],
    [[refused(401), new TypeError('secret'), 'secret'], 'Error 401 and 2 more'],
    [new AggregateError([new TypeError('secret')]), 'TypeError'],
    [new TypeError('secret', { cause: refused('ENOTFOUND') }), 'TypeError ENOTFOUND'],
    [refused('ana'), 'Error'],
    [[], 'Array'],
  ];
  class Exporting implements TraceProcessor {
    readonly failure: unknown;
    constructor(failure: unknown) {
      this.failure = failure;
    }
    async forceFlush(): Promise<void> {
      throw this.failure;
    }
  }
  for (const [failure] of failures) addTraceProcessor(new Exporting(failure));
  await flushTraces();
  expect(errors()).toEqual(failures.map(([, kind]) => `Trace processor Exporting: forceFlush failed (${kind}).`));
});

it('shows the exception of a processor only where the log policy allows it [TRACE-E14]', () => {
  const secret = new Error('secret');
  const fail = (): void => {
    addTraceProcessor({
      onTraceStart: () => {
        throw secret;
      },
    });
    traceOnce();
  };
  fail();
  expect(JSON.stringify(lines)).not.toContain('secret');
  expect(lines.some((line) => line.data === secret)).toBe(false);
  configureLogging({ dontLogModelData: false, dontLogToolData: false });
  fail();
  expect(lines.some((line) => line.data === secret)).toBe(true);
});

it('catches the rejection of an async method and waits for it in a flush [TRACE-P4, P22]', async () => {
  const done: string[] = [];
  addTraceProcessor({
    onSpanEnd: async () => {
      await Promise.resolve();
      done.push('span end');
      throw new Error('later');
    },
    forceFlush: () => void done.push('flush'),
  });
  traceOnce();
  expect(done).toEqual([]);
  await flushTraces();
  expect(done).toEqual(['span end', 'flush']);
  expect(errors()).toEqual(['Trace processor: onSpanEnd failed (Error).']);
});

it('gives ends to the new list only after a replacement, and ends nothing of the old one [TRACE-P5]', () => {
  const events: string[] = [];
  addTraceProcessor(listener('old', events));
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace }).start();
  setTraceProcessors([listener('new', events)]);
  span.finish();
  trace.finish();
  expect(events).toEqual(['old trace start', 'old span start', 'new span end', 'new trace end']);
});

it('removes what the remover belongs to, and nothing else [TRACE-P5]', () => {
  const events: string[] = [];
  const processor = listener('a', events);
  const remove = addTraceProcessor(processor);
  addTraceProcessor(listener('b', events));
  remove();
  remove();
  traceOnce();
  expect(new Set(events.map((event) => event[0]))).toEqual(new Set(['b']));
});

it('gives a processor that is registered inside an event the later events only [TRACE-P21]', () => {
  const events: string[] = [];
  addTraceProcessor({ onTraceStart: () => void addTraceProcessor(listener('new', events)) });
  traceOnce();
  expect(events).toEqual(['new span start', 'new span end', 'new trace end']);
});

it('refuses what is no processor', () => {
  expect(() => addTraceProcessor(undefined as never)).toThrow(
    'A trace processor is an object with methods like onSpanEnd(span), not undefined.',
  );
  expect(() => setTraceProcessors({} as never)).toThrow(
    'setTraceProcessors() takes a list of processors, not an object.',
  );
});

it('flushes and shuts down every processor in order, whatever fails, also while disabled; then the provider [TRACE-P7, T47, IL-110]', async () => {
  const events: string[] = [];
  addTraceProcessor(listener('a', events));
  addTraceProcessor({
    forceFlush: () => {
      throw new Error('x');
    },
    shutdown: async () => Promise.reject(new Error('x')),
  });
  addTraceProcessor(listener('b', events));
  configureTracing({
    provider: {
      ...getTraceProvider(),
      forceFlush: async () => void events.push('provider flush'),
      shutdown: async () => void events.push('provider shutdown'),
    },
  });
  setTracingDisabled(true);
  await flushTraces();
  await shutdownTracing();
  await shutdownTracing();
  expect(events).toEqual(['a flush', 'b flush', 'provider flush', 'a shutdown', 'b shutdown', 'provider shutdown']);
  expect(errors()).toHaveLength(2);
});

it('resolves at the common limit at the latest, and at an abort [TRACE-P8]', async () => {
  const given: unknown[] = [];
  for (let i = 0; i < 2; i++)
    addTraceProcessor({
      forceFlush: (options) => {
        given.push(options?.timeoutMs);
        return new Promise(() => {});
      },
    });
  await flushTraces({ timeoutMs: 5 });
  expect(given).toEqual([5, 5]);
  await flushTraces({ signal: AbortSignal.abort() });
  const controller = new AbortController();
  const flushed = flushTraces({ signal: controller.signal });
  controller.abort();
  await flushed;
  await shutdownTracing({ timeoutMs: 5 });
  await expect(flushTraces({ timeout: 5 } as never)).rejects.toThrow(
    "Unknown option 'timeout' of flushTraces(). Did you mean 'timeoutMs'?",
  );
});

it('makes no-ops after the shutdown, until processors are added anew [TRACE-P8, IL-105]', async () => {
  const events: string[] = [];
  addTraceProcessor(listener('old', events));
  const open = createTrace('open').start();
  await shutdownTracing();
  traceOnce();
  expect(createTrace('t').isNoop).toBe(true);
  expect(events).toEqual(['old trace start', 'old shutdown']);
  open.finish();
  addTraceProcessor(listener('new', events));
  traceOnce();
  expect(events.slice(3)).toEqual(['new trace start', 'new span start', 'new span end', 'new trace end']);
});

it('is off with OPENAI_AGENTS_DISABLE_TRACING, read at first use; setTracingDisabled wins [TRACE-P9, T46]', async () => {
  for (const [value, off] of [
    ['TRUE', true],
    ['1', true],
    ['yes', false],
    ['', false],
    ['0', false],
  ] as const) {
    resetAll();
    vi.stubEnv('OPENAI_AGENTS_DISABLE_TRACING', value);
    expect(createTrace('t').isNoop).toBe(off);
  }
  resetAll();
  vi.stubEnv('OPENAI_AGENTS_DISABLE_TRACING', 'TRUE');
  const events: string[] = [];
  addTraceProcessor(listener('a', events));
  traceOnce();
  expect(events).toEqual([]);
  vi.stubEnv('OPENAI_AGENTS_DISABLE_TRACING', '0');
  traceOnce();
  expect(events).toEqual([]);
  setTracingDisabled(false);
  traceOnce();
  expect(events).toHaveLength(4);
  resetAll();
  await flushTraces();
  vi.stubEnv('OPENAI_AGENTS_DISABLE_TRACING', '1');
  expect(createTrace('t').isNoop).toBe(false);
});

it('is on in tests and browsers as everywhere [TRACE-P11]', () => {
  const events: string[] = [];
  vi.stubEnv('NODE_ENV', 'test');
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('document', {});
  try {
    addTraceProcessor(listener('a', events));
    withTrace('t', () => withSpan({ type: 'custom', name: 'x' }, () => {}));
    expect(createTrace('t').isNoop).toBe(false);
  } finally {
    vi.unstubAllGlobals();
  }
  expect(events).toHaveLength(4);
});

it('works without a process [TRACE-P12, IL-115]', () => {
  const { process } = globalThis;
  try {
    Object.defineProperty(globalThis, 'process', { value: undefined, configurable: true, writable: true });
    const events: string[] = [];
    addTraceProcessor({ ...listener('a', events), needsExitFlush: true });
    // Nothing keeps the context here: spans need their parent.
    withTrace('t', (trace) => withSpan({ type: 'custom', name: 'x' }, () => {}, { parent: trace }));
    expect(events).toHaveLength(4);
  } finally {
    Object.defineProperty(globalThis, 'process', { value: process, configurable: true, writable: true });
  }
});

it('adds one exit hook for processors that need it, flushes once per batch of events, and takes the hook away [TRACE-P19, T35]', async () => {
  const events: string[] = [];
  const others = (): number[] =>
    ['SIGTERM', 'SIGINT', 'unhandledRejection', 'uncaughtException', 'exit'].map((event) =>
      process.listenerCount(event),
    );
  const before = [process.listenerCount('beforeExit'), others()];
  addTraceProcessor({});
  expect(process.listenerCount('beforeExit')).toBe(before[0]);
  addTraceProcessor({ needsExitFlush: true, forceFlush: (options) => void events.push(`flush ${options?.timeoutMs}`) });
  addTraceProcessor({ needsExitFlush: true });
  expect([process.listenerCount('beforeExit'), others()]).toEqual([(before[0] as number) + 1, before[1]]);
  traceOnce();
  const hook = process.listeners('beforeExit').at(-1) as () => void;
  for (let i = 0; i < 3; i++) hook();
  await Promise.resolve();
  expect(events).toEqual(['flush 5000']);
  expect(process.exitCode).toBeUndefined();
  await shutdownTracing();
  expect(process.listenerCount('beforeExit')).toBe(before[0]);
});

it('survives a log sink that throws [TRACE-P18]', () => {
  configureLogging({
    sink: () => {
      throw new Error('closed');
    },
  });
  addTraceProcessor({
    onTraceStart: () => {
      throw new Error('x');
    },
  });
  expect(() => traceOnce()).not.toThrow();
});

it('replaces the given members of the process and restores them with null [TRACE-P26, T75, P2]', () => {
  addTraceProcessor({});
  const standard = getTraceProvider();
  configureTracing({ ids: { traceId: () => 'trace_a', spanId: () => 'span_a', groupId: () => 'group_a' } });
  expect(createTrace('t').traceId).toBe('trace_a');
  configureTracing({ clock: { now: () => 86_400_000, monotonic: () => 0 } });
  const both = createTrace('t').start();
  expect([both.traceId, both.startTimeMs]).toEqual(['trace_a', 86_400_000]);
  configureTracing({ ids: null });
  const timed = createTrace('t').start();
  expect([timed.traceId === 'trace_a', timed.startTimeMs]).toEqual([false, 86_400_000]);
  configureTracing({ clock: null });
  expect(createTrace('t').start().startTimeMs).toBeGreaterThan(86_400_000);
  const names: string[] = [];
  const provider: TraceProvider = {
    createTrace: (name, options) => {
      names.push(name);
      return standard.createTrace(name, options);
    },
    createSpan: (init, options) => standard.createSpan(init, options),
  };
  configureTracing({ provider });
  expect(getTraceProvider()).toBe(provider);
  withTrace('own', () => expect(getCurrentTrace()?.name).toBe('own'));
  expect(names).toEqual(['own']);
  configureTracing({ provider: null });
  expect(getTraceProvider()).toBe(standard);
  expect(() => configureTracing({ clocks: null } as never)).toThrow(
    "Unknown option 'clocks' of configureTracing(). Did you mean 'clock'?",
  );
});
