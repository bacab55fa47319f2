import type { AnyAgent } from '../agent/agent.ts';
import type { InputGuardrail, OutputGuardrail } from '../agent/guardrail.ts';
import type { RunEnv } from './env.ts';

// Whether anybody asked for guardrails. What runs them is loaded where somebody did.

/** The agent's, then the run's; `undefined` where there are none. */
export function inputGuardrails(agent: AnyAgent, env: RunEnv): readonly InputGuardrail<never>[] | undefined {
  return joined(agent.inputGuardrails, env.options.inputGuardrails);
}

/** The agent's, then the run's; `undefined` where there are none. */
export function outputGuardrails(agent: AnyAgent, env: RunEnv): readonly OutputGuardrail<never, never>[] | undefined {
  return joined(agent.outputGuardrails, env.options.outputGuardrails);
}

function joined<T>(own: readonly T[], given: readonly T[] | undefined): readonly T[] | undefined {
  if (given === undefined || given.length === 0) return own.length === 0 ? undefined : own;
  return [...own, ...given];
}

/**
 * Whether a tool's output of this agent may become a final output that guardrails judge: until then no session gets the
 * turn's items (STATE-127).
 */
export function withholdsTurns(agent: AnyAgent, env: RunEnv): boolean {
  return agent.toolUseBehavior !== 'run_llm_again' && outputGuardrails(agent, env) !== undefined;
}
