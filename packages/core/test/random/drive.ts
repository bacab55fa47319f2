import {
  getRunErrorState,
  MaxTurnsExceededError,
  ModelRefusalError,
  RunAbortedError,
  RunState,
  ToolCallError,
  ToolTimeoutError,
} from '../../src/index.ts';
import type { RunInput, RunOptions, Session } from '../../src/index.ts';
import { checkEnd, checkPause } from './check.ts';
import { Broken } from './law.ts';
import { answer, segment } from './segment.ts';
import type { Ending } from './segment.ts';
import { numbers, scriptOf } from './script.ts';
import type { Random, Weather } from './script.ts';
import { plainSession, sessionWithIds, Store } from './session.ts';
import { Planned, World } from './world.ts';

/** What became of a run in the end. `unstored`: its final output was made and could not be stored (STATE-331). */
export type Outcome = 'completed' | 'unstored';

const weathers = ['calm', 'faults', 'faults', 'cancels', 'cancels'] as const;
export const weatherOf = (seed: number): Weather => weathers[seed % weathers.length] ?? 'calm';

/**
 * Drives one run to its end through everything that its seed has for it.
 *
 * @throws Broken naming everything that was seen and must not be
 */
export async function drive(seed: number): Promise<Outcome> {
  const weather = weatherOf(seed);
  const random = numbers(seed);
  const world = new World(scriptOf(random, weather), numbers(seed + 7919));
  const store = new Store(numbers(seed + 104729), (name) => world.point(name));
  const session = pickSession(store, random);
  const announced = new Set<string>();
  let input: RunInput = 'go';
  for (let round = 0; round < 100; round += 1) {
    const maxTurns = random(4) === 0 ? 1 + random(3) : null;
    const options: RunOptions = { session, maxTurns };
    const ending = await inTime(segment(world, store, input, options, random, weather));
    checkEvents(ending, announced, world);
    world.law.broken.push(...store.broken.splice(0));
    const state = ending.result ? undefined : await stateOf(ending, random, store, world);
    await world.releaseLate();
    if (ending.result?.status === 'completed') {
      checkEnd(world, session && store, ending.result, weather);
      return ended(world, 'completed');
    }
    // Stopped when there was nothing left to do: the output is there and stored.
    if (state?.status === 'completed') {
      checkEnd(
        world,
        session && store,
        { toInputList: () => state.toInputList(), finalOutput: finalOutputOf(state) },
        weather,
      );
      return ended(world, 'completed');
    }
    if (state?.status === 'unrecoverable') return ended(world, 'unstored');
    const next: RunState = ending.result?.toState() ?? (state as RunState);
    checkPause(world, session && store, next, ending);
    input = await passOn(next, world, random);
    if (world.law.broken.length > 0) break;
  }
  world.law.broken.push('the run did not end');
  return ended(world, 'unstored');
}

function pickSession(store: Store, random: Random): Session | null {
  const kind = random(6);
  return kind === 0 ? null : kind < 3 ? sessionWithIds(store) : plainSession(store);
}

function ended(world: World, outcome: Outcome): Outcome {
  if (world.law.broken.length > 0) throw new Broken([...new Set(world.law.broken)].join('\n'));
  return outcome;
}

function finalOutputOf({ currentStep }: RunState): unknown {
  return currentStep?.type === 'next_step_final_output' ? currentStep.output : undefined;
}

/** Now in this process, now in another one: through text. Some of what waits is decided. */
async function passOn(state: RunState, world: World, random: Random): Promise<RunState> {
  const there = random(2) === 0 ? state : await RunState.fromString(world.agent, state.toString());
  for (const item of there.interruptions) {
    if (random(3) === 0) continue;
    const decision = answer(item, world, random);
    there.decide(item, decision);
    world.law.decide(item, decision);
  }
  return random(3) > 0 ? there : await RunState.fromString(world.agent, there.toString());
}

/** Where a failed segment can go on; a failure that nobody planned breaks the law. */
async function stateOf(ending: Ending, random: Random, store: Store, world: World): Promise<RunState> {
  const { error } = ending;
  if (!expected(error, ending, store)) {
    if (error instanceof Broken) throw error;
    throw new Broken(`an error that nobody planned: ${error instanceof Error ? error.stack : String(error)}`, {
      cause: error,
    });
  }
  const left = getRunErrorState(error);
  if (left === undefined) throw new Broken(`an error without a state: ${String(error)}`);
  if (world.law.broken.length > 0) return left;
  return random(2) === 0 ? left : (ending.streamState ?? left);
}

function expected(error: unknown, { onInDoubt }: Ending, store: Store): boolean {
  const { code, cause } = error as { code?: string; cause?: unknown };
  if (code === 'call_executed_uncommitted') return onInDoubt === 'fail';
  if (code === 'session_write_ambiguous') return store.repair();
  if (error instanceof ToolCallError) return cause instanceof Planned || (cause as Error).name === 'AbortError';
  return (
    error === store.error ||
    code === 'session_outcome_unknown' ||
    [Planned, MaxTurnsExceededError, ModelRefusalError, RunAbortedError, ToolTimeoutError].some(
      (kind) => error instanceof kind,
    )
  );
}

function checkEvents({ events }: Ending, announced: Set<string>, world: World): void {
  for (const [index, key] of events.entries()) {
    // A response may be announced again by a later segment: what came of the first one was thrown away.
    const again = events.indexOf(key) < index || (key.startsWith('output') && announced.has(key));
    if (again) world.law.broken.push(`${key} is announced twice`);
  }
  for (const key of events) announced.add(key);
}

/** A run that hangs is told by its seed. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Broken('a segment hangs')), 60_000);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
