import { json } from './situation.ts';
import type { MadeCall, OfflineTool, Story } from './situation.ts';
import { contentWords, humanName, overlap, READ_WORDS, wordsOf } from './words.ts';

/** The text that ends a request: from results, else from what was said before, else what the agent can do. */
export function answerText(story: Story, tools: readonly OfflineTool[]): string {
  if (story.calls.length > 0) return story.calls.map(sentence).join(' ');
  const words = contentWords(story.request);
  const similar = story.earlier
    .map((text) => ({ text, score: overlap(words, contentWords(text)) }))
    .toSorted((a, b) => b.score - a.score)[0];
  if (similar !== undefined && similar.score >= 0.5) return `You said earlier: "${similar.text}"`;
  if (tools.length === 0)
    return `I run offline, without a model and without tools, so I can only repeat: "${story.request}"`;
  return `I can help with: ${tools.map(ability).join('; ')}. What do you need?`;
}

function ability(tool: OfflineTool): string {
  const description = tool.description.split(/(?<=[.!?])\s/u)[0]?.replace(/[.!?]+$/u, '');
  return description
    ? `${humanName(tool.name)} (${description.charAt(0).toLowerCase()}${description.slice(1)})`
    : humanName(tool.name);
}

const FAILED = /^\s*(?:an )?error|not approved|rejected|denied|declined/iu;

/** Whether a call failed, or found nothing. */
export function cameToNothing({ output = '' }: MadeCall): boolean {
  const value = json(output);
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0 || 'error' in value;
  if (value === null || output.trim() === '' || FAILED.test(output)) return true;
  return /\b(?:no such|not found|no \w+ (?:found|exists?)|there is no|(?:does not|doesn't) exist|unknown)\b/iu.test(
    output,
  );
}

function sentence(call: MadeCall): string {
  const what = humanName(call.name);
  if (call.output === undefined || call.output === '') return `Done: ${what}.`;
  if (FAILED.test(call.output)) return ended(`I could not ${what}: ${call.output}`);
  const value = json(call.output);
  if (value === undefined) return ended(call.output);
  if (typeof value !== 'object' || value === null) return ended(`${what}: ${call.output}`);
  const told = ended(describe(value));
  if (!wordsOf(call.name).some((word) => READ_WORDS.has(word))) return `Done (${what}): ${told}`;
  return Array.isArray(value) ? capital(told) : about(what, value as Record<string, unknown>);
}

/** `Order 1042: status shipped, …` */
function about(what: string, value: Readonly<Record<string, unknown>>): string {
  const id = Object.keys(value).find((key) => /^(?:id|number)$|[a-z](?:Id|_id|Number)$/u.test(key));
  if (id === undefined) return capital(ended(describe(value)));
  const { [id]: shown, ...rest } = value;
  return ended(`${capital(what.split(' ').at(-1) ?? what)} ${String(shown)}: ${describe(rest)}`);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `{ id: 7, status: 'shipped' }` → `id 7, status shipped`. */
export function describe(value: unknown): string {
  if (Array.isArray(value)) {
    const shown = value.slice(0, 5).map(describe).join('; ');
    return value.length === 0 ? 'nothing was found' : `${value.length} found: ${shown}${value.length > 5 ? '; …' : ''}`;
  }
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'none';
  return Object.entries(value)
    .filter(([, member]) => member !== null && member !== undefined && member !== '')
    .map(([key, member]) =>
      member === true
        ? humanName(key)
        : member === false
          ? `not ${humanName(key)}`
          : `${humanName(key)} ${describe(member)}`,
    )
    .join(', ');
}

function ended(text: string): string {
  const trimmed = text.trim();
  return /[.!?…]$/u.test(trimmed) ? trimmed : `${trimmed}.`;
}
