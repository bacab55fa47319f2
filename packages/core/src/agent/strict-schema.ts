import type { JsonSchema } from './schema.ts';
import type { Json } from './schema-parts.ts';
import { UserError } from '../base/errors.ts';
import { nodesOnCycles } from './cycles.ts';
import { isObject, setOwn } from '../base/json.ts';
import { checkOptions } from '../base/options.ts';
import { copySchema, findPart, joinPath, jsonEqual, partsOf, resolvePointer, showPath } from './schema-parts.ts';

/**
 * A copy in the form that strict mode takes: all objects closed, all their members required. What stands in the schema is
 * the author's word: optional members become required ones, not nullable ones.
 *
 * @param options `rejectOpenObjects` (default `false`) also refuses objects that declare no members and are not closed,
 *   as schemas of MCP tools have them; else these become empty objects
 * @throws UserError naming the path that strict mode cannot express
 * @example ensureStrictJsonSchema({ type: 'object', properties: { id: { type: 'string' } } })
 */
export function ensureStrictJsonSchema(schema: JsonSchema, options: { rejectOpenObjects?: boolean } = {}): JsonSchema {
  checkOptions(options, ['rejectOpenObjects'], 'ensureStrictJsonSchema');
  return strictForm(schema, 'ensureStrictJsonSchema', '', options.rejectOpenObjects ?? false);
}

/** `remedy` ends every message about a shape that strict mode cannot express. */
export function strictForm(schema: JsonSchema, where: string, remedy: string, rejectOpenObjects = false): Json {
  return new StrictForm(copySchema(schema, where), where, remedy, rejectOpenObjects).make();
}

/** Keywords that may stand beside a `$ref`: they say nothing about what is valid. */
const annotations = new Set([
  '$comment',
  'title',
  'description',
  'default',
  'deprecated',
  'examples',
  'readOnly',
  'writeOnly',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  '$defs',
  'definitions',
  '$anchor',
  '$schema',
]);

const maxDepth = 100;
const maxNodes = 100_000;
/** Of the search for recursive definitions, which visits nested ones several times. */
const maxSearch = 1_000_000;

const openRule = 'an object must declare all its members: strict mode takes no `additionalProperties` but false';

class StrictForm {
  readonly #source: Json;
  readonly #out: Json;
  readonly #where: string;
  readonly #remedy: string;
  readonly #rejectOpenObjects: boolean;
  readonly #visited: Set<Json> = new Set();
  readonly #kept: { ref: string; path: string }[] = [];
  /** Definitions that lead back to themselves; worked out when first asked. */
  #recursive: ReadonlySet<Json> | undefined;
  #nodes = 0;
  #searched = 0;

  constructor(copy: Json, where: string, remedy: string, rejectOpenObjects: boolean) {
    this.#source = copy;
    this.#out = copySchema(copy, where);
    this.#where = where;
    this.#remedy = remedy;
    this.#rejectOpenObjects = rejectOpenObjects;
  }

  make(): Json {
    const out = this.#out;
    if (Object.keys(out).length === 0) Object.assign(out, { type: 'object' });
    this.#refuseNestedIds();
    this.#visit(out, '', 0);
    // Definitions can stand anywhere; what is still pointed to must be strict, and must be where it was.
    for (const { ref, path } of this.#kept) {
      const target = resolvePointer(out, ref);
      if (target === undefined) throw this.#error(path, `the target of ${ref} was rewritten: move it to $defs`);
      if (isObject(target) && !this.#visited.has(target)) this.#visit(target, ref, 1);
    }
    return out;
  }

  /** Brings one schema object into strict form, in place, and what is below it. */
  #visit(node: Json, path: string, depth: number): void {
    if (depth > maxDepth) throw this.#error(path, 'the schema is too deeply nested');
    if (++this.#nodes > maxNodes) throw this.#error('', 'the schema is too large');
    this.#visited.add(node);
    this.#collapse(node, path);
    if (typeof node['$ref'] === 'string') {
      this.#refuseAliasCircle(node['$ref'], path);
      this.#kept.push({ ref: node['$ref'], path });
    } else {
      this.#closeObject(node, path);
      if (Array.isArray(node['oneOf'])) {
        node['anyOf'] = [...(Array.isArray(node['anyOf']) ? node['anyOf'] : []), ...node['oneOf']];
        delete node['oneOf'];
      }
      if (node['default'] === null) delete node['default'];
    }
    for (const part of partsOf(node, 'strict')) {
      const below = joinPath(path, part.step);
      if (isObject(part.schema)) this.#visit(part.schema, below, depth + 1);
      else if (typeof part.schema !== 'boolean') throw this.#error(below, 'a schema is an object, or true or false');
    }
  }

  /** Merges single `allOf` entries and inlines references with annotations, until there is neither. */
  #collapse(node: Json, path: string): void {
    const isRoot = node === this.#out;
    const inlined = new Set<string>();
    for (;;) {
      if (Array.isArray(node['allOf']) && node['allOf'].length === 1) {
        this.#mergeSingle(node, node['allOf'][0], path);
        continue;
      }
      const ref = node['$ref'];
      if (typeof ref !== 'string') return;
      const siblings = Object.keys(node).filter((key) => key !== '$ref');
      const target = this.#resolve(ref, path);
      if (siblings.length === 0 && !isRoot) return;
      const foreign = siblings.find((key) => !annotations.has(key));
      if (foreign !== undefined) throw this.#error(path, `\`$ref\` has the incompatible sibling \`${foreign}\``);
      if (inlined.has(ref)) throw this.#error(path, `the reference ${ref} is circular`);
      inlined.add(ref);
      if (!isRoot && this.#isRecursive(ref)) {
        for (const key of siblings) delete node[key];
        return;
      }
      if (++this.#nodes > maxNodes) throw this.#error('', 'the schema is too large');
      delete node['$ref'];
      const copy = copySchema(target, this.#where);
      for (const key of Object.keys(copy)) if (!Object.hasOwn(node, key)) setOwn(node, key, copy[key]);
    }
  }

  #mergeSingle(node: Json, entry: unknown, path: string): void {
    const singleton = 'a singleton allOf cannot be merged into its parent';
    if (!isObject(entry)) throw this.#error(path, `${singleton}: it is no object`);
    if (node['additionalProperties'] === false && !('properties' in node) && 'properties' in entry)
      throw this.#error(path, `${singleton}, which is closed and declares no properties`);
    delete node['allOf'];
    for (const key of Object.keys(entry)) {
      if (!Object.hasOwn(node, key)) setOwn(node, key, entry[key]);
      else if (!annotations.has(key) && !jsonEqual(node[key], entry[key]))
        throw this.#error(path, `${singleton}: both have \`${key}\``);
    }
  }

  #closeObject(node: Json, path: string): void {
    const isRoot = node === this.#out;
    if (isRoot && ('anyOf' in node || 'oneOf' in node))
      throw this.#error('', 'the root of a strict schema is an object, not a choice');
    const types = Array.isArray(node['type']) ? (node['type'] as unknown[]) : [node['type']];
    if (types.length === 1 && types[0] === 'object') node['type'] = 'object';
    else if (isRoot && types.includes('object'))
      throw this.#error('', 'the root of a strict schema is an object, it cannot be null');
    const untyped = node['type'] === undefined;
    const declares = isObject(node['properties']);
    const open =
      ('additionalProperties' in node && node['additionalProperties'] !== false) || 'patternProperties' in node;
    if (open && (untyped || types.includes('object'))) throw this.#error(path, openRule);
    if (!types.includes('object') && !(untyped && declares)) return;
    if (this.#rejectOpenObjects && !declares && node['additionalProperties'] !== false)
      throw this.#error(path, `${openRule}; this one declares none`);
    if (untyped) node['type'] = 'object';
    if (!declares) node['properties'] = {};
    node['required'] = Object.keys(node['properties'] as Json);
    node['additionalProperties'] = false;
  }

  #resolve(ref: string, path: string): Json {
    if (ref !== '#' && !ref.startsWith('#/')) throw this.#error(path, `${ref} is not local: references begin with #/`);
    const target = resolvePointer(this.#source, ref);
    if (!isObject(target)) throw this.#error(path, `${ref} points to nothing`);
    return target;
  }

  /** Whether inlining this definition would never end: from it, references lead back to it. */
  #isRecursive(ref: string): boolean {
    this.#recursive ??= nodesOnCycles(this.#targetsBelow(this.#source), (target) => this.#targetsBelow(target));
    return this.#recursive.has(this.#resolve(ref, ''));
  }

  /** What the references in a schema, itself included, point to. */
  #targetsBelow(node: Json): ReadonlySet<Json> {
    const targets = new Set<Json>();
    const queue = [node];
    for (let at = queue.pop(); at; at = queue.pop()) {
      if (++this.#searched > maxSearch) throw this.#error('', 'the schema is too large');
      if (typeof at['$ref'] === 'string') targets.add(this.#resolve(at['$ref'], ''));
      for (const part of partsOf(at)) if (isObject(part.schema)) queue.push(part.schema);
    }
    return targets;
  }

  /** A reference whose chain of mere aliases returns to itself means nothing. */
  #refuseAliasCircle(ref: string, path: string): void {
    const seen = new Set<Json>();
    let node: unknown = this.#resolve(ref, path);
    while (isObject(node)) {
      if (seen.has(node)) throw this.#error(path, `the reference ${ref} is circular`);
      seen.add(node);
      if (typeof node['$ref'] === 'string') node = this.#resolve(node['$ref'], path);
      else if (Array.isArray(node['allOf']) && node['allOf'].length === 1) node = node['allOf'][0] as unknown;
      else return;
    }
  }

  /** A nested `$id` changes what the references below it mean. */
  #refuseNestedIds(): void {
    if (!findPart(this.#source, (node) => '$ref' in node)) return;
    const nested = findPart(this.#source, (node) => node !== this.#source && typeof node['$id'] === 'string');
    if (nested) throw this.#error(nested.path, 'a nested `$id` together with references is not supported');
  }

  #error(path: string, problem: string): UserError {
    return new UserError(`${this.#where}: ${showPath(path)}: ${problem}.${this.#remedy && ` ${this.#remedy}`}`);
  }
}
