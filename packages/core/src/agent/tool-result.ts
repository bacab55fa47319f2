import type { AnySchema, JsonSchema } from './schema.ts';
import { UserError } from '../base/errors.ts';
import { isObject, isPlainObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { issueTexts } from './issues.ts';
import { copySchema, findPart, freezeDeep, joinPath, showPath } from './schema-parts.ts';
import { hasObjectRoot, hasStandard, isHandWritten, outputJson, withJson } from './schema.ts';
import { strictForm } from './strict-schema.ts';
import { validateNow } from './validate.ts';

/** What a tool makes of its `outputSchema`, once. */
export interface DeclaredResult {
  /** On the wire. Frozen. */
  readonly json: JsonSchema;
  /**
   * What the tool returned, as the schema gives it, and as compact JSON.
   * @throws UserError when it does not fit, or has no JSON form
   */
  readonly read: (value: unknown) => { readonly value: unknown; readonly text: string };
}

/** @throws UserError for what is no schema of an object, and for what strict mode cannot express (TOOL-F8) */
export function readResultSchema(given: unknown, tool: string): DeclaredResult {
  const where = `tool ${tool}: outputSchema`;
  const schema = hasStandard(given) ? withJson(given, where) : undefined;
  if (schema === undefined) checkDocument(given, where);
  const declared = schema ? outputJson(schema, where) : copySchema(given as JsonSchema, where);
  if (Object.keys(declared).length === 0 || !hasObjectRoot(declared))
    throw new UserError(`${where}: must be an object at the root. Put the value into a member of an object.`);
  // Valibot gives both sides alike: what a default fills is there in the end.
  if (schema && !isHandWritten(schema)) refuseOptional(declared, where, schema['~standard'].vendor === 'valibot');
  const json = freezeDeep(strictForm(declared, where, 'Change the shape.'));
  return { json, read: (value) => read(value, schema, declared, tool) };
}

/** @throws UserError for what is no JSON Schema document, with the way where it is clear what was meant */
function checkDocument(given: unknown, where: string): void {
  if (isObject(given) && typeof given['validateJson'] === 'function')
    throw new UserError(
      `${where}: takes the schema itself, not what \`outputSchema()\` makes of it, which is for agents.`,
    );
  if (!isPlainObject(given))
    throw new UserError(`${where}: takes a Standard Schema or a JSON Schema object, not ${kindOf(given)}.`);
}

/** The wire form says that every member is there; a value without one would break that word. */
function refuseOptional(declared: JsonSchema, where: string, defaultsFill: boolean): void {
  const found = findPart(declared, (node) => optionalMember(node, defaultsFill) !== undefined);
  if (found === undefined) return;
  const path = joinPath(found.path, optionalMember(found.node, defaultsFill) ?? '');
  throw new UserError(
    `${where}: ${showPath(path)} is optional, and strict mode wants every member. Make it nullable, and return null.`,
  );
}

function optionalMember(
  { properties, required }: Readonly<Record<string, unknown>>,
  defaultsFill: boolean,
): string | undefined {
  if (!isObject(properties)) return undefined;
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const isFilled = (member: unknown): boolean => defaultsFill && isObject(member) && 'default' in member;
  return Object.keys(properties).find((name) => !needed.includes(name) && !isFilled(properties[name]));
}

function read(
  given: unknown,
  schema: AnySchema | undefined,
  declared: JsonSchema,
  tool: string,
): { readonly value: unknown; readonly text: string } {
  let value = given;
  if (schema) {
    const checked = validateNow(schema, given, `tool ${tool}: outputSchema`);
    if (!checked.ok)
      throw new UserError(
        `tool ${tool}: what it returned does not match its \`outputSchema\`: ${issueTexts(checked.issues, declared, given)}.`,
      );
    value = checked.value;
  }
  return { value, text: resultText(value, tool) };
}

/** What the model reads of a declared value. @throws UserError for what is no object with a JSON form */
export function resultText(value: unknown, tool: string): string {
  const text = isObject(value) ? jsonForm(value) : undefined;
  // A `toJSON` may make anything of an object.
  if (text?.startsWith('{')) return text;
  throw new UserError(
    `tool ${tool}: what it returned must be an object with a JSON form, since the tool has an \`outputSchema\`; it is ${unfit(value)}.`,
  );
}

/** Never the value itself, which `kindOf` tells of numbers. */
function unfit(value: unknown): string {
  if (isObject(value))
    return 'an object of which JSON would tell something else (Date, Map, bytes), or nothing (a cycle, a bigint, NaN)';
  return typeof value === 'number' ? 'a number' : kindOf(value);
}

/**
 * Compact JSON of a value; `undefined` where there is none, or where it would say something else: `null` for NaN, `{}` for
 * a Map. Members without a value are left out. Never throws.
 */
export function jsonForm(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, refuseLoss);
  } catch {
    // A cycle, a bigint, a getter or `toJSON` that throws, or what is refused here.
    return undefined;
  }
}

function refuseLoss(_key: string, value: unknown): unknown {
  const isLost = typeof value === 'number' ? !Number.isFinite(value) : isObject(value) && isHollow(value);
  if (isLost) throw new TypeError('has no JSON form');
  return value;
}

/** What an instance holds is not in its members, or they are bytes. */
function isHollow(value: object): boolean {
  if (ArrayBuffer.isView(value)) return true;
  return !isPlainObject(value) && Object.keys(value).length === 0;
}
