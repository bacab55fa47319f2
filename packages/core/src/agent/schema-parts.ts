import type { JsonSchema } from './schema.ts';
import { UserError } from '../base/errors.ts';

/** A JSON object that we own and may change. */
export type Json = Record<string, unknown>;

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Sets an own member, also one that is named `__proto__`. */
export function setOwn(target: Json, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
  else target[key] = value;
}

/** No schema that a model can use comes near; what does is hostile or cyclic. */
const maxDepth = 1000;
const maxNodes = 100_000;

/** A deep copy of a schema document. @throws UserError for what is no JSON, cyclic, or too large to be a schema */
export function copySchema(schema: JsonSchema, where: string): Json {
  let nodes = 0;
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint')
      throw new UserError(`${where}: a JSON Schema is JSON, it cannot hold a ${typeof value}.`);
    if (typeof value !== 'object' || value === null) return value;
    if (depth > maxDepth) throw new UserError(`${where}: the schema is too deeply nested.`);
    if (++nodes > maxNodes) throw new UserError(`${where}: the schema is too large.`);
    if (Array.isArray(value)) return value.map((entry) => copy(entry, depth + 1));
    const result: Json = {};
    for (const [key, member] of Object.entries(value))
      if (member !== undefined && key !== '~standard') setOwn(result, key, copy(member, depth + 1));
    return result;
  };
  return copy(schema, 0) as Json;
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

/** One subschema of a schema: `holder[key]`, and how a path names the way to it. */
export interface Part {
  readonly holder: Json | unknown[];
  readonly key: string | number;
  readonly step: string;
  readonly schema: unknown;
}

const single = [
  'items',
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
];
const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'];
const maps = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'];
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

const stepOf: Record<string, (key: string | number) => string> = {
  properties: (key) => String(key),
  items: (key) => (typeof key === 'number' ? `[${key}]` : '[]'),
  prefixItems: (key) => `[${key}]`,
  additionalProperties: () => '*',
};

/** The subschemas of one schema object; data (`enum`, `const`, `default`, `examples`) is none. */
export function partsOf(node: Json, only?: 'strict'): Part[] {
  const parts: Part[] = [];
  const add = (keyword: string, holder: Part['holder'], key: string | number, schema: unknown): void => {
    const step =
      stepOf[keyword]?.(key) ??
      (holder === node ? keyword : typeof key === 'number' ? `${keyword}[${key}]` : `${keyword}.${key}`);
    parts.push({ holder, key, step, schema });
  };
  const wanted = (keyword: string): boolean =>
    Object.hasOwn(node, keyword) && (only === undefined || strictKeywords.has(keyword));
  for (const keyword of maps) {
    const map = node[keyword];
    if (wanted(keyword) && isObject(map)) for (const key of Object.keys(map)) add(keyword, map, key, map[key]);
  }
  for (const keyword of lists) {
    const list = node[keyword];
    if (wanted(keyword) && Array.isArray(list)) list.forEach((entry, index) => add(keyword, list, index, entry));
  }
  for (const keyword of single)
    if (wanted(keyword) && !Array.isArray(node[keyword])) add(keyword, node, keyword, node[keyword]);
  return parts;
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
