import type { AgentInputItem } from '../items/items.ts';

/** Longer inline data says how long it is instead. */
const SHOWN_CHARACTERS = 1024;
type Part = Readonly<Record<string, unknown>>;

/** Items never change, so what is shown of one is found once. Only a cache. */
const shown = new WeakMap<object, object>();

/** Input as a span shows it: inline images and files above 1 KiB become `<image, n bytes>`. Without any, the list itself. */
export function tracedInput(input: readonly AgentInputItem[]): readonly AgentInputItem[] {
  let copy: AgentInputItem[] | undefined;
  for (const [index, item] of input.entries()) {
    let visible = shown.get(item);
    if (visible === undefined) {
      visible = withoutBulk(item as unknown as Part);
      shown.set(item, visible);
    }
    if (visible !== item) (copy ??= [...input])[index] = visible as AgentInputItem;
  }
  return copy ?? input;
}

function withoutBulk(item: Part): object {
  for (const member of ['content', 'output']) {
    const parts: unknown = item[member];
    if (!Array.isArray(parts)) continue;
    const visible = parts.map(tracedPart);
    if (visible.some((part, index) => part !== parts[index])) return { ...item, [member]: visible };
  }
  return item;
}

/** A content part as a span shows it. */
export function tracedPart(part: unknown): unknown {
  if (typeof part !== 'object' || part === null) return part;
  for (const [member, kind] of [
    ['image_url', 'image'],
    ['file_data', 'file'],
  ] as const) {
    const data = (part as Part)[member];
    if (typeof data !== 'string' || data.length <= SHOWN_CHARACTERS) continue;
    if (member === 'image_url' && !data.startsWith('data:')) continue;
    const base64 = data.slice(data.indexOf(',') + 1);
    return { ...part, [member]: `<${kind}, ${Math.floor((base64.replace(/=+$/u, '').length * 3) / 4)} bytes>` };
  }
  return part;
}
