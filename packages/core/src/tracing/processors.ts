import { atOnce } from '../base/at-once.ts';
import { className } from '../base/logger.ts';
import { kindOf, nearestName } from '../base/options.ts';
import { UserError } from '../base/errors.ts';
import { unref } from '../base/timers.ts';
import { within } from './deadline.ts';
import { log, logFailure } from './log.ts';
import { runtime } from './runtime.ts';
import type { ProcessorEntry } from './runtime.ts';
import type { FlushOptions, Span, Trace, TraceProcessor } from './types.ts';

type TraceEvent = 'onTraceStart' | 'onTraceEnd';
type SpanEvent = 'onSpanStart' | 'onSpanEnd';

const EXIT_FLUSH_MS = 5000;

/**
 * Adds a processor after those that are there; one that is there already stays where it is. It gets the traces that start
 * from now on, and of running ones what still ends.
 *
 * @returns the remover; it neither flushes nor shuts down
 * @throws UserError for anything but an object
 * @example
 * const remove = addTraceProcessor(new ConsoleTraceProcessor());
 */
export function addTraceProcessor(processor: TraceProcessor): () => void {
  const made = entryOf(processor);
  revive();
  const known = runtime().entries.find((entry) => entry.processor === processor);
  const entry = known ?? made;
  if (known === undefined) setEntries([...runtime().entries, entry]);
  return () => setEntries(runtime().entries.filter((other) => other !== entry));
}

/**
 * Puts these processors in the place of all others.
 * Replaced processors are neither flushed nor shut down: `await shutdownTracing()` first.
 *
 * @throws UserError for anything but a list of objects
 */
export function setTraceProcessors(processors: readonly TraceProcessor[]): void {
  if (!Array.isArray(processors))
    throw new UserError(`setTraceProcessors() takes a list of processors, not ${kindOf(processors)}.`);
  const entries = processors.map(entryOf);
  revive();
  setEntries(entries);
}

export function notifyTrace(event: TraceEvent, trace: Trace): void {
  const now = runtime();
  now.unflushed = true;
  for (const entry of now.entries) {
    try {
      watch(entry, event, entry.processor[event]?.(trace));
    } catch (error) {
      report(entry, event, error);
    }
  }
}

export function notifySpan(event: SpanEvent, span: Span): void {
  const now = runtime();
  now.unflushed = true;
  for (const entry of now.entries) {
    try {
      watch(entry, event, entry.processor[event]?.(span));
    } catch (error) {
      report(entry, event, error);
    }
  }
}

type Carrier = Readonly<Record<string, string>>;

/** Tells processors of a resumed run, before any of its spans (TRACE-R11). */
export function notifyResume(trace: Trace, stored: Readonly<Record<string, unknown>>): void {
  resumeWith(trace, ({ carrierKey }) => (carrierKey === undefined ? undefined : (stored[carrierKey] as Carrier)));
}

/** Tells processors of a trace that goes on here from another process, with the headers that they injected there. */
export function notifyRemote(trace: Trace, headers: Carrier | undefined): void {
  resumeWith(trace, () => headers);
}

function resumeWith(trace: Trace, carrierOf: (processor: TraceProcessor) => Carrier | undefined): void {
  for (const entry of runtime().entries) {
    const { processor } = entry;
    if (processor.onTraceResume === undefined) continue;
    try {
      const result: unknown = processor.onTraceResume(trace, carrierOf(processor));
      watch(entry, 'onTraceResume', result);
    } catch (error) {
      report(entry, 'onTraceResume', error);
    }
  }
}

/** What the processors want a paused run to keep, by their keys (TRACE-R12). */
export function carriersOf(trace: Trace): Record<string, Record<string, string>> {
  const carriers: Record<string, Record<string, string>> = {};
  for (const entry of runtime().entries) {
    const { carrierKey } = entry.processor;
    if (carrierKey === undefined) continue;
    try {
      const carrier = atOnce(entry.processor.getCarrier?.(trace), 'getCarrier');
      if (carrier !== undefined) carriers[carrierKey] = { ...carrier };
    } catch (error) {
      report(entry, 'getCarrier', error);
    }
  }
  return carriers;
}

/** What the processors add to the headers of a call that is made inside `at`; one that fails adds nothing (TRACE-P17). */
export function injectAll(at: Trace | Span, carrier: Readonly<Record<string, string>>): Record<string, string> {
  let headers: Record<string, string> = { ...carrier };
  for (const entry of runtime().entries) {
    if (entry.processor.inject === undefined) continue;
    const next = { ...headers };
    try {
      const result: unknown = entry.processor.inject(at, next);
      watch(entry, 'inject', result);
      headers = next;
    } catch (error) {
      report(entry, 'inject', error);
    }
  }
  return headers;
}

/** `forceFlush` or `shutdown` of every processor, in order, whatever some of them do; resolves at the limit at the latest. */
export async function callAll(method: 'forceFlush' | 'shutdown', options: FlushOptions): Promise<void> {
  const calls = runtime().entries.map(async (entry) => {
    try {
      if (entry.pending.size > 0) await Promise.allSettled(entry.pending);
      await entry.processor[method]?.(options);
    } catch (error) {
      report(entry, method, error);
    }
  });
  await within(options, Promise.all(calls));
}

function entryOf(processor: TraceProcessor): ProcessorEntry {
  const given: unknown = processor;
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) {
    throw new UserError(`A trace processor is an object with methods like onSpanEnd(span), not ${kindOf(given)}.`);
  }
  checkMethods(processor);
  return { processor, failing: new Set(), pending: new Set() };
}

const METHODS = [
  'onTraceStart',
  'onTraceEnd',
  'onSpanStart',
  'onSpanEnd',
  'forceFlush',
  'shutdown',
  'bind',
  'inject',
  'getCarrier',
  'onTraceResume',
] as const satisfies readonly (keyof TraceProcessor)[];

/** All methods are optional, so a name that was misspelled shows only here. */
function checkMethods(processor: TraceProcessor): void {
  const there = METHODS.filter((name) => processor[name] !== undefined);
  const wrong = there.find((name) => typeof processor[name] !== 'function');
  if (wrong !== undefined)
    throw new UserError(`Member '${wrong}' of a trace processor must be a function, not ${kindOf(processor[wrong])}.`);
  const members: object = processor;
  const other = Object.keys(members).find((name) => typeof (members as Record<string, unknown>)[name] === 'function');
  if (there.length > 0 || other === undefined) return;
  const nearest = nearestName(other, METHODS);
  throw new UserError(
    `A trace processor has at least one of these methods: ${METHODS.join(', ')}.${nearest === undefined ? '' : ` Did you mean '${nearest}' with '${other}'?`}`,
  );
}

/** After a shutdown the old processors are gone; new ones start anew. */
function revive(): void {
  const now = runtime();
  if (!now.shutDown) return;
  now.shutDown = false;
  now.entries = [];
}

function setEntries(entries: readonly ProcessorEntry[]): void {
  const now = runtime();
  now.entries = entries;
  now.binders = entries.filter(({ processor }) => typeof processor.bind === 'function');
  if (entries.some(({ processor }) => processor.needsExitFlush === true)) now.removeExitHook ??= addExitHook();
}

function watch(entry: ProcessorEntry, method: string, result: unknown): void {
  if (typeof result === 'object' && result !== null && 'then' in result) {
    const pending: Promise<unknown> = Promise.resolve(result)
      .then(
        () => entry.failing.delete(method),
        (error: unknown) => report(entry, method, error),
      )
      .finally(() => entry.pending.delete(pending));
    entry.pending.add(pending);
  } else if (entry.failing.size > 0) entry.failing.delete(method);
}

/** The first failure of a row is logged, the next ones until the method works again are not. */
function report(entry: ProcessorEntry, method: string, error: unknown): void {
  if (entry.failing.has(method)) return;
  entry.failing.add(method);
  const name = className(entry.processor);
  logFailure(`Trace processor${name === 'Object' ? '' : ` ${name}`}: ${method}`, error);
}

/** Flushes when the process has nothing left to do. Changes neither exit code nor signals. */
function addExitHook(): (() => void) | undefined {
  const { process } = globalThis;
  if (typeof process?.on !== 'function' || typeof process.off !== 'function') return undefined;
  const flush = (): void => {
    const now = runtime();
    // What the flush does may bring `beforeExit` again; without new events that is the end.
    if (!now.unflushed) return;
    now.unflushed = false;
    const controller = new AbortController();
    // What still hangs then keeps the process alive no longer.
    const timer = setTimeout(() => controller.abort(), EXIT_FLUSH_MS);
    unref(timer);
    callAll('forceFlush', { timeoutMs: EXIT_FLUSH_MS, signal: controller.signal })
      .catch(() => {})
      .finally(() => clearTimeout(timer));
  };
  try {
    process.on('beforeExit', flush);
  } catch (error) {
    log.debug('This runtime has no beforeExit event; call flushTraces() before it ends.');
    logFailure('Flush of traces at exit', error);
    return undefined;
  }
  return () => {
    runtime().removeExitHook = undefined;
    process.off('beforeExit', flush);
  };
}
