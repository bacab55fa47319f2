import { env } from '../base/env.ts';
import { onReset } from '../base/reset.ts';
import { log } from './log.ts';
import { StartedIds } from './started-ids.ts';
import type {
  Clock,
  Span,
  SpanDataMap,
  SpanType,
  Trace,
  TraceContextStorage,
  TraceIdGenerator,
  TraceProcessor,
  TraceProvider,
} from './types.ts';

/** Where code runs: entered by callbacks only, never changed (TRACE-C2). */
export interface Frame {
  readonly trace: Trace;
  readonly span: Span | undefined;
}

export interface ProcessorEntry {
  readonly processor: TraceProcessor;
  /** Methods whose last call failed: logged when the first of a row fails. */
  readonly failing: Set<string>;
  /** Promises of event methods; a flush waits for them. */
  readonly pending: Set<Promise<unknown>>;
}

export type SpanDataWriter = (data: SpanDataMap[SpanType]) => Record<string, unknown>;

/** What a process holds of tracing. All copies of this major version share one, so that they share the trace (TRACE-C14). */
export interface TracingRuntime {
  provider: TraceProvider | undefined;
  ids: TraceIdGenerator | undefined;
  clock: Clock | undefined;
  /** Chosen or given; `undefined` until a scope is first entered. */
  storage: TraceContextStorage | undefined;
  /** Given by the user: it may fail. */
  ownStorage: boolean;
  /** Replaced as a whole, so that a list that is being called does not change. */
  entries: readonly ProcessorEntry[];
  /** Those of `entries` that have a context of their own. */
  binders: readonly ProcessorEntry[];
  /** `undefined`: the environment has not been asked. */
  disabled: boolean | undefined;
  shutDown: boolean;
  readonly startedIds: StartedIds;
  /** What was dispatched last, for records that name it as theirs. */
  readonly dispatched: Map<string, Trace | Span>;
  readonly spanTypes: Map<string, SpanDataWriter>;
  /** Gives the key that exporters may use. */
  exportKey: (() => string) | undefined;
  /** Names the installation of the user's agents, for traces; `undefined`: the environment is asked. */
  harnessId: string | undefined;
  readonly warned: Set<string>;
  removeExitHook: (() => void) | undefined;
  /** An event came since the last flush at exit. */
  unflushed: boolean;
}

const PREFIX = 'agents.tracing.v';
const KEY = Symbol.for(`${PREFIX}1`);

let own: TracingRuntime | undefined;

export function runtime(): TracingRuntime {
  own ??= shared();
  return own;
}

/** `OPENAI_AGENTS_DISABLE_TRACING` counts once; what was set in code wins (TRACE-P9). */
export function isDisabled(): boolean {
  const now = runtime();
  now.disabled ??= ['true', '1'].includes(env('OPENAI_AGENTS_DISABLE_TRACING')?.toLowerCase() ?? '');
  return now.disabled || now.shutDown;
}

export function warnOnce(key: string, message: string): void {
  const { warned } = runtime();
  if (warned.has(key)) return;
  warned.add(key);
  log.warn(message);
}

function shared(): TracingRuntime {
  const home = globalThis as typeof globalThis & { [KEY]?: TracingRuntime };
  const found = home[KEY];
  if (found !== undefined) return found;
  const made = fresh();
  try {
    Object.defineProperty(home, KEY, { value: made, configurable: true });
  } catch {
    // A frozen global object: this copy keeps to itself.
  }
  for (const symbol of Object.getOwnPropertySymbols(home)) {
    if (symbol === KEY || symbol.description?.startsWith(PREFIX) !== true) continue;
    log.warn(
      'Another major version of @agents/core is loaded in this process; it does not share traces with this one.',
    );
  }
  return made;
}

function fresh(): TracingRuntime {
  return {
    provider: undefined,
    ids: undefined,
    clock: undefined,
    storage: undefined,
    ownStorage: false,
    entries: [],
    binders: [],
    disabled: undefined,
    shutDown: false,
    startedIds: new StartedIds(),
    dispatched: new Map(),
    spanTypes: new Map(),
    exportKey: undefined,
    harnessId: undefined,
    warned: new Set(),
    removeExitHook: undefined,
    unflushed: false,
  };
}

onReset(() => {
  if (own === undefined) return;
  own.removeExitHook?.();
  Object.assign(own, fresh());
});
