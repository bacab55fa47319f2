import type { JsonSchema } from './schema.ts';
import { UserError } from '../base/errors.ts';
import { isObject, isPlainObject, setOwn } from '../base/json.ts';

/** A JSON object that we own and may change. */
export type Json = Record<string, unknown>;

/** No schema that a model can use comes near; what does is hostile or cyclic. */
const maxDepth = 1000;
const maxNodes = 100_000;

/** A deep copy of a schema document. @throws UserError for what is no JSON (schemas of libraries), cyclic, or too large to be a schema */
export function copySchema(schema: JsonSchema, where: string): Json {
  let nodes = 0;
  const copy = (value: unknown, depth: number, key: string): unknown => {
    if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint')
      throw new UserError(`${where}: a JSON Schema is JSON, it cannot hold a ${typeof value}.`);
    if (typeof value !== 'object' || value === null) return value;
    // Documents that a library made have the mark too; they are plain.
    if ('~standard' in value && !isPlainObject(value))
      throw new UserError(
        `${where}: \`${key}\` is a schema of a library, and a JSON Schema holds none. Make all of it with the library, as by z.object().`,
      );
    if (depth > maxDepth) throw new UserError(`${where}: the schema is too deeply nested.`);
    if (++nodes > maxNodes) throw new UserError(`${where}: the schema is too large.`);
    if (Array.isArray(value)) return value.map((entry, index) => copy(entry, depth + 1, String(index)));
    const result: Json = {};
    for (const [name, member] of Object.entries(value))
      if (member !== undefined && name !== '~standard') setOwn(result, name, copy(member, depth + 1, name));
    return result;
  };
  return copy(schema, 0, '(root)') as Json;
}

export function freezeDeep<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) freezeDeep(member);
  return value;
}

/** Equality of JSON: the order of keys does not count, `1` is not `true`. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual((a as Json)[key], (b as Json)[key]));
}

/** One subschema of a schema, and how a path names the way to it. */
export interface Part {
  readonly step: string;
  readonly schema: unknown;
}

/** Keywords by what they hold: one schema, a list of them, or a map by names. */
const keywords = {
  map: ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'],
  list: ['anyOf', 'oneOf', 'allOf', 'prefixItems'],
  'one or list': ['items'],
  one: [
    'additionalProperties',
    'additionalItems',
    'unevaluatedItems',
    'unevaluatedProperties',
    'contains',
    'propertyNames',
    'not',
    'if',
    'then',
    'else',
  ],
};
const holders: ReadonlyMap<string, string> = new Map(
  Object.entries(keywords).flatMap(([kind, names]) => names.map((name) => [name, kind] as const)),
);

/** Where strict mode goes; the other keywords it does not know. */
const strictKeywords = new Set([
  'properties',
  'items',
  'anyOf',
  'oneOf',
  'allOf',
  'prefixItems',
  '$defs',
  'definitions',
]);

/** The subschemas of one schema object; data (`enum`, `const`, `default`, `examples`) is none. */
export function partsOf(node: Json, only?: 'strict'): Part[] {
  const parts: Part[] = [];
  for (const keyword of Object.keys(node)) {
    const kind = holders.get(keyword);
    if (kind === undefined || (only && !strictKeywords.has(keyword))) continue;
    const value = node[keyword];
    if (kind === 'map') {
      if (isObject(value))
        for (const key of Object.keys(value)) parts.push({ step: stepTo(keyword, key), schema: value[key] });
    } else if (kind !== 'one' && Array.isArray(value)) {
      value.forEach((schema, key) => parts.push({ step: stepTo(keyword, key), schema }));
    } else if (kind !== 'list') {
      parts.push({ step: stepTo(keyword), schema: value });
    }
  }
  return parts;
}

function stepTo(keyword: string, key?: string | number): string {
  if (keyword === 'properties') return String(key);
  if (keyword === 'additionalProperties') return '*';
  if (key === undefined) return keyword === 'items' ? '[]' : keyword;
  if (typeof key === 'string') return `${keyword}.${key}`;
  return keyword === 'items' || keyword === 'prefixItems' ? `[${key}]` : `${keyword}[${key}]`;
}

/** `orders` + `[]` + `id` → `orders[].id`. */
export function joinPath(path: string, step: string): string {
  return path === '' ? step : step.startsWith('[') ? path + step : `${path}.${step}`;
}

export const showPath = (path: string): string => path || '(root)';

/** The first subschema, the root included, for which `test` holds, and its path. */
export function findPart(
  root: Json,
  test: (node: Json) => boolean,
): { readonly node: Json; readonly path: string } | undefined {
  const queue: { node: Json; path: string }[] = [{ node: root, path: '' }];
  for (let entry = queue.pop(); entry; entry = queue.pop()) {
    if (test(entry.node)) return entry;
    const { path } = entry;
    for (const part of partsOf(entry.node).toReversed())
      if (isObject(part.schema)) queue.push({ node: part.schema, path: joinPath(path, part.step) });
  }
  return undefined;
}

/** What a local reference means: percent-decoded first, then split, then `~1` and `~0`. `undefined`: nothing is there. */
export function resolvePointer(root: Json, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(2));
  } catch {
    return undefined;
  }
  let at: unknown = root;
  for (const token of pointer.split('/')) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Json)[key];
  }
  return at;
}
