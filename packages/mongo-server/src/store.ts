import { Collection } from './collection.ts';
import type { IndexSpec } from './collection.ts';
import { writeConflict } from './errors.ts';
import { Journal } from './journal.ts';
import type { Entry } from './journal.ts';
import { plainOf } from './values.ts';
import type { Doc } from './values.ts';

/** Where commands find collections: the store, or a transaction over it. */
export interface Collections {
  /** `undefined`: there is no such collection. */
  find(database: string, name: string): Collection | undefined;
  /** Made when it is not there. */
  open(database: string, name: string): Collection;
}

/** All collections, in memory; in a journal as well where there is a folder. */
export class Store implements Collections {
  readonly #collections = new Map<string, Collection>();
  readonly #journal: Journal | undefined;
  /** Of the command under way. */
  #changes: Doc[] = [];
  /** The last retryable write of each session, and its answer. */
  readonly #answers = new Map<string, { readonly number: string; readonly reply: Doc }>();

  constructor(folder: string | undefined) {
    this.#journal = folder === undefined ? undefined : Journal.open(folder, (entry) => this.#replay(entry));
    this.#changes = [];
  }

  find(database: string, name: string): Collection | undefined {
    return this.#collections.get(`${database}.${name}`);
  }

  open(database: string, name: string): Collection {
    return this.find(database, name) ?? this.#create(`${database}.${name}`);
  }

  list(database?: string): { database: string; name: string; collection: Collection }[] {
    return [...this.#collections].flatMap(([space, collection]) => {
      const [at = '', ...rest] = space.split('.');
      return database === undefined || at === database ? [{ database: at, name: rest.join('.'), collection }] : [];
    });
  }

  drop(database: string, name: string): boolean {
    const space = `${database}.${name}`;
    this.#changes.push({ drop: space });
    return this.#collections.delete(space);
  }

  addIndex(database: string, name: string, spec: IndexSpec): boolean {
    const added = this.open(database, name).addIndex(spec);
    if (added) this.#changes.push({ index: `${database}.${name}`, spec });
    return added;
  }

  dropIndex(database: string, name: string, index: string): boolean {
    this.#changes.push({ dropIndex: `${database}.${name}`, name: index });
    return this.find(database, name)?.dropIndex(index) ?? false;
  }

  /** The answer of a write that was done before. */
  answered(session: string, number: string): Doc | undefined {
    const last = this.#answers.get(session);
    return last?.number === number ? last.reply : undefined;
  }

  /** Writes down what the command changed, before it is answered. */
  commit(retry?: Entry['retry']): void {
    const changes = this.#changes;
    this.#changes = [];
    if (retry) this.#answers.set(retry.session, retry);
    if (changes.length > 0) this.#journal?.append({ changes, retry });
  }

  close(): void {
    this.#journal?.close();
  }

  #create(space: string): Collection {
    const collection = new Collection(space);
    collection.changed = (id, now) =>
      void this.#changes.push(now ? { put: space, doc: now.doc } : { remove: space, id });
    this.#collections.set(space, collection);
    this.#changes.push({ create: space });
    return collection;
  }

  #replay({ changes, retry }: Entry): void {
    for (const change of changes) {
      const space = Object.values(change)[0] as string;
      const collection = this.#collections.get(space);
      if ('create' in change) this.#create(space);
      else if ('put' in change) collection?.put(change['doc'] as Doc);
      else if ('remove' in change) collection?.remove(change['id'] as string);
      else if ('drop' in change) this.#collections.delete(space);
      else if ('index' in change) collection?.addIndex(plainOf(change['spec']) as IndexSpec & Doc);
      else if ('dropIndex' in change) collection?.dropIndex(change['name'] as string);
    }
    if (retry) this.#answers.set(retry.session, retry);
  }
}

/** Sees the collections as they were at its first look at them, with its own changes; the first to commit wins. */
export class Transaction implements Collections {
  readonly #store: Store;
  readonly #forks = new Map<
    string,
    { fork: Collection; base: Collection; before: Map<string, unknown>; written: Set<string> }
  >();

  constructor(store: Store) {
    this.#store = store;
  }

  find(database: string, name: string): Collection | undefined {
    return this.#store.find(database, name) && this.open(database, name);
  }

  open(database: string, name: string): Collection {
    const space = `${database}.${name}`;
    const known = this.#forks.get(space);
    if (known) return known.fork;
    const base = this.#store.open(database, name);
    const fork = base.fork();
    const before = new Map(base.entries().map(([id, { doc }]) => [id, doc]));
    const written = new Set<string>();
    fork.changed = (id) => {
      if (base.get(id)?.doc !== before.get(id)) throw writeConflict();
      written.add(id);
    };
    this.#forks.set(space, { fork, base, before, written });
    return fork;
  }

  /** All or nothing. @throws CommandError where somebody else changed one of its documents */
  commit(): void {
    for (const { base, before, written } of this.#forks.values())
      for (const id of written) if (base.get(id)?.doc !== before.get(id)) throw writeConflict();
    for (const { fork, base, written } of this.#forks.values()) {
      for (const id of written) {
        const now = fork.get(id);
        if (now) base.put(now.doc);
        else base.remove(id);
      }
    }
  }
}
