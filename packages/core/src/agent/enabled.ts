import type { AnyAgent } from './agent.ts';
import type { Handoff } from './handoff.ts';
import type { FunctionTool, IsEnabled, MaybePromise } from './tool.ts';
import type { RunContext } from '../state/context.ts';
import { Agent } from './agent.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { handoffOf } from './handoff.ts';
import { isHandoff } from './handoff-internals.ts';
import { isFunctionTool, toolInternals } from './tool-internals.ts';

/**
 * The tools of the agent's list that are enabled now, in its order.
 *
 * @throws what the first failing `isEnabled` threw; UserError for entries that are no tools
 */
export function enabledTools(agent: AnyAgent, ctx: RunContext): MaybePromise<readonly FunctionTool<never>[]> {
  const tools: readonly FunctionTool<never>[] = [...agent.tools];
  const switches = tools.map((tool, index) => {
    if (!isFunctionTool(tool)) throw notATool(agent, index);
    return toolInternals(tool).isEnabled;
  });
  return enabled(tools, switches, agent, ctx);
}

const none: readonly Handoff<never>[] = Object.freeze([]);

/**
 * The handoffs of the agent's list that are enabled now, in its order; plain agents as they are named today.
 *
 * @param warn called for agents whose name has characters that names of tools have not
 * @throws what the first failing `isEnabled` threw; UserError for entries that are neither, and for agents whose name gives no name of a tool
 */
export function enabledHandoffs(
  agent: AnyAgent,
  ctx: RunContext,
  warn: (name: string, text: string) => void,
): MaybePromise<readonly Handoff<never>[]> {
  if (agent.handoffs.length === 0) return none;
  const handoffs = agent.handoffs.map((target: unknown, index) => {
    if (target instanceof Agent) return handoffOf(target, warn);
    if (!isHandoff(target)) throw notAHandoff(agent, index, target);
    return target;
  });
  return enabled(
    handoffs,
    handoffs.map(({ isEnabled }) => isEnabled),
    agent,
    ctx,
  );
}

/** All predicates are asked at once; the first that fails counts. */
function enabled<T>(
  list: readonly T[],
  switches: readonly IsEnabled<never>[],
  agent: AnyAgent,
  ctx: RunContext,
): MaybePromise<readonly T[]> {
  if (switches.every((isEnabled) => isEnabled === true)) return list;
  const choose = (answers: readonly boolean[]): readonly T[] => list.filter((_, index) => answers[index]);
  if (switches.every((isEnabled) => typeof isEnabled === 'boolean')) return choose(switches);
  return Promise.all(switches.map((isEnabled) => ask(isEnabled, ctx, agent))).then(choose);
}

/** A promise also where a predicate throws at once, so that the others' promises are not forgotten. */
async function ask(isEnabled: IsEnabled<never>, ctx: RunContext, agent: AnyAgent): Promise<boolean> {
  return typeof isEnabled === 'boolean' ? isEnabled : await isEnabled(ctx as RunContext<never>, agent);
}

function notATool(agent: AnyAgent, index: number): UserError {
  return new UserError(`agent ${agent.name}: tools[${index}] is no tool. Tools are made by \`tool()\`.`);
}

function notAHandoff(agent: AnyAgent, index: number, target: unknown): UserError {
  return new UserError(
    `agent ${agent.name}: handoffs[${index}] is ${kindOf(target)}, and neither an agent nor a handoff made by \`handoff()\`.`,
  );
}
