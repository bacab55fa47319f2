import { Aggregator, updateOne } from 'mingo';
import { ObjectId } from 'mongodb';

import { CommandError } from './errors.ts';
import { isDoc, plainOf, typedOf } from './values.ts';
import type { Doc } from './values.ts';

const STAGES = new Set(['$set', '$addFields', '$unset', '$project', '$replaceRoot', '$replaceWith']);

/**
 * The document after an update: operators, a pipeline, or a replacement.
 * @param inserting `$setOnInsert` counts
 * @throws CommandError for an update that a server would refuse
 */
export function updated(doc: Doc, update: unknown, inserting: boolean, arrayFilters: readonly Doc[] = []): Doc {
  let result: Doc;
  if (Array.isArray(update)) {
    const stages = update as Doc[];
    const unknown = stages.flatMap((stage) => Object.keys(stage)).find((name) => !STAGES.has(name));
    if (unknown !== undefined)
      throw new CommandError(40324, 'Location40324', `Unrecognized pipeline stage name: '${unknown}'`);
    const plain = new Aggregator(
      stages.map((stage) => plainOf(stage) as Doc),
      {},
    ).run<Doc>([structured(doc)]);
    result = typedOf(plain[0] ?? {}, [doc, ...stages.flatMap((stage) => Object.values(stage))]) as Doc;
  } else {
    const operators = update as Doc;
    if (!Object.keys(operators).some((name) => name.startsWith('$'))) return { _id: doc['_id'], ...operators };
    result = applied(doc, operators, inserting, arrayFilters);
  }
  if ('_id' in doc && 'toString' in Object(doc['_id']) && String(doc['_id']) !== String(result['_id']))
    throw new CommandError(
      66,
      'ImmutableField',
      "Performing an update on the path '_id' would modify the immutable field '_id'",
    );
  return result;
}

function applied(doc: Doc, { $setOnInsert, ...operators }: Doc, inserting: boolean, arrayFilters: readonly Doc[]): Doc {
  const all: Doc = { ...operators };
  if (inserting && isDoc($setOnInsert)) all['$set'] = { ...$setOnInsert, ...(all['$set'] as Doc | undefined) };
  for (const [name, operand] of Object.entries(all)) {
    if (!isDoc(operand))
      throw new CommandError(
        9,
        'FailedToParse',
        `Modifiers operate on fields but the operand of ${name} is not an object`,
      );
    if (Object.keys(operand).length === 0) delete all[name];
  }
  const docs = [structured(doc)];
  if (Object.keys(all).length > 0)
    updateOne(docs, {}, plainOf(all) as never, {
      arrayFilters: arrayFilters.map((one) => plainOf(one) as Doc),
      cloneMode: 'deep',
    });
  const operands = Object.values(all).map((operand) => nested(operand as Doc));
  return typedOf(docs[0], [...operands, doc]) as Doc;
}

/** `{ 'a.b': 1 }` as `{ a: { b: 1 } }`, to find the types of numbers by their place. */
function nested(operand: Doc): Doc {
  const result: Doc = {};
  for (const [path, value] of Object.entries(operand)) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    let at = result;
    for (const key of keys) {
      const next = isDoc(at[key]) ? at[key] : {};
      at[key] = next;
      at = next;
    }
    at[last] = value;
  }
  return result;
}

/** A copy with JavaScript's numbers that may be changed. */
function structured(doc: Doc): Doc {
  return plainOf(doc) as Doc;
}

/** What an upsert starts from: the fields that the query wants equal to something. */
export function upsertBase(query: Doc): Doc {
  const base: Doc = {};
  for (const [field, wanted] of Object.entries(query)) {
    if (field === '$and' && Array.isArray(wanted))
      for (const part of wanted) Object.assign(base, upsertBase(part as Doc));
    else if (field.startsWith('$')) continue;
    else if (isDoc(wanted) && Object.keys(wanted).some((name) => name.startsWith('$'))) {
      if ('$eq' in wanted) base[field] = wanted['$eq'];
    } else base[field] = wanted;
  }
  return nested(base);
}

/** `_id` comes first, and is made where there is none. */
export function withId(doc: Doc): Doc {
  const { _id = new ObjectId(), ...rest } = doc;
  return { _id, ...rest };
}
