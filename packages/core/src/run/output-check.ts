import type { AnyAgent } from '../agent/agent.ts';
import type { OutputGuardrail, OutputGuardrailResult } from '../agent/guardrail.ts';
import type { ModelResponse } from '../models/model.ts';
import type { RunEnv } from './env.ts';
import { checkGuardrails } from '../agent/guardrail.ts';
import { OutputGuardrailTripwireTriggered } from '../base/errors.ts';
import { outputGuardrails } from './guarded.ts';
import { Guardrails } from './guardrails.ts';

/** What is to be judged: the final output, and the response that gave it, if a model did. */
export interface JudgedOutput {
  readonly value: unknown;
  readonly response: ModelResponse | undefined;
}

/** What the output guardrails of a run said (RUN-911). */
export type OutputVerdict =
  | { readonly type: 'accepted' }
  /** One tripped. */
  | { readonly type: 'tripped'; readonly guardrailName: string; readonly error: OutputGuardrailTripwireTriggered }
  /** One gave no verdict. */
  | { readonly type: 'failed'; readonly error: unknown };

export interface OutputJudgement {
  readonly verdict: OutputVerdict;
  /** Of the guardrails that gave one, in order of completion. */
  readonly results: readonly OutputGuardrailResult[];
}

/** Asks all at once. `undefined`: there are none. @throws RunAbortedError; what they say later counts for nothing */
export async function judgeOutput(
  { value, response }: JudgedOutput,
  agent: AnyAgent,
  env: RunEnv,
): Promise<OutputJudgement | undefined> {
  const guardrails = outputGuardrails(agent, env);
  if (guardrails === undefined) return undefined;
  // What was pushed to the agent's list later has not been checked yet.
  checkGuardrails(guardrails, 'outputGuardrails', `agent ${agent.name}`);
  const results: OutputGuardrailResult[] = [];
  const set = new Guardrails(env, 'output', agent.name);
  const args = { agentOutput: value as never, agent, context: env.context as never, modelResponse: response };
  for (const { name, execute } of guardrails.map(bound)) {
    set.start({
      name,
      parallel: true,
      ask: (signal) => execute({ ...args, signal }),
      note: (output) => {
        const result = { guardrail: { name }, agent, agentOutput: value, output };
        results.push(result);
        return output.tripwireTriggered ? tripwire(result) : undefined;
      },
    });
  }
  try {
    await set.settled();
    return { verdict: { type: 'accepted' }, results };
  } catch (error) {
    env.control.throwIfAborted();
    const verdict: OutputVerdict =
      set.failure?.tripped === true
        ? { type: 'tripped', error: error as OutputGuardrailTripwireTriggered, guardrailName: nameOf(error) }
        : { type: 'failed', error };
    return { verdict, results };
  } finally {
    await set.stop();
  }
}

export function tripwire(guardrailResult: OutputGuardrailResult): OutputGuardrailTripwireTriggered {
  const { name } = guardrailResult.guardrail;
  return new OutputGuardrailTripwireTriggered(`The output guardrail ${name} triggered its tripwire.`, {
    guardrailResult,
  });
}

function nameOf(error: unknown): string {
  return (error as OutputGuardrailTripwireTriggered).guardrailResult.guardrail.name;
}

function bound(guardrail: OutputGuardrail<never, never>): Pick<OutputGuardrail<never, never>, 'name' | 'execute'> {
  return { name: guardrail.name, execute: (args) => guardrail.execute(args) };
}
