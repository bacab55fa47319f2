import { isObject, setOwn } from '../base/json.ts';

/** Keywords of JSON Schema that explain and do not constrain. */
const PROSE: ReadonlySet<string> = new Set(['description', 'title', '$comment', 'examples']);
/** Keywords that hold values of the user's, whatever these look like. */
const VALUES: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'required', 'dependentRequired']);
/** Keywords whose members are schemas under names of the user's. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);

/** A copy of a schema that takes and refuses the same, without what explains it. */
export function withoutProse(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (PROSE.has(key)) continue;
    setOwn(copy, key, VALUES.has(key) ? value : NAMED.has(key) ? namedWithoutProse(value) : anyWithoutProse(value));
  }
  return copy;
}

function namedWithoutProse(schemas: unknown): unknown {
  if (!isObject(schemas)) return schemas;
  const copy: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(schemas)) setOwn(copy, name, anyWithoutProse(schema));
  return copy;
}

function anyWithoutProse(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(anyWithoutProse);
  return isObject(value) ? withoutProse(value) : value;
}
