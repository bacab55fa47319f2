import type { FunctionTool } from '../../agent/tool.ts';
import type { ToolOutputOnWire } from '../../agent/tool-output-parts.ts';
import type { FunctionCallOutput, ResponseFunctionToolCall } from '../../items/wire.ts';
import { toolInternals } from '../../agent/tool-internals.ts';
import { toolOutputOnWire } from '../../agent/tool-output-parts.ts';
import { jsonForm } from '../../agent/tool-result.ts';
import { UserError } from '../../base/errors.ts';

/** The wire item of what a call gave. The output of a program's call says whose it is (TOOL-R8). */
export function callOutput(
  { call_id, caller }: ResponseFunctionToolCall,
  output: ToolOutputOnWire,
): FunctionCallOutput {
  const owner = caller?.type === 'program' ? { caller: { ...caller } } : undefined;
  return { type: 'function_call_output', call_id, output, ...owner };
}

/**
 * What a call gave, as it goes back to whoever made it. Programs take JSON and no parts (TOOL-R8); where they were told the
 * form of the value, a text in place of it is wrapped (STATE-111).
 *
 * @param output of a tool with an `outputSchema` only the texts in place of a value: a value has its text already
 * @throws UserError for a value without a JSON form that a program asked for
 */
export function outputOnWire(
  { name, caller }: ResponseFunctionToolCall,
  tool: FunctionTool<never> | undefined,
  output: unknown,
): ToolOutputOnWire {
  if (caller?.type !== 'program') return toolOutputOnWire(output);
  if (typeof output === 'string')
    return tool && toolInternals(tool).readResult ? JSON.stringify({ error: output }) : output;
  const text = jsonForm(output ?? null);
  if (text === undefined)
    throw new UserError(
      `tool ${name}: what it returned has no JSON form, and programs that call a tool take nothing else. Return a text, or plain JSON data.`,
    );
  return text;
}
