import type { JsonObject, Part } from './parts.ts';
import { isObject, partsOf, truncated } from './parts.ts';

/** Members that say what a part is; whatever the limit, they stay whole. */
const STRUCTURE: ReadonlySet<string> = new Set([
  'role',
  'type',
  'id',
  'name',
  'modality',
  'mime_type',
  'finish_reason',
]);
const STRUCTURE_LENGTH = 128;

interface Message {
  readonly role: string;
  readonly parts: readonly Part[];
}

/** Turns what spans hold into JSON texts in the form of the conventions; each text in it has at most `limit` characters. */
export class Content {
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** `gen_ai.input.messages` of Responses items or Chat Completions messages. */
  messages(items: unknown): string | undefined {
    if (!Array.isArray(items) || items.length === 0) return undefined;
    return this.#json(items.map(messageOf).reduce<Message[]>(joined, []));
  }

  /** `gen_ai.output.messages` of one answer, which is one message. */
  answer(items: unknown, finishReason: string | undefined): string | undefined {
    if (!Array.isArray(items) || items.length === 0) return undefined;
    const parts = items.flatMap((item) => messageOf(item).parts);
    return this.#json([{ role: 'assistant', parts, ...(finishReason && { finish_reason: finishReason }) }]);
  }

  /** `gen_ai.output.messages` of a final output: text, or the value of an output schema. */
  finalOutput(value: unknown): string | undefined {
    if (value === undefined) return undefined;
    const content = typeof value === 'string' ? value : this.#json(value);
    return this.#json([{ role: 'assistant', parts: [{ type: 'text', content }] }]);
  }

  /** `gen_ai.system_instructions`. */
  instructions(text: string | undefined): string | undefined {
    return text === undefined ? undefined : this.#json([{ type: 'text', content: text }]);
  }

  /** Any value; a text that holds a JSON object or list is that. */
  value(value: unknown): string | undefined {
    return value === undefined || value === null ? undefined : this.#json(parsed(value));
  }

  /** Never throws: what has no JSON is left out. */
  #json(value: unknown): string | undefined {
    try {
      return JSON.stringify(value, (key, member: unknown) => {
        if (typeof member === 'bigint') return String(member);
        if (typeof member !== 'string' || (STRUCTURE.has(key) && member.length <= STRUCTURE_LENGTH)) return member;
        return truncated(member, this.#limit);
      });
    } catch {
      return undefined;
    }
  }
}

function messageOf(item: unknown): Message {
  if (!isObject(item)) return { role: 'user', parts: [{ type: 'text', content: String(item) }] };
  return { role: roleOf(item), parts: partsOf(item) };
}

/** Calls and reasoning of one answer stand in one message, as a model gives them. */
function joined(messages: Message[], next: Message): Message[] {
  const last = messages.at(-1);
  if (last?.role === 'assistant' && next.role === 'assistant')
    messages[messages.length - 1] = { role: 'assistant', parts: [...last.parts, ...next.parts] };
  else messages.push(next);
  return messages;
}

function roleOf(item: JsonObject): string {
  const { role, type } = item;
  if (role === 'developer') return 'system';
  if (typeof role === 'string') return role;
  if (typeof type !== 'string') return 'user';
  return type.endsWith('_output') || type === 'mcp_approval_response' ? 'tool' : 'assistant';
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/u.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
