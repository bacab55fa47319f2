import { ModelBehaviorError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseOutputItem } from '../items/wire.ts';
import type { ModelResponse, Usage } from './model.ts';

/**
 * A model is an object of anybody, so what it answers is looked at once: `output` is a list of items, the counts of
 * `usage` are completed. What the run keeps is its own, and frozen: neither model nor hooks change it later.
 * @throws ModelBehaviorError naming the member that no response can have
 */
export function checkedResponse(response: unknown): ModelResponse {
  if (!isObject(response) || !Array.isArray(response['output']))
    throw unusable('without an output array; a response is { output, usage }');
  checkItems(response['output']);
  const answer = response as unknown as ModelResponse;
  const usage = isUsage(answer.usage) ? answer.usage : toUsage(answer.usage);
  return Object.freeze({ ...answer, usage, output: Object.freeze(answer.output.slice()) });
}

/** The answer of a whole stream: the terminal output, or what was completed on the way where a service leaves it empty. */
export function checkedOutput(
  output: unknown,
  completed: () => readonly ResponseOutputItem[],
): readonly ResponseOutputItem[] {
  const isMissing = output === undefined || output === null;
  if (!isMissing && !Array.isArray(output))
    throw unusable(`with ${kindOf(output)} as the output of response.completed`);
  const items = isMissing || output.length === 0 ? completed() : (output as readonly ResponseOutputItem[]);
  if (isMissing && items.length === 0) throw unusable('with a response.completed that has no output');
  checkItems(items);
  return items;
}

/** By index: a hole is no item either. */
function checkItems(items: readonly unknown[]): void {
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    if (!isObject(item)) throw unusable(`with ${kindOf(item)} as output[${index}]; an item is an object`);
    if (item['type'] === 'message') checkContent(item['content'], index);
  }
}

function checkContent(content: unknown, index: number): void {
  if (content === undefined || content === null) return;
  const where = `output[${index}].content`;
  if (!Array.isArray(content)) throw unusable(`with ${kindOf(content)} as ${where}; it is an array of parts`);
  const wrong = content.findIndex((part) => !isObject(part));
  if (wrong >= 0) throw unusable(`with ${kindOf(content[wrong])} as ${where}[${wrong}]; a part is an object`);
}

/** Whether all that others read is there; `toUsage` gives nothing else. */
function isUsage(usage: Partial<Usage> | null | undefined): usage is Usage {
  return (
    isObject(usage) &&
    [usage.requests, usage.inputTokens, usage.outputTokens, usage.totalTokens].every(Number.isFinite) &&
    isObject(usage.inputTokensDetails) &&
    isObject(usage.outputTokensDetails) &&
    Array.isArray(usage.requestUsageEntries)
  );
}

export function unusable(what: string): ModelBehaviorError {
  return new ModelBehaviorError(`The model answered ${what}.`);
}
