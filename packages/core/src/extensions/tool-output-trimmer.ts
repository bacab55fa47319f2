import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { CallModelInputFilter } from '../run/options.ts';
import { withoutProse } from './schema-prose.ts';

export interface ToolOutputTrimmerOptions {
  /** What the last so many messages of the user began stays as it is. Default 2. */
  recentTurns?: number | undefined;
  /** Longer outputs are shortened; UTF-16 units. Default 500. */
  maxOutputChars?: number | undefined;
  /** So much of a shortened output is left; UTF-16 units. Default 200. */
  previewChars?: number | undefined;
  /** Names of tools, bare or with their namespace (`crm.find`); `tool_search` for what tool searches loaded. Default: all. */
  trimmableTools?: string | Iterable<string> | undefined;
}

/**
 * A `callModelInputFilter` that shortens long tool outputs of earlier turns in what the model sees. Session, result and
 * state keep them whole. Outputs of function and custom tools become a header and a preview; of what tool searches
 * loaded, descriptions are shortened.
 *
 * @throws UserError for unknown options and numbers that are no integers of the allowed size
 * @example await run(agent, input, { session, callModelInputFilter: toolOutputTrimmer({ maxOutputChars: 2000 }) })
 */
export function toolOutputTrimmer(options: ToolOutputTrimmerOptions = {}): CallModelInputFilter {
  checkOptions(options, optionChecks, 'toolOutputTrimmer');
  const { recentTurns = 2, maxOutputChars = 500, previewChars = 200, trimmableTools } = options;
  const limits = { max: maxOutputChars, preview: previewChars, tools: toolNames(trimmableTools) };
  return ({ modelData }) => {
    const boundary = startOfRecent(modelData.input, recentTurns);
    if (boundary === 0) return modelData;
    const names = namesOfCalls(modelData.input);
    const input = modelData.input.map((item, index) => (index < boundary ? trimmed(item, names, limits) : item));
    return { ...modelData, input };
  };
}

interface Limits {
  readonly max: number;
  readonly preview: number;
  /** `undefined`: all. */
  readonly tools: ReadonlySet<string> | undefined;
}

type Wire = Readonly<Record<string, unknown>>;

const optionChecks = {
  recentTurns: kinds.integer(1),
  maxOutputChars: kinds.integer(1),
  previewChars: kinds.integer(0),
  trimmableTools: kinds.any,
};

function toolNames(given: unknown): ReadonlySet<string> | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string') return new Set([given]);
  const isList = isIterable(given);
  const names: unknown[] = isList ? [...given] : [];
  if (!isList || !names.every((name) => typeof name === 'string'))
    throw new UserError(
      `Option 'trimmableTools' of toolOutputTrimmer must be the name of a tool or names of tools, not ${isList ? 'a list of something else' : kindOf(given)}.`,
    );
  return new Set(names);
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

/** Index of the message of the user that begins the recent turns; 0: all of it is recent. */
function startOfRecent(input: readonly AgentInputItem[], turns: number): number {
  let left = turns;
  for (let index = input.length - 1; index >= 0; index--) {
    if ((input[index] as { role?: unknown } | undefined)?.role !== 'user') continue;
    left -= 1;
    if (left === 0) return index;
  }
  return 0;
}

interface ToolName {
  readonly bare: string;
  readonly qualified: string;
}

function namesOfCalls(input: readonly AgentInputItem[]): ReadonlyMap<unknown, ToolName> {
  const names = new Map<unknown, ToolName>();
  for (const item of input) {
    const { type, call_id: callId, name, namespace } = item as unknown as Wire;
    if ((type !== 'function_call' && type !== 'custom_tool_call') || typeof name !== 'string') continue;
    const isNamed = typeof namespace === 'string' && namespace !== '';
    names.set(callId, { bare: name, qualified: isNamed ? `${namespace}.${name}` : name });
  }
  return names;
}

function trimmed(item: AgentInputItem, names: ReadonlyMap<unknown, ToolName>, limits: Limits): AgentInputItem {
  const { type, call_id: callId, output } = item as unknown as Wire;
  if (type === 'tool_search_output') return isTrimmable('tool_search', limits) ? trimmedSearch(item, limits) : item;
  if (type !== 'function_call_output' && type !== 'custom_tool_call_output') return item;
  const name = names.get(callId);
  if (limits.tools !== undefined && !(name && (isTrimmable(name.bare, limits) || isTrimmable(name.qualified, limits))))
    return item;
  const shown = name?.qualified ?? 'unknown_tool';
  const short = typeof output === 'string' ? trimmedText(output, shown, limits) : trimmedParts(output, shown, limits);
  return short === undefined ? item : ({ ...item, output: short } as AgentInputItem);
}

function isTrimmable(name: string, { tools }: Limits): boolean {
  return tools === undefined || tools.has(name);
}

// ---- texts

/** `undefined`: it stays. */
function trimmedText(text: string, tool: string, limits: Limits): string | undefined {
  if (text.length <= limits.max) return undefined;
  const shown = preview(text, limits.preview);
  const short = `${header(tool, text.length, shown.length)}\n${shown}...`;
  return short.length < text.length && !isTrimmedText(text) ? short : undefined;
}

function header(tool: string, chars: number, shown: number, dropped = ''): string {
  return `[Trimmed: ${tool} output — ${chars} chars → ${shown} char preview${dropped}]`;
}

const HEADER = /^\[Trimmed: .+ output — \d+ chars → (\d+) char preview(?:; dropped [^\]]+)?\]$/;

/** What this filter made, and not something long that merely begins like it. */
function isTrimmedText(text: string): boolean {
  const end = text.indexOf('\n');
  const [, shown] = HEADER.exec(text.slice(0, Math.max(end, 0))) ?? [];
  return shown !== undefined && text.length === end + 1 + Number(shown) + 3;
}

/** The beginning of a text; pairs of surrogates are not torn apart. */
function preview(text: string, chars: number): string {
  const isTorn = chars > 0 && /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(chars - 1, chars + 1));
  return text.slice(0, isTorn ? chars - 1 : chars);
}

// ---- lists of parts

interface Part {
  readonly type: 'input_text' | 'input_image' | 'input_file';
  readonly text?: string;
}

/** `undefined`: it stays, like every list that has other parts too. */
function trimmedParts(output: unknown, tool: string, limits: Limits): Part[] | undefined {
  if (!Array.isArray(output) || !output.every(isPart)) return undefined;
  const size = output.reduce((sum, part) => sum + sizeOf(part), 0);
  if (size <= limits.max || isTrimmedList(output)) return undefined;
  const shown: Part[] = [];
  let left = limits.preview;
  for (const part of output) {
    if (part.text === undefined || left === 0) continue;
    const text = preview(part.text, left);
    // What does not fit is the end, also when nothing of it does.
    left = text.length < part.text.length ? 0 : left - text.length;
    if (text !== '') shown.push({ ...part, text: text.length < part.text.length ? `${text}...` : text });
  }
  const chars = shown.reduce((sum, part) => sum + sizeOf(part), 0);
  const first = header(tool, size, chars, droppedMedia(output));
  return first.length + chars < size ? [{ type: 'input_text', text: first }, ...shown] : undefined;
}

/** A part as the API has it; whatever has other members is not touched. */
function isPart(part: unknown): part is Part {
  if (!isObject(part) || typeof part['type'] !== 'string') return false;
  const members = PARTS[part['type']];
  if (members === undefined || !Object.keys(part).every((key) => key === 'type' || members.includes(key))) return false;
  return part['type'] !== 'input_text' || typeof part['text'] === 'string';
}

const PARTS: Readonly<Record<string, readonly string[] | undefined>> = {
  __proto__: null as never,
  input_text: ['text'],
  input_image: ['image_url', 'file_id', 'detail'],
  input_file: ['file_id', 'file_url', 'file_data', 'filename', 'detail'],
};

/** Characters of what a part carries. */
function sizeOf(part: Part): number {
  const { type: _, ...content } = part;
  return Object.values(content).reduce(
    (sum: number, value: unknown) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  );
}

function droppedMedia(parts: readonly Part[]): string {
  const kinds = (['input_file', 'input_image'] as const)
    .map((kind) => ({ kind, count: parts.filter(({ type }) => type === kind).length }))
    .filter(({ count }) => count > 0);
  return kinds.length === 0 ? '' : `; dropped ${kinds.map(({ kind, count }) => `${count} ${kind}`).join(', ')}`;
}

function isTrimmedList([first, ...others]: readonly Part[]): boolean {
  const [, shown] = HEADER.exec(first?.text ?? '') ?? [];
  if (shown === undefined || others.some(({ text }) => text === undefined)) return false;
  return others.reduce((sum, part) => sum + sizeOf(part), 0) === Number(shown);
}

// ---- what tool searches loaded

function trimmedSearch(item: AgentInputItem, limits: Limits): AgentInputItem {
  const { tools } = item as unknown as Wire;
  if (!Array.isArray(tools) || JSON.stringify(tools).length <= limits.max) return item;
  return { ...item, tools: tools.map((tool: unknown) => trimmedTool(tool, limits)) } as unknown as AgentInputItem;
}

/** A tool or a namespace of tools: callable as before, with less said about it. */
function trimmedTool(tool: unknown, limits: Limits): unknown {
  if (!isObject(tool)) return tool;
  const { description, parameters, tools } = tool;
  return {
    ...tool,
    ...(typeof description === 'string' && { description: trimmedDescription(description, limits) }),
    ...(isObject(parameters) && { parameters: withoutProse(parameters) }),
    ...(Array.isArray(tools) && { tools: tools.map((one: unknown) => trimmedTool(one, limits)) }),
  };
}

function trimmedDescription(text: string, limits: Limits): string {
  // With its dots it is not shorter until it is this long; so what was shortened is not shortened again.
  return text.length <= limits.preview + 3 ? text : `${preview(text, limits.preview)}...`;
}
