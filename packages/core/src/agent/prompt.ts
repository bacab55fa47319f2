import type { AnyAgent } from './agent.ts';
import type { MaybePromise } from './tool.ts';
import type { PromptVariable } from '../items/wire.ts';
import type { RunContext } from '../state/context.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';

/** A prompt template stored at OpenAI. */
export interface Prompt {
  id: string;
  /** Default: the template's current version. */
  version?: string | undefined;
  /** Values for the template's placeholders: text, or wire content (`input_text`, `input_image`, `input_file`). */
  variables?: Record<string, PromptVariable> | undefined;
}

/** Chooses the template of a turn; called once per turn. */
export type DynamicPrompt<C> = (args: {
  readonly context: RunContext<C>;
  readonly agent: AnyAgent;
}) => MaybePromise<Prompt>;

/**
 * The template of a turn; `undefined`: there is none.
 * @throws what the function throws, and UserError when it gives no prompt
 */
export async function resolvePrompt(agent: AnyAgent, ctx: RunContext): Promise<Prompt | undefined> {
  const { prompt } = agent;
  if (typeof prompt !== 'function') return prompt;
  const given: unknown = await prompt({ context: ctx as RunContext<never>, agent });
  if (typeof given !== 'object' || given === null || typeof (given as Partial<Prompt>).id !== 'string')
    throw new UserError(
      `agent ${agent.name}: a dynamic \`prompt\` must return a prompt, an object with a string \`id\`, not ${kindOf(given)}.`,
    );
  checkOptions(given, members, `agent ${agent.name}: the result of a dynamic \`prompt\``);
  return given as Prompt;
}

const members = { id: kinds.nonEmptyString, version: kinds.string, variables: kinds.object } as const;

/** @throws UserError for what is neither a prompt nor a function */
export function checkPrompt(prompt: unknown, where: string): void {
  if (typeof prompt === 'function') return;
  if (typeof prompt !== 'object' || prompt === null || typeof (prompt as Partial<Prompt>).id !== 'string')
    throw new UserError(
      `${where}: the field \`prompt\` takes an object with a string \`id\`, or a function, not ${kindOf(prompt)}.`,
    );
  checkOptions(prompt, members, `${where}: prompt`);
}
