import type { AnyAgent } from '../../agent/agent.ts';
import type { FunctionTool } from '../../agent/tool.ts';
import { resolveOutput } from '../../agent/output.ts';
import { tool } from '../../agent/tool.ts';

/** Some providers ask for structured output by a tool of this name and hand its call through. */
export const jsonToolName = 'json_tool_call';

let jsonTool: FunctionTool<never> | undefined;

/** The tool that such a call means, when the agent has structured output: it gives its arguments back. */
export function jsonToolOf(agent: AnyAgent): FunctionTool<never> | undefined {
  if (resolveOutput(agent).type === 'text') return undefined;
  jsonTool ??= tool({ name: jsonToolName, parameters: { type: 'object' }, strict: false, execute: (args) => args });
  return jsonTool;
}
