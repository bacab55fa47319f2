import type { HandoffHistoryMapper, HandoffInputData, HandoffInputPatch } from '../agent/handoff.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { encodeJson } from '../base/json-encode.ts';
import { checkItemList } from '../items/check.ts';
import { convertedItem, inputToList, itemDigest, toInputItem } from '../items/convert.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { plainJson } from '../snapshot/plain.ts';

// Nested history: what happened before a handoff becomes text for the next agent. Pure functions of lists; the texts are
// the same as those of the Python SDK, which reads them.

/** Lines around the records of a summary. */
export interface HistoryMarkers {
  readonly start: string;
  readonly end: string;
}

export interface NestingOptions {
  /** Makes the next input instead of the summaries; nothing is forwarded then. */
  readonly mapper?: HandoffHistoryMapper | undefined;
  /** Default `<CONVERSATION HISTORY>` and `</CONVERSATION HISTORY>`. */
  readonly markers?: HistoryMarkers | undefined;
}

/** A run item that went into the next input as it is: `input` is its wire object there, at `index`. */
export interface ForwardedItem {
  readonly item: RunItem;
  readonly input: AgentInputItem;
  readonly index: number;
}

export interface NestedHistory {
  readonly patch: Omit<HandoffInputPatch, 'inputHistory'> & { inputHistory: AgentInputItem[] };
  /** In the order of the next input; empty with a mapper. */
  readonly forwarded: readonly ForwardedItem[];
}

type History = Pick<HandoffInputData, 'inputHistory' | 'preHandoffItems' | 'newItems'>;
type Wire = Readonly<Record<string, unknown>>;

export const DEFAULT_MARKERS: HistoryMarkers = { start: '<CONVERSATION HISTORY>', end: '</CONVERSATION HISTORY>' };

const PREAMBLE = 'For context, here is the conversation so far between the user and the previous agent:';
/** What older versions wrote. */
const OLD_PREAMBLE = 'For context, here is the conversation so far:';
const NO_RECORDS = '(no previous turns recorded)';

/**
 * The input of the agent that a conversation is handed to (TOOL-HO27): what is summarised stands in messages of the
 * assistant, everything else as it was between them, in order. The data is not changed; the items of the next input are
 * objects of its own.
 *
 * @throws UserError when markers are empty or the mapper returns no list of items
 */
export function nestHistory(data: History, options: NestingOptions = {}): NestedHistory {
  const { mapper } = options;
  const markers = checkMarkers(options.markers);
  const past = flattened(inputToList(data.inputHistory), markers).map(toInputItem);
  if (mapper !== undefined) return { patch: patchOf(mapped(mapper, past, data)), forwarded: [] };

  const input: AgentInputItem[] = [];
  const forwarded: ForwardedItem[] = [];
  let records = past;
  const summarise = (): void => {
    // The first summary is always there: it tells the agent that it was not the first one.
    if (records.length > 0 || input.length === 0) input.push(summary(records, markers));
    records = [];
  };
  for (const { item, wire, isNew } of wiresOf(data)) {
    if (isSummarised(wire, isNew)) {
      records.push(wire);
      continue;
    }
    summarise();
    forwarded.push({ item, input: wire, index: input.length });
    input.push(wire);
  }
  summarise();
  return { patch: patchOf(input), forwarded };
}

/**
 * Where forwarded items stand in a next input that filters may have rebuilt (TOOL-HO36, HO37): the objects themselves, else
 * copies of them when exactly one other item is equal. Items that are not found were removed, or cannot be told apart.
 */
export function locateForwarded(
  inputHistory: string | readonly AgentInputItem[],
  forwarded: readonly ForwardedItem[],
): ForwardedItem[] {
  if (typeof inputHistory === 'string' || forwarded.length === 0) return [];
  const places = new Map<AgentInputItem, number>();
  for (const [index, input] of inputHistory.entries()) if (!places.has(input)) places.set(input, index);
  const lost = forwarded.filter(({ input }) => !places.has(input));
  const copies = lost.length === 0 ? new Map<ForwardedItem, number>() : copiesOf(lost, inputHistory, forwarded);
  const located: ForwardedItem[] = [];
  for (const entry of forwarded) {
    const index = places.get(entry.input) ?? copies.get(entry);
    const input = index === undefined ? undefined : inputHistory[index];
    if (index !== undefined && input !== undefined) located.push({ item: entry.item, input, index });
  }
  return located.toSorted((a, b) => a.index - b.index);
}

/** @throws UserError */
export function checkMarkers(markers: HistoryMarkers | undefined): HistoryMarkers {
  if (markers === undefined) return DEFAULT_MARKERS;
  for (const side of ['start', 'end'] as const) {
    const marker: unknown = (markers as { start?: unknown; end?: unknown } | null)?.[side];
    if (typeof marker !== 'string' || marker.trim() === '' || marker.includes('\n'))
      throw new UserError(`Marker '${side}' of nested handoff history must be one line of text that is not empty.`);
  }
  return markers;
}

function patchOf(inputHistory: AgentInputItem[]): NestedHistory['patch'] {
  return { inputHistory, preHandoffItems: [], inputItems: [] };
}

function mapped(mapper: HandoffHistoryMapper, past: readonly AgentInputItem[], data: History): AgentInputItem[] {
  const transcript = [...past, ...wiresOf(data).map(({ wire }) => wire)];
  const next: unknown = mapper(transcript.map((item) => plainJson(item)) as unknown as AgentInputItem[]);
  checkItemList(next, 'The mapper of nested handoff history returned');
  return next as AgentInputItem[];
}

interface ItemWire {
  readonly item: RunItem;
  readonly wire: AgentInputItem;
  /** Of the turn that hands off. */
  readonly isNew: boolean;
}

/** Items of the run as the model sees them; waiting calls are none. */
function wiresOf({ preHandoffItems, newItems }: History): ItemWire[] {
  const wires: ItemWire[] = [];
  for (const [items, isNew] of [[preHandoffItems, false] as const, [newItems, true] as const]) {
    for (const item of items) {
      const wire = convertedItem(item);
      if (wire !== undefined) wires.push({ item, wire, isNew });
    }
  }
  return wires;
}

/** Of the conversation's past, everything is (TOOL-HO28). */
function isSummarised(wire: AgentInputItem, isNew: boolean): boolean {
  const { type, role, caller } = wire as unknown as Wire;
  if (typeof type === 'string' && SUMMARISED.has(type)) return true;
  if (isObject(caller) && caller['type'] === 'program') return true;
  return !isNew && role === 'assistant';
}

const SUMMARISED: ReadonlySet<string> = new Set([
  'function_call',
  'function_call_output',
  'reasoning',
  'program',
  'program_output',
]);

// ---- writing a summary

function summary(records: readonly AgentInputItem[], { start, end }: HistoryMarkers): AgentInputItem {
  const lines = records.map((item, index) => `${index + 1}. ${recordText(item)}`);
  if (lines.length === 0) lines.push(NO_RECORDS);
  return { role: 'assistant', content: [PREAMBLE, start, ...lines, end].join('\n') };
}

/** One line: `role (name): text` where that says it all, else JSON. */
function recordText(item: AgentInputItem): string {
  const { role, name, content } = item as unknown as Wire;
  if (typeof role === 'string' && role !== '') {
    const text = content ?? '';
    const head = typeof name === 'string' && name !== '' ? `${role} (${name})` : role;
    if (typeof text === 'string' && !/[\r\n]/.test(text)) return `${head}: ${text}`;
  }
  const { provider_data: _, ...told } = item as unknown as Wire;
  // What JSON cannot hold becomes text before it is written.
  return encodeJson(plainJson(told), { style: 'spaced', ascii: false });
}

// ---- reading summaries

/** The history with the records of each summary in its place. */
function flattened(history: readonly AgentInputItem[], markers: HistoryMarkers): AgentInputItem[] {
  return history.flatMap((item) => {
    const lines = summaryLines(item, markers);
    return lines === undefined ? [item] : readRecords(lines);
  });
}

/** The lines between the markers of a summary; `undefined` for every other item (TOOL-HO31). */
function summaryLines(item: AgentInputItem, markers: HistoryMarkers): string[] | undefined {
  const { role, content } = item as unknown as Wire;
  const text = typeof content === 'string' ? content : storedText(item as unknown as Wire);
  if (role !== 'assistant' || text === undefined) return undefined;
  const lines = text.split('\n');
  const [preamble, start] = lines;
  if (preamble !== PREAMBLE && preamble !== OLD_PREAMBLE) return undefined;
  const end = lines.at(-1);
  // A conversation may have been begun with the usual markers, before its program chose others.
  const isSummary = [markers, DEFAULT_MARKERS].some((pair) => start === pair.start && end === pair.end);
  return isSummary && lines.length > 2 ? lines.slice(2, -1) : undefined;
}

/**
 * The text of a message in the form that a stored run state gives to texts of the assistant: one part, nothing else. What
 * a model said has an id.
 */
function storedText({ id, type, content }: Wire): string | undefined {
  if (id !== undefined || type !== undefined || !Array.isArray(content) || content.length !== 1) return undefined;
  const part: unknown = content[0];
  if (!isObject(part) || part['type'] !== 'output_text' || Object.keys(part).length !== 2) return undefined;
  return typeof part['text'] === 'string' ? part['text'] : undefined;
}

/** What a record begins with once they are numbered. */
const NUMBER = /^\s*\d+\.\s*/;

/** Lines behind a numbered one belong to it; lines without a number before are records of their own (TOOL-HO32). */
function readRecords(lines: readonly string[]): AgentInputItem[] {
  const records: string[] = [];
  let numbered = false;
  for (const line of lines) {
    const hasNumber = NUMBER.test(line);
    const last = records.length - 1;
    if (hasNumber) records.push(line.replace(NUMBER, ''));
    else if (numbered) records[last] = `${records[last] ?? ''}\n${line}`;
    else records.push(line);
    numbered ||= hasNumber;
  }
  return records.map((record) => readRecord(record.trim())).filter((item) => item !== undefined);
}

const ROLES: ReadonlySet<string> = new Set(['user', 'assistant', 'system', 'developer']);

function readRecord(record: string): AgentInputItem | undefined {
  if (record.startsWith('{')) return withContent(parseObject(record));
  const colon = record.indexOf(':');
  const head = readHead(colon === -1 ? record : record.slice(0, colon));
  if (head === undefined || (colon === -1 && !ROLES.has(head.role))) return undefined;
  const text = colon === -1 ? '' : record.slice(colon + 1).trim();
  // `function_call: {…}` of older versions. What a person said may look like JSON and is text.
  const item = ROLES.has(head.role) ? undefined : parseObject(text);
  if (item !== undefined) return withContent({ ...item, type: head.role });
  return { ...head, content: text } as unknown as AgentInputItem;
}

/** `role` or `role (name)`. */
function readHead(text: string): { role: string; name?: string } | undefined {
  const [, role = '', name = ''] = /^(.*?)(?:\s*\((.*)\))?$/s.exec(text.trim()) ?? [];
  if (role === '') return undefined;
  return name === '' ? { role } : { role, name };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** A message always has content. */
function withContent(item: Record<string, unknown> | undefined): AgentInputItem | undefined {
  if (item === undefined) return undefined;
  const lacks = typeof item['role'] === 'string' && (item['content'] ?? undefined) === undefined;
  return (lacks ? { ...item, content: '' } : item) as unknown as AgentInputItem;
}

// ---- ownership

function copiesOf(
  lost: readonly ForwardedItem[],
  inputHistory: readonly AgentInputItem[],
  forwarded: readonly ForwardedItem[],
): Map<ForwardedItem, number> {
  const places = new Map<string, number[]>();
  for (const [index, input] of inputHistory.entries()) {
    const digest = itemDigest(input, 'normalized');
    places.set(digest, [...(places.get(digest) ?? []), index]);
  }
  const digests = forwarded.map(({ input }) => itemDigest(input, 'normalized'));
  const copies = new Map<ForwardedItem, number>();
  for (const entry of lost) {
    const digest = itemDigest(entry.input, 'normalized');
    const equal = places.get(digest) ?? [];
    const [place] = equal;
    const isOnlyOne = equal.length === 1 && digests.filter((other) => other === digest).length === 1;
    if (isOnlyOne && place !== undefined) copies.set(entry, place);
  }
  return copies;
}
