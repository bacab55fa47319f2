import type { AnyAgent } from '../../agent/agent.ts';
import type {
  ToolGuardrailFunctionOutput,
  ToolGuardrailResult,
  ToolInputGuardrail,
  ToolOutputGuardrail,
} from '../../agent/guardrail.ts';
import type { MaybePromise } from '../../agent/tool.ts';
import type { ToolContext } from '../../state/context.ts';
import { checkToolVerdict } from '../../agent/guardrail.ts';
import { ToolInputGuardrailTripwireTriggered, ToolOutputGuardrailTripwireTriggered } from '../../base/errors.ts';

/** The call, as its guardrails see it. */
interface GuardedCall {
  readonly context: ToolContext<never>;
  readonly agent: AnyAgent;
}

/** What guardrails made of a call: whether it passes, or the text in its place. */
export type ToolVerdict = { readonly rejected: false } | { readonly rejected: true; readonly message: string };

const passes: ToolVerdict = { rejected: false };

/**
 * Asks the input guardrails of a tool, one after the other; the first that rejects ends the chain (TOOL-G1, G2).
 *
 * @param results what they said is added here; not what the run fails with
 * @throws ToolInputGuardrailTripwireTriggered, and what a guardrail threw, unchanged
 */
export async function guardInput(
  guardrails: readonly ToolInputGuardrail<never>[],
  call: GuardedCall,
  results: ToolGuardrailResult[],
): Promise<ToolVerdict> {
  return await ask(guardrails, call, results, (name, result) => {
    return new ToolInputGuardrailTripwireTriggered(stopped('input', name, call), result);
  });
}

/** Asks the output guardrails about what the tool gave (TOOL-G3). Parameters and errors as `guardInput`. */
export async function guardOutput(
  guardrails: readonly ToolOutputGuardrail<never>[],
  call: GuardedCall & { readonly output: unknown },
  results: ToolGuardrailResult[],
): Promise<ToolVerdict> {
  return await ask(guardrails, call, results, (name, result) => {
    return new ToolOutputGuardrailTripwireTriggered(stopped('output', name, call), result);
  });
}

async function ask<A>(
  guardrails: readonly { readonly name: string; execute(args: A): MaybePromise<ToolGuardrailFunctionOutput> }[],
  args: A,
  results: ToolGuardrailResult[],
  tripwire: (name: string, result: ToolGuardrailResult) => Error,
): Promise<ToolVerdict> {
  for (const guardrail of guardrails) {
    const result = resultOf(guardrail.name, await guardrail.execute(args));
    const { behavior } = result.output;
    if (behavior.type === 'raise_exception') throw tripwire(guardrail.name, result);
    results.push(result);
    if (behavior.type === 'reject_content') return { rejected: true, message: behavior.message };
  }
  return passes;
}

function resultOf(name: string, verdict: unknown): ToolGuardrailResult {
  const output: ToolGuardrailFunctionOutput = checkToolVerdict(verdict, name);
  return { guardrail: { name }, output };
}

function stopped(stage: 'input' | 'output', name: string, { context }: GuardedCall): string {
  return `The tool ${stage} guardrail ${name} stopped the run at a call of the tool ${context.toolName}.`;
}
