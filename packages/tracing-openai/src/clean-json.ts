/** Values of members to leave out. */
const DROPPED: unique symbol = Symbol('dropped');

/** Below what overflows the stack of `JSON.stringify`. */
const MAX_DEPTH = 500;

/**
 * Whether `JSON.stringify` would throw on a value or change what it says: BigInt, `NaN`, infinities, what goes round or is
 * too deep. Binary data, maps and sets count where `strict`.
 */
export function needsCleaning(value: unknown, strict: boolean, depth: number = 0): boolean {
  if (typeof value === 'number') return !Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint';
  if (depth > MAX_DEPTH) return true;
  if (Array.isArray(value)) {
    for (const member of value as unknown[]) if (needsCleaning(member, strict, depth + 1)) return true;
    return false;
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  if (strict && isOpaque(value)) return true;
  // With the members of prototypes, which JSON leaves out: cleaning does no harm where it is not needed.
  for (const key in value) if (needsCleaning((value as Record<string, unknown>)[key], strict, depth + 1)) return true;
  return false;
}

/**
 * A copy that is JSON throughout. Left out is what JSON cannot say: `NaN` and infinities, functions, symbols, what goes round
 * or is too deep. BigInts become texts, binary data, maps and sets a note of their size, lone surrogates `?`.
 *
 * @returns `undefined` when nothing is left
 */
export function cleanJson(value: unknown): unknown {
  const cleaned = clean(value, []);
  return cleaned === DROPPED ? undefined : cleaned;
}

/** What stands for a value that JSON has no form for. */
export function preview(value: unknown): Record<string, unknown> {
  const type = typeName(value);
  const length = lengthOf(value);
  const size = length === undefined ? '' : ` len=${length}`;
  return { truncated: true, original_type: type, preview: `<${type}${size} truncated>` };
}

function clean(value: unknown, path: readonly object[]): unknown {
  switch (typeof value) {
    case 'string':
      return wellFormed(value);
    case 'number':
      return Number.isFinite(value) ? value : DROPPED;
    case 'boolean':
      return value;
    case 'bigint':
      return String(value);
    case 'object':
      return value === null ? null : cleanObject(value, path);
    default:
      return DROPPED;
  }
}

function cleanObject(value: object, path: readonly object[]): unknown {
  if (path.length > MAX_DEPTH || path.includes(value)) return DROPPED;
  const inner = [...path, value];
  try {
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === 'function') return clean(Reflect.apply(toJSON, value, ['']), inner);
  } catch {
    return DROPPED;
  }
  if (isOpaque(value)) return preview(value);
  if (Array.isArray(value))
    return (value as unknown[]).map((member) => clean(member, inner)).filter((member) => member !== DROPPED);
  const members = Object.keys(value).map((key) => [wellFormed(key), clean(memberOf(value, key), inner)] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== DROPPED));
}

function memberOf(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    // A getter that throws.
    return undefined;
  }
}

/** `JSON.stringify` would write their members, or none. */
function isOpaque(value: object): boolean {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof Map || value instanceof Set;
}

export function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '?');
}

function typeName(value: unknown): string {
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.prototype.toString.call(value).slice(8, -1);
}

function lengthOf(value: unknown): number | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return value.length;
  if (value instanceof Map || value instanceof Set) return value.size;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  return Object.keys(value).length;
}
