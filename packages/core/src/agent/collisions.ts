import type { Handoff } from './handoff.ts';
import type { FunctionTool } from './tool.ts';
import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { handoffInternals } from './handoff-internals.ts';

/** What becomes of two enabled tools or handoffs of one name: the last wins with a warning, or the turn fails. */
export type ToolNameCollisionPolicy = 'warn' | 'error';

/** What the model can call by name in one turn. */
export interface Callables {
  readonly tools: readonly FunctionTool<never>[];
  readonly handoffs: readonly Handoff<never>[];
}

/**
 * One entry per name (TOOL-I2…I7). Of tools the last one is kept, of handoffs likewise, and a handoff rather than a tool.
 *
 * @param warn called for each name that several entries have, with a text that may be logged
 * @throws UserError for clashes of names under `error`
 */
export function onePerName(
  { tools, handoffs }: Callables,
  agentName: string,
  policy: ToolNameCollisionPolicy,
  warn: (name: string, text: string) => void,
): Callables {
  const lastTool = new Map(tools.map((tool) => [tool.qualifiedName, tool]));
  if (handoffs.length === 0 && lastTool.size === tools.length) return { tools, handoffs };
  const lastHandoff = new Map(handoffs.map((handoff) => [handoff.toolName, handoff]));
  const clashes = [
    ...clashesOf(tools.map((tool) => tool.qualifiedName)).map((name) => ({ name, kind: 'tool and tool' as const })),
    ...clashesOf(handoffs.map((handoff) => handoff.toolName)).map((name) => ({
      name,
      kind: 'handoff and handoff' as const,
    })),
    ...[...lastHandoff.keys()]
      .filter((name) => lastTool.has(name))
      .map((name) => ({ name, kind: 'handoff and tool' as const })),
  ];
  if (clashes.length === 0) return { tools, handoffs };
  for (const { name, kind } of clashes) {
    if (policy === 'error') throw clash(name, kind, handoffs, agentName);
    // Names are the user's words.
    const silent = getLogger().dontLogToolData;
    warn(
      name,
      silent ? `${quiet[kind]}; ${kept[kind]}` : `${quiet[kind]} (agent ${agentName}: ${name}); ${kept[kind]}`,
    );
  }
  return {
    tools: tools.filter((tool) => lastTool.get(tool.qualifiedName) === tool && !lastHandoff.has(tool.qualifiedName)),
    handoffs: handoffs.filter((handoff) => lastHandoff.get(handoff.toolName) === handoff),
  };
}

type Kind = 'tool and tool' | 'handoff and handoff' | 'handoff and tool';

const quiet: Readonly<Record<Kind, string>> = {
  'tool and tool': 'Several enabled tools of an agent have one name',
  'handoff and handoff': 'Several enabled handoffs of an agent have one name',
  'handoff and tool': 'An enabled handoff and an enabled tool of an agent have one name',
};

const kept: Readonly<Record<Kind, string>> = {
  'tool and tool': 'the last one is used. Rename the others with their option `name`.',
  'handoff and handoff': 'the last one is used. Rename the others with `toolNameOverride` of handoff().',
  'handoff and tool':
    'the handoff is used. Rename the tool with its option `name`, or the handoff with `toolNameOverride` of handoff().',
};

const remedies: Readonly<Record<Kind, string>> = {
  'tool and tool': 'Rename one with its option `name` (`copyWith({ name })`).',
  'handoff and handoff': 'Rename one with `toolNameOverride` of handoff().',
  'handoff and tool':
    'Rename the tool with its option `name` (`copyWith({ name })`), or the handoff with `toolNameOverride` of handoff().',
};

function clash(name: string, kind: Kind, handoffs: readonly Handoff<never>[], agentName: string): UserError {
  const owners = handoffs
    .filter((handoff) => handoff.toolName === name)
    .map((handoff) =>
      handoffInternals(handoff).derived
        ? `the handoff to agent ${handoff.agentName}`
        : `the handoff ${name} to ${handoff.agentName}`,
    );
  if (kind === 'handoff and tool') owners.push(`the tool ${name}`);
  const whose = owners.length === 0 ? name : `${name}, ${owners.join(' and ')}`;
  return new UserError(
    `agent ${agentName}: several enabled tools have one name (a clash of ${kind}): ${whose}. ${remedies[kind]}`,
  );
}

function clashesOf(names: readonly string[]): string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const name of names) (seen.has(name) ? twice : seen).add(name);
  return [...twice];
}
