import type { AnyAgent } from './agent.ts';
import type { RunContext, ToolContext } from '../state/context.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { MaybePromise } from './tool.ts';

export interface GuardrailFunctionOutput {
  tripwireTriggered: boolean;
  /** For logs and traces; JSON. */
  outputInfo?: unknown;
}

/** Checks the input of the first agent, in its first turn. A trip fails the run: `InputGuardrailTripwireTriggered`. */
export interface InputGuardrail<in C = unknown> {
  name: string;
  /** `false` runs before the model and any tool. Default `true`: beside the model call. */
  runInParallel?: boolean;
  execute: (args: InputGuardrailArgs<C>) => MaybePromise<GuardrailFunctionOutput>;
}

export interface InputGuardrailArgs<out C = unknown> {
  readonly input: string | readonly AgentInputItem[];
  readonly agent: AnyAgent;
  readonly context: RunContext<C>;
  readonly signal: AbortSignal;
}

/** Checks a final output before it counts. A trip fails the run: `OutputGuardrailTripwireTriggered`. */
export interface OutputGuardrail<in C = unknown, in O = unknown> {
  name: string;
  execute: (args: OutputGuardrailArgs<C, O>) => MaybePromise<GuardrailFunctionOutput>;
}

export interface OutputGuardrailArgs<out C = unknown, out O = unknown> {
  readonly agentOutput: O;
  readonly agent: AnyAgent;
  readonly context: RunContext<C>;
  readonly signal: AbortSignal;
  /** The response that gave the output, if a model did. */
  readonly modelResponse: ModelResponse | undefined;
}

export interface InputGuardrailResult {
  readonly guardrail: { readonly name: string };
  readonly output: GuardrailFunctionOutput;
}

export interface OutputGuardrailResult {
  readonly guardrail: { readonly name: string };
  readonly agent: AnyAgent;
  /** The withheld text when a blocked tool output was redacted. */
  readonly agentOutput: unknown;
  readonly output: GuardrailFunctionOutput;
}

// ---- tool guardrails: one after the other, around one call

export type ToolGuardrailBehavior =
  | { type: 'allow' }
  /** The call does not run (or its output is replaced): the model sees `message`. */
  | { type: 'reject_content'; message: string }
  /** The run fails. */
  | { type: 'raise_exception' };

export interface ToolGuardrailFunctionOutput {
  behavior: ToolGuardrailBehavior;
  outputInfo?: unknown;
}

export interface ToolInputGuardrail<in C = unknown> {
  name: string;
  execute: (args: {
    readonly context: ToolContext<C>;
    readonly agent: AnyAgent;
  }) => MaybePromise<ToolGuardrailFunctionOutput>;
}

export interface ToolOutputGuardrail<in C = unknown> {
  name: string;
  execute: (args: {
    readonly context: ToolContext<C>;
    readonly agent: AnyAgent;
    readonly output: unknown;
  }) => MaybePromise<ToolGuardrailFunctionOutput>;
}

export interface ToolGuardrailResult {
  readonly guardrail: { readonly name: string };
  readonly output: ToolGuardrailFunctionOutput;
}
