import { getEventListeners } from 'node:events';
import { run, runStreamed } from '../../src/index.ts';
import type {
  Decision,
  RunHooks,
  RunInput,
  RunOptions,
  RunResult,
  RunState,
  ToolApprovalItem,
} from '../../src/index.ts';
import { idle } from '../run-kit.ts';
import { pick } from './script.ts';
import type { Random, Weather } from './script.ts';
import { Planned } from './world.ts';
import type { World } from './world.ts';
import type { Store } from './session.ts';

/** How one call of `run` went. */
export interface Ending {
  readonly result?: RunResult | undefined;
  readonly error?: unknown;
  /** A stream has a state of its own. */
  readonly streamState?: RunState | undefined;
  /** Items that were announced, by `keyOf`. */
  readonly events: readonly string[];
  readonly onInDoubt: 'interrupt' | 'fail' | 'retry';
}

/** What a person or a program says about a call. */
export function answer(item: ToolApprovalItem, world: World, random: Random): Decision {
  if (item.inDoubt) {
    const type = pick(random, 'rerun', 'done', 'reject');
    return type === 'done' ? { type, output: 'given' } : { type };
  }
  const always = random(6) === 0;
  const type = world.law.row(item.callId ?? '').call.want;
  return type === 'reject' && random(2) === 0 ? { type, always, message: 'no' } : { type, always };
}

const hookNames = [
  'onRunStart',
  'onRunEnd',
  'onAgentStart',
  'onAgentEnd',
  'onToolStart',
  'onToolEnd',
  'onLlmStart',
  'onLlmEnd',
] as const;

function hooksOf(world: World, counts: Map<string, number>): RunHooks {
  return Object.fromEntries(
    hookNames.map((name) => [
      name,
      () => {
        counts.set(name, (counts.get(name) ?? 0) + 1);
        world.point(name);
      },
    ]),
  );
}

/** One call of `run`, in either form, with whatever `random` has for it. Every abort stands at a point, not at a time. */
export async function segment(
  world: World,
  store: Store,
  input: RunInput,
  options: RunOptions,
  random: Random,
  weather: Weather,
): Promise<Ending> {
  const faults = weather !== 'calm';
  const caller = new AbortController();
  const counts = new Map<string, number>();
  let cancel: ((mode: 'immediate' | 'after_turn') => void) | undefined;
  let abortAt = weather === 'cancels' && random(2) === 0 ? random(30) : -1;
  let throwAt = faults && random(4) === 0 ? random(12) : -1;
  const afterTurn = random(3) === 0;
  let stopped = false;
  const byStream = random(2) === 0;
  world.onPoint = (name) => {
    if (abortAt-- === 0) {
      const gently = byStream && cancel && afterTurn;
      stopped ||= !gently && (hears || (byStream && cancel !== undefined));
      if (byStream && cancel) cancel(gently ? 'after_turn' : 'immediate');
      else caller.abort(new Planned('the caller left'));
    }
    if (name.startsWith('on') && throwAt-- === 0) throw new Planned(name);
  };
  if (faults) planFaults(world, store, random);
  const hears = random(3) > 0;
  const onInDoubt = pick(random, 'fail', 'interrupt', 'interrupt', 'retry');
  world.law.retries = onInDoubt === 'retry';
  const all: RunOptions = {
    ...options,
    onInDoubt,
    toolNotFoundBehavior: 'return_error_to_model',
    ...(hears && { signal: caller.signal }),
    ...(random(3) > 0 && { hooks: hooksOf(world, counts) }),
    ...(random(4) === 0 && { toolExecution: { maxFunctionToolConcurrency: 1 + random(2) } }),
    ...(random(3) === 0 && { onApproval: programOf(world, random, faults, () => stopped) }),
    ...(faults && { errorHandlers: handlersOf(world, random) }),
  };
  const ending =
    random(2) === 0
      ? await whole(world, input, all)
      : await streamed(world, input, all, random, (now) => (cancel = now));
  world.onPoint = () => undefined;
  const listeners = getEventListeners(caller.signal, 'abort').length;
  if (listeners > 0) world.law.broken.push(`${listeners} listeners are left on the caller's signal`);
  if ((counts.get('onRunEnd') ?? 0) > 1) world.law.broken.push('onRunEnd came twice');
  store.faults = [];
  store.failingRead = -1;
  world.modelFault = undefined;
  return { ...ending, onInDoubt };
}

function planFaults(world: World, store: Store, random: Random): void {
  if (random(3) === 0)
    store.faults = [
      ...Array.from({ length: random(3) }, () => undefined),
      pick(random, 'before', 'before', 'lost', 'lost', 'half', ...(random(40) === 0 ? ['unknown' as const] : [])),
    ];
  if (random(10) === 0) store.failingRead = random(3);
  if (random(5) === 0) world.modelFault = pick(random, 'down', 'down', 'cut', 'refuses');
}

function programOf(
  world: World,
  random: Random,
  faults: boolean,
  stopped: () => boolean,
): NonNullable<RunOptions['onApproval']> {
  return async (_ctx, item) => {
    world.point('program');
    await idle(random(3));
    if (faults && random(12) === 0) throw new Planned('the program failed');
    if (random(3) === 0) return undefined;
    const decision = answer(item, world, random);
    // Nobody hears an answer that comes after the end.
    if (!stopped()) world.law.decide(item, decision);
    return decision;
  };
}

function handlersOf(world: World, random: Random): NonNullable<RunOptions['errorHandlers']> {
  const handler = () => {
    world.point('handler');
    const way = random(4);
    if (way === 0) throw new Planned('the handler failed');
    return way === 1 ? { finalOutput: 'handled', includeInHistory: random(2) === 0 } : undefined;
  };
  return { [pick(random, 'maxTurns', 'modelRefusal', 'default')]: handler };
}

type Part = Omit<Ending, 'onInDoubt'>;

async function whole(world: World, input: RunInput, options: RunOptions): Promise<Part> {
  return await run(world.agent, input, options).then(
    (result) => ({ result, events: [] }),
    (error: unknown) => ({ error, events: [] }),
  );
}

async function streamed(
  world: World,
  input: RunInput,
  options: RunOptions,
  random: Random,
  cancellable: (cancel: (mode: 'immediate' | 'after_turn') => void) => void,
): Promise<Part> {
  const events: string[] = [];
  // Reads at once, slowly, for a while only, or not at all.
  const way = pick(random, 'all', 'all', 'slowly', 'leaves', 'none');
  let left = random(20);
  let stream: ReturnType<typeof runStreamed> | undefined;
  try {
    stream = runStreamed(world.agent, input, options);
    const running = stream;
    cancellable((mode) => running.cancel({ mode }));
    if (way !== 'none')
      for await (const event of stream) {
        if (event.type === 'run_item_stream_event') {
          const key = keyOf(event.item.rawItem);
          if (event.item.type !== 'tool_approval_item') events.push(key);
        }
        if (event.type !== 'raw_response_event') world.point('event');
        if (way === 'slowly') await idle(1);
        if (way === 'leaves' && left-- === 0) break;
      }
    return { result: await stream.completed, events };
  } catch (error) {
    await stream?.completed.catch(() => undefined);
    return { error, streamState: stream?.toState(), events };
  }
}

/** What an item is, however it is wrapped. */
export function keyOf(item: object): string {
  const { type, id, call_id: callId, role } = item as Record<string, unknown>;
  if (type === 'function_call') return `call ${String(callId)}`;
  if (type === 'function_call_output') return `output ${String(callId)}`;
  return typeof id === 'string' ? `${String(type)} ${id}` : String(role);
}
