import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';

/** Tells a model that it is one of several agents, and that handing a conversation over is not to be talked about. */
export const RECOMMENDED_PROMPT_PREFIX: string = `# System context
You are one of several AI agents that serve the same person together. Every agent has instructions and tools of its own. An agent that another one would serve better passes the conversation on: it calls the function that is named after that agent, such as \`transfer_to_<agent_name>\`. Transfers happen silently, behind the scenes. Never mention them, the functions or the other agents to the person you talk to.`;

/**
 * `RECOMMENDED_PROMPT_PREFIX`, an empty line and your instructions.
 *
 * @throws UserError when `prompt` is not a string
 * @example new Agent({ name: 'Triage', instructions: promptWithHandoffInstructions('Find out what it is about.'), handoffs: [billing] })
 */
export function promptWithHandoffInstructions(prompt: string): string {
  if (typeof prompt !== 'string')
    throw new UserError(`promptWithHandoffInstructions: \`prompt\` must be a string, not ${kindOf(prompt)}.`);
  return `${RECOMMENDED_PROMPT_PREFIX}\n\n${prompt}`;
}
