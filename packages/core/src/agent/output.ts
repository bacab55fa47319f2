import type { AnyAgent } from './agent.ts';
import type { AnySchema, JsonSchema, SchemaWithJson } from './schema.ts';
import type { Json } from './schema-parts.ts';
import { internal } from '../base/brand.ts';
import { atOnce } from '../base/at-once.ts';
import { AgentsError, ModelBehaviorError, UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { spanMessages } from '../tracing/messages.ts';
import type { TextFilter } from '../tracing/sensitive.ts';
import { issueTexts } from './issues.ts';
import { dropLoweredNulls, lowerOptionalMembers, nullPlan } from './null-plan.ts';
import { copySchema, freezeDeep } from './schema-parts.ts';
import { hasObjectRoot, hasStandard, inputJson, isHandWritten, withJson } from './schema.ts';
import { strictForm } from './strict-schema.ts';
import { validateNow } from './validate.ts';

/** What the model is asked for as final output, and how its text becomes a value. */
export interface OutputSchema<out T> {
  readonly name: string;
  readonly strict: boolean;
  jsonSchema(): JsonSchema;
  /** @throws ModelBehaviorError when the text does not fit. */
  validateJson(json: string): T;
}

export type OutputType<O> = 'text' | SchemaWithJson<unknown, O> | OutputSchema<O>;

/** A schema with options; a plain schema in `outputType` is `outputSchema(schema)`. `strict` default `true`, `name` default `final_output`. */
export function outputSchema<T>(
  schema: SchemaWithJson<unknown, T>,
  options: { strict?: boolean; name?: string } = {},
): OutputSchema<T> {
  if (!hasStandard(schema))
    throw new UserError(
      `outputSchema: takes a Standard Schema, not ${kindOf(schema)}. A bare JSON Schema goes into jsonSchema().`,
    );
  checkOptions(options, { strict: kinds.boolean, name: kinds.string }, 'outputSchema');
  const { name = defaultName, strict = true } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new UserError(`outputSchema: the name '${name}' is none. Pass 1 to 64 letters, digits, _ or -.`);
  return compile(withJson(schema, 'outputSchema'), name, strict, 'outputSchema') as OutputSchema<T>;
}

const defaultName = 'final_output';

/** How an agent's answers become its final output. */
export type ResolvedOutput = { readonly type: 'text' } | StructuredOutput;

export interface StructuredOutput {
  readonly type: 'schema';
  /** For the model's request. */
  readonly request: { readonly name: string; readonly schema: JsonSchema; readonly strict: boolean };
  /** @throws ModelBehaviorError when the text does not fit; UserError when the schema validates asynchronously */
  readonly parse: (text: string) => unknown;
  /** The text that the model would have answered for a value that is there already: compact JSON, wrapped where its own is. @throws TypeError for what has no JSON */
  readonly render: (value: unknown) => string;
}

/** What the current span shows of a final output that does not fit (TOOL-O8). */
export function outputSpanError(
  error: ModelBehaviorError,
  show: TextFilter,
): { message: string; data: Record<string, string> } {
  const details = show?.(error.message);
  return { message: spanMessages.invalidJsonProvided, data: details === undefined ? {} : { details } };
}

const text: ResolvedOutput = { type: 'text' };

/**
 * What an agent's final output is. Worked out once per agent, at its first use, and kept on the agent.
 * @throws UserError naming the path that strict mode, or JSON Schema, cannot express
 */
export function resolveOutput(agent: AnyAgent): ResolvedOutput {
  const slot = (agent as unknown as { readonly [internal]: { output: ResolvedOutput | undefined } })[internal];
  return (slot.output ??= structured(agent.outputType, `agent ${agent.name}: outputType`));
}

function structured(outputType: AnyAgent['outputType'], where: string): ResolvedOutput {
  if (outputType === 'text') return text;
  const schema = isOutputSchema(outputType)
    ? outputType
    : compile(withJson(outputType, where), defaultName, true, where);
  const { name, strict } = schema;
  return {
    type: 'schema',
    request: { name, strict, schema: schema.jsonSchema() },
    parse: (json) => valueOf(schema, json),
    render: (value) => jsonOf(schema instanceof CompiledOutput ? schema.transported(value) : value),
  };
}

function jsonOf(value: unknown): string {
  const json: unknown = JSON.stringify(value);
  if (typeof json === 'string') return json;
  throw new TypeError('The value has no JSON form.');
}

/** A schema of somebody's own making may throw whatever it likes. */
function valueOf<T>(schema: OutputSchema<T>, json: string): T {
  try {
    return atOnce(schema.validateJson(json), `output type ${schema.name}: validateJson`);
  } catch (error) {
    if (error instanceof AgentsError) throw error;
    throw misfit(schema.name, 'does not fit', '', json, error);
  }
}

/** @throws UserError that names the accepted forms, for anything else @internal */
export function checkOutputType(outputType: unknown, where: string): void {
  if (outputType === 'text' || isOutputSchema(outputType)) return;
  if (!hasStandard(outputType))
    throw new UserError(
      `${where}: the field \`outputType\` takes 'text', a Standard Schema or outputSchema(…), not ${kindOf(outputType)}. A bare JSON Schema goes into jsonSchema().`,
    );
  withJson(outputType, `${where}: outputType`);
}

function isOutputSchema(value: unknown): value is OutputSchema<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'validateJson' in value &&
    typeof value.validateJson === 'function' &&
    'jsonSchema' in value
  );
}

/**
 * The value as a schema gives it, for values that are there already (`finalOutputAs`).
 * @throws TypeError when it does not fit @throws UserError when the schema validates asynchronously
 */
export function parseValue<T>(schema: SchemaWithJson<unknown, T> | OutputSchema<T>, value: unknown): T {
  checkOutputType(schema, 'finalOutputAs');
  try {
    if (!isOutputSchema(schema))
      return compile(withJson(schema, 'finalOutputAs'), defaultName, false, 'finalOutputAs').check(value) as T;
    return schema instanceof CompiledOutput ? (schema.check(value) as T) : valueOf(schema, JSON.stringify(value) ?? '');
  } catch (error) {
    if (error instanceof ModelBehaviorError) throw new TypeError(error.message, { cause: error });
    throw error;
  }
}

const remedy = 'Change the shape, or use outputSchema(schema, { strict: false }).';

function compile(schema: AnySchema, name: string, strict: boolean, where: string): CompiledOutput {
  const declared = freezeDeep(inputJson(schema, where));
  const wrapped = !hasObjectRoot(declared);
  const lowers = strict && !isHandWritten(schema);
  let json = copySchema(declared, where);
  if (lowers) lowerOptionalMembers(json);
  if (wrapped) json = wrap(json);
  if (strict) json = strictForm(json, where, remedy);
  return new CompiledOutput(
    name,
    strict,
    freezeDeep(json),
    schema,
    declared,
    wrapped,
    lowers ? nullPlan(declared) : undefined,
  );
}

/** The one member of the object around an answer that is none. */
const wrapper = 'response';

function wrap(json: Json): Json {
  const { $defs, definitions, ...inner } = json;
  movePointers(inner);
  for (const map of [$defs, definitions]) if (isObject(map)) movePointers(map);
  return {
    type: 'object',
    properties: { [wrapper]: inner },
    required: [wrapper],
    additionalProperties: false,
    ...(isObject($defs) && { $defs }),
    ...(isObject(definitions) && { definitions }),
  };
}

/** Definitions stay at the root; what pointed elsewhere from the old root does so from the member. */
function movePointers(value: unknown): void {
  if (Array.isArray(value)) value.forEach(movePointers);
  if (!isObject(value)) return;
  const ref = value['$ref'];
  if (typeof ref === 'string' && ref.startsWith('#') && !/^#\/(\$defs|definitions)\//.test(ref))
    value['$ref'] = `#/properties/${wrapper}${ref.slice(1)}`;
  for (const member of Object.values(value)) movePointers(member);
}

class CompiledOutput implements OutputSchema<unknown> {
  readonly name: string;
  readonly strict: boolean;
  readonly #json: JsonSchema;
  readonly #schema: AnySchema;
  readonly #declared: JsonSchema;
  readonly #wrapped: boolean;
  readonly #nulls: ReturnType<typeof nullPlan>;

  constructor(
    name: string,
    strict: boolean,
    json: JsonSchema,
    schema: AnySchema,
    declared: JsonSchema,
    wrapped: boolean,
    nulls: ReturnType<typeof nullPlan>,
  ) {
    this.name = name;
    this.strict = strict;
    this.#json = json;
    this.#schema = schema;
    this.#declared = declared;
    this.#wrapped = wrapped;
    this.#nulls = nulls;
  }

  jsonSchema(): JsonSchema {
    return this.#json;
  }

  validateJson(json: string): unknown {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch (error) {
      throw misfit(this.name, 'is no JSON', '', json, error);
    }
    if (this.#wrapped) {
      if (!isObject(value) || !Object.hasOwn(value, wrapper))
        throw misfit(this.name, `lacks the key '${wrapper}'`, '', json, undefined);
      value = value[wrapper];
    }
    if (this.#nulls) dropLoweredNulls(value, this.#nulls);
    return this.check(value, json);
  }

  /** A value as it stands in an answer. */
  transported(value: unknown): unknown {
    return this.#wrapped ? { [wrapper]: value } : value;
  }

  /** Of a value that is there already. */
  check(value: unknown, json?: string): unknown {
    const checked = validateNow(this.#schema, value, `output type ${this.name}`);
    if (checked.ok) return checked.value;
    throw misfit(this.name, 'does not fit', issueTexts(checked.issues, this.#declared, value), json, checked.cause);
  }
}

/** Payload and cause stay out of the error unless logging of model data is on; paths and kinds say nothing of the payload. */
function misfit(
  name: string,
  problem: string,
  issues: string,
  payload: string | undefined,
  cause: unknown,
): ModelBehaviorError {
  const open = !getLogger().dontLogModelData;
  const problems = issues === '' ? problem : `${problem}: ${issues}`;
  return new ModelBehaviorError(
    `The final output ${problems} (output type ${name})${open && payload !== undefined ? `: ${payload}` : ''}`,
    open ? { cause } : {},
  );
}
