import { cleanJson, preview } from './clean-json.ts';

const SUFFIX = '... [truncated]';

/** Bytes of a text in UTF-8. */
export function byteLength(text: string): number {
  // Most are far from any limit, and plain ASCII tells by its length alone.
  return new TextEncoder().encode(text).length;
}

/** Bytes of a JSON value as it is sent. */
function sizeOf(value: unknown): number {
  return byteLength(JSON.stringify(value) ?? '');
}

/**
 * A value whose JSON has at most `maxBytes`. Containers stay containers: the largest member is cut first, repeatedly, until
 * the whole fits. A value that fits is given back as it is.
 */
export function truncated(value: unknown, maxBytes: number): unknown {
  if (fits(value, maxBytes)) return value;
  const clean = cleanJson(value);
  return clean === undefined ? preview(value) : cut(clean, maxBytes);
}

function fits(value: unknown, maxBytes: number): boolean {
  if (typeof value === 'string' && value.length * 6 + 2 <= maxBytes) return true;
  try {
    return sizeOf(value) <= maxBytes;
  } catch {
    return false;
  }
}

function cut(value: unknown, maxBytes: number): unknown {
  if (sizeOf(value) <= maxBytes) return value;
  if (typeof value === 'string') return cutText(value, maxBytes);
  if (Array.isArray(value)) return cutList(value, maxBytes);
  return typeof value === 'object' && value !== null ? cutObject(value as Record<string, unknown>, maxBytes) : value;
}

/** As much of a text as fits with the mark behind it; whole characters. */
function cutText(text: string, maxBytes: number): string {
  const mark = SUFFIX.length + 2;
  if (mark > maxBytes) return '';
  const size = sizeOf(text);
  // In proportion first; where the rest is written longer than the beginning, what is too much goes in the same way.
  let kept = Math.floor((text.length * (maxBytes - mark)) / size);
  for (;;) {
    const shown = `${wholeStart(text, kept)}${SUFFIX}`;
    const excess = sizeOf(shown) - maxBytes;
    if (excess <= 0) return shown;
    kept = Math.max(0, kept - Math.max(1, Math.ceil((kept * excess) / (excess + maxBytes))));
  }
}

/** Cuts no pair of surrogates apart. */
function wholeStart(text: string, length: number): string {
  const code = length > 0 ? text.charCodeAt(length - 1) : 0;
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? length - 1 : length);
}

function cutObject(object: Record<string, unknown>, maxBytes: number): Record<string, unknown> {
  const members = new Map(Object.entries(object));
  let size = sizeOf(object);
  for (const [key, bytes] of largestFirst(members)) {
    if (size <= maxBytes) break;
    const budget = maxBytes - (size - bytes);
    const member = budget > 0 ? cut(members.get(key), budget) : undefined;
    const left = member === undefined ? budget + 1 : sizeOf(member);
    if (left > budget) {
      members.delete(key);
      size -= sizeOf(key) + 1 + bytes + (members.size > 0 ? 1 : 0);
    } else {
      members.set(key, member);
      size -= bytes - left;
    }
  }
  return Object.fromEntries(members);
}

/** What goes leaves a `null`, so that the others keep their places. */
function cutList(list: readonly unknown[], maxBytes: number): unknown[] {
  const members = new Map(list.entries());
  let size = sizeOf(list);
  for (const [index, bytes] of largestFirst(members)) {
    if (size <= maxBytes) break;
    const budget = maxBytes - (size - bytes);
    const member = budget > 0 ? cut(members.get(index), budget) : null;
    const left = sizeOf(member);
    const shown = left <= budget ? member : null;
    members.set(index, shown);
    size -= bytes - (shown === null ? NULL_BYTES : left);
  }
  // A list so long that its empty places are too much ends earlier.
  return size <= maxBytes
    ? [...members.values()]
    : [...members.values()].slice(0, Math.max(0, Math.floor((maxBytes - 1) / (NULL_BYTES + 1))));
}

const NULL_BYTES = 4;

/** Members by what they take, equal ones in their order. */
function largestFirst<K>(members: ReadonlyMap<K, unknown>): [key: K, bytes: number][] {
  const sizes = [...members].map(([key, member]): [K, number] => [key, sizeOf(member)]);
  return sizes.sort(([, a], [, b]) => b - a);
}
