import type { AnySchema, JsonSchema } from './schema.ts';
import type { NullPlan } from './null-plan.ts';
import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { isObject, isPlainObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import { kindOf } from '../base/options.ts';
import { issueTexts } from './issues.ts';
import { dropLoweredNulls, lowerOptionalMembers, nullPlan } from './null-plan.ts';
import { copySchema, freezeDeep } from './schema-parts.ts';
import { hasObjectRoot, hasStandard, inputJson, isHandWritten, withJson } from './schema.ts';
import { strictForm } from './strict-schema.ts';
import { validateNow } from './validate.ts';

/** Arguments of one call, ready for `execute`; or why they cannot run, and what of it a model may read. */
export type ParsedArguments =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly error: ModelBehaviorError;
      /** Paths and kinds that do not fit, `days: expected number; …`; empty when the text was no JSON object. */
      readonly issues: string;
    };

/** What a tool makes of its `parameters`, once. */
export interface Parameters {
  /** On the wire. Frozen. */
  readonly json: JsonSchema;
  /** The schema that checks; absent for bare JSON Schema and for tools without parameters. */
  readonly schema: AnySchema | undefined;
  /** Its JSON Schema as the user declared it, for messages. */
  readonly declared: JsonSchema;
  readonly nulls: NullPlan | undefined;
  /** No parameters were declared: whatever came, there are no arguments. */
  readonly none: boolean;
}

/** What messages about a schema say: whose it is, the option that it came in, what to do about what strict mode cannot express. */
export interface SchemaSource {
  readonly where: string;
  readonly option: string;
  readonly remedy: string;
}

export const parametersOf = (where: string): SchemaSource => ({
  where,
  option: 'parameters',
  remedy: 'Change the shape, or pass `strict: false`.',
});

/** @throws UserError for what is no schema of an object, and for what strict mode cannot express */
export function readParameters(parameters: unknown, strict: boolean, source: SchemaSource): Parameters {
  const { where, option, remedy } = source;
  if (parameters === undefined)
    return { json: emptyObject(), schema: undefined, declared: {}, nulls: undefined, none: true };
  if (hasStandard(parameters)) return fromSchema(withJson(parameters, where), strict, source);
  if (!isPlainObject(parameters))
    throw new UserError(
      `${where}: \`${option}\` takes a Standard Schema or a JSON Schema object, not ${kindOf(parameters)}.`,
    );
  const declared = freezeDeep(copySchema(parameters, where));
  if (Object.keys(declared).length === 0)
    return { json: emptyObject(), schema: undefined, declared, nulls: undefined, none: false };
  needObject(declared, source);
  return {
    json: strict ? freezeDeep(strictForm(declared, where, remedy)) : declared,
    schema: undefined,
    declared,
    nulls: undefined,
    none: false,
  };
}

function fromSchema(schema: AnySchema, strict: boolean, source: SchemaSource): Parameters {
  const { where, remedy } = source;
  const declared = freezeDeep(inputJson(schema, where));
  if (Object.keys(declared).length === 0)
    return { json: emptyObject(), schema, declared, nulls: undefined, none: false };
  needObject(declared, source);
  if (!strict) return { json: declared, schema, declared, nulls: undefined, none: false };
  if (isHandWritten(schema))
    return { json: freezeDeep(strictForm(declared, where, remedy)), schema, declared, nulls: undefined, none: false };
  const lowered = copySchema(declared, where);
  lowerOptionalMembers(lowered);
  return {
    json: freezeDeep(strictForm(lowered, where, remedy)),
    schema,
    declared,
    nulls: nullPlan(declared),
    none: false,
  };
}

function needObject(schema: JsonSchema, { where, option }: SchemaSource): void {
  if (!hasObjectRoot(schema))
    throw new UserError(
      `${where}: \`${option}\` must be an object at the root. Put the value into a member of an object.`,
    );
}

const emptyObject = (): JsonSchema =>
  freezeDeep({ type: 'object', properties: {}, required: [], additionalProperties: false });

/**
 * Reads the arguments of one call: JSON, an object, no numbers without a JSON form, and what the schema says of it.
 * @param whose `tool` or `handoff`, with its name
 * @throws UserError when the schema validates asynchronously; that is no fault of the model
 */
export function parseArguments(whose: string, parameters: Parameters, argumentsJson: string): ParsedArguments {
  let value: unknown;
  try {
    value = argumentsJson === '' ? {} : JSON.parse(argumentsJson);
  } catch (error) {
    return noJson(whose, argumentsJson, error);
  }
  if (!isObject(value)) return misfit(whose, { expectation: 'an object was expected' });
  // JSON.parse makes Infinity of `1e999`; only a long number can, so most texts need no walk.
  if (longNumber.test(argumentsJson) && !allFinite(value)) return noJson(whose, argumentsJson, undefined);
  const { schema, nulls, declared } = parameters;
  if (parameters.none) return { ok: true, value: {} };
  if (schema === undefined) return { ok: true, value };
  if (nulls) dropLoweredNulls(value, nulls);
  const checked = validateNow(schema, value, `${whose}: parameters`);
  if (checked.ok) return checked;
  return misfit(whose, { issues: issueTexts(checked.issues, declared, value), cause: checked.cause });
}

/** Of a call that nobody could decide: a text with half a surrogate pair cannot be told from others (STATE-102, 166). */
export function undecidable(toolName: string): ParsedArguments {
  const expectation = 'a text has half of a surrogate pair';
  return { ...misfit(`tool ${toolName}`, { expectation }), issues: expectation };
}

type Unusable = Extract<ParsedArguments, { ok: false }>;

function noJson(whose: string, argumentsJson: string, cause: unknown): Unusable {
  return unusable(`Invalid JSON input for ${whose}`, { details: argumentsJson, cause });
}

/** It is JSON, of another shape. */
function misfit(
  whose: string,
  { expectation, issues = '', cause }: { expectation?: string; issues?: string; cause?: unknown },
): Unusable {
  const base = `Invalid arguments for ${whose}`;
  if (expectation !== undefined) return unusable(`${base}: ${expectation}`, {});
  return { ...unusable(base, { details: issues, cause }), issues };
}

/** The payload and the cause stay out of the error unless logging of tool data is on. */
function unusable(message: string, { details, cause }: { details?: string; cause?: unknown }): Unusable {
  const shown = details !== undefined && !getLogger().dontLogToolData;
  const error = shown ? new ModelBehaviorError(`${message}: ${details}`, { cause }) : new ModelBehaviorError(message);
  return { ok: false, error, issues: '' };
}

const longNumber = /[eE]\+?\d{3}|\d{309}/;

function allFinite(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(allFinite);
}
