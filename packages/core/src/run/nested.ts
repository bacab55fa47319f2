import type { AgentToolCall, Nesting } from './env.ts';
import type { NestedRunOptions, ResolvedOptions, RunInput, RunOptions } from './options.ts';
import type { AgentToolInvocation, AgentToolResult } from './result.ts';
import type { AgentTool } from '../agent/agent-tool.ts';
import type { StateRecord } from '../state/record.ts';
import { nestedInput } from '../agent/agent-tool-input.ts';
import { toolInternals } from '../agent/tool-internals.ts';
import { keepInnerRunData } from '../base/run-data.ts';
import { stateOf } from '../snapshot/run-state.ts';
import { agentToolRunsOf, pausedRunOf } from '../state/agent-tool-runs.ts';
import { contextInternals } from '../state/context.ts';
import { takeOverDecisions } from '../state/decide.ts';
import { paused } from './env.ts';
import { agentToolOutput } from './nested-output.ts';
import { EventDispatch } from './nested-events.ts';
import { mergeRunOptions, resolveRunOptions } from './options.ts';
import { settledResult } from './result.ts';
import { Segment } from './segment.ts';

/**
 * One call of an agent tool: a run of its agent, with the same loop, under the run that called it. A call whose run is kept
 * goes on with that one and never begins another.
 *
 * @returns the tool's output, or `paused`
 * @throws what the nested run, the input builder or the output extractor failed with
 */
export async function runAgentTool(at: AgentToolCall): Promise<unknown> {
  const { tool, call, record } = at;
  const { agentTool } = toolInternals(tool);
  if (agentTool === undefined) throw new Error('An agent tool without its agent.');
  const kept = pausedRunOf(record, call)?.record;
  const segment = await started(at, agentTool, kept);
  if (segment && segment.record.step.type === 'interruption') {
    const runs = agentToolRunsOf(record);
    runs.record(call, { record: segment.record }, runs.scope);
    return paused;
  }
  const ended = segment?.record ?? kept;
  if (ended === undefined) throw new Error('A nested run that neither began nor was kept.');
  const invocation: AgentToolInvocation = Object.freeze({
    toolName: tool.name,
    toolCallId: call.call_id,
    toolArguments: call.arguments,
  });
  const result = settledResult(ended, segment?.trace, invocation) as unknown as AgentToolResult;
  return await agentToolOutput(result, agentTool.options.customOutputExtractor);
}

/** The segment, when it is over; `undefined` where the kept run had ended already and only its output was not taken. */
async function started(
  at: AgentToolCall,
  agentTool: AgentTool,
  kept: StateRecord | undefined,
): Promise<Segment | undefined> {
  if (kept?.step.type === 'final_output') return undefined;
  const { call, args, record, tool, context } = at;
  const { agent, options } = agentTool;
  const structured = agentTool.structured || options.inputBuilder !== undefined;
  const input: RunInput = kept
    ? stateOf(kept)
    : await nestedInput(agentTool, args as object, toolInternals(tool).declared);
  if (kept) contextInternals(kept.context).value = context.context;
  const dispatch = options.onStream && new EventDispatch(options.onStream, call, context.signal);
  const how = { signal: dispatch?.signal ?? context.signal, resumed: kept !== undefined };
  const segment = new Segment(agent, input, nestedOptions(at, options.run, how), {
    sink: dispatch?.sink(() => segment.record.currentAgent),
    nested: at.env.nested,
    nesting: nestingOf(at, structured ? args : undefined),
  });
  const runs = agentToolRunsOf(record);
  runs.recordResumeState(call, () => segment.record, { scopeId: runs.scope });
  try {
    await (dispatch ? dispatch.drive(segment.run()) : segment.run());
  } catch (error) {
    // Cut from outside it can be gone on with. What failed by itself would fail again: its call is in doubt, for an answer.
    if (!kept && !context.signal.aborted) {
      runs.drop(call, runs.scope);
      takeOverDecisions(record, call.call_id, segment.record);
    }
    throw keepInnerRunData(error);
  }
  return segment;
}

function nestingOf({ call, context, record, env }: AgentToolCall, toolInput: unknown): Nesting {
  return {
    parent: context.span ?? env.spans.current,
    path: [...(env.nesting?.path ?? []), call.call_id],
    runKey: env.nesting?.runKey ?? record.runKey,
    toolInput,
    asked: env.asked,
    countUsage: (usage) => env.countUsage(usage),
  };
}

/** A nested run has its own from its first part on (TOOL-AT23, STATE-239). */
const ofConversation = ['conversationId', 'previousResponseId', 'autoPreviousResponseId'];

/** Never inherited: they belong to one run, not to what it calls. */
const ownOnly = ['hooks', 'session', 'errorHandlers', 'maxTurns', ...ofConversation];

/** The outer run's effective options, over them those of the tool (TOOL-AT7). */
function nestedOptions(
  { context, env }: AgentToolCall,
  given: NestedRunOptions<never> | undefined,
  { signal, resumed }: { readonly signal: AbortSignal; readonly resumed: boolean },
): ResolvedOptions {
  const inherited = without(ownOnly, { ...env.options, workflowName: env.spans.workflowName });
  const own = resumed ? without(ofConversation, { ...given }) : { ...given };
  return resolveRunOptions({ ...mergeRunOptions(inherited, own), context: context.context, signal });
}

function without(names: readonly string[], options: Record<string, unknown>): RunOptions<never> {
  for (const name of names) delete options[name];
  return options;
}
