import { Aggregator, Query } from 'mingo';

import type { Collection, IndexSpec } from './collection.ts';
import { CommandError } from './errors.ts';
import { isDoc, keyOf, plainOf, typedOf } from './values.ts';
import type { Doc, Stored } from './values.ts';

export interface Selection {
  readonly filter?: unknown;
  readonly sort?: unknown;
  readonly skip?: number | undefined;
  readonly limit?: number | undefined;
}

/** The documents that match, in order. @throws CommandError for a query that a server would refuse */
export function select(
  collection: Collection | undefined,
  { filter, sort, skip = 0, limit = 0 }: Selection,
): [string, Stored][] {
  if (!collection) return [];
  const criteria = plainOf(filter ?? {}) as Doc;
  const query = queryOf(criteria);
  let found = collection.candidates(criteria).entries.filter(([, { plain }]) => query.test(plain));
  const order = plainOf(sort ?? {}) as Doc;
  if (Object.keys(order).length > 0) {
    const entries = new Map(found.map((entry) => [entry[1].plain, entry]));
    found = new Query({}, {})
      .find<Doc>([...entries.keys()])
      .sort(order)
      .all()
      .flatMap((plain) => [entries.get(plain)].filter((entry) => entry !== undefined));
  }
  return found.slice(skip, limit === 0 ? undefined : skip + Math.abs(limit));
}

/** Which index a query would use. */
export function plan(collection: Collection | undefined, filter: unknown): IndexSpec | undefined {
  return collection?.candidates(plainOf(filter ?? {}) as Doc).index;
}

function queryOf(criteria: Doc): Query {
  try {
    return new Query(criteria, {});
  } catch (error) {
    throw new CommandError(2, 'BadValue', error instanceof Error ? error.message : 'bad query');
  }
}

/** With the fields that are asked for. */
export function projected({ doc, plain }: Stored, projection: unknown): Doc {
  const wanted = plainOf(projection ?? {}) as Doc;
  const fields = Object.keys(wanted);
  if (fields.length === 0) return doc;
  const simple = fields.every(
    (field) => !field.includes('.') && (typeof wanted[field] === 'number' || typeof wanted[field] === 'boolean'),
  );
  if (!simple) {
    const [result] = new Query({}, {}).find<Doc>([plain], wanted).all();
    return typedOf(result ?? {}, [doc]) as Doc;
  }
  const including = fields.some((field) => field !== '_id' && wanted[field]);
  const keeps = (field: string): boolean =>
    field === '_id'
      ? wanted['_id'] === undefined || Boolean(wanted['_id'])
      : including
        ? Boolean(wanted[field])
        : wanted[field] === undefined;
  return Object.fromEntries(Object.entries(doc).filter(([field]) => keeps(field)));
}

/** The result of a pipeline. A first `$match` looks into the indexes. */
export function aggregated(
  collection: Collection | undefined,
  pipeline: readonly Doc[],
  other: (name: string) => Collection | undefined,
): Doc[] {
  const [first, ...rest] = pipeline;
  const match = first?.['$match'];
  const found = select(collection, { filter: match });
  if (match && rest.length === 0) return found.map(([, { doc }]) => doc);
  const stages = (match ? rest : pipeline).map((stage) => plainOf(stage) as Doc);
  const collectionResolver = (name: string): Doc[] => (other(name)?.entries() ?? []).map(([, { plain }]) => plain);
  const sources = new Map(found.map(([, { doc }]) => [keyOf(doc['_id']), doc]));
  try {
    return (
      new Aggregator(stages, { collectionResolver })
        .run<Doc>(found.map(([, { plain }]) => plain))
        // A document that went through has the types of its numbers.
        .map((result) => typedOf(result, [isDoc(result) ? sources.get(keyOf(result['_id'])) : undefined]) as Doc)
    );
  } catch (error) {
    throw new CommandError(40324, 'Location40324', error instanceof Error ? error.message : 'bad pipeline');
  }
}
