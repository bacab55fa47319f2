import type { RunState } from '../snapshot/run-state.ts';
import type { RunErrorDetails } from './errors.ts';
import type { Inspect } from './inspect.ts';

/**
 * What a run leaves on the errors that leave it. It stands under one registered symbol, also on errors that are not ours;
 * `AgentsError` shows it as `runData` and `state`.
 */
const DATA: unique symbol = Symbol.for('@agents/core/run-data/1');

interface AttachedData {
  readonly runData: RunErrorDetails | undefined;
  readonly state: RunState | undefined;
  /** It never gets any data (RUN-1806). */
  readonly withheld: boolean;
  /** Of a run of an agent tool: the run around it adds the state that can be gone on from. */
  readonly inner?: true;
}

/** Where the data comes from: values, or functions that make them when they are first asked for. */
export interface RunDataSource {
  readonly runData: RunErrorDetails | undefined | (() => RunErrorDetails | undefined);
  readonly state: RunState | undefined | (() => RunState | undefined);
}

/** `runData` of any error that left a run, also of errors that are not ours. What cannot be told never hides the error (RUN-1224). */
export function getRunErrorDetails(error: unknown): RunErrorDetails | undefined {
  try {
    return attachedData(error)?.runData;
  } catch {
    return undefined;
  }
}

/** `state` of any error that left a run, also of errors that are not ours. */
export function getRunErrorState(error: unknown): RunState | undefined {
  return attachedData(error)?.state;
}

/**
 * Puts the data on the error. `keep`: data that is there already stays. `false` when the thrown value can carry none (a
 * primitive, a non-extensible object).
 */
export function attachData(error: unknown, source: RunDataSource, keep: boolean): boolean {
  if ((typeof error !== 'object' || error === null) && typeof error !== 'function') return false;
  try {
    const known = keep ? attachedData(error) : undefined;
    if (known !== undefined && known.inner === undefined) return true;
    const whole = known === undefined ? source : { runData: () => known.runData, state: source.state };
    return Reflect.defineProperty(error, DATA, { value: lazily(whole), configurable: true });
  } catch {
    // A proxy may refuse in its own way.
    return false;
  }
}

/** An error of a nested run keeps what it tells of that run, and gets the state of the run around it (RUN-1801, 1803). */
export function keepInnerRunData(error: unknown): unknown {
  const known = attachedData(error);
  if (known !== undefined && !known.withheld)
    Reflect.defineProperty(error as object, DATA, {
      value: Object.create(known, { inner: { value: true } }),
      configurable: true,
    });
  return error;
}

/** What was attached to the error itself. */
export function attachedData(error: unknown): AttachedData | undefined {
  if ((typeof error !== 'object' || error === null) && typeof error !== 'function') return undefined;
  return Object.getOwnPropertyDescriptor(error, DATA)?.value as AttachedData | undefined;
}

function lazily(source: RunDataSource): AttachedData {
  let runData = source.runData;
  let state = source.state;
  return {
    withheld: runData === undefined && state === undefined,
    get runData() {
      if (typeof runData === 'function') runData = runData();
      return runData;
    },
    get state() {
      if (typeof state === 'function') state = state();
      return state;
    },
  };
}

/** `util.inspect` of an error of ours: as Node shows errors, with `runData` as one line. */
export function inspectError(error: Error, depth: number, options: object, inspect: Inspect | undefined): string {
  const text =
    inspect === undefined
      ? (error.stack ?? String(error))
      : inspect(error, { ...options, depth, customInspect: false });
  const summary = summaryOf(error);
  if (summary === '') return text;
  return text.endsWith('}')
    ? `${text.slice(0, -1).trimEnd()},\n  runData: ${summary}\n}`
    : `${text} { runData: ${summary} }`;
}

function summaryOf(error: Error): string {
  try {
    const data = attachedData(error)?.runData;
    if (data === undefined) return '';
    return `[lastAgent: ${data.lastAgent.name}, newItems: ${data.newItems.length}, rawResponses: ${data.rawResponses.length}]`;
  } catch {
    // Logging an error must not throw another one.
    return '[unavailable]';
  }
}
