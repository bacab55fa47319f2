import { Agent } from '../agent/agent.ts';
import type { AnyAgent } from '../agent/agent.ts';
import { internal } from '../base/brand.ts';
import { UserError } from '../base/errors.ts';
import type { JsonObject } from '../items/wire.ts';
import type { Version } from './versions.ts';

/** How agents are named in snapshots: everything reachable from the starting agent, and the names it goes by (STATE §13). */
export interface AgentGraph {
  /** `{ name }`, with `identity` where the name alone would mean another agent. */
  ref(agent: AnyAgent): JsonObject;
  /** What keys of the tool-use tracker are. */
  identityOf(agent: AnyAgent): string | undefined;
  byIdentity(identity: string): AnyAgent | undefined;
  /**
   * The agent that a reference names; `undefined` when its name is not in the graph.
   * @throws UserError `agent_identity_missing`: it names an identity that is not there.
   */
  resolve(ref: unknown): AnyAgent | undefined;
  /** Agents whose suffix depends on the order of discovery alone: decisions of theirs are neither written nor read. */
  isDistinct(agent: AnyAgent): boolean;
}

/** @throws UserError `agent_identity_ambiguous` */
export function agentGraph(start: AnyAgent): AgentGraph {
  const agents = reachable(start);
  const groups = grouped(agents, (agent) => agent.name);
  const indistinct = new Set<AnyAgent>();
  const identities = new Map<AnyAgent, string>();
  const byIdentity = new Map<string, AnyAgent>();
  for (const [name, group] of groups) {
    const sorted = group.length === 1 ? group : inStableOrder(group, start, indistinct);
    let suffix = 2;
    for (const [index, agent] of sorted.entries()) {
      let identity = name;
      if (index > 0) {
        // What another agent is called is never taken.
        do identity = `${name}#${suffix++}`;
        while (groups.has(identity) || byIdentity.has(identity));
      }
      identities.set(agent, identity);
      byIdentity.set(identity, agent);
    }
  }
  for (const agent of indistinct) {
    if (!hasHookObject(agent)) continue;
    const message =
      'Agents of equal name and configuration, with hooks, cannot be told apart in a snapshot. Use unique agent names (or ids), and start a new run.';
    throw new UserError(message, { code: 'agent_identity_ambiguous' });
  }
  return new Graph(identities, byIdentity, indistinct);
}

/**
 * Labels below 1.21: the order of same-named agents could depend on the state of their hooks.
 * @throws UserError `agent_identity_legacy`
 */
export function checkLegacyIdentities(start: AnyAgent, version: Version): void {
  if (version.has('hooklessIdentity')) return;
  for (const group of grouped(reachable(start), (agent) => agent.name).values()) {
    const hooked = group.filter((agent) => agent !== start && hasHookObject(agent));
    const early = new Set(hooked.map((agent) => text(earlyConfiguration(agent))));
    if (early.size === hooked.length) continue;
    const message = `Agents of equal name whose hooks decided their order in older snapshots cannot be told apart in one of version ${version.label}. Use unique agent names, and start a new run.`;
    throw new UserError(message, { code: 'agent_identity_legacy' });
  }
}

class Graph implements AgentGraph {
  readonly #identities: ReadonlyMap<AnyAgent, string>;
  readonly #agents: ReadonlyMap<string, AnyAgent>;
  readonly #indistinct: ReadonlySet<AnyAgent>;
  readonly #refs = new Map<AnyAgent, JsonObject>();

  constructor(
    identities: ReadonlyMap<AnyAgent, string>,
    agents: ReadonlyMap<string, AnyAgent>,
    indistinct: ReadonlySet<AnyAgent>,
  ) {
    this.#identities = identities;
    this.#agents = agents;
    this.#indistinct = indistinct;
  }

  ref(agent: AnyAgent): JsonObject {
    let ref = this.#refs.get(agent);
    if (ref === undefined) {
      const identity = this.#identities.get(agent) ?? agent.name;
      ref = identity === agent.name ? { name: agent.name } : { name: agent.name, identity };
      this.#refs.set(agent, ref);
    }
    return ref;
  }

  identityOf(agent: AnyAgent): string | undefined {
    return this.#identities.get(agent);
  }

  byIdentity(identity: string): AnyAgent | undefined {
    return this.#agents.get(identity);
  }

  resolve(ref: unknown): AnyAgent | undefined {
    // Old labels wrote the bare name.
    if (typeof ref === 'string') return this.#byName(ref);
    if (typeof ref !== 'object' || ref === null) return undefined;
    const { identity, name } = ref as { identity?: unknown; name?: unknown };
    if (typeof identity === 'string') {
      const agent = this.#agents.get(identity);
      if (agent !== undefined) return agent;
      const message =
        'The run state names an agent that is not reachable from this one. Pass the original starting agent; among agents of equal name, the same ones as before.';
      throw new UserError(message, { code: 'agent_identity_missing' });
    }
    return typeof name === 'string' ? this.#byName(name) : undefined;
  }

  isDistinct(agent: AnyAgent): boolean {
    return !this.#indistinct.has(agent);
  }

  #byName(name: string): AnyAgent | undefined {
    return name === '' ? undefined : this.#agents.get(name);
  }
}

/** Breadth first: handoffs, then agent tools, each agent once. */
function reachable(start: AnyAgent): AnyAgent[] {
  const found = new Set<AnyAgent>([start]);
  for (const agent of found) for (const next of neighbours(agent)) found.add(next);
  return [...found];
}

/** Handoffs and agent tools of an agent. Both come with a later version; what has neither is a leaf. */
function neighbours(agent: AnyAgent): AnyAgent[] {
  const { handoffs = [], tools = [] } = agent as { handoffs?: readonly unknown[]; tools?: readonly unknown[] };
  const targets = handoffs.map((handoff) => (isAgent(handoff) ? handoff : agentBehind(handoff)));
  return [...targets, ...tools.map(agentBehind)].filter((target) => target !== undefined);
}

function agentBehind(value: unknown): AnyAgent | undefined {
  const hidden = (value as { [internal]?: { agent?: unknown; agentTool?: { agent: unknown } } } | null)?.[internal];
  const agent = hidden?.agent ?? hidden?.agentTool?.agent;
  return isAgent(agent) ? agent : undefined;
}

function isAgent(value: unknown): value is AnyAgent {
  return value instanceof Agent;
}

// ---- order of agents of equal name

/** The starting agent, then by id where one has an id, then by configuration, then as discovered. Finds those that only discovery tells apart. */
function inStableOrder(group: readonly AnyAgent[], start: AnyAgent, indistinct: Set<AnyAgent>): AnyAgent[] {
  const byId = group.some((agent) => agent.id !== undefined);
  const keyed = group.map((agent) => ({
    agent,
    key: (byId ? `${agent.id ?? ''}\u0000` : '') + text(configuration(agent)),
  }));
  for (const same of grouped(
    keyed.filter(({ agent }) => agent !== start),
    ({ key }) => key,
  ).values()) {
    if (same.length > 1) for (const { agent } of same) indistinct.add(agent);
  }
  keyed.sort((a, b) => Number(b.agent === start) - Number(a.agent === start) || compare(a.key, b.key));
  return keyed.map(({ agent }) => agent);
}

function grouped<T>(values: readonly T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group === undefined) groups.set(keyOf(value), [value]);
    else group.push(value);
  }
  return groups;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** What sorted first in older writers, up to the hooks. */
function earlyConfiguration(agent: AnyAgent): unknown[] {
  const { handoffDescription, handoffs = [] } = agent as {
    handoffDescription?: unknown;
    handoffs?: readonly unknown[];
  };
  return [handoffDescription, handoffs.map(text).toSorted(), agent.hooks?.constructor.name];
}

/** Everything that the caller said about an agent, without what differs from process to process. */
function configuration(agent: AnyAgent): unknown[] {
  const known = agent as { inputGuardrails?: unknown; outputGuardrails?: unknown; prompt?: unknown };
  return [
    ...earlyConfiguration(agent),
    agent.instructions,
    agent.model,
    agent.modelSettings,
    agent.outputType,
    agent.toolUseBehavior,
    agent.resetToolChoice,
    agent.tools.map(text).toSorted(),
    known.inputGuardrails,
    known.outputGuardrails,
    known.prompt,
  ];
}

function hasHookObject(agent: AnyAgent): boolean {
  return typeof agent.hooks === 'object' && agent.hooks !== null;
}

/** Text of a piece of configuration: data as it is, functions and objects of classes by their names. */
function text(value: unknown, depth = 6): string {
  if (typeof value === 'function') return `function ${value.name}`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? typeof value;
  if (depth === 0) return '…';
  if (Array.isArray(value)) return `[${value.map((member) => text(member, depth - 1)).join(',')}]`;
  const agent = isAgent(value) ? value : undefined;
  if (agent !== undefined) return `agent ${agent.name}`;
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${key}:${text((value as Record<string, unknown>)[key], depth - 1)}`);
  return `${value.constructor?.name ?? ''}{${members.join(',')}}`;
}
