import { isPlainObject } from '../base/json.ts';

const UNSERIALIZABLE = '<unserializable>';
/** Far below what overflows the stack of `JSON.stringify`. */
const MAX_DEPTH = 1000;

/**
 * A record that `JSON.stringify` takes: what it would throw on is replaced by `"<unserializable>"`, as near to the fault
 * as its two upper levels allow (TRACE-S17). Those levels are new objects, so that a changed record changes no span
 * (TRACE-M12); the rest is shared.
 */
export function jsonSafe(record: Readonly<Record<string, unknown>>, levels: number = 2): Record<string, unknown> {
  try {
    if (isPlainJson(record, 0)) return copy(record, levels);
  } catch {
    // A getter that throws.
  }
  return safeCopy(record, levels);
}

/** Nearly all records are: then nothing has to be looked for. `false` also for what only a closer look can tell. */
function isPlainJson(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'bigint';
  if (depth > MAX_DEPTH || typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  if (Array.isArray(value)) {
    for (const member of value as unknown[]) if (!isPlainJson(member, depth + 1)) return false;
    return true;
  }
  // With the members of prototypes, which need the closer look if they are no JSON.
  for (const key in value) if (!isPlainJson((value as Readonly<Record<string, unknown>>)[key], depth + 1)) return false;
  return true;
}

function copy(record: Readonly<Record<string, unknown>>, levels: number): Record<string, unknown> {
  const made = { ...record };
  if (levels < 2) return made;
  for (const key in made) {
    const value = made[key];
    if (Array.isArray(value)) made[key] = [...(value as unknown[])];
    else if (isPlainObject(value)) made[key] = copy(value, levels - 1);
  }
  return made;
}

function safeCopy(record: Readonly<Record<string, unknown>>, levels: number): Record<string, unknown> {
  const safe: Record<string, unknown> = {};
  for (const key of Object.keys(record)) {
    try {
      safe[key] = safeValue(record[key], levels - 1);
    } catch {
      // A getter that throws.
      safe[key] = UNSERIALIZABLE;
    }
  }
  return safe;
}

function safeValue(value: unknown, levels: number): unknown {
  if (typeof value === 'bigint') return UNSERIALIZABLE;
  if (typeof value !== 'object' || value === null) return value;
  if (levels > 0 && isPlain(value)) return safeCopy(value, levels - 1);
  if (levels > 0 && Array.isArray(value))
    return value.map((member) => (serializable(member, []) ? member : UNSERIALIZABLE));
  return serializable(value, []) ? value : UNSERIALIZABLE;
}

function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  return isPlainObject(value) && typeof value['toJSON'] !== 'function';
}

/** Walks instead of writing: a copy of a long prompt is not needed to know that it is JSON. */
function serializable(value: unknown, path: object[]): boolean {
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (path.length > MAX_DEPTH || path.includes(value)) return false;
  path.push(value);
  try {
    return membersOf(value).every((member) => serializable(member, path));
  } catch {
    return false;
  } finally {
    path.pop();
  }
}

function membersOf(value: object): readonly unknown[] {
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return [Reflect.apply(toJSON, value, [''])];
  return Array.isArray(value) ? value : Object.values(value);
}
