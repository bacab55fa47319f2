import { isPlainObject, setOwn } from '../base/json.ts';
import type { JsonValue } from '../items/wire.ts';

/**
 * A tool's value as plain JSON: what `output` of an output item is after a restore. Objects with `toJSON` use it (dates
 * become ISO strings), bytes say how many they are, other class instances, maps, sets, big integers and functions become
 * their text, and so does what throws while it is read; from the 150th level on the JSON text stands. Never throws.
 */
export function plainJson(value: unknown): JsonValue {
  return convert(value, [], isPlainObject) ?? null;
}

/** The same, but instances of classes that hold data are that data: what guardrails say about a value (STATE-356). */
export function plainData(value: unknown): JsonValue {
  return convert(value, [], (object) => isPlainObject(object) || Object.keys(object).length > 0) ?? null;
}

type IsData = (value: object) => boolean;

/** `parents` tells cycles from values that merely occur twice. */
function convert(value: unknown, parents: object[], isData: IsData): JsonValue | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'undefined':
      return undefined;
    case 'bigint':
    case 'function':
    case 'symbol':
      return text(value);
    case 'object':
      return value === null ? null : convertObject(value, parents, isData);
  }
}

function convertObject(value: object, parents: object[], isData: IsData): JsonValue | undefined {
  if (parents.includes(value)) return text(value);
  // A state that is nested deeper than 200 levels could never be read again.
  if (parents.length >= maxNesting) return jsonText(value);
  parents.push(value);
  try {
    // Also a Buffer, which would make a list of numbers of itself.
    if (value instanceof Uint8Array) return `[byte array (${value.byteLength} bytes)]`;
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === 'function') return convert(toJSON.call(value, ''), parents, isData);
    if (Array.isArray(value)) return value.map((member: unknown) => convert(member, parents, isData) ?? null);
    if (!isData(value)) return text(value);
    const result: Record<string, JsonValue> = {};
    for (const [key, member] of Object.entries(value)) {
      const converted = convert(member, parents, isData);
      if (converted !== undefined) setOwn(result, key, converted);
    }
    return result;
  } catch {
    return text(value);
  } finally {
    parents.pop();
  }
}

const maxNesting = 150;

function jsonText(value: object): string {
  try {
    return JSON.stringify(value) ?? text(value);
  } catch {
    return text(value);
  }
}

function text(value: unknown): string {
  try {
    return String(value);
  } catch {
    return '[object Object]';
  }
}
