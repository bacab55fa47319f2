import { BSON } from 'mongodb';

import type { Collection } from './collection.ts';
import { CommandError } from './errors.ts';
import { projected, select } from './reads.ts';
import { updated, upsertBase, withId } from './update.ts';
import { int, plainOf, stored } from './values.ts';
import type { Doc } from './values.ts';

export const MAX_DOCUMENT_BYTES: number = 16 * 1024 * 1024;

function put(collection: Collection, doc: Doc, isNew: boolean): void {
  const size = BSON.calculateObjectSize(doc);
  if (size > MAX_DOCUMENT_BYTES)
    throw new CommandError(
      isNew ? 10334 : 17419,
      isNew ? 'BSONObjectTooLarge' : 'Location17419',
      `object to ${isNew ? 'insert' : 'update'} too large. size in bytes: ${size}, max size: ${MAX_DOCUMENT_BYTES}`,
    );
  if (isNew) collection.insert(doc);
  else collection.put(doc);
}

/** Each of the statements; those that fail are told in the answer, and end it unless it is not ordered. */
function each(statements: readonly Doc[], ordered: unknown, work: (statement: Doc, index: number) => void): Doc {
  const writeErrors: Doc[] = [];
  for (const [index, statement] of statements.entries()) {
    try {
      work(statement, index);
    } catch (error) {
      if (!(error instanceof CommandError) || error.labels.length > 0) throw error;
      writeErrors.push({ index: int(index), code: int(error.code), errmsg: error.message, ...error.details });
      if (ordered !== false) break;
    }
  }
  return writeErrors.length > 0 ? { writeErrors } : {};
}

export function insert(collection: Collection, documents: readonly Doc[], ordered: unknown): Doc {
  let n = 0;
  const errors = each(documents, ordered, (doc) => {
    put(collection, withId(doc), true);
    n++;
  });
  return { n: int(n), ...errors, ok: 1 };
}

export function update(collection: Collection, updates: readonly Doc[], ordered: unknown): Doc {
  let n = 0;
  let nModified = 0;
  const upserted: Doc[] = [];
  const errors = each(updates, ordered, ({ q, u, multi, upsert, arrayFilters, sort }, index) => {
    const found = select(collection, { filter: q, sort, limit: multi ? 0 : 1 });
    for (const [, { doc }] of found) {
      const now = updated(doc, u, false, arrayFilters as Doc[] | undefined);
      n++;
      if (same(doc, now)) continue;
      put(collection, now, false);
      nModified++;
    }
    if (found.length > 0 || !upsert) return;
    const doc = withId(updated(upsertBase(q as Doc), u, true, arrayFilters as Doc[] | undefined));
    put(collection, doc, true);
    n++;
    upserted.push({ index: int(index), _id: doc['_id'] });
  });
  return { n: int(n), nModified: int(nModified), ...(upserted.length > 0 && { upserted }), ...errors, ok: 1 };
}

export function remove(collection: Collection, deletes: readonly Doc[], ordered: unknown): Doc {
  let n = 0;
  const errors = each(deletes, ordered, ({ q, limit }) => {
    for (const [id] of select(collection, { filter: q, limit: Number(plainOf(limit)) })) {
      collection.remove(id);
      n++;
    }
  });
  return { n: int(n), ...errors, ok: 1 };
}

export function findAndModify(
  collection: Collection,
  { query, sort, remove: removing, update: change, new: after, upsert, fields, arrayFilters }: Doc,
): Doc {
  const [found] = select(collection, { filter: query, sort, limit: 1 });
  const before = found?.[1];
  if (removing) {
    if (found) collection.remove(found[0]);
    return { value: before ? projected(before, fields) : null, lastErrorObject: { n: int(found ? 1 : 0) }, ok: 1 };
  }
  if (!before && !upsert) return { value: null, lastErrorObject: { n: int(0), updatedExisting: false }, ok: 1 };
  const filters = arrayFilters as Doc[] | undefined;
  const now = before
    ? updated(before.doc, change, false, filters)
    : withId(updated(upsertBase((query ?? {}) as Doc), change, true, filters));
  if (!before || !same(before.doc, now)) put(collection, now, !before);
  const shown = after ? stored(now) : before;
  return {
    value: shown ? projected(shown, fields) : null,
    lastErrorObject: { n: int(1), updatedExisting: before !== undefined, ...(!before && { upserted: now['_id'] }) },
    ok: 1,
  };
}

function same(a: Doc, b: Doc): boolean {
  return Buffer.from(BSON.serialize(a)).equals(Buffer.from(BSON.serialize(b)));
}
