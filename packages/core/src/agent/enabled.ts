import type { AnyAgent } from './agent.ts';
import type { FunctionTool, IsEnabled, MaybePromise } from './tool.ts';
import type { RunContext } from '../state/context.ts';
import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { isFunctionTool, toolInternals } from './tool-internals.ts';

/** What becomes of two enabled tools of one name: the last wins with a warning, or the turn fails. */
export type ToolNameCollisionPolicy = 'warn' | 'error';

/**
 * The tools of one turn: those of the agent's list that are enabled now, in its order, one per name.
 *
 * @param warn called for each name that several tools have, with a text that may be logged
 * @throws what the first failing `isEnabled` threw; UserError for entries that are no tools, and for clashes of names under `error`
 */
export function enabledTools(
  agent: AnyAgent,
  ctx: RunContext,
  policy: ToolNameCollisionPolicy,
  warn: (name: string, text: string) => void,
): MaybePromise<readonly FunctionTool<never>[]> {
  const tools: readonly FunctionTool<never>[] = [...agent.tools];
  const switches = tools.map((tool, index) => {
    if (!isFunctionTool(tool)) throw notATool(agent, index);
    return toolInternals(tool).isEnabled;
  });
  const choose = (enabled: readonly unknown[]): readonly FunctionTool<never>[] =>
    onePerName(
      tools.filter((_, index) => enabled[index]),
      agent.name,
      policy,
      warn,
    );
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

function onePerName(
  tools: readonly FunctionTool<never>[],
  agentName: string,
  policy: ToolNameCollisionPolicy,
  warn: (name: string, text: string) => void,
): readonly FunctionTool<never>[] {
  const byName = new Map(tools.map((tool) => [tool.qualifiedName, tool]));
  if (byName.size === tools.length) return tools;
  const clashing = [...byName.keys()].filter((name) => tools.filter((tool) => tool.qualifiedName === name).length > 1);
  if (policy === 'error')
    throw new UserError(
      `agent ${agentName}: several enabled tools have one name (a clash of tool and tool): ${clashing.join(', ')}. Rename one with its option \`name\` (\`copyWith({ name })\`).`,
    );
  for (const name of clashing) {
    // Names are the user's words.
    const whose = getLogger().dontLogToolData
      ? 'Several enabled tools of an agent have one name'
      : `Several enabled tools of agent ${agentName} have the name ${name}`;
    warn(name, `${whose}; the last one is used. Rename the others with their option \`name\`.`);
  }
  return tools.filter((tool) => byName.get(tool.qualifiedName) === tool);
}
