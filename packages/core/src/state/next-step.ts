import type { AnyAgent } from '../agent/agent.ts';
import type { ToolApprovalItem } from './decisions.ts';
import type { Step } from './record.ts';

/** What a turn decided, as data. */
export type NextStep<O = unknown> =
  | { readonly type: 'next_step_run_again' }
  | { readonly type: 'next_step_handoff'; readonly newAgent: AnyAgent }
  | { readonly type: 'next_step_final_output'; readonly output: O }
  | { readonly type: 'next_step_interruption'; readonly interruptions: readonly ToolApprovalItem[] };

/** Whether the model is asked next. */
export function goesOn(step: Step): boolean {
  return step.type === 'run_again' || step.type === 'handoff';
}

/** The step as users see it, with all calls that wait; `undefined` before the first turn, and of a finished run that was read from JSON. */
export function nextStepOf(
  step: Step,
  waiting: readonly ToolApprovalItem[] = step.type === 'interruption' ? step.interruptions : [],
): NextStep | undefined {
  switch (step.type) {
    case 'none':
      return undefined;
    case 'run_again':
      return { type: 'next_step_run_again' };
    case 'handoff':
      return { type: 'next_step_handoff', newAgent: step.newAgent };
    case 'final_output':
      return { type: 'next_step_final_output', output: step.output };
    case 'interruption':
      // A list of its own: emptying it by a cast must not reach the state.
      return { type: 'next_step_interruption', interruptions: waiting.slice() };
    default:
      return step satisfies never;
  }
}
