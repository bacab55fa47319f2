import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { JsonSchema } from './schema.ts';
import type { Json } from './schema-parts.ts';
import { isObject } from '../base/json.ts';
import { isKind } from './null-plan.ts';
import { joinPath, resolvePointer, showPath } from './schema-parts.ts';

/** More would not help a model to repair its text. */
const maxIssues = 5;

/**
 * What is wrong with a value, for models and logs alike: paths of the schema and kinds of JSON only, never a value and
 * never a validator's own words, which may quote one.
 */
export function issueTexts(issues: readonly StandardSchemaV1.Issue[], schema: JsonSchema, value: unknown): string {
  const texts = issues.slice(0, maxIssues).map((issue) => textOf(issue, schema, value));
  return [...new Set(texts)].join('; ');
}

/** Issues of strange validators may be anything, and a value of the program's own may throw while it is read. */
function textOf(issue: StandardSchemaV1.Issue, schema: JsonSchema, value: unknown): string {
  try {
    return issueText(issue, schema, value);
  } catch {
    return `${showPath('')}: invalid value`;
  }
}

function issueText(issue: StandardSchemaV1.Issue, root: Json, value: unknown): string {
  let schemas = variants([root], root);
  let at = value;
  let path = '';
  for (const segment of issue.path ?? []) {
    const key = typeof segment === 'object' ? segment.key : segment;
    if (Array.isArray(at)) {
      const index = Number(key);
      path = joinPath(path, `[${Number.isInteger(index) ? index : '*'}]`);
      schemas = variants(
        schemas.flatMap((schema) => itemSchemas(schema, index)),
        root,
      );
    } else {
      const named = schemas.filter(
        (schema) => isObject(schema['properties']) && Object.hasOwn(schema['properties'], key),
      );
      if (named.length > 0) {
        path = joinPath(path, String(key));
        schemas = variants(
          named.map((schema) => (schema['properties'] as Json)[key as string]),
          root,
        );
      } else if (schemas.some(isDynamic)) {
        // A name that the model chose is a value.
        path = joinPath(path, '*');
        schemas = variants(
          schemas.map((schema) => schema['additionalProperties']),
          root,
        );
      } else {
        return `${showPath(path)}: ${schemas.some((schema) => isObject(schema['properties'])) ? 'unexpected member' : 'invalid value'}`;
      }
    }
    at =
      typeof at === 'object' && at !== null && Object.hasOwn(at, key)
        ? (at as Record<PropertyKey, unknown>)[key]
        : undefined;
  }
  return `${showPath(path)}: ${violation(schemas, at)}`;
}

function violation(schemas: readonly Json[], at: unknown): string {
  const kinds = [...new Set(schemas.flatMap(kindsOf))];
  if (kinds.length > 0 && !kinds.some((kind) => isKind(at, kind))) return `expected ${kinds.join(' or ')}`;
  const objects = schemas.filter((schema) => isObject(schema['properties']));
  if (isObject(at) && objects.length > 0 && objects.every((schema) => schema['additionalProperties'] === false)) {
    const known = new Set(objects.flatMap((schema) => Object.keys(schema['properties'] as Json)));
    if (Object.keys(at).some((name) => !known.has(name))) return 'unexpected member';
  }
  return 'invalid value';
}

function kindsOf(schema: Json): string[] {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.map(String);
  if ('const' in schema) return [kindOfJson(schema['const'])];
  if (Array.isArray(schema['enum'])) return schema['enum'].map(kindOfJson);
  return isObject(schema['properties']) ? ['object'] : [];
}

const kindOfJson = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;

const isDynamic = (schema: Json): boolean =>
  (schema['additionalProperties'] !== undefined && schema['additionalProperties'] !== false) ||
  'patternProperties' in schema;

function itemSchemas(schema: Json, index: number): unknown[] {
  const { prefixItems, items } = schema;
  if (Array.isArray(prefixItems) && index < prefixItems.length) return [prefixItems[index]];
  return Array.isArray(items) ? [items[index]] : [items];
}

/** The object schemas among these, with references followed and choices opened. */
function variants(schemas: readonly unknown[], root: Json): Json[] {
  const found: Json[] = [];
  const seen = new Set<unknown>();
  const open = (schema: unknown): void => {
    if (!isObject(schema) || seen.has(schema)) return;
    seen.add(schema);
    found.push(schema);
    if (typeof schema['$ref'] === 'string') open(resolvePointer(root, schema['$ref']));
    for (const keyword of ['anyOf', 'oneOf', 'allOf'])
      if (Array.isArray(schema[keyword])) schema[keyword].forEach(open);
  };
  schemas.forEach(open);
  return found;
}
