import type { NeedsApproval } from '../state/decisions.ts';
import type { ToolContext } from '../state/context.ts';
import type { AgentTool } from './agent-tool.ts';
import type { ParsedArguments } from './arguments.ts';
import type { CustomDataExtractor } from './custom-data.ts';
import type { ToolInputGuardrail, ToolOutputGuardrail } from './guardrail.ts';
import type { ToolTimeout } from './timeout.ts';
import type { JsonSchema } from './schema.ts';
import type { FunctionTool, IsEnabled, ToolErrorFunction } from './tool.ts';
import type { DeclaredResult } from './tool-result.ts';
import { internal } from '../base/brand.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';

/** What a tool keeps for the loop. @internal */
export interface ToolInternals {
  /** Reads the arguments of one call. @throws UserError when the schema validates asynchronously */
  readonly parse: (argumentsJson: string) => ParsedArguments;
  readonly execute: (args: never, ctx: ToolContext<never>) => unknown;
  readonly isEnabled: IsEnabled<never>;
  readonly needsApproval: NeedsApproval<never, never>;
  /** `undefined`: the implicit default; `null`: failures fail the run. */
  readonly failureErrorFunction: ToolErrorFunction<never> | null | undefined;
  /** `undefined`: none. */
  readonly inputGuardrails: readonly ToolInputGuardrail<never>[] | undefined;
  readonly outputGuardrails: readonly ToolOutputGuardrail<never>[] | undefined;
  /** `undefined`: no limit. */
  readonly timeout: ToolTimeout | undefined;
  readonly customDataExtractor: CustomDataExtractor<never> | undefined;
  /** `undefined`: no cap of its own. */
  readonly maxConcurrency: number | undefined;
  /** The JSON Schema of its parameters as it was declared. */
  readonly declared: JsonSchema;
  /** Of a tool that declares what it returns: checks one value. */
  readonly readResult: DeclaredResult['read'] | undefined;
  /** Of a tool that is an agent: what its run needs. A call runs it in place of `execute`. */
  readonly agentTool: AgentTool | undefined;
}

/** Whether a value was made by `tool`, of whichever copy of this package. @internal */
export function isFunctionTool(value: unknown): value is FunctionTool<never> {
  return typeof value === 'object' && value !== null && internal in value && 'onInvokeTool' in value;
}

/** @throws UserError for an object that only looks like a tool @internal */
export function toolInternals(tool: FunctionTool<never, never>): ToolInternals {
  if (!isFunctionTool(tool)) throw new UserError(`A tool is made by \`tool()\`; got ${kindOf(tool)}.`);
  return (tool as unknown as { readonly [internal]: ToolInternals })[internal];
}
