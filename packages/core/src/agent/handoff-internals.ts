import type { AnyAgent } from './agent.ts';
import type { Handoff } from './handoff.ts';
import type { ParsedArguments } from './arguments.ts';
import type { RunContext } from '../state/context.ts';
import { internal } from '../base/brand.ts';

/** What a handoff keeps beside what others see. @internal */
export interface HandoffInternals {
  /** `undefined`: it is only known once the handoff is taken. */
  readonly agent: AnyAgent | undefined;
  /** The name comes from the agent's. */
  readonly derived: boolean;
  /** The two halves of `onInvokeHandoff`; `undefined` where nobody knows what that does. */
  readonly halves: HandoffHalves | undefined;
}

/** What is wrong with the model's input shows before anything of the user is called. */
export interface HandoffHalves {
  /** @throws UserError for a schema that validates asynchronously */
  read(argumentsJson: string): ParsedArguments;
  take(ctx: RunContext<never>, input: unknown): Promise<AnyAgent>;
}

/** Whether a value is a `Handoff`, of whichever copy of this package. @internal */
export function isHandoff(value: unknown): value is Handoff<never> {
  return typeof value === 'object' && value !== null && internal in value && 'onInvokeHandoff' in value;
}

/** @internal */
export function handoffInternals(handoff: Handoff<never>): HandoffInternals {
  return (handoff as unknown as { readonly [internal]: HandoffInternals })[internal];
}

/** Name of the tool that hands off to an agent of this name, as in the Python SDK, so that stored histories match. */
export function derivedName(agentName: string): { readonly name: string; readonly replaced: boolean } {
  const { name, replaced } = snakeName(agentName);
  return { name: `transfer_to_${name}`, replaced };
}

/** The name of an agent as it can stand in the name of a tool. `replaced`: it lost more than white space. */
export function snakeName(agentName: string): { readonly name: string; readonly replaced: boolean } {
  const plain = agentName.replaceAll(/\s/gu, '_');
  return { name: plain.replaceAll(/[^A-Za-z0-9_]/gu, '_').toLowerCase(), replaced: /[^A-Za-z0-9_]/u.test(plain) };
}

/** Whether the model gave any input with a handoff. */
export function givesInput(argumentsJson: unknown): argumentsJson is string {
  return typeof argumentsJson === 'string' && argumentsJson.trim() !== '' && argumentsJson.trim() !== 'null';
}
