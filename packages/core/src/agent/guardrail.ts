import type { AnyAgent } from './agent.ts';
import type { MaybePromise } from './tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { RunContext, ToolContext } from '../state/context.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';

export interface GuardrailFunctionOutput {
  tripwireTriggered: boolean;
  /** For logs and traces; JSON. */
  outputInfo?: unknown;
}

/**
 * Checks the input of the first agent, in its first turn. A trip fails the run: `InputGuardrailTripwireTriggered`.
 * @example new Agent({ name: 'Desk', inputGuardrails: [{ name: 'polite', execute: ({ input }) => ({ tripwireTriggered: isRude(input) }) }] })
 */
export interface InputGuardrail<in C = unknown> {
  name: string;
  /**
   * `false` runs before the model and any tool. Default `true`: beside the model call. A tool of the first turn may then
   * have run before the verdict is known; where that must not happen, pass `false`.
   */
  runInParallel?: boolean | undefined;
  execute: (args: InputGuardrailArgs<C>) => MaybePromise<GuardrailFunctionOutput>;
}

export interface InputGuardrailArgs<out C = unknown> {
  /** What the run starts from: with a session its history and what is new. */
  readonly input: string | readonly AgentInputItem[];
  readonly agent: AnyAgent;
  readonly context: RunContext<C>;
  /** Fires when nobody waits for the verdict any more: another guardrail tripped, the run failed or was aborted. */
  readonly signal: AbortSignal;
}

/**
 * Checks a final output before it counts. A trip fails the run: `OutputGuardrailTripwireTriggered`. The deltas of a stream
 * come before the verdict: who must not show what is refused shows the text when the run is over.
 */
export interface OutputGuardrail<in C = unknown, in O = unknown> {
  name: string;
  execute: (args: OutputGuardrailArgs<C, O>) => MaybePromise<GuardrailFunctionOutput>;
}

export interface OutputGuardrailArgs<out C = unknown, out O = unknown> {
  readonly agentOutput: O;
  readonly agent: AnyAgent;
  readonly context: RunContext<C>;
  /** Fires when nobody waits for the verdict any more. */
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

/**
 * Checks one call of a tool before it runs, after a person has approved it, and before its arguments are validated:
 * `context.toolArguments` is the model's text. What it throws fails the run.
 */
export interface ToolInputGuardrail<in C = unknown> {
  name: string;
  execute: (args: {
    readonly context: ToolContext<C>;
    readonly agent: AnyAgent;
  }) => MaybePromise<ToolGuardrailFunctionOutput>;
}

/** Checks what one call gave before anybody sees it. `output` is the tool's value, or the text in place of a failure. */
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

// ---- checks

/** A list of guardrails of any of the four kinds. @throws UserError naming owner, field and index */
export function checkGuardrails(guardrails: unknown, field: string, where: string): void {
  if (!Array.isArray(guardrails))
    throw new UserError(
      `${where}: the field \`${field}\` takes an array of guardrails { name, execute }, not ${kindOf(guardrails)}.`,
    );
  guardrails.forEach((guardrail: unknown, index) => checkGuardrail(guardrail, `${where}: \`${field}[${index}]\``));
}

function checkGuardrail(guardrail: unknown, where: string): void {
  if (!isObject(guardrail))
    throw new UserError(`${where} must be a guardrail, an object { name, execute }, not ${kindOf(guardrail)}.`);
  const { name, execute, runInParallel } = guardrail as { readonly [K in keyof InputGuardrail]?: unknown };
  if (typeof name !== 'string' || name === '')
    throw new UserError(
      `${where} needs a \`name\`, a string that is not empty, not ${name === '' ? 'an empty one' : kindOf(name)}. Results, errors and traces name guardrails by it.`,
    );
  if (typeof execute !== 'function')
    throw new UserError(
      `${where} (guardrail ${name}) needs the function \`execute\`, which gives the verdict, not ${kindOf(execute)}.`,
    );
  if (runInParallel !== undefined && typeof runInParallel !== 'boolean')
    throw new UserError(
      `${where} (guardrail ${name}): \`runInParallel\` must be true or false, not ${kindOf(runInParallel)}.`,
    );
}

/** What a guardrail of an agent or a run returned. @throws UserError naming the guardrail */
export function checkVerdict(value: unknown, name: string): GuardrailFunctionOutput {
  const { tripwireTriggered, outputInfo } = (isObject(value) ? value : {}) as { readonly [key: string]: unknown };
  // A copy: what the guardrail does to its own object later changes no result.
  if (typeof tripwireTriggered === 'boolean')
    return outputInfo === undefined ? { tripwireTriggered } : { tripwireTriggered, outputInfo };
  throw new UserError(
    `The guardrail ${name} must return { tripwireTriggered: true or false, outputInfo }, not ${shapeOf(value, 'tripwireTriggered')}.`,
  );
}

/** What a guardrail of a tool returned. @throws UserError naming the guardrail */
export function checkToolVerdict(value: unknown, name: string): ToolGuardrailFunctionOutput {
  const { behavior, outputInfo } = (isObject(value) ? value : {}) as { readonly [key: string]: unknown };
  const { type, message } = (isObject(behavior) ? behavior : {}) as { readonly [key: string]: unknown };
  const verdict = (known: ToolGuardrailBehavior): ToolGuardrailFunctionOutput =>
    outputInfo === undefined ? { behavior: known } : { behavior: known, outputInfo };
  if (type === 'allow' || type === 'raise_exception') return verdict({ type });
  if (type === 'reject_content' && typeof message === 'string') return verdict({ type, message });
  throw new UserError(
    `The tool guardrail ${name} must return { behavior: { type: 'allow' } | { type: 'reject_content', message } | { type: 'raise_exception' }, outputInfo }, not ${shapeOf(value, 'behavior')}.`,
  );
}

function shapeOf(value: unknown, member: string): string {
  return isObject(value) ? `an object whose \`${member}\` is not one of these` : kindOf(value);
}
