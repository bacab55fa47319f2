import { readdirSync, readFileSync } from 'node:fs';
import { Agent } from '../src/agent/agent.ts';
import type { AnyAgent } from '../src/agent/agent.ts';

export type Members = { [key: string]: unknown };

const folder = new URL('./fixtures/python/', import.meta.url);

/** Names of the states that Python wrote, with the folder of older releases. */
export const pythonStates: readonly string[] = ['.', '0.22.0', '0.22.3', '0.23.1'].flatMap((release) =>
  readdirSync(new URL(`${release}/`, folder))
    .filter((name) => name.endsWith('.json'))
    .map((name) => (release === '.' ? name : `${release}/${name}`)),
);

export function pythonStateText(file: string): string {
  return readFileSync(new URL(file, folder), 'utf8');
}

export function pythonState(file: string): Members {
  return JSON.parse(pythonStateText(file)) as Members;
}

/** The graph of a file, without tools that run. Handoffs and agent tools, which come later, are put in by hand. */
export function graphOf(file: string): AnyAgent {
  const name = file.slice(file.lastIndexOf('/') + 1);
  const billing = new Agent({ name: 'Billing' });
  if (name.startsWith('d')) return withHandoffs(new Agent({ name: 'Desk' }), billing);
  if (name.startsWith('c')) return withAgentTools(new Agent({ name: 'Desk' }), billing);
  return new Agent({ name: 'Desk' });
}

export function withHandoffs<A extends AnyAgent>(agent: A, ...targets: readonly AnyAgent[]): A {
  return Object.defineProperty(agent, 'handoffs', { value: targets, configurable: true });
}

export function withAgentTools<A extends AnyAgent>(agent: A, ...targets: readonly AnyAgent[]): A {
  for (const target of targets) agent.tools.push(target.asTool({ toolName: `ask_${target.name.toLowerCase()}` }));
  return agent;
}

/** The least that a state of a label can be. */
export function minimalState(version = '1.21', members: Members = {}): Members {
  return {
    $schemaVersion: version,
    current_turn: 0,
    current_agent: { name: 'Desk' },
    original_input: 'hello',
    context: {},
    max_turns: 10,
    ...members,
  };
}

/** A changed copy: `changed(state, 'context.tool_invocations.call_1.executed', true)`; `undefined` deletes. */
export function changed(state: Members, path: string, value: unknown): Members {
  const copy = structuredClone(state);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let at = copy;
  for (const key of keys) at = (at[key] ??= {}) as Members;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}
