import type { AgentInputItem } from '../items/items.ts';

/** Longer inline data says how long it is instead. */
const SHOWN_CHARACTERS = 1024;
type Part = Readonly<Record<string, unknown>>;

/** Items never change, so what stands for one is made once. Only a cache. */
const shown = new WeakMap<object, object>();

/** Input as a span shows it: inline images and files above 1 KiB become `<image, n bytes>`. Without any, the list itself. */
export function tracedInput(input: readonly AgentInputItem[]): readonly AgentInputItem[] {
  let copy: AgentInputItem[] | undefined;
  for (const [index, item] of input.entries()) {
    const member = bulkyMember(item as unknown as Part);
    if (member === undefined) continue;
    const known = shown.get(item);
    const visible = known ?? withoutBulk(item as unknown as Part, member);
    if (known === undefined) shown.set(item, visible);
    (copy ??= [...input])[index] = visible as AgentInputItem;
  }
  return copy ?? input;
}

/** Where the parts are one of which is too long to be shown. */
function bulkyMember({ content, output }: Part): 'content' | 'output' | undefined {
  if (Array.isArray(content) && content.some(bulkOf)) return 'content';
  return Array.isArray(output) && output.some(bulkOf) ? 'output' : undefined;
}

function withoutBulk(item: Part, member: 'content' | 'output'): object {
  return { ...item, [member]: (item[member] as readonly unknown[]).map(tracedPart) };
}

/** A content part as a span shows it. */
export function tracedPart(part: unknown): unknown {
  const member = bulkOf(part);
  if (member === undefined) return part;
  const data = (part as Part)[member] as string;
  const base64 = data.slice(data.indexOf(',') + 1);
  const bytes = Math.floor((base64.replace(/=+$/u, '').length * 3) / 4);
  return { ...(part as Part), [member]: `<${member === 'image_url' ? 'image' : 'file'}, ${bytes} bytes>` };
}

/** The member with inline data that is too long to be shown. */
function bulkOf(part: unknown): 'image_url' | 'file_data' | undefined {
  if (typeof part !== 'object' || part === null) return undefined;
  const { image_url: image, file_data: file } = part as Part;
  if (isLong(image) && image.startsWith('data:')) return 'image_url';
  return isLong(file) ? 'file_data' : undefined;
}

function isLong(data: unknown): data is string {
  return typeof data === 'string' && data.length > SHOWN_CHARACTERS;
}
