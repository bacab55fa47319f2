import type { FunctionCallOutput } from '../items/wire.ts';
import { isObject } from '../base/json.ts';
import { dataUrl, fileMembers, imageMembers } from './media.ts';
import { toolOutputText } from './tool-output.ts';

/** A tool's value as it goes back to the model. */
export type ToolOutputOnWire = FunctionCallOutput['output'];
type Part = Exclude<ToolOutputOnWire, string>[number];

/**
 * A tool's value as it goes back to the model: parts and lists that are nothing but parts as wire content, everything else
 * as text. What is given back is new; the tool may go on changing its value. Never throws.
 */
export function toolOutputOnWire(value: unknown): ToolOutputOnWire {
  // Anything of a user may throw while it is read; then it is no part.
  try {
    return partsOf(value) ?? toolOutputText(value);
  } catch {
    return toolOutputText(value);
  }
}

function partsOf(value: unknown): Part[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!Array.isArray(value)) {
    const part = partOf(value);
    return part && [part];
  }
  if (value.length === 0) return undefined;
  const parts: Part[] = [];
  for (const member of value as unknown[]) {
    const part = partOf(member);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return parts;
}

/** `undefined`: an object that only looks like a part is none of it. */
function partOf(value: unknown): Part | undefined {
  if (!isObject(value)) return undefined;
  switch (value['type']) {
    case 'text':
      return typeof value['text'] === 'string' ? { type: 'input_text', text: value['text'] } : undefined;
    case 'image':
      return imagePart(value);
    case 'file':
      return filePart(value);
    default:
      return undefined;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** Members of one kind: given and right, not given, or wrong. */
class Texts {
  readonly found: Record<string, string> = {};
  wrong = false;

  constructor(value: Members, names: readonly (readonly [wire: string, ...spellings: string[]])[]) {
    for (const [wire, ...spellings] of names) for (const name of [wire, ...spellings]) this.add(wire, value[name]);
  }

  /** The first one given counts. */
  add(wire: string, text: unknown): void {
    if (text === undefined || text === null) return;
    if (typeof text !== 'string') this.wrong = true;
    else this.found[wire] ??= text;
  }

  has(...names: readonly string[]): boolean {
    return !this.wrong && names.some((name) => name in this.found);
  }
}

const details: readonly unknown[] = ['low', 'high', 'auto'];

function imagePart(value: Members): Part | undefined {
  const texts = new Texts(value, [
    ['image_url', 'imageUrl'],
    ['file_id', 'fileId'],
  ]);
  const image = source(value['image'], 'image/png');
  if (image === undefined) return undefined;
  const members = imageMembers(image);
  texts.add('image_url', members.image_url);
  texts.add('file_id', members.file_id);
  texts.add('detail', value['detail']);
  const { detail } = texts.found;
  if (!texts.has('image_url', 'file_id') || (detail !== undefined && !details.includes(detail))) return undefined;
  return { type: 'input_image', ...texts.found };
}

function filePart(value: Members): Part | undefined {
  const texts = new Texts(value, [
    ['file_data', 'fileData'],
    ['file_url', 'fileUrl'],
    ['file_id', 'fileId'],
  ]);
  const file = source(value['file'], 'application/octet-stream');
  if (file === undefined) return undefined;
  const members = fileMembers(file);
  texts.add('file_data', members.file_data);
  texts.add('file_url', members.file_url);
  texts.add('file_id', members.file_id);
  if (!texts.has('file_data', 'file_url', 'file_id')) return undefined;
  if (isObject(value['file'])) texts.add('filename', value['file']['filename']);
  texts.add('filename', value['filename']);
  return texts.wrong ? undefined : { type: 'input_file', ...texts.found };
}

/** The member `image` or `file` as `@openai/agents` has it; `undefined`: not one of its forms. */
function source(given: unknown, defaultType: string): string | { fileId: string } | null | undefined {
  if (given === undefined || given === null) return null;
  if (typeof given === 'string') return given;
  if (!isObject(given)) return undefined;
  const { url, data, mediaType, fileId, id } = given;
  if (typeof url === 'string') return url;
  if (typeof data === 'string' || data instanceof Uint8Array)
    return dataUrl(data, typeof mediaType === 'string' ? mediaType : defaultType);
  const named = fileId ?? id;
  return typeof named === 'string' ? { fileId: named } : undefined;
}
