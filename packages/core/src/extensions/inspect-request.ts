import { Agent } from '../agent/agent.ts';
import type { JsonSchema } from '../agent/schema.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import type { JsonObject } from '../items/wire.ts';
import { firstRequest } from '../run/inspect.ts';
import type { RunArgs } from '../run/run.ts';

/** What the first request of a run would hold beside its input, in the form of the Responses API. */
export interface AgentRequestView {
  readonly instructions: string | undefined;
  readonly prompt: JsonObject | undefined;
  /** In wire form, handoffs last. */
  readonly tools: readonly JsonObject[];
  /** `undefined`: the service decides. */
  readonly toolChoice: unknown;
  /** `undefined`: the answer is text. */
  readonly outputSchema: JsonSchema | undefined;
}

/**
 * What the first request of a run with these options would hold, without a model call: for tests, reviews and finding out
 * why a tool is not called. Takes the options of `run`. Instructions, prompt and `isEnabled` of tools and handoffs are
 * asked as in a run; session, hooks, guardrails, traces and `callModelInputFilter` are left alone, and no API key is
 * needed.
 *
 * @throws UserError as `run` would before the model is called: for wrong options, equal names, a choice that no tool
 *   can satisfy; and whatever the agent's own functions throw
 * @example const { tools } = await inspectAgentRequest(triage, { context }); console.log(tools.map((tool) => tool.name))
 */
export async function inspectAgentRequest<C>(
  agent: Agent<C, unknown>,
  ...options: RunArgs<NoInfer<C>, string>
): Promise<AgentRequestView> {
  if (!((agent as unknown) instanceof Agent))
    throw new UserError(`inspectAgentRequest: the first argument must be an Agent, not ${kindOf(agent)}.`);
  const [given = {}] = options as readonly object[];
  const request = await firstRequest(agent, given, 'inspectAgentRequest');
  const { buildResponsesRequest } = await import('../openai/request.ts');
  const { body } = buildResponsesRequest(undefined, request, false);
  const { instructions, prompt, tools, tool_choice: toolChoice, text } = body as unknown as Sent;
  return { instructions, prompt, tools: tools ?? [], toolChoice, outputSchema: text?.format?.schema };
}

/** Of the body, what is shown. */
interface Sent {
  readonly instructions?: string;
  readonly prompt?: JsonObject;
  readonly tools?: readonly JsonObject[];
  readonly tool_choice?: unknown;
  readonly text?: { readonly format?: { readonly schema?: JsonSchema } };
}
