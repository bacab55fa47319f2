import { answerText, cameToNothing } from './answer.ts';
import { fillObject, propertiesOf } from './fill.ts';
import { fillOutput } from './output.ts';
import { ASK, jsonObject, readStory } from './situation.ts';
import type { OfflineTool, Situation, Story } from './situation.ts';
import { ACT_WORDS, contentWords, humanName, meanings, overlap, READ_WORDS, wordsOf } from './words.ts';

export type Plan =
  | { readonly type: 'calls'; readonly calls: readonly PlannedCall[] }
  | { readonly type: 'text'; readonly text: string };
export interface PlannedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** What the offline model does next; pure. Each tool is called at most once per request, so every run ends. */
export function plan(situation: Situation): Plan {
  const story = readStory(situation.items);
  const called = new Set(story.calls.map((call) => call.name));
  const tools = choosable(situation);
  const open = tools.filter((tool) => !called.has(tool.name));
  const wanted = pick(tools, story, situation.toolChoice).filter((tool) => open.includes(tool));
  const { ready, missing } = fillAll(wanted, story);
  const handoff = wanted.length === 0 ? pickHandoff(situation, story) : undefined;
  if (handoff) return { type: 'calls', calls: [handoff] };
  if (ready.length > 0) return { type: 'calls', calls: situation.parallel ? ready : ready.slice(0, 1) };
  if (missing.length > 0) {
    const first = gather(open, wanted, story);
    if (first !== undefined) return { type: 'calls', calls: [first] };
    // What was looked up and is not there needs no more words of the person: they are told.
    if (situation.outputSchema === undefined && !story.calls.some(cameToNothing))
      return { type: 'text', text: `${ASK}: ${[...new Set(missing.map(humanName))].join(', ')}.` };
  }
  const text = answerText(story, situation.tools);
  return {
    type: 'text',
    text: situation.outputSchema === undefined ? text : fillOutput(situation.outputSchema, story, text),
  };
}

function choosable({ tools, toolChoice }: Situation): readonly OfflineTool[] {
  if (toolChoice === 'none') return [];
  const name = namedChoice(toolChoice);
  if (name === undefined || name === null || name === 'auto' || name === 'required') return tools;
  return tools.filter((tool) => tool.name === name);
}

function namedChoice(toolChoice: unknown): unknown {
  return typeof toolChoice === 'object' && toolChoice !== null ? (toolChoice as { name?: unknown }).name : toolChoice;
}

/** The tools that the request means. A forced choice takes the best one, as long as nothing was called. */
function pick(tools: readonly OfflineTool[], story: Story, toolChoice: unknown): readonly OfflineTool[] {
  const forced = toolChoice !== undefined && toolChoice !== null && toolChoice !== 'auto' && story.calls.length === 0;
  const scored = tools
    .map((tool) => ({ tool, score: score(tool, tools, story.request) }))
    .toSorted((a, b) => b.score - a.score);
  const best = scored[0];
  if (best === undefined) return [];
  const fitting = suitable(
    scored.filter((entry) => entry.score >= Math.max(0.5, best.score * 0.7)).map((entry) => entry.tool),
    story.request,
  );
  return fitting.length === 0 && forced ? [best.tool] : fitting;
}

/** Words that the name and the description of every handoff have. */
const OF_HANDOFFS: ReadonlySet<string> = new Set(wordsOf('transfer handoff to the agent handle request'));

/** The agent whose name and description fit the request best, where no tool does; once per request, so that every run ends. */
function pickHandoff({ handoffs, toolChoice }: Situation, story: Story): PlannedCall | undefined {
  if (story.handedOff || toolChoice === 'none') return undefined;
  const forced = handoffs.find(({ name }) => name === namedChoice(toolChoice));
  const request = new Set([...contentWords(story.request)].flatMap(meanings));
  const [best] = handoffs
    .map((handoff) => {
      const words = wordsOf(`${handoff.name} ${handoff.description}`).filter((word) => !OF_HANDOFFS.has(word));
      return { handoff, score: overlap(request, new Set(words)) };
    })
    .toSorted((a, b) => b.score - a.score);
  const chosen = forced ?? (best !== undefined && best.score > 0 ? best.handoff : undefined);
  return chosen && fillAll([chosen], story).ready[0];
}

/** Where something is to be done, showing it is not meant, unless it is asked for as well. */
function suitable(tools: readonly OfflineTool[], request: string): readonly OfflineTool[] {
  const words = wordsOf(request);
  if (words.some((word) => READ_WORDS.has(word))) return tools;
  const acting = tools.filter((tool) => !reads(tool));
  return acting.length > 0 || words.some((word) => ACT_WORDS.has(word)) ? acting : tools;
}

function reads(tool: OfflineTool): boolean {
  return wordsOf(tool.name).some((word) => READ_WORDS.has(word));
}

/**
 * How well the words of a request fit a tool. Words that few tools have count more; a tool that does something needs its
 * verb in the request, for one that only shows something a question is enough.
 */
function score(tool: OfflineTool, tools: readonly OfflineTool[], request: string): number {
  const words = new Set([...contentWords(request)].flatMap(meanings));
  const name = wordsOf(tool.name);
  if (!reads(tool) && !words.has(name[0] ?? '')) return 0;
  let sum = 0;
  for (const word of new Set(name)) if (words.has(word)) sum += 2 * rarity(word, tools);
  const others = contentWords([tool.description, ...Object.keys(propertiesOf(tool.parameters))].join(' '));
  for (const word of others) if (words.has(word) && !name.includes(word)) sum += 0.5 * rarity(word, tools);
  return reads(tool) && sum > 0 && wordsOf(request).some((word) => READ_WORDS.has(word)) ? sum + 0.5 : sum;
}

/** 1 for a word of one tool, less for words of many. */
function rarity(word: string, tools: readonly OfflineTool[]): number {
  const having = tools.filter((tool) => wordsOf(`${tool.name} ${tool.description}`).includes(word)).length;
  return 1 / Math.max(1, having);
}

function fillAll(tools: readonly OfflineTool[], story: Story): { ready: PlannedCall[]; missing: string[] } {
  const ready: PlannedCall[] = [];
  const missing: string[] = [];
  for (const tool of tools) {
    const filled = fillObject(tool.parameters, {
      text: story.request,
      topic: new Set(wordsOf(tool.name).flatMap(meanings)),
      known: knownOf(story),
    });
    if (filled.missing.length === 0) ready.push({ name: tool.name, args: filled.value });
    else missing.push(...filled.missing);
  }
  return { ready, missing };
}

/** A tool that only shows things, and may show what is missing. */
function gather(open: readonly OfflineTool[], wanted: readonly OfflineTool[], story: Story): PlannedCall | undefined {
  const subject = new Set(wanted.flatMap((tool) => wordsOf(tool.name).slice(1)));
  const readers = open.filter(
    (tool) => !wanted.includes(tool) && reads(tool) && overlap(new Set(wordsOf(tool.name)), subject) > 0,
  );
  return fillAll(readers, story).ready[0];
}

/** Values seen before: results and arguments of this request, then those of the conversation, what the user said last first. */
function knownOf(story: Story): Readonly<Record<string, unknown>>[] {
  return [...story.calls.toReversed(), ...story.oldCalls].flatMap((call) => {
    const output = jsonObject(call.output ?? '');
    return output === undefined ? [call.args] : [output, call.args];
  });
}
