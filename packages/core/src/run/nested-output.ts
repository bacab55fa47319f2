import type { AgentToolResult } from './result.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { RunItem } from '../items/items.ts';

/**
 * What an agent tool gives of its run (TOOL-AT10): what the extractor takes, else the final output as text. Where that is
 * empty and no guardrail judged it, the newest text that the run left.
 */
export async function agentToolOutput(
  result: AgentToolResult,
  extractor: ((result: AgentToolResult<never, unknown>) => MaybePromise<string>) | undefined,
): Promise<unknown> {
  if (extractor) return await extractor(result as AgentToolResult<never, unknown>);
  const { finalOutput } = result;
  if (result.outputGuardrailResults.length > 0) return asText(finalOutput);
  const isEmpty = finalOutput === undefined || finalOutput === null || finalOutput === '';
  return isEmpty ? (newestText(result.newItems) ?? finalOutput) : asText(finalOutput);
}

function asText(output: unknown): unknown {
  return typeof output === 'object' && output !== null ? JSON.stringify(output) : output;
}

function newestText(items: readonly RunItem[]): string | undefined {
  for (const item of items.toReversed()) {
    if (item.type === 'message_output_item') {
      const text = item.rawItem.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
      if (text !== '') return text;
    }
    if (item.type === 'tool_call_output_item' && typeof item.output === 'string' && item.output !== '')
      return item.output;
  }
  return undefined;
}
