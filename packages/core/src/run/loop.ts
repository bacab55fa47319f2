import type { AnyAgent } from '../agent/agent.ts';
import type { MessageOutputItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { StateRecord, Step } from '../state/record.ts';
import type { RunEnv } from './env.ts';
import { MaxTurnsExceededError, UserError } from '../base/errors.ts';
import { resolveOutput } from '../agent/output.ts';
import { waitingItems } from '../state/agent-tool-runs.ts';
import { goesOn } from '../state/next-step.ts';
import { callHooks, turnEnded } from './hooks.ts';
import { forkRecord } from './fork.ts';
import { inputGuardrails, outputGuardrails, withholdsTurns } from './guarded.ts';
import type { InputCheck } from './input-check.ts';
import type { FinalTurn } from './turn/accept.ts';
import { callForTurn } from './turn/call.ts';
import { reclassify } from './turn/classify.ts';
import type { ToolTable } from './turn/classify.ts';
import { executeCalls } from './turn/execute.ts';
import { askHandlers } from './turn/handlers.ts';
import { Pass } from './turn/pass.ts';
import { checkStoredCalls, planResume } from './turn/plan.ts';
import { collectTools, prepareCall } from './turn/prepare.ts';
import { keepFinished, publish, publishMessage } from './turn/publish.ts';
import { receive } from './turn/receive.ts';
import type { Received } from './turn/receive.ts';
import { logUnfinished } from './turn/resume-log.ts';
import { settle } from './turn/settle.ts';
import type { Settled } from './turn/settle.ts';
import { holdDetached, storeTurn } from './turn/store.ts';

/**
 * The loop, the one there is: yields what each turn decided, at the boundary where the record can be written down. A record
 * that waits for decisions is resolved first, without a model call; from then on the turns have a record of their own.
 */
export async function* turns(record: StateRecord, env: RunEnv): AsyncGenerator<StateRecord, void> {
  let current = record;
  if (record.step.type === 'interruption') {
    await finishTurn(await env.spans.besideTurns(record.currentAgent, () => resume(record, env)), env);
    const goes = goesOn(record.step);
    if (goes) current = forkRecord(record, env);
    yield current;
    if (!goes) return;
  }
  for (;;) {
    if (current.maxTurns !== null && current.currentTurn >= current.maxTurns) {
      yield await env.spans.besideTurns(current.currentAgent, () => endAtLimit(current, env));
      return;
    }
    const turn = admitTurn(current);
    const { currentAgent: agent } = current;
    env.extended?.({ type: 'run_extended_event', name: 'turn_started', data: { turn, agent } });
    const done = await env.spans.turn(turn, agent, () => freshTurn(current, env));
    yield await finishTurn(done, env);
    if (!goesOn(current.step)) return;
  }
}

/** What a pass decided, before it is stored. */
interface Decided {
  readonly step: Step;
  readonly pass: Pass;
  /** Of a handler, in place of a failure. */
  readonly message: MessageOutputItem | undefined;
  /** Who gave a final output. */
  readonly by: Settled['by'];
}

function admitTurn(record: StateRecord): number {
  record.currentTurn += 1;
  record.persistedItemCount = 0;
  return record.currentTurn;
}

/**
 * No turn is left, and the next one is refused without being counted: what a handler gives is the final output then.
 * @throws MaxTurnsExceededError that no handler took
 */
async function endAtLimit(record: StateRecord, env: RunEnv): Promise<StateRecord> {
  const maxTurns = record.maxTurns ?? 0;
  const error = new MaxTurnsExceededError(`Max turns (${maxTurns}) exceeded`, { maxTurns });
  env.spans.fail('Max turns exceeded', { max_turns: maxTurns });
  const handled = await askHandlers({ kind: 'maxTurns', error }, [], record, env);
  if (handled === undefined) throw error;
  const { output, message } = handled;
  await endHooks(record, output, env);
  await env.session?.writeInput();
  if (outputGuardrails(record.currentAgent, env)) {
    const { acceptHandled } = await import('./turn/accept.ts');
    await acceptHandled(output, message, record, env);
  }
  if (record.pendingWrite?.held) record.pendingWrite = undefined;
  if (message) await writeMessage(message, record, env);
  record.step = { type: 'final_output', output };
  env.spans.agentOutput(output);
  if (message) publishMessage(message, record, env);
  return record;
}

/** The last append of a run that no turn ends. */
async function writeMessage(message: MessageOutputItem, record: StateRecord, env: RunEnv): Promise<void> {
  record.step = { type: 'none' };
  record.unrecoverable = env.session !== undefined;
  await env.session?.writeTurn([message], {
    responseId: record.modelResponses.at(-1)?.responseId,
    store: env.storeSetting,
    hasLocalToolOutputs: false,
    terminal: true,
  });
  record.unrecoverable = false;
}

function endHooks(record: StateRecord, output: unknown, env: RunEnv): Promise<void> | undefined {
  const agent = record.currentAgent;
  return callHooks(
    record,
    env,
    (hooks) => hooks.onAgentEnd?.(env.context as never, agent, output),
    (hooks) => hooks.onEnd?.(env.context as never, agent, output),
  );
}

/** Steps 4 to 24 of a turn (RUN-401). A turn whose request never left is not counted. */
async function freshTurn(record: StateRecord, env: RunEnv): Promise<Decided> {
  let asked = false;
  try {
    // Nothing of the run was accepted yet: this is its first turn, or that once more.
    if (record.modelResponses.length === 0 && inputGuardrails(record.currentAgent, env)) {
      env.inputCheck = await inputCheck(record, env);
      await env.inputCheck?.block();
    }
    const prepared = await prepareCall(record, env);
    env.control.throwIfAborted();
    asked = true;
    const response = await callForTurn(prepared, record, env);
    const received = await receive(response, prepared, record, env);
    return await freshPass(record, response, received, prepared.table, env);
  } catch (error) {
    if (!asked) record.currentTurn -= 1;
    throw env.inputCheck ? await env.inputCheck.end(error) : error;
  } finally {
    env.inputCheck = undefined;
  }
}

/** From here on whatever cuts the turn leaves it as an interrupted one, whose model call is not repeated (STATE-139). */
async function freshPass(
  record: StateRecord,
  response: ModelResponse,
  { plan, processed }: Received,
  tools: ToolTable,
  env: RunEnv,
): Promise<Decided> {
  const { step, processed: before } = record;
  // What a provider keeps was taken down when it came.
  if (env.server === undefined) {
    record.modelResponses.push(response);
    record.generatedItems.push(...processed.newItems);
    record.processed = processed;
    record.step = { type: 'interruption', interruptions: [], responseAccepted: false, llmEndHooksStarted: true };
  }
  record.responseResults = undefined;
  const pass = new Pass(record, processed, plan, { fresh: true });
  if (plan.calls.length + plan.handoffs.length > 0) env.inputCheck?.localWork();
  try {
    return await work(pass, tools, env);
  } catch (error) {
    const kept = await keepFinished(pass, env);
    if (pass.handedOff && record.inputUnchecked) seal(pass);
    // Without local work nothing would be done twice: the next segment asks the model again, behind what was kept.
    if (env.server === undefined && plan.calls.length + plan.handoffs.length === 0) {
      record.generatedItems.splice(pass.start, processed.newItems.length, ...kept);
      if (kept.length === 0) record.modelResponses.pop();
      record.processed = kept.length === 0 ? before : processed;
      record.step = kept.length === 0 ? step : { type: 'run_again' };
    }
    throw error;
  }
}

/** The input was not accepted, and its agent has handed off already: going on would pass its guardrails by (STATE-336). */
function seal(pass: Pass): void {
  const { record } = pass;
  publish(pass);
  record.step = { type: 'none' };
  record.unrecoverable = true;
  record.inputUnchecked = undefined;
}

/** The interrupted turn, against the tools of today; what the ledger knows as finished is not run again (STATE §8.2). */
async function resume(record: StateRecord, env: RunEnv): Promise<Decided> {
  if (record.modelResponses.length === 0)
    throw new UserError('The state waits for decisions but has no model response to go on from. Start a new run.', {
      code: 'resume_no_response',
    });
  checkStoredCalls(record);
  if (record.inputUnchecked) await checkInput(record, env);
  const again = await env.server?.again(record, env);
  if (again) return await freshPass(record, again.response, again.received, again.table, env);
  const { processed, step } = record;
  if (processed === undefined)
    throw new UserError('The state waits for decisions but does not say on which calls. Start a new run.', {
      code: 'resume_no_processed_response',
    });
  const tools = await collectTools(record, env);
  const waiting = step.type === 'interruption' ? step.interruptions : [];
  // A nested run only goes on where something was decided.
  const before = env.nesting ? 0 : waitingItems(record).length;
  const stored = reclassify(processed, waiting, record.currentAgent, tools.table);
  const plan = planResume(stored, tools.table, record, env.options.onInDoubt ?? 'fail');
  const pass = new Pass(record, processed, plan, { fresh: false });
  const decided = await work(pass, tools.table, env).catch(async (error: unknown) => {
    // What it committed is owed to the session like what waits (STATE-140).
    await holdDetached(pass, false);
    throw error;
  });
  if (decided.step.type === 'interruption') warnUndecided(before, pass, env);
  if (decided.step.type !== 'final_output') logUnfinished(decided.step, pass);
  return decided;
}

/** `undefined`: nobody asked for input guardrails. */
async function inputCheck(record: StateRecord, env: RunEnv): Promise<InputCheck | undefined> {
  const guardrails = inputGuardrails(record.currentAgent, env);
  if (guardrails === undefined) return undefined;
  const { InputCheck: Check } = await import('./input-check.ts');
  return new Check(record, env, guardrails);
}

/** The input guardrails of a first turn that was cut before they had accepted (STATE-139). @throws what they fail with */
async function checkInput(record: StateRecord, env: RunEnv): Promise<void> {
  const check = await inputCheck(record, env);
  try {
    await check?.all();
  } catch (error) {
    throw await check?.end(error);
  }
  record.inputUnchecked = undefined;
}

/** Somebody resumed without deciding anything; each `toState()` gives a state of its own, which is easily mistaken. */
function warnUndecided(before: number, pass: Pass, env: RunEnv): void {
  const done = pass.reentered || [...pass.results.values()].some((result) => result.type === 'output');
  if (before > 0 && waitingItems(pass.record).length === before && !done)
    env.warnOnce(
      'undecided',
      'The run was resumed, but none of its waiting calls was decided on this state. Each toState() gives an independent state: decide on the one that is run.',
    );
}

async function tellAtOnce(pass: Pass, env: RunEnv): Promise<void> {
  const { announceAtOnce } = await import('./extended-events.ts');
  announceAtOnce(pass, env);
}

/** Runs the calls and decides what becomes of the response. */
async function work(pass: Pass, tools: ToolTable, env: RunEnv): Promise<Decided> {
  const { agent, record } = pass;
  const output = resolveOutput(agent);
  record.withheld = withholdsTurns(agent, env);
  if (env.extended) await tellAtOnce(pass, env);
  if (pass.calls.length > 0) await executeCalls(pass, env);
  env.control.throwIfAborted();
  const { step, message, by } = await settle(pass, tools, output, env);
  if (env.inputCheck) await env.inputCheck.settled();
  const told = step.type === 'final_output' ? endHooks(record, step.output, env) : undefined;
  if (told) await told;
  return { step, pass, message, by };
}

/**
 * Makes public what a turn decided, and stores it. What can be gone on from is in the record before the session is
 * asked; a final output counts only once the session has it (STATE-331).
 */
async function finishTurn({ step, pass, message, by }: Decided, env: RunEnv): Promise<StateRecord> {
  const { record } = pass;
  const final = step.type === 'final_output';
  // Of a resumed turn nothing is told before the verdict.
  const guarded = final && outputGuardrails(pass.agent, env) !== undefined;
  if (guarded && !pass.fresh) await acceptOutput({ step, pass, message, by }, env);
  record.step = final ? { type: 'none' } : step;
  // The turn is left, and no call of it needs its run any more (STATE-256).
  if (step.type !== 'interruption') record.agentToolRuns?.clear();
  if (step.type === 'handoff') beginHandover(step.newAgent, record, env);
  const publication = publish(pass);
  if (pass.fresh || !final) publication.announce(env);
  if (guarded && pass.fresh) await acceptOutput({ step, pass, message, by }, env);
  record.privateResults = undefined;
  record.unrecoverable = final && env.session !== undefined;
  const stored = storeTurn(message ? [...publication.items, message] : publication.items, pass, final, env);
  if (stored) await stored;
  record.unrecoverable = false;
  record.step = step;
  if (final) env.spans.agentOutput(step.output);
  if (!pass.fresh && final) publication.announce(env);
  if (message) publishMessage(message, record, env);
  if (env.extended || env.options.hooks?.onTurnEnd) await turnEnded(pass.agent, record, env);
  if (step.type === 'handoff') endHandover(step.newAgent, env);
  return record;
}

async function acceptOutput(turn: FinalTurn, env: RunEnv): Promise<void> {
  const accept = await import('./turn/accept.ts');
  await accept.acceptOutput(turn, env);
}

/** From here on the state goes on with the new agent, also when the session cannot be written. */
function beginHandover(newAgent: AnyAgent, record: StateRecord, env: RunEnv): void {
  record.currentAgent = newAgent;
  env.startHooksDue = true;
  env.deliverQueued = true;
}

function endHandover(newAgent: AnyAgent, env: RunEnv): void {
  env.deliverQueued = false;
  env.spans.leaveAgent();
  env.emit?.({ type: 'agent_updated_stream_event', newAgent });
}
