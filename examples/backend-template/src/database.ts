/*
 * Stands for the driver of your database: documents by their keys, and one thing that it can do in one step. Put your
 * driver in its place; what a backend needs of it is such a step, be it a transaction, a script or a compare-and-set.
 */

/** One session. */
export interface Document {
  /** The items, each as its JSON text, the oldest first. */
  readonly texts: readonly string[];
  /** Another one after each change, and never one that a history of this id had before, not even one that was cleared. */
  readonly version: string;
  /** Which operations it has seen, and the version that each of them made. */
  readonly operations: Readonly<Record<string, { readonly digest: string; readonly version: string }>>;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export class Database {
  readonly #documents = new Map<string, Document>();

  async get(key: string): Promise<Document | undefined> {
    await answer();
    return this.#documents.get(key);
  }

  async all(): Promise<ReadonlyMap<string, Document>> {
    await answer();
    return new Map(this.#documents);
  }

  /** Looks and changes in one step: nobody else writes in between. `undefined` deletes. What `change` throws changes nothing. */
  async update(key: string, change: (document: Document | undefined) => Document | undefined): Promise<void> {
    await answer();
    const document = change(this.#documents.get(key));
    if (document === undefined) this.#documents.delete(key);
    else this.#documents.set(key, document);
  }
}

/** As if it came from a server. */
async function answer(): Promise<void> {
  await new Promise<void>((resolve) => void setImmediate(resolve));
}
