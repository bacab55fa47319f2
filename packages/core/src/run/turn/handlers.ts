import type { ResolvedOutput } from '../../agent/output.ts';
import type {
  MaxTurnsExceededError,
  ModelBehaviorError,
  ModelRefusalError,
  RunErrorDetails,
} from '../../base/errors.ts';
import type { RunItem } from '../../items/items.ts';
import type { StateRecord } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import type { RunErrorHandler, RunErrorHandlerResult, RunErrorHandlers } from '../options.ts';
import { resolveOutput } from '../../agent/output.ts';
import { toolOutputText } from '../../agent/tool-output.ts';
import { UserError, withoutRunData } from '../../base/errors.ts';
import { getLogger } from '../../base/logger.ts';
import { kinds } from '../../base/options.ts';
import { MessageOutputItem } from '../../items/items.ts';
import { copyRecord } from '../../state/copy.ts';
import { errorDetails } from '../error-details.ts';

/** A failure that `errorHandlers` may turn into a final output. */
export type Failure =
  | { readonly kind: 'maxTurns'; readonly error: MaxTurnsExceededError }
  | { readonly kind: 'modelRefusal'; readonly error: ModelRefusalError }
  | { readonly kind: 'invalidFinalOutput'; readonly error: ModelBehaviorError };

/** The end that a handler gave the run. */
export interface HandledEnd {
  readonly output: unknown;
  /** Says the output in the history. Recorded last of all: once the session has it (RUN-710). */
  readonly message: MessageOutputItem | undefined;
}

/**
 * Asks the handler of the failure, then `default` (RUN-706). `undefined`: nobody took it.
 *
 * @param turnItems items of the turn that failed; the record has them not in public yet
 * @throws what a handler threw; UserError for results that are none, and for outputs that do not fit the agent
 */
export async function askHandlers(
  failure: Failure,
  turnItems: readonly RunItem[],
  record: StateRecord,
  env: RunEnv,
): Promise<HandledEnd | undefined> {
  const { errorHandlers } = env.options;
  if (errorHandlers === undefined) return undefined;
  for (const name of [failure.kind, 'default'] as const) {
    const result = await ask(name, errorHandlers, failure, turnItems, record, env);
    if (result !== undefined) return handledEnd(name, result, record);
  }
  return undefined;
}

type HandlerName = keyof RunErrorHandlers;

async function ask(
  name: HandlerName,
  handlers: RunErrorHandlers<never>,
  { error }: Failure,
  turnItems: readonly RunItem[],
  record: StateRecord,
  env: RunEnv,
): Promise<RunErrorHandlerResult | undefined> {
  const handler = handlers[name] as RunErrorHandler<unknown, unknown> | undefined;
  if (handler === undefined) return undefined;
  let result: unknown;
  try {
    const runData = detailsNow(record, turnItems, env);
    result = await env.control.race(handler({ error, context: env.context, runData }));
  } catch (thrown) {
    env.control.throwIfAborted();
    throw withCause(thrown, error);
  }
  if (result === undefined || isResult(result)) return result;
  throw new UserError(
    `The handler \`errorHandlers.${name}\` gave an invalid run error handler result: it must return { finalOutput, includeInHistory } and nothing else, or undefined.`,
  );
}

/** A snapshot: what the run does afterwards does not show in it. */
function detailsNow(record: StateRecord, turnItems: readonly RunItem[], env: RunEnv): RunErrorDetails {
  const now = copyRecord(record);
  now.sessionItems.push(...turnItems);
  return errorDetails(now, env.context, env.spans.trace).runData();
}

/** The failure that was to be handled is not lost behind that of its handler (RUN-713). */
function withCause(thrown: unknown, cause: Error): unknown {
  if (!(thrown instanceof Error) || thrown === cause) return thrown;
  try {
    if (thrown.cause === undefined)
      Object.defineProperty(thrown, 'cause', { value: cause, writable: true, configurable: true });
  } catch {
    // A frozen error, or one that guards its members.
  }
  return thrown;
}

function isResult(value: unknown): value is RunErrorHandlerResult {
  if (kinds.object(value) !== undefined) return false;
  const { finalOutput, includeInHistory, ...others } = value as Record<string, unknown>;
  return (
    finalOutput !== undefined &&
    (includeInHistory === undefined || typeof includeInHistory === 'boolean') &&
    Object.keys(others).length === 0
  );
}

function handledEnd(
  name: HandlerName,
  { finalOutput, includeInHistory = true }: RunErrorHandlerResult,
  record: StateRecord,
): HandledEnd {
  const agent = record.currentAgent;
  const { output, text } = outputAndText(name, finalOutput, resolveOutput(agent), agent.name);
  return { output, message: includeInHistory ? new MessageOutputItem(agent, messageOf(text)) : undefined };
}

/** The value as the agent's output type has it, and the text with which a model would have given it. */
function outputAndText(
  name: HandlerName,
  given: unknown,
  type: ResolvedOutput,
  agentName: string,
): { readonly output: unknown; readonly text: string } {
  if (type.type === 'text') {
    const text = toolOutputText(given);
    return { output: text, text };
  }
  try {
    const text = type.render(given);
    return { output: type.parse(text), text };
  } catch (error) {
    const message = `The final output of the handler \`errorHandlers.${name}\` is invalid for the structured output of agent ${agentName}`;
    // What does not fit may be the model's words: without logging of model data it shows in nothing (RUN-1902).
    if (getLogger().dontLogModelData) throw withoutRunData(new UserError(`${message}. Error details are redacted.`));
    throw new UserError(`${message}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function messageOf(text: string): MessageOutputItem['rawItem'] {
  return {
    id: '__fake_id__',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  };
}
