import type { AnyAgent } from '../../agent/agent.ts';
import type { ParsedArguments } from '../../agent/arguments.ts';
import type { Handoff, HandoffInputData, HandoffInputFilter } from '../../agent/handoff.ts';
import type { AgentInputItem, RunItem } from '../../items/items.ts';
import type { OwnedItem, StateRecord, Step } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import type { HandoffSpan } from '../handoff-span.ts';
import type { HandoffCall } from './classify.ts';
import type { Pass } from './pass.ts';
import { Agent } from '../../agent/agent.ts';
import { givesInput, handoffInternals } from '../../agent/handoff-internals.ts';
import { UserError } from '../../base/errors.ts';
import { pythonJson } from '../../base/json-encode.ts';
import { isPlainObject } from '../../base/json.ts';
import { kindOf } from '../../base/options.ts';
import { checkNewItems } from '../../items/check.ts';
import { HandoffOutputItem, ToolCallOutputItem } from '../../items/items.ts';
import { freezeRaw } from '../../items/views.ts';
import { contextInternals, viewsOf } from '../../state/context.ts';
import { readOnly } from '../../state/public-view.ts';
import { spanMessages } from '../../tracing/messages.ts';
import { callHooks } from '../hooks.ts';
import { locateForwarded, nestHistory } from '../handoff-history.ts';
import { forwardedOf, mergePatch, withForwarded } from '../handoff-patch.ts';

/**
 * Takes the first handoff of a response (RUN-505): its callback, hooks, input filter or nesting. The others are told that
 * they are ignored. All or nothing: what fails on the way leaves the handoff in doubt, and its outputs are not there.
 * Input that the handoff cannot take fails before: nothing was called, and a resume tells the model.
 *
 * @throws ModelBehaviorError for such input, in a fresh turn; UserError for a target that is no agent and for
 * results of a filter that are none; what callback, hooks and filter threw
 */
export async function takeHandoff(pass: Pass, env: RunEnv): Promise<Step> {
  const [taken, ...ignored] = pass.handoffs;
  if (taken === undefined) throw new Error('There is no handoff to take.');
  const { agent, record } = pass;
  const { context } = env;
  checkServerManaged(taken.handoff, env);
  return await env.spans.handoff(taken.call, agent.name, async (span) => {
    if (ignored.length > 0) span?.several(pass.handoffs.map(({ handoff }) => handoff.agentName));
    const input = readInput(taken, span);
    const ignoredOutputs = ignored.map((call) => output(call, agent, ignoredText));
    if (input?.ok === false) {
      if (pass.fresh) throw input.error;
      pass.commitHandoff([...ignoredOutputs, output(taken, agent, misfitText(input))]);
      return { type: 'run_again' };
    }
    contextInternals(context).ledger.markExecuted(taken.call.call_id);
    const newAgent = await invoke(taken, input?.value, agent, env);
    span?.target(newAgent.name);
    const outputs = [...ignoredOutputs, handoffOutput(taken, agent, newAgent)];
    await callHooks(
      record,
      env,
      (hooks) => hooks.onHandoff?.(context as never, agent, newAgent),
      (hooks) => hooks.onHandoff?.(context as never, newAgent, agent),
    );
    const change = await historyChange(taken.handoff, outputs, pass, span, env);
    pass.commitHandoff(outputs);
    if (change) rewriteHistory(change, pass, env);
    return { type: 'handoff', newAgent };
  });
}

/** What the provider has of the history, nobody here can edit. @throws UserError for an input filter (RUN-1508) */
function checkServerManaged({ inputFilter, toolName, nestHandoffHistory }: Handoff<never>, env: RunEnv): void {
  const { server, options } = env;
  if (server === undefined) return;
  if (inputFilter ?? options.handoffInputFilter)
    throw new UserError(
      `The handoff ${toolName} has an input filter, or its run has one, and the provider keeps the history of the run: it cannot be filtered. Leave out the filter, or conversationId, previousResponseId and autoPreviousResponseId.`,
    );
  if (nestHandoffHistory ?? options.nestHandoffHistory)
    env.warnOnce(
      'nested history',
      'History is not nested at handoffs of this run: the provider keeps it (conversationId, previousResponseId or autoPreviousResponseId).',
    );
}

/** `undefined`: the handoff reads its input itself. */
function readInput({ call, handoff }: HandoffCall, span: HandoffSpan | undefined): ParsedArguments | undefined {
  const input = handoffInternals(handoff).halves?.read(call.arguments);
  if (input?.ok === false)
    span?.fail(givesInput(call.arguments) ? spanMessages.invalidJsonProvided : spanMessages.handoffInput, input.error);
  return input;
}

async function invoke({ call, handoff }: HandoffCall, input: unknown, agent: AnyAgent, env: RunEnv): Promise<AnyAgent> {
  const { halves } = handoffInternals(handoff);
  const context = env.context as never;
  const target: unknown = await env.control.race(
    halves ? halves.take(context, input) : handoff.onInvokeHandoff(context, call.arguments),
  );
  if (target instanceof Agent) return target;
  throw new UserError(
    `agent ${agent.name}: \`onInvokeHandoff\` of the handoff ${handoff.toolName} must return an Agent, not ${kindOf(target)}.`,
  );
}

const ignoredText = 'Multiple handoffs detected, ignoring this one.';

/** For the model, like that of a tool: schema paths and kinds, no value. */
function misfitText({ issues }: Extract<ParsedArguments, { ok: false }>): string {
  const text = 'The handoff was not taken. Please try again.';
  return issues === '' ? text : `${text} Invalid arguments: ${issues}`;
}

function output({ call }: HandoffCall, agent: AnyAgent, text: string): RunItem {
  const raw = { type: 'function_call_output', call_id: call.call_id, output: text } as const;
  return new ToolCallOutputItem(agent, raw, { output: text });
}

/** The text is that of the Python SDK, byte by byte. */
function handoffOutput({ call }: HandoffCall, sourceAgent: AnyAgent, targetAgent: AnyAgent): RunItem {
  const output = pythonJson({ assistant: targetAgent.name });
  const raw = { type: 'function_call_output', call_id: call.call_id, output } as const;
  return new HandoffOutputItem(sourceAgent, raw, { sourceAgent, targetAgent });
}

// ---- history

/** What a filter, or nesting, makes of the history. */
interface HistoryChange {
  readonly before: HandoffInputData;
  readonly after: HandoffInputData;
  /** Items of the new input that the SDK moved there as they are. */
  readonly owned: readonly OwnedItem[];
}

/** A filter of the handoff wins over one of the run, and any filter over nesting (TOOL-HO18). */
async function historyChange(
  handoff: Handoff<never>,
  outputs: readonly RunItem[],
  pass: Pass,
  span: HandoffSpan | undefined,
  env: RunEnv,
): Promise<HistoryChange | undefined> {
  const { options } = env;
  const filter = (handoff.inputFilter ?? options.handoffInputFilter) as HandoffInputFilter | undefined;
  const nests = env.server === undefined && (handoff.nestHandoffHistory ?? options.nestHandoffHistory ?? false);
  if (filter === undefined && !nests) return undefined;
  const before = inputData(outputs, pass, env);
  const where = filter ? `the input filter of handoff ${handoff.toolName}` : 'nested history';
  const patch: unknown = filter ? await filtered(filter, before, env) : nested(before, env);
  let after: HandoffInputData;
  try {
    after = mergePatch(before, patch, where);
    checkNewHistory(before.inputHistory, after.inputHistory, where);
  } catch (error) {
    span?.fail(spanMessages.handoffFilter, error);
    throw error;
  }
  return { before, after, owned: ownedIn(after, forwardedOf(patch as object), pass.record) };
}

/** Frozen lists of the items themselves; calls that waited are decided, and no part of the history. */
function inputData(outputs: readonly RunItem[], { record, start }: Pass, env: RunEnv): HandoffInputData {
  const { input, generatedItems } = record;
  const isHistory = ({ type }: RunItem): boolean => type !== 'tool_approval_item';
  return Object.freeze({
    inputHistory: typeof input === 'string' ? input : readOnly(input),
    preHandoffItems: Object.freeze(generatedItems.slice(0, start).filter(isHistory)),
    newItems: Object.freeze([...generatedItems.slice(start).filter(isHistory), ...outputs]),
    inputItems: undefined,
    context: env.context,
  });
}

/** What a filter returned, of items that it cannot change: run items are shown as they are, the input as copies. */
async function filtered(filter: HandoffInputFilter, data: HandoffInputData, env: RunEnv): Promise<unknown> {
  const { inputHistory, preHandoffItems, newItems } = data;
  for (const item of preHandoffItems) freezeRaw(item.rawItem);
  for (const item of newItems) freezeRaw(item.rawItem);
  if (typeof inputHistory === 'string') return await env.control.race(filter(data));
  const views = viewsOf(contextInternals(env.context));
  const shown = views.list(inputHistory);
  const patch: unknown = await env.control.race(filter(Object.freeze({ ...data, inputHistory: shown })));
  if (!isPlainObject(patch) || !Array.isArray(patch['inputHistory'])) return patch;
  const returned = patch['inputHistory'] as readonly AgentInputItem[];
  return { ...patch, inputHistory: returned === shown ? inputHistory : views.sources(returned) };
}

function nested(data: HandoffInputData, { options }: RunEnv): object {
  const { handoffHistoryMapper: mapper, handoffHistoryMarkers: markers } = options;
  const { patch, forwarded } = nestHistory(data, { mapper, markers });
  return withForwarded(patch, forwarded);
}

/** What is new in the input must be what states and sessions can hold. */
function checkNewHistory(
  before: HandoffInputData['inputHistory'],
  after: HandoffInputData['inputHistory'],
  where: string,
): void {
  if (after === before || typeof after === 'string') return;
  const known = new Set<AgentInputItem>(typeof before === 'string' ? [] : before);
  const added = after.filter((item) => !known.has(item));
  checkNewItems(added, 'a new item of `inputHistory`', `${where} returned what cannot be stored`);
}

/** Items that stand in the input, for those that earlier handoffs and this one moved there (TOOL-HO36, HO37). */
function ownedIn(
  { inputHistory }: HandoffInputData,
  moved: ReturnType<typeof forwardedOf>,
  record: StateRecord,
): readonly OwnedItem[] {
  const earlier = record.ownedHistory;
  if (earlier.length + moved.length === 0) return earlier;
  const all = [...earlier.map((owned) => ({ ...owned, index: -1 })), ...moved];
  return locateForwarded(inputHistory, all).map(({ item, input }) => ({ item, input }));
}

/** The one place where history is not only appended to. Items of earlier turns stay public, whatever the model sees. */
function rewriteHistory({ before, after, owned }: HistoryChange, pass: Pass, env: RunEnv): void {
  const { record } = pass;
  const { generatedItems: known } = record;
  const { inputHistory, preHandoffItems, newItems, inputItems } = after;
  const places = record.sessionItems.length + pass.unpublished().length;
  if (inputHistory !== before.inputHistory)
    record.input = typeof inputHistory === 'string' ? inputHistory : inputHistory.slice();
  record.generatedItems = [...new Set([...preHandoffItems, ...(inputItems ?? newItems)])];
  record.ownedHistory = owned;
  withdraw(before.newItems, newItems, record);
  pass.leave(newItems, newItems === before.newItems);
  const taken = places - record.sessionItems.length - pass.unpublished().length;
  if (taken > 0) record.withdrawn = (record.withdrawn ?? 0) + taken;
  env.modelInput.rewritten();
  forgetUnseen([...known, ...before.newItems], newItems, record, env);
}

/** Of a turn that paused, items are public already: a filter decides on them, too (RUN-1202). The session keeps what it has. */
function withdraw(items: readonly RunItem[], left: readonly RunItem[], record: StateRecord): void {
  if (left === items) return;
  const dropped = new Set(items);
  for (const item of left) dropped.delete(item);
  if (dropped.size === 0) return;
  record.sessionItems = record.sessionItems.filter((item) => !dropped.has(item));
}

/** A state lists a finished call only with its items: of calls that stand nowhere any more it says nothing. */
function forgetUnseen(known: readonly RunItem[], left: readonly RunItem[], record: StateRecord, env: RunEnv): void {
  const seen = new Set([...record.generatedItems, ...left]);
  const unseen = known.filter((item) => !seen.has(item));
  if (unseen.length === 0) return;
  const isPublic = new Set(record.sessionItems);
  const { ledger } = contextInternals(env.context);
  for (const item of unseen) {
    if (isPublic.has(item)) continue;
    const { call_id: callId } = item.rawItem as { call_id?: unknown };
    if (typeof callId === 'string') ledger.forget(callId);
  }
}
