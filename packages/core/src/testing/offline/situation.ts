import { isObject } from '../../base/json.ts';
import type { JsonSchema } from '../../agent/tool.ts';

/** What a model is asked, read from wire items: the same for a `ModelRequest` and for the body of an HTTP request. */
export interface Situation {
  readonly items: readonly object[];
  readonly tools: readonly OfflineTool[];
  /** Functions that pass the conversation to another agent. */
  readonly handoffs: readonly OfflineTool[];
  readonly toolChoice: unknown;
  readonly parallel: boolean;
  readonly outputSchema: JsonSchema | undefined;
}
export interface OfflineTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

export interface MadeCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly output: string | undefined;
}

/** The conversation as the offline model sees it. */
export interface Story {
  /** What is asked now; a request together with the answers to what was asked back. */
  readonly request: string;
  /** What the user said before, newest first. */
  readonly earlier: readonly string[];
  /** Calls since the request, and those before it, newest first. */
  readonly calls: readonly MadeCall[];
  readonly oldCalls: readonly MadeCall[];
  /** An agent has passed the request on already. */
  readonly handedOff: boolean;
}

/** How a question for missing values begins; by it the answer finds its request again. */
export const ASK = 'To do that I still need';

type Item = Readonly<Record<string, unknown>>;

export function readStory(items: readonly object[]): Story {
  const list = items as readonly Item[];
  const users: string[] = [];
  let start = 0;
  let asked = false;
  for (const [index, item] of list.entries()) {
    const text = item['role'] === undefined ? undefined : contentText(item['content']);
    if (text === undefined) continue;
    if (item['role'] === 'assistant') asked = text.startsWith(ASK);
    if (item['role'] !== 'user') continue;
    const before = asked ? users.pop() : undefined;
    users.push(before === undefined ? text : `${before}, ${text}`);
    asked = false;
    start = index + 1;
  }
  const request = users.pop() ?? '';
  const calls = callsOf(list.slice(start));
  return {
    request,
    earlier: users.toReversed(),
    calls: calls.filter((call) => !isHandoff(call)),
    oldCalls: callsOf(list.slice(0, start))
      .filter((call) => !isHandoff(call))
      .toReversed(),
    handedOff: calls.some(isHandoff),
  };
}

/** What a handoff leaves tells it from a tool. */
function isHandoff({ output }: MadeCall): boolean {
  return output !== undefined && /^\{"assistant": ".*"\}$/su.test(output);
}

function callsOf(items: readonly Item[]): MadeCall[] {
  const outputs = new Map(
    items
      .filter((item) => item['type'] === 'function_call_output')
      .map((item) => [item['call_id'], contentText(item['output'])]),
  );
  return items
    .filter((item) => item['type'] === 'function_call')
    .map((item) => ({
      name: String(item['name']),
      args: jsonObject(String(item['arguments'])) ?? {},
      output: outputs.get(item['call_id']),
    }));
}

export function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = json(text);
  return isObject(value) ? value : undefined;
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: Item) => [part['text'], part['refusal']].find((text) => typeof text === 'string') ?? '')
    .join(' ')
    .trim();
}
