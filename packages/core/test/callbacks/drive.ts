import { getEventListeners } from 'node:events';
import { getRunErrorState, run, runStreamed, RunState } from '../../src/index.ts';
import type { Decision, RunInput, RunOptions, RunResult, ToolApprovalItem } from '../../src/index.ts';
import { idle, PlainSession } from '../run-kit.ts';
import { Broken } from '../random/law.ts';
import { checkHistory, checkStored, keysOf, publicItems } from './check.ts';
import { explain } from './fate.ts';
import { callsOf, planOf } from './plan.ts';
import type { Plan } from './plan.ts';
import { POISON } from './poison.ts';
import { hash } from './misbehave.ts';
import { World } from './world.ts';
import type { Fired } from './world.ts';

export type Form = 'plain' | 'streamed';

/** How one run went, from its start to its end: what both forms must agree on. */
export interface Story {
  /** Of each segment, how it ended. */
  readonly segments: string[];
  readonly facts: unknown;
  readonly fired: readonly Fired[];
}

interface Ending {
  readonly result?: RunResult | undefined;
  readonly error?: unknown;
  readonly streamState?: RunState | undefined;
}

/**
 * Drives one run to its end, in one form: whatever fails, it goes on from the state that is left.
 *
 * @throws Broken naming everything that was seen and must not be
 */
export async function drive(plan: Plan, form: Form): Promise<Story> {
  const world = new World(plan);
  const session = plan.session ? new PlainSession() : undefined;
  const segments: string[] = [];
  let input: RunInput = 'go';
  for (let round = 0; round < 30; round += 1) {
    const before = world.fired.length;
    const caller = new AbortController();
    const options: RunOptions = {
      ...world.options(),
      session: session ?? null,
      maxTurns: round === 0 ? plan.maxTurns : null,
      signal: caller.signal,
      tracingDisabled: !plan.traced,
    };
    world.stopped = false;
    const ending = await inTime(segment(world, form, input, options, caller), world);
    const listeners = getEventListeners(caller.signal, 'abort').length;
    if (listeners > 0) world.broken.push(`${listeners} listeners are left on the caller's signal`);
    const fired = world.fired.slice(before);
    segments.push(explain(ending, fired, world, round));
    const next = stateOf(ending, plan, round);
    const text = next?.toString();
    if (next) checkPause(world, next, session, ending);
    if ((await world.releaseLate()) && text !== next?.toString()) world.broken.push('what came late changed the state');
    if (world.broken.length > 0 || next === undefined || ending.result?.status === 'completed') {
      return await end(world, segments, ending, next, session);
    }
    if (next.status === 'completed' || next.status === 'unrecoverable') {
      segments.push(next.status);
      return await end(world, segments, ending, next, session);
    }
    input = await passOn(next, world, round);
    if (segments.at(-1) === 'call_executed_uncommitted') {
      // Nobody can answer for a handoff; with `retry` it is taken again.
      world.retries = true;
      allowAll(world);
    }
  }
  throw new Broken(`the run did not end: ${segments.join(', ')}`);
}

async function end(
  world: World,
  segments: string[],
  ending: Ending,
  state: RunState | undefined,
  session: PlainSession | undefined,
): Promise<Story> {
  await idle(1);
  const { result } = ending;
  const items = publicItems(result?.newItems ?? state?.newItems ?? []);
  if (result?.status === 'completed') {
    checkHistory(world, items, 'newItems');
    const called = new Set(items.map((item) => (item as { call_id?: string }).call_id));
    const isWhole = result.finalOutput === 'done';
    if (isWhole)
      for (const { id } of world.plan.turns.flatMap(({ calls }) => calls))
        if (!called.has(id)) world.broken.push(`the run is over without ${id}`);
    const cut = world.fired.length > 0;
    if (!isWhole && result.finalOutput !== 'done by tool' && !cut)
      world.broken.push(`the final output is ${JSON.stringify(result.finalOutput)}`);
    if (session) checkStored(world, session.items, items);
  }
  checkPoison(world, { items, session: session?.items, state: state?.toString(), seen: world.seen });
  const cause = world.fired.map(({ fault }) => `${fault.site} ${fault.kind}`).join(', ');
  if (world.broken.length > 0)
    throw new Broken([`after ${cause} (${segments.join(' → ')})`, ...new Set(world.broken)].join('\n'));
  const facts = {
    output: result?.finalOutput,
    items: keysOf(items),
    session: session && keysOf(session.items),
    starts: Object.fromEntries([...world.starts].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
  return { segments, facts, fired: world.fired };
}

function checkPoison(world: World, places: Readonly<Record<string, unknown>>): void {
  for (const [place, value] of Object.entries(places)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
    const at = text.indexOf(POISON);
    if (at >= 0)
      world.broken.push(`a change by a cast reached ${place}: …${text.slice(Math.max(0, at - 120), at + 30)}`);
  }
}

function checkPause(world: World, state: RunState, session: PlainSession | undefined, { result }: Ending): void {
  const items = publicItems(state.newItems);
  checkHistory(world, items, 'newItems');
  if (session === undefined) return;
  checkHistory(world, session.items, 'session', true);
  const known = new Set(['user', ...items.map((item) => keysOf([item])[0])]);
  for (const key of keysOf(session.items))
    if (!known.has(key)) world.broken.push(`${key} is in the session and in nothing else`);
  if (result?.status === 'interrupted' && !holdsBack(world) && session.items.length !== items.length + 1)
    world.broken.push(`the session has ${keysOf(session.items).join()}, the paused run ${keysOf(items).join()}`);
}

/** Output guardrails may withhold what a tool gave (STATE-127). */
const holdsBack = (world: World): boolean => world.has('guardrail.output') && world.has('toolUseBehavior');

/** Where a segment that did not end the run can go on. */
function stateOf({ result, error, streamState }: Ending, plan: Plan, round: number): RunState | undefined {
  if (result) return result.toState();
  const left = getRunErrorState(error);
  return left && streamState && hash(`${plan.seed} ${round}`) % 2 === 0 ? streamState : left;
}

/** Now in this process, now in another one: through text. What waits is decided, some of it later. */
async function passOn(state: RunState, world: World, round: number): Promise<RunState> {
  const { plan, start } = world;
  const there = plan.stored ? await RunState.fromString(start, state.toString()) : state;
  const waiting = there.interruptions;
  waiting.forEach((item, index) => {
    const isLater = waiting.length > 1 && (hash(`${item.callId} ${round}`) + index) % 3 === 0 && index > 0;
    if (isLater) return;
    there.decide(item, answer(item, world));
  });
  return hash(`${plan.seed} again ${round}`) % 3 > 0 || !plan.stored
    ? there
    : await RunState.fromString(start, there.toString());
}

function answer(item: ToolApprovalItem, world: World): Decision {
  const { callId } = item;
  if (item.inDoubt) {
    if (world.plan.doubt === 'done') return { type: 'done', output: 'given' };
    allow(world, callId);
    return { type: 'rerun' };
  }
  return world.call(callId).approve ? { type: 'approve' } : { type: 'reject' };
}

/** A call that is run again, with all that goes on in it. */
function allow(world: World, id: string): void {
  for (const key of [id, ...callsOf(world.call(id).turns).map((call) => call.id)])
    world.reruns.set(key, (world.reruns.get(key) ?? 0) + 1);
}

function allowAll(world: World): void {
  for (const { id } of callsOf(world.plan.turns)) world.reruns.set(id, (world.reruns.get(id) ?? 0) + 1);
}

// ---- one segment

async function segment(
  world: World,
  form: Form,
  input: RunInput,
  options: RunOptions,
  caller: AbortController,
): Promise<Ending> {
  const { plan } = world;
  const all: RunOptions = world.retries || plan.doubt === 'retry' ? { ...options, onInDoubt: 'retry' } : options;
  if (plan.doubt === 'retry') allowAll(world);
  if (form === 'plain') {
    world.stop = () => {
      world.stopped = true;
      caller.abort('the caller left');
    };
    return await run(world.start, input, all).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
  }
  return await streamed(world, input, all, caller);
}

async function streamed(world: World, input: RunInput, options: RunOptions, caller: AbortController): Promise<Ending> {
  let stream: ReturnType<typeof runStreamed> | undefined;
  const announced = new Set<string>();
  try {
    stream = runStreamed(world.start, input, options);
    const running = stream;
    world.stop = (kind) => {
      world.stopped = true;
      if (kind === 'hang') caller.abort('the caller left');
      else running.cancel();
    };
    if (world.plan.readsStream)
      for await (const event of stream) {
        if (event.type !== 'run_item_stream_event' || event.item.type === 'tool_approval_item') continue;
        const [key = ''] = keysOf([event.item.rawItem]);
        if (announced.has(key)) world.broken.push(`${key} is announced twice`);
        announced.add(key);
      }
    return { result: await stream.completed };
  } catch (error) {
    await stream?.completed.catch(() => undefined);
    return { error, streamState: stream?.toState() };
  }
}

/** A run that hangs is told by its seed. */
async function inTime<T>(work: Promise<T>, world: World): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    const fired = (): string => world.fired.map(({ fault }) => `${fault.site} ${fault.kind}`).join(', ');
    timer = setTimeout(() => reject(new Broken(`a segment hangs after ${fired()}`)), HANGS_MS);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** Far longer than all graces together (RUN-512), also on a busy machine. */
const HANGS_MS = 15_000;

/** Of a run whose calls race with what cuts them: on a busy machine one form may have finished more than the other. */
export class FormsDiffer extends Broken {}

/** One seed in both forms, which must end alike. */
export async function driveBoth(seed: number): Promise<{ readonly plain: Story; readonly streamed: Story }> {
  const plan = planOf(seed);
  const [plain, stream] = await Promise.all([drive(plan, 'plain'), drive(plan, 'streamed')]);
  const [left, right] = [plain, stream].map(({ segments, facts }) => JSON.stringify({ segments, facts }));
  if (left !== right) throw new FormsDiffer(`the forms differ:\n  plain    ${left}\n  streamed ${right}`);
  return { plain, streamed: stream };
}
