import type { AnyAgent } from './agent.ts';
import type { MaybePromise, Tool } from './tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { RunContext, ToolContext } from '../state/context.ts';
import type { NextStep } from '../state/next-step.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { kindOf, nearestName } from '../base/options.ts';

/** Awaited callbacks of one run. A failing hook fails the run. */
export interface RunHooks<in C = unknown> {
  /** Once per segment, after all entry checks and before anything is listed or called. */
  onRunStart?: (ctx: RunContext<C>, agent: AnyAgent) => MaybePromise<void>;
  /** Once per segment whose `onRunStart` was reached, also after failure; its own failure is only logged. */
  onRunEnd?: (ctx: RunContext<C>, outcome: 'completed' | 'interrupted' | 'cancelled' | 'failed') => MaybePromise<void>;
  /** When an agent becomes active: first turn, after each handoff, first model turn of a resume. */
  onAgentStart?: (ctx: RunContext<C>, agent: AnyAgent) => MaybePromise<void>;
  /** Only for the agent that made the final output, before output guardrails. */
  onAgentEnd?: (ctx: RunContext<C>, agent: AnyAgent, output: unknown) => MaybePromise<void>;
  onHandoff?: (ctx: RunContext<C>, fromAgent: AnyAgent, toAgent: AnyAgent) => MaybePromise<void>;
  /** Local tools only. */
  onToolStart?: (ctx: ToolContext<C>, agent: AnyAgent, tool: Tool<never>) => MaybePromise<void>;
  /** `result` is the tool's value, not its text. */
  onToolEnd?: (ctx: ToolContext<C>, agent: AnyAgent, tool: Tool<never>, result: unknown) => MaybePromise<void>;
  /** Exactly what is sent, after `callModelInputFilter`. */
  onLlmStart?: (
    ctx: RunContext<C>,
    agent: AnyAgent,
    systemPrompt: string | undefined,
    inputItems: readonly AgentInputItem[],
  ) => MaybePromise<void>;
  onLlmEnd?: (ctx: RunContext<C>, agent: AnyAgent, response: ModelResponse) => MaybePromise<void>;
  /** A turn is recorded and stored, also one that paused; `toState()` is resumable. */
  onTurnEnd?: (
    ctx: RunContext<C>,
    info: {
      readonly turn: number;
      readonly agent: AnyAgent;
      readonly step: NextStep['type'];
      readonly toState: () => RunState<C>;
    },
  ) => MaybePromise<void>;
  /** Once per failing run; its own failure is only logged. A run that is aborted does not fail. */
  onError?: (ctx: RunContext<C>, agent: AnyAgent, error: unknown) => MaybePromise<void>;
}

/** The same for one agent, in `AgentOptions.hooks`. */
export interface AgentHooks<in C = unknown> {
  onStart?: (ctx: RunContext<C>, agent: AnyAgent) => MaybePromise<void>;
  onEnd?: (ctx: RunContext<C>, agent: AnyAgent, output: unknown) => MaybePromise<void>;
  /** Called on the agent that hands off; `agent` is the target, `source` this agent. */
  onHandoff?: (ctx: RunContext<C>, agent: AnyAgent, source: AnyAgent) => MaybePromise<void>;
  onToolStart?: (ctx: ToolContext<C>, agent: AnyAgent, tool: Tool<never>) => MaybePromise<void>;
  onToolEnd?: (ctx: ToolContext<C>, agent: AnyAgent, tool: Tool<never>, result: unknown) => MaybePromise<void>;
  onLlmStart?: (
    ctx: RunContext<C>,
    agent: AnyAgent,
    systemPrompt: string | undefined,
    inputItems: readonly AgentInputItem[],
  ) => MaybePromise<void>;
  onLlmEnd?: (ctx: RunContext<C>, agent: AnyAgent, response: ModelResponse) => MaybePromise<void>;
}

const ofBoth = ['onHandoff', 'onToolStart', 'onToolEnd', 'onLlmStart', 'onLlmEnd'] as const;
const ofRuns = [
  'onRunStart',
  'onRunEnd',
  'onAgentStart',
  'onAgentEnd',
  'onTurnEnd',
  'onError',
] as const satisfies readonly (keyof RunHooks)[];
const ofAgents = ['onStart', 'onEnd'] as const satisfies readonly (keyof AgentHooks)[];

/**
 * Hooks may be instances of a class, with members of their own; of a plain object every member must be a hook.
 *
 * @throws TypeError for hooks of an agent, and for what has no hook at all
 * @throws UserError for members that are no function or no hook
 * @internal
 */
export function checkRunHooks(hooks: unknown): void {
  if (!isObject(hooks)) throw new TypeError(`hooks: takes an object with hooks of a run, not ${kindOf(hooks)}.`);
  const has = (name: string): boolean => hooks[name] !== undefined;
  if (ofAgents.some(has) && !ofRuns.some(has))
    throw new TypeError('hooks: these are hooks of one agent (onStart, onEnd). Put them on `agent.hooks`.');
  if (![...ofRuns, ...ofBoth].some(has))
    throw new TypeError(`hooks: got ${kindOf(hooks)} without a hook of a run (${[...ofRuns, ...ofBoth].join(', ')}).`);
  checkMembers(hooks, [...ofRuns, ...ofBoth], 'hooks');
}

/** @throws UserError for hooks of a run, members that are no function, and members that are no hook @internal */
export function checkAgentHooks(hooks: unknown, where: string): void {
  if (!isObject(hooks)) throw new UserError(`${where}: the field \`hooks\` takes an object, not ${kindOf(hooks)}.`);
  const has = (name: string): boolean => hooks[name] !== undefined;
  if (ofRuns.some(has) && !ofAgents.some(has))
    throw new UserError(
      `${where}: \`hooks\` holds hooks of a run. Give them to \`run\` as its option \`hooks\`; an agent has onStart and onEnd.`,
    );
  checkMembers(hooks, [...ofAgents, ...ofBoth], `${where}: \`hooks\``);
  if (![...ofAgents, ...ofBoth].some(has))
    throw new UserError(
      `${where}: \`hooks\` holds no hook of an agent (${[...ofAgents, ...ofBoth].join(', ')}). Leave the field out, or give it one.`,
    );
}

function checkMembers(hooks: Record<string, unknown>, known: readonly string[], where: string): void {
  for (const name of known)
    if (hooks[name] !== undefined && typeof hooks[name] !== 'function')
      throw new UserError(`${where}: ${name} takes a function, not ${kindOf(hooks[name])}.`);
  const prototype: unknown = Object.getPrototypeOf(hooks);
  if (prototype !== Object.prototype && prototype !== null) return;
  const unknown = Object.keys(hooks).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, known);
  throw new UserError(
    `${where}: there is no hook ${unknown}. ${nearest ? `Did you mean ${nearest}?` : `Known: ${known.join(', ')}.`}`,
  );
}
