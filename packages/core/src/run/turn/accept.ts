import type { MessageOutputItem, RunItem } from '../../items/items.ts';
import type { StateRecord, Step } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import type { OutputJudgement } from '../output-check.ts';
import type { Pass } from './pass.ts';
import type { Settled } from './settle.ts';
import { withoutRunData } from '../../base/errors.ts';
import { getLogger } from '../../base/logger.ts';
import { judgeOutput, tripwire } from '../output-check.ts';
import { publish } from './publish.ts';
import { storeTurn } from './store.ts';

/** A turn that ended the run, before its output counts. */
export interface FinalTurn {
  readonly step: Extract<Step, { type: 'final_output' }>;
  readonly pass: Pass;
  readonly message: MessageOutputItem | undefined;
  readonly by: Settled['by'];
}

/**
 * Asks the output guardrails about a final output. One that is accepted is left as it is. Items of a fresh turn are public
 * by then, those of a resumed one are not.
 *
 * @throws OutputGuardrailTripwireTriggered, with nothing of a blocked tool output in the state or the session; what a
 * guardrail threw, behind an output that then counts as accepted history (RUN-913)
 */
export async function acceptOutput(turn: FinalTurn, env: RunEnv): Promise<void> {
  const { step, pass, by } = turn;
  const { record } = pass;
  const response = by === 'model' ? pass.response : undefined;
  const judgement = await judgeOutput({ value: step.output, response }, pass.agent, env);
  if (judgement === undefined) return;
  const { verdict, results } = judgement;
  if (verdict.type === 'tripped' && by === 'tools') throw await withhold(judgement, verdict.guardrailName, pass, env);
  record.guardrailResults.output.push(...results);
  if (verdict.type === 'accepted') return;
  if (verdict.type === 'tripped') {
    env.spans.tripped(verdict.guardrailName, 'output_guardrail');
    record.privateResults = undefined;
    throw verdict.error;
  }
  // With outputs of an earlier pass nothing is told or stored: the next one asks about the same output again (STATE-230).
  if (pass.hasRecovered()) {
    record.guardrailResults.output.splice(-results.length, results.length);
    throw verdict.error;
  }
  await keepAccepted(turn, env, verdict.error);
  throw verdict.error;
}

/**
 * The same for the output of a handler at the turn limit, which no turn gave (RUN-710).
 *
 * @throws as `acceptOutput`; after a trip nothing of the output is anywhere
 */
export async function acceptHandled(
  output: unknown,
  message: MessageOutputItem | undefined,
  record: StateRecord,
  env: RunEnv,
): Promise<void> {
  const judgement = await judgeOutput({ value: output, response: undefined }, record.currentAgent, env);
  if (judgement === undefined) return;
  const { verdict, results } = judgement;
  record.guardrailResults.output.push(...results);
  if (verdict.type === 'accepted') return;
  if (verdict.type === 'tripped') env.spans.tripped(verdict.guardrailName, 'output_guardrail');
  else if (message) {
    record.generatedItems.push(message);
    record.sessionItems.push(message);
    await storeOwed(verdict.error, record, async () => {
      await env.session?.writeTurn([message], { store: env.storeSetting, hasLocalToolOutputs: false });
    });
  }
  throw verdict.error;
}

/** Nobody judged the output, so the turn stays; it is owed to the session like one that the model is asked after. */
async function keepAccepted({ pass, message }: FinalTurn, env: RunEnv, cause: unknown): Promise<void> {
  const { record } = pass;
  const items = pass.fresh ? pass.responseItems() : publish(pass).items;
  if (message) {
    record.generatedItems.push(message);
    record.sessionItems.push(message);
  }
  record.privateResults = undefined;
  await storeOwed(cause, record, () => storeTurn(message ? [...items, message] : items, pass, false, env));
}

/** @throws what the session failed with; `cause`, where it has none, is why the run failed before */
async function storeOwed(cause: unknown, record: StateRecord, store: () => Promise<void> | undefined): Promise<void> {
  record.step = { type: 'run_again' };
  try {
    await store();
  } catch (error) {
    if (error instanceof Error) withCause(error, cause);
    throw error;
  } finally {
    settleStep(record);
  }
}

/** A run that is over goes on, if at all, with the model; with a write that is owed it says so. */
function settleStep(record: StateRecord): void {
  if (record.pendingWrite === undefined) record.step = { type: 'none' };
}

function withCause(error: Error, cause: unknown): void {
  try {
    if (error.cause === undefined)
      Object.defineProperty(error, 'cause', { value: cause, writable: true, configurable: true });
  } catch {
    // A frozen error, or one that guards its members.
  }
}

// ---- a tool's output that is blocked

/** Takes the output out of everything that outlives the turn, and gives the error that has nothing of it (RUN-921…927). */
async function withhold({ results }: OutputJudgement, guardrailName: string, pass: Pass, env: RunEnv): Promise<Error> {
  const { record } = pass;
  const text = withheldText(guardrailName, pass, env);
  const redaction = await import('../redact-output.ts');
  const { items, response } = redaction.redactResponse(pass.responseItems(), pass.response, text);
  replaceResponse(items, pass);
  record.modelResponses = record.modelResponses.toSpliced(-1, 1, ...(response ? [response] : []));
  record.processed = undefined;
  const { toolOutput, output } = record.guardrailResults;
  const start = record.responseResults ?? toolOutput.length;
  record.guardrailResults.toolOutput = toolOutput.map((result, index) =>
    index < start ? result : redaction.redactToolVerdict(result, text),
  );
  record.privateResults = undefined;
  const sanitized = results.map((result) => redaction.redactVerdict(result, text));
  output.push(...sanitized);
  env.spans.tripped(guardrailName, 'output_guardrail');
  await storeRedacted(items, pass, env);
  const tripped = sanitized.findLast(({ output: { tripwireTriggered } }) => tripwireTriggered);
  return withoutRunData(tripwire(tripped ?? (sanitized[0] as never)));
}

/** The rebuilt items take the place of everything that the response and its local work left. */
function replaceResponse(items: readonly RunItem[], { record, start }: Pass): void {
  const gone = new Set<RunItem>([
    ...record.generatedItems.slice(start),
    ...(record.processed?.newItems ?? []),
    ...(record.step.type === 'interruption' ? record.step.interruptions : []),
  ]);
  // Lists of their own: whoever looked at the old ones before sees that these are others.
  record.generatedItems = [...record.generatedItems.slice(0, start), ...items];
  record.sessionItems = [...record.sessionItems.filter((item) => !gone.has(item)), ...items];
}

/** The run fails with the guardrail's error, whatever the session says; what it did not take stays owed to it. */
async function storeRedacted(items: readonly RunItem[], pass: Pass, env: RunEnv): Promise<void> {
  const { record } = pass;
  record.step = { type: 'run_again' };
  if (record.pendingWrite?.held !== undefined) {
    const { discardHeldResponse } = await import('../../sessions/held.ts');
    discardHeldResponse(record);
  }
  try {
    await env.session?.writeTurn(items, {
      responseId: undefined,
      store: env.storeSetting,
      hasLocalToolOutputs: items.length > 0,
    });
  } catch {
    env.control.throwIfAborted();
    getLogger().error('The calls of a blocked tool output could not be stored in the session; the state keeps them.');
  } finally {
    settleStep(record);
  }
}

function withheldText(guardrailName: string, { agent }: Pass, env: RunEnv): string {
  const defaultMessage = 'Output withheld by an output guardrail.';
  const own = env.options.outputGuardrailBlockedMessage;
  if (typeof own !== 'function') return own ?? defaultMessage;
  try {
    const text: unknown = own({ defaultMessage, guardrailName, agent, context: env.context as never });
    if (typeof text === 'string' && text !== '') return text;
    // Nobody waits for a promise here, nor hears that it failed.
    Promise.resolve(text).catch(() => undefined);
  } catch {
    // The default says all that may be said.
  }
  return defaultMessage;
}
