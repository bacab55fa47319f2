import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { within } from './deadline.ts';
import { logFailure } from './log.ts';
import { makeSpan, makeTrace } from './make.ts';
import { callAll } from './processors.ts';
import { isDisabled, runtime } from './runtime.ts';
import type { Clock, FlushOptions, TraceContextStorage, TraceIdGenerator, TraceProvider } from './types.ts';

const defaultProvider: TraceProvider = { createTrace: makeTrace, createSpan: makeSpan };

/** What makes traces and spans now. */
export function getTraceProvider(): TraceProvider {
  return runtime().provider ?? defaultProvider;
}

/**
 * Replaces the given members; `null` restores the default, what is not given stays. Holds for what is made afterwards.
 *
 * @throws UserError for unknown options and wrong kinds
 * @example
 * configureTracing({ clock: { now: () => 0, monotonic: () => 0 } }); // the same times in each test
 */
export function configureTracing(options: {
  provider?: TraceProvider | null | undefined;
  ids?: TraceIdGenerator | null | undefined;
  storage?: TraceContextStorage | null | undefined;
  clock?: Clock | null | undefined;
}): void {
  const member = kinds.nullable(kinds.object);
  checkOptions(options, { provider: member, ids: member, storage: member, clock: member }, 'configureTracing()');
  const now = runtime();
  if (options.provider !== undefined) now.provider = options.provider ?? undefined;
  if (options.ids !== undefined) now.ids = options.ids ?? undefined;
  if (options.storage !== undefined) {
    now.storage = options.storage ?? undefined;
    now.ownStorage = options.storage !== null;
  }
  if (options.clock !== undefined) now.clock = options.clock ?? undefined;
}

/** For the whole process. Overrides `OPENAI_AGENTS_DISABLE_TRACING`. @throws UserError for anything but `true` and `false` */
export function setTracingDisabled(disabled: boolean): void {
  if (typeof disabled !== 'boolean')
    throw new UserError(`setTracingDisabled() takes true or false, not ${kindOf(disabled)}.`);
  runtime().disabled = disabled;
}

/**
 * Waits until every processor has passed on what it has, also while tracing is disabled. Their failures are logged.
 *
 * @throws UserError for unknown options and wrong kinds
 */
export async function flushTraces(options: FlushOptions = {}): Promise<void> {
  await finishAll('forceFlush', options);
}

/**
 * Flushes and ends all processors; then new traces and spans are no-ops, until processors are added again. The second
 * call does nothing.
 *
 * @throws UserError for unknown options and wrong kinds
 */
export async function shutdownTracing(options: FlushOptions = {}): Promise<void> {
  const now = runtime();
  checkFlush('shutdown', options);
  if (now.shutDown) return;
  now.shutDown = true;
  now.removeExitHook?.();
  await finishAll('shutdown', options);
}

async function finishAll(method: 'forceFlush' | 'shutdown', options: FlushOptions): Promise<void> {
  checkFlush(method, options);
  // A flush is a use of tracing: the environment is asked now, not later.
  isDisabled();
  const { provider } = runtime();
  await within(options, callEverything(method, provider, options));
}

async function callEverything(
  method: 'forceFlush' | 'shutdown',
  provider: TraceProvider | undefined,
  options: FlushOptions,
): Promise<void> {
  await callAll(method, options);
  try {
    await provider?.[method]?.(options);
  } catch (error) {
    logFailure(`Trace provider: ${method}`, error);
  }
}

function checkFlush(method: 'forceFlush' | 'shutdown', options: FlushOptions): void {
  const where = method === 'shutdown' ? 'shutdownTracing()' : 'flushTraces()';
  checkOptions(options, { timeoutMs: kinds.integer(0), signal: kinds.abortSignal }, where);
}
