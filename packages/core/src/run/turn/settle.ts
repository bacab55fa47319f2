import type { AnyAgent, FunctionToolResult, ToolUseBehavior } from '../../agent/agent.ts';
import type { ResolvedOutput } from '../../agent/output.ts';
import type { Step } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import { findTool } from './classify.ts';
import type { ToolTable } from './classify.ts';
import type { takeHandoff } from './handoffs.ts';
import type { Failure, HandledEnd } from './handlers.ts';
import type { Pass } from './pass.ts';
import { outputSpanError } from '../../agent/output.ts';
import { toolOutputText } from '../../agent/tool-output.ts';
import { ModelBehaviorError, ModelRefusalError, UserError, withoutRunData } from '../../base/errors.ts';
import { getLogger } from '../../base/logger.ts';
import { contextInternals } from '../../state/context.ts';
import { askHandlers } from './handlers.ts';

/** What a turn decided. */
export interface Settled {
  readonly step: Step;
  /** Of an output that a handler gave in place of a failure. */
  readonly message?: HandledEnd['message'];
  /** Who gave the final output; a handler of a failure where nobody is named. */
  readonly by?: 'model' | 'tools';
}

/** Loaded with the first handoff of a process; resolving a module anew each time costs more than a turn. */
let handoffs: Promise<{ readonly takeHandoff: typeof takeHandoff }> | undefined;

const runAgain: Settled = { step: { type: 'run_again' } };

/**
 * What becomes of a response whose calls are done: a call still waits, another agent goes on, a tool ends the run, the
 * message is the answer, or the model is asked again (RUN-501).
 */
export async function settle(pass: Pass, tools: ToolTable, output: ResolvedOutput, env: RunEnv): Promise<Settled> {
  const waiting = stillWaiting(pass);
  if (waiting.length > 0 || pass.paused)
    return {
      step: { type: 'interruption', interruptions: waiting, responseAccepted: false, llmEndHooksStarted: true },
    };
  if (pass.handoffs.length > 0) {
    handoffs ??= import('./handoffs.ts');
    return { step: await (await handoffs).takeHandoff(pass, env) };
  }
  const functionCalls = pass.processed.newItems.some(
    (item) =>
      item.type === 'handoff_call_item' || (item.type === 'tool_call_item' && item.rawItem.type === 'function_call'),
  );
  if (functionCalls) return (await toolsOutput(pass, tools, output, env)) ?? runAgain;
  return await messageOutput(pass, output, env);
}

/** Waiting items of this pass in call order, then those that it could not work on. */
function stillWaiting(pass: Pass): Extract<Step, { type: 'interruption' }>['interruptions'] {
  const { step } = pass.record;
  const earlier = step.type === 'interruption' ? step.interruptions : [];
  if (earlier.length === 0) return pass.waiting();
  const own = new Set(pass.calls.map(({ call }) => call.call_id));
  const { ledger } = contextInternals(pass.record.context);
  // A pass that failed after an output was committed left the item of that call behind.
  const isOver = (callId: string): boolean => own.has(callId) || ledger.status(callId)?.completed === true;
  return [...pass.waiting(), ...earlier.filter((item) => item.agent !== pass.agent || !isOver(item.callId))];
}

// ---- tools that end the run

async function toolsOutput(
  pass: Pass,
  tools: ToolTable,
  output: ResolvedOutput,
  env: RunEnv,
): Promise<Settled | undefined> {
  const behavior: ToolUseBehavior<never> = pass.agent.toolUseBehavior;
  if (behavior === 'run_llm_again') return undefined;
  const results = functionResults(pass, tools);
  if (results.length === 0) return undefined;
  const ending = await endingOutput(behavior, results, pass.agent, env);
  if (ending === undefined) return undefined;
  const { value } = ending;
  if (output.type === 'text') return finalOutput(toolOutputText(value), 'tools');
  if (value === null || value === undefined)
    getLogger().error(`A tool ended a run with ${value} where the agent has an output type; it is taken as it is.`);
  return finalOutput(value, 'tools');
}

/** Outputs of all function calls of the response in call order, whichever pass made them; rejection texts count too. */
function functionResults(pass: Pass, tools: ToolTable): FunctionToolResult[] {
  const results = new Map<string, FunctionToolResult['runItem']>();
  for (const item of pass.record.generatedItems.slice(pass.start))
    if (item.type === 'tool_call_output_item' && item.callId !== undefined) results.set(item.callId, item);
  return pass.processed.newItems.flatMap((item) => {
    if (item.type !== 'tool_call_item' || item.rawItem.type !== 'function_call') return [];
    const tool = findTool(item.rawItem, pass.agent, tools);
    const runItem = results.get(item.rawItem.call_id);
    return tool && runItem ? [{ tool, output: runItem.output, runItem }] : [];
  });
}

async function endingOutput(
  behavior: Exclude<ToolUseBehavior<never>, 'run_llm_again'>,
  results: readonly FunctionToolResult[],
  agent: AnyAgent,
  env: RunEnv,
): Promise<{ readonly value: unknown } | undefined> {
  if (behavior === 'stop_on_first_tool') return results[0] && { value: results[0].output };
  if (typeof behavior === 'object') {
    const { stopAtToolNames } = behavior;
    const result = results.find(
      ({ tool }) => stopAtToolNames.includes(tool.name) || stopAtToolNames.includes(tool.qualifiedName),
    );
    return result && { value: result.output };
  }
  const decided: unknown = await env.control.race(behavior(env.context as never, results));
  const { isFinalOutput, finalOutput } = (decided ?? {}) as { isFinalOutput?: unknown; finalOutput?: unknown };
  if (typeof isFinalOutput !== 'boolean')
    throw new UserError(
      `The function \`toolUseBehavior\` of agent ${agent.name} must return { isFinalOutput: true or false, finalOutput }.`,
    );
  return isFinalOutput ? { value: finalOutput } : undefined;
}

// ---- messages that end the run

/** What the message of a response says about the end of the run. */
type Answer =
  | { readonly type: 'output'; readonly value: unknown }
  /** Repeated calls whose outputs stand, or work of the provider, without a word about it: the model has not answered yet. */
  | { readonly type: 'none' }
  | { readonly type: 'failure'; readonly failure: Failure; readonly otherwise: 'throw' | 'run_again' };

/** The last message is the answer (RUN-601 to 605). @throws ModelRefusalError, ModelBehaviorError that no handler took */
async function messageOutput(pass: Pass, output: ResolvedOutput, env: RunEnv): Promise<Settled> {
  const answer = answerOf(pass, output, env);
  switch (answer.type) {
    case 'output':
      return finalOutput(answer.value, 'model');
    case 'none':
      return runAgain;
    case 'failure': {
      const { failure, otherwise } = answer;
      const handled = await askHandlers(failure, pass.unpublished(), pass.record, env);
      if (handled) return { step: { type: 'final_output', output: handled.output }, message: handled.message };
      if (otherwise === 'run_again') return runAgain;
      throw failure.error;
    }
    default:
      return answer satisfies never;
  }
}

function answerOf(
  { agent, processed: { newItems, toolsUsed }, dropped }: Pass,
  output: ResolvedOutput,
  env: RunEnv,
): Answer {
  const message = newItems.findLast((item) => item.type === 'message_output_item');
  if (message === undefined && (dropped || toolsUsed.length > 0)) return { type: 'none' };
  let text = '';
  for (const part of message?.rawItem.content ?? []) {
    if (part.type === 'refusal' && part.refusal) return fails({ kind: 'modelRefusal', error: refusal(part.refusal) });
    if (part.type === 'output_text') text += part.text ?? '';
  }
  if (output.type === 'text') return { type: 'output', value: text };
  if (text !== '') return parsed(text, output, env);
  // No failure unless somebody asked to be told of it: the model may yet answer (TOOL-O13).
  if (env.options.errorHandlers?.invalidFinalOutput === undefined) return { type: 'none' };
  const error = new ModelBehaviorError(
    `The model gave no final output, and agent ${agent.name} has the output type ${output.request.name}.`,
  );
  return { type: 'failure', failure: { kind: 'invalidFinalOutput', error }, otherwise: 'run_again' };
}

/** With logging of model data off, an error about the model's text leaves the run without what shows it (RUN-1902). */
function parsed(text: string, output: Extract<ResolvedOutput, { type: 'schema' }>, { spans }: RunEnv): Answer {
  try {
    return { type: 'output', value: output.parse(text) };
  } catch (error) {
    if (!(error instanceof ModelBehaviorError)) throw error;
    const { message, data } = outputSpanError(error, spans.errorTexts);
    spans.fail(message, data);
    return fails({
      kind: 'invalidFinalOutput',
      error: getLogger().dontLogModelData ? withoutRunData(error) : error,
    });
  }
}

function fails(failure: Failure): Answer {
  return { type: 'failure', failure, otherwise: 'throw' };
}

function finalOutput(output: unknown, by: 'model' | 'tools'): Settled {
  return { step: { type: 'final_output', output }, by };
}

function refusal(text: string): ModelRefusalError {
  return new ModelRefusalError(`The model refused to answer: ${text}`, { refusal: text });
}
