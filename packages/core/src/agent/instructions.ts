import type { AnyAgent } from './agent.ts';
import type { MaybePromise } from './tool.ts';
import type { RunContext } from '../state/context.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';

/**
 * The system prompt of a turn; `undefined`: none is sent.
 * @throws what the function throws, and UserError when it gives anything but a string
 */
export function resolveInstructions(agent: AnyAgent, ctx: RunContext): MaybePromise<string | undefined> {
  const { instructions } = agent;
  return typeof instructions === 'function' ? asked(instructions, agent, ctx) : instructions;
}

async function asked(
  instructions: Extract<AnyAgent['instructions'], (...args: never) => unknown>,
  agent: AnyAgent,
  ctx: RunContext,
): Promise<string> {
  const text: unknown = await instructions(ctx as RunContext<never>, agent);
  if (typeof text !== 'string')
    throw new UserError(`agent ${agent.name}: \`instructions\` must return a string, not ${kindOf(text)}.`);
  return text;
}

/** @throws UserError for what is neither text nor a function of at most two arguments @internal */
export function checkInstructions(instructions: unknown, where: string): void {
  if (typeof instructions === 'string') return;
  if (typeof instructions !== 'function')
    throw new UserError(
      `${where}: the field \`instructions\` takes a string or a function, not ${kindOf(instructions)}.`,
    );
  if (instructions.length > 2)
    throw new UserError(
      `${where}: the function \`instructions\` is called with (ctx, agent); this one requires ${instructions.length} arguments.`,
    );
}
