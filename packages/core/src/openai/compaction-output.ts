import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { toInputItem } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';

type Wire = Readonly<Record<string, unknown>>;

/** Models that compact: GPT, the o series, and fine-tunes of them, whoever serves them. @throws UserError */
export function checkCompactionModel(model: unknown): void {
  const name = typeof model === 'string' ? model.slice(model.lastIndexOf('/') + 1) : '';
  if (/^(?:ft:)?(?:gpt-|o\d)/u.test(name)) return;
  const given = typeof model === 'string' ? `'${model}'` : kindOf(model);
  throw new UserError(
    `Option 'model' of OpenAICompactionSession must name an OpenAI model that compacts (gpt-…, o…, or a fine-tune of one), not ${given}.`,
  );
}

/**
 * What the service made of a history, as it is stored and sent again (SESS-314). Looked at before anything is replaced.
 *
 * @throws ModelBehaviorError
 */
export function compactedItems(output: unknown): AgentInputItem[] {
  if (!Array.isArray(output) || !output.every(isObject) || output.length === 0)
    throw new ModelBehaviorError('The compaction gave no items; the history is as it was.');
  const hasReasoning = output.some(({ type }) => type === 'reasoning');
  return output.map((item) => {
    const plain = toInputItem(item) as unknown as Wire;
    if (plain['role'] === 'user') return userMessage(plain);
    if (plain['role'] !== 'assistant' || hasReasoning) return plain as unknown as AgentInputItem;
    const { id: _, ...message } = plain;
    return message as unknown as AgentInputItem;
  });
}

function userMessage(message: Wire): AgentInputItem {
  const { content } = message;
  const parts = Array.isArray(content)
    ? content.map((part: unknown) => (isObject(part) ? inputPart(part) : part))
    : content;
  return { ...message, content: parts } as unknown as AgentInputItem;
}

/** Files and images come back with more members than the service takes. */
function inputPart(part: Wire): Wire {
  if (part['type'] === 'input_image') return reduced(part, ['image_url', 'file_id'], ['detail']);
  if (part['type'] === 'input_file') return reduced(part, ['file_data', 'file_url', 'file_id'], ['filename', 'detail']);
  return part;
}

function reduced(part: Wire, sources: readonly string[], extras: readonly string[]): Wire {
  const source = sources.find((key) => typeof part[key] === 'string' && part[key] !== '');
  if (source === undefined)
    throw new ModelBehaviorError(
      `The compaction gave a part ${String(part['type'])} with none of ${sources.join(', ')}; the history is as it was.`,
    );
  const kept = extras.filter((key) => part[key] !== undefined && part[key] !== null);
  return { type: part['type'], [source]: part[source], ...Object.fromEntries(kept.map((key) => [key, part[key]])) };
}
