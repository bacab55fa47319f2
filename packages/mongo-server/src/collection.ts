import { Query } from 'mingo';

import { CommandError } from './errors.ts';
import { isDoc, keyOf, stored, valueAt } from './values.ts';
import type { Doc, Stored } from './values.ts';

export interface IndexSpec {
  readonly key: Doc;
  readonly name: string;
  readonly unique?: boolean | undefined;
  readonly sparse?: boolean | undefined;
  readonly expireAfterSeconds?: number | undefined;
  readonly partialFilterExpression?: Doc | undefined;
}

/** Finds documents by the first field of its key, and keeps keys apart when it is unique. */
class Index {
  readonly spec: IndexSpec;
  readonly #fields: readonly string[];
  readonly #filter: Query | undefined;
  readonly #byFirst = new Map<string, Set<string>>();
  readonly #byKey = new Map<string, string>();

  constructor(spec: IndexSpec) {
    this.spec = spec;
    this.#fields = Object.keys(spec.key);
    this.#filter = spec.partialFilterExpression && new Query(spec.partialFilterExpression, {});
  }

  /** The id of another document with the same key. */
  rival(id: string, { plain }: Stored): string | undefined {
    if (!this.spec.unique || !this.#holds(plain)) return undefined;
    const other = this.#byKey.get(this.#key(plain));
    return other === id ? undefined : other;
  }

  add(id: string, { plain }: Stored): void {
    for (const key of this.#first(plain)) {
      const ids = this.#byFirst.get(key);
      if (ids) ids.add(id);
      else this.#byFirst.set(key, new Set([id]));
    }
    if (this.spec.unique && this.#holds(plain)) this.#byKey.set(this.#key(plain), id);
  }

  remove(id: string, { plain }: Stored): void {
    for (const key of this.#first(plain)) {
      const ids = this.#byFirst.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#byFirst.delete(key);
    }
    if (this.spec.unique && this.#holds(plain)) this.#byKey.delete(this.#key(plain));
  }

  /** The ids that a query can match at most; `undefined`: the index does not help. */
  candidates(query: Doc): Set<string> | undefined {
    const field = this.#fields[0] ?? '';
    if (!Object.hasOwn(query, field) || this.#filter || this.spec.sparse) return undefined;
    const wanted = query[field];
    if (isDoc(wanted)) {
      const operators = Object.keys(wanted);
      if (operators.length !== 1) return undefined;
      const values = operators[0] === '$eq' ? [wanted['$eq']] : operators[0] === '$in' ? wanted['$in'] : undefined;
      if (!Array.isArray(values) || values.some((value) => value instanceof RegExp)) return undefined;
      return new Set(values.flatMap((value) => [...(this.#byFirst.get(keyOf(value)) ?? [])]));
    }
    return wanted instanceof RegExp ? undefined : new Set(this.#byFirst.get(keyOf(wanted)));
  }

  #holds(plain: Doc): boolean {
    if (this.spec.sparse && this.#fields.every((field) => valueAt(plain, field) === undefined)) return false;
    return this.#filter === undefined || this.#filter.test(plain);
  }

  #first(plain: Doc): Set<string> {
    const value = valueAt(plain, this.#fields[0] ?? '');
    return new Set(Array.isArray(value) ? [keyOf(value), ...value.map(keyOf)] : [keyOf(value)]);
  }

  #key(plain: Doc): string {
    return this.#fields.map((field) => keyOf(valueAt(plain, field))).join('|');
  }
}

/** What happened to a document: `undefined` when it was removed. */
export type Change = (id: string, now: Stored | undefined) => void;

/** Documents in the order of their insertion. */
export class Collection {
  readonly name: string;
  readonly #docs = new Map<string, Stored>();
  readonly #indexes = new Map<string, Index>();
  /** Told of each change. */
  changed: Change = () => {};

  constructor(name: string) {
    this.name = name;
    this.addIndex({ key: { _id: 1 }, name: '_id_', unique: true });
  }

  get size(): number {
    return this.#docs.size;
  }

  get indexes(): IndexSpec[] {
    return [...this.#indexes.values()].map(({ spec }) => spec);
  }

  get(id: string): Stored | undefined {
    return this.#docs.get(id);
  }

  entries(): [string, Stored][] {
    return [...this.#docs];
  }

  /** Those that a query can match, and the index that says so. */
  candidates(query: Doc): { index: IndexSpec | undefined; entries: [string, Stored][] } {
    let best: { index: IndexSpec; ids: Set<string> } | undefined;
    for (const index of this.#indexes.values()) {
      const ids = index.candidates(query);
      // Of two that help as much, the one of more fields.
      const fewer =
        ids &&
        (!best ||
          ids.size < best.ids.size ||
          (ids.size === best.ids.size && Object.keys(index.spec.key).length > Object.keys(best.index.key).length));
      if (ids && fewer) best = { index: index.spec, ids };
    }
    if (!best) return { index: undefined, entries: this.entries() };
    const entries: [string, Stored][] = [];
    for (const id of best.ids) {
      const one = this.#docs.get(id);
      if (one) entries.push([id, one]);
    }
    return { index: best.index, entries };
  }

  /** @throws CommandError 11000 */
  put(doc: Doc): void {
    const id = keyOf(doc['_id']);
    const now = stored(doc);
    for (const index of this.#indexes.values()) {
      const rival = index.rival(id, now);
      if (rival !== undefined) throw this.#duplicate(index.spec, now);
    }
    const before = this.#docs.get(id);
    for (const index of this.#indexes.values()) {
      if (before) index.remove(id, before);
      index.add(id, now);
    }
    this.#docs.set(id, now);
    this.changed(id, now);
  }

  /** @throws CommandError 11000 where the id is there already */
  insert(doc: Doc): void {
    const id = keyOf(doc['_id']);
    if (this.#docs.has(id)) throw this.#duplicate({ key: { _id: 1 }, name: '_id_' }, stored(doc));
    this.put(doc);
  }

  remove(id: string): void {
    const before = this.#docs.get(id);
    if (!before) return;
    for (const index of this.#indexes.values()) index.remove(id, before);
    this.#docs.delete(id);
    this.changed(id, undefined);
  }

  /** Whether it is new. @throws CommandError where another one has its name or key, or the documents are against it */
  addIndex(spec: IndexSpec): boolean {
    for (const other of this.indexes) {
      const sameKey = keyOf(other.key) === keyOf(spec.key);
      if (!sameKey && other.name !== spec.name) continue;
      const sameOptions = (['unique', 'sparse', 'expireAfterSeconds', 'partialFilterExpression'] as const).every(
        (option) =>
          keyOf(other[option] || undefined) === keyOf(spec[option] || undefined) &&
          (other[option] === undefined) === (spec[option] === undefined || spec[option] === false),
      );
      if (sameKey && sameOptions && other.name === spec.name) return false;
      if (other.name !== spec.name)
        throw new CommandError(
          85,
          'IndexOptionsConflict',
          `An equivalent index already exists with a different name: ${other.name}`,
        );
      throw new CommandError(
        86,
        'IndexKeySpecsConflict',
        `An existing index has the same name as the requested index, and another key or other options: ${spec.name}`,
      );
    }
    const index = new Index(spec);
    for (const [id, one] of this.#docs) {
      if (index.rival(id, one) !== undefined) throw this.#duplicate(spec, one);
      index.add(id, one);
    }
    this.#indexes.set(spec.name, index);
    return true;
  }

  dropIndex(name: string): boolean {
    return name !== '_id_' && this.#indexes.delete(name);
  }

  /** A copy that changes alone; documents are shared. */
  fork(): Collection {
    const fork = new Collection(this.name);
    for (const spec of this.indexes) if (spec.name !== '_id_') fork.addIndex(spec);
    for (const { doc } of this.#docs.values()) fork.put(doc);
    return fork;
  }

  #duplicate(spec: IndexSpec, { doc }: Stored): CommandError {
    const keyValue = Object.fromEntries(Object.keys(spec.key).map((field) => [field, valueAt(doc, field) ?? null]));
    return new CommandError(
      11000,
      'DuplicateKey',
      `E11000 duplicate key error collection: ${this.name} index: ${spec.name} dup key: ${JSON.stringify(keyValue)}`,
      [],
      { keyPattern: spec.key, keyValue },
    );
  }
}
