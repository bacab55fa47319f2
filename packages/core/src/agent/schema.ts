import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { isThenable } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { checkOptions, kindOf } from '../base/options.ts';
import { copySchema, findPart, freezeDeep, resolvePointer, showPath } from './schema-parts.ts';
import type { Json } from './schema-parts.ts';

/** A JSON Schema document (draft 2020-12). */
export type JsonSchema = { readonly [key: string]: unknown };

/** A Standard Schema that also gives JSON Schema: zod ≥ 4.2 (mini: `z.toJSONSchema(schema)`), ArkType, Valibot with `toStandardJsonSchema`, `jsonSchema()`. */
export interface SchemaWithJson<In = unknown, Out = In> {
  readonly '~standard': StandardSchemaV1.Props<In, Out> & StandardJSONSchemaV1.Props<In, Out>;
}

/** Vendor of `jsonSchema()`: what a person wrote as JSON Schema is sent as it is, not lowered. */
const ownVendor = '@agents/core';

/** Types (and, with `validate`, checks) a hand-written JSON Schema. `validate` returns the value, or throws what is wrong. */
export function jsonSchema<T = unknown>(
  schema: JsonSchema,
  options: { validate?: (value: unknown) => T } = {},
): SchemaWithJson<unknown, T> {
  if (!isObject(schema)) throw new UserError(`jsonSchema: takes a JSON Schema object, not ${kindOf(schema)}.`);
  checkOptions(options, ['validate'], 'jsonSchema');
  const { validate } = options;
  if (validate !== undefined && typeof validate !== 'function')
    throw new UserError(`jsonSchema: the option \`validate\` takes a function, not ${kindOf(validate)}.`);
  const copy = freezeDeep(copySchema(schema, 'jsonSchema'));
  return {
    '~standard': {
      version: 1,
      vendor: ownVendor,
      validate: (value) => {
        if (validate === undefined) return { value: value as T };
        try {
          const result = validate(value);
          // An async validator is refused by whoever asked; a promise of the wrong type is all that can be told here.
          return isThenable(result) ? (result as unknown as Promise<StandardSchemaV1.Result<T>>) : { value: result };
        } catch (error) {
          return { issues: thrownIssues(error) };
        }
      },
      jsonSchema: { input: () => copy, output: () => copy },
    },
  };
}

/** Issues of what a validator threw: its own (zod's `parse`), else one about the whole value. */
export function thrownIssues(error: unknown): StandardSchemaV1.Issue[] {
  if (typeof error === 'object' && error !== null && 'issues' in error && Array.isArray(error.issues)) {
    const issues = error.issues.filter(
      (issue): issue is StandardSchemaV1.Issue =>
        isObject(issue) && (issue['path'] === undefined || Array.isArray(issue['path'])),
    );
    if (issues.length > 0) return issues;
  }
  return [{ message: thrownText(error) }];
}

function thrownText(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return 'Invalid value';
  }
}

export type AnySchema = SchemaWithJson<unknown, unknown>;

/** Whether a value is a Standard Schema, whatever else it is (ArkType's are functions, those of `z.toJSONSchema` documents too). */
export function hasStandard(value: unknown): value is { readonly '~standard': unknown } {
  return ((typeof value === 'object' && value !== null) || typeof value === 'function') && '~standard' in value;
}

export const isHandWritten = (schema: AnySchema): boolean => schema['~standard'].vendor === ownVendor;

/** @throws UserError that tells the remedy, for a schema that only validates */
export function withJson(schema: { readonly '~standard': unknown }, where: string): AnySchema {
  const standard = schema['~standard'];
  if (isObject(standard) && typeof standard['validate'] === 'function') {
    const json = standard['jsonSchema'];
    if (isObject(json) && typeof json['input'] === 'function') return schema as AnySchema;
    throw new UserError(
      `${where}: this schema only validates and gives no JSON Schema. Use zod 4.2 or newer, z.toJSONSchema(schema) of zod mini, toStandardJsonSchema(schema) of @valibot/to-json-schema, or jsonSchema(schema, { validate }).`,
    );
  }
  throw new UserError(`${where}: \`~standard\` holds no Standard Schema.`);
}

/**
 * The input side of a schema, draft 2020-12, as a new object: what a model writes, before transforms and defaults. Optional
 * members stay optional, `$schema` is left out; `ensureStrictJsonSchema` makes the strict form of it.
 *
 * @throws UserError naming the path of a type without JSON form, and for schemas that only validate
 * @example toJsonSchema(z.object({ id: z.string() })) // { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], … }
 */
export function toJsonSchema(schema: SchemaWithJson<unknown, unknown>): JsonSchema {
  if (!hasStandard(schema)) throw new UserError(`toJsonSchema: takes a Standard Schema, not ${kindOf(schema)}.`);
  return inputJson(withJson(schema, 'toJsonSchema'), 'toJsonSchema');
}

/** `toJsonSchema` for the parts of this folder: a copy of our own, without `$schema`, with the definition at its root. */
export const inputJson = (schema: AnySchema, where: string): Json => sideOf(schema, 'input', where);

/** The other side: what a value is after transforms and defaults. */
export const outputJson = (schema: AnySchema, where: string): Json => sideOf(schema, 'output', where);

function sideOf(schema: AnySchema, side: 'input' | 'output', where: string): Json {
  const standard = schema['~standard'];
  const given: unknown = askLibrary(standard, side, where);
  if (!isObject(given))
    throw new UserError(
      `${where}: ${standard.vendor} gave ${kindOf(given)} for the JSON Schema of the schema, not an object.`,
    );
  const json = copySchema(given, where);
  if (standard.vendor === 'arktype') refuseMarked(json, where, undefined);
  delete json['$schema'];
  return rootInPlace(json);
}

function askLibrary(standard: AnySchema['~standard'], side: 'input' | 'output', where: string): JsonSchema {
  const ask = (libraryOptions: Record<string, unknown> | undefined): JsonSchema =>
    standard.jsonSchema[side]({ target: 'draft-2020-12', ...(libraryOptions && { libraryOptions }) });
  // ArkType turns what it cannot say into `{}` without a word.
  if (standard.vendor === 'arktype') return ask(marking['arktype']);
  try {
    return ask(undefined);
  } catch (error) {
    const libraryOptions = marking[standard.vendor];
    if (libraryOptions) {
      let marked: Json | undefined;
      try {
        marked = copySchema(ask(libraryOptions), where);
      } catch {
        // Asked again only for the path; the library's own error says what there is to say.
      }
      if (marked) refuseMarked(marked, where, error);
    }
    throw new UserError(`${where}: the schema has a type without JSON form (${standard.vendor} cannot convert it).`, {
      cause: error,
    });
  }
}

const mark = 'x-agents-no-json-form';

function refuseMarked(json: Json, where: string, cause: unknown): void {
  const found = findPart(json, (node) => mark in node);
  if (!found) return;
  const { path, node } = found;
  throw new UserError(
    `${where}: ${showPath(path)} has a type without JSON form (${String(node[mark])}). Take a string, number or object there and convert it yourself.`,
    { cause },
  );
}

/** zod's types that its converter answers with `{}` when told to go on. */
const zodTypes = new Set([
  'bigint',
  'custom',
  'date',
  'file',
  'function',
  'literal',
  'map',
  'nan',
  'promise',
  'set',
  'symbol',
  'transform',
  'undefined',
  'void',
]);
/** ArkType's reasons after which nothing usable is left; after the others the base is. */
const arkReasons = new Set(['arrayObject', 'arrayPostfix', 'date', 'domain', 'proto', 'symbolKey', 'unit']);

/** How each library is told to go on past a type without JSON form and to leave a mark there: the way to its path. */
const marking: Record<string, Record<string, unknown> | undefined> = {
  zod: {
    unrepresentable: 'any',
    override: (at: { zodSchema: { def: { type: string } }; jsonSchema: Json }) => {
      const { type } = at.zodSchema.def;
      if (zodTypes.has(type) && Object.keys(at.jsonSchema).length === 0) at.jsonSchema[mark] = type;
    },
  },
  arktype: {
    fallback: (at: { code: string; base: Json }) =>
      arkReasons.has(at.code) ? { ...at.base, [mark]: at.code } : at.base,
  },
  valibot: {
    errorMode: 'ignore',
    overrideSchema: (at: { errors?: readonly string[]; valibotSchema?: { type?: string } }) =>
      at.errors ? { [mark]: at.valibotSchema?.type ?? 'type' } : undefined,
  },
};

/** A root that only points into its own definitions, as some libraries write recursive types, becomes what it points to. */
export function rootInPlace(json: Json): Json {
  const seen = new Set<string>();
  let root = json;
  while (typeof root['$ref'] === 'string' && !seen.has(root['$ref'])) {
    const { $ref, ...siblings } = root;
    seen.add($ref);
    const target = resolvePointer(json, $ref);
    if (!isObject(target)) return root;
    root = { ...target, ...siblings };
  }
  return root;
}

/** Whether the root is an object, as models need it for arguments and strict output. `{}` counts: it becomes the empty object. */
export function hasObjectRoot(json: JsonSchema): boolean {
  const root = rootInPlace(json);
  if ('anyOf' in root || 'oneOf' in root) return false;
  const type = root['type'];
  if (Array.isArray(type)) return type.length === 1 && type[0] === 'object';
  if (type !== undefined) return type === 'object';
  if ('properties' in root || Object.keys(root).length === 0) return true;
  const all = root['allOf'];
  return (
    Array.isArray(all) &&
    all.length === 1 &&
    isObject(all[0]) &&
    hasObjectRoot({ ...root, allOf: undefined, ...all[0] })
  );
}
