import type { JsonSchema } from './schema.ts';
import type { Json } from './schema-parts.ts';
import { isObject } from '../base/json.ts';
import { jsonEqual, partsOf, resolvePointer } from './schema-parts.ts';

/**
 * Optional members in strict mode: strict schemas know no optional members, so they are sent as required and nullable
 * (`lowerOptionalMembers`), and a `null` that comes back for one is dropped before validation (`dropLoweredNulls`).
 */
export function lowerOptionalMembers(root: Json): void {
  const lower = (node: Json): void => {
    for (const part of partsOf(node, 'strict')) if (isObject(part.schema)) lower(part.schema);
    const { properties } = node;
    if (!isObject(properties)) return;
    for (const name of loweredMembers(node, root)) properties[name] = nullable(properties[name]);
  };
  lower(root);
}

function nullable(schema: unknown): Json {
  if (!isObject(schema)) return { anyOf: [schema, { type: 'null' }] };
  const { description, title, default: preset, ...inner } = schema;
  return {
    anyOf: [inner, { type: 'null' }],
    ...(description !== undefined && { description }),
    ...(title !== undefined && { title }),
    ...(preset !== undefined && preset !== null && { default: preset }),
  };
}

/** Members that may be absent and do not take `null` of their own. */
function loweredMembers(node: Json, root: Json): string[] {
  const { properties, required } = node;
  if (!isObject(properties)) return [];
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.keys(properties).filter((name) => !needed.has(name) && !takesNull(properties[name], root, new Set()));
}

function takesNull(schema: unknown, root: Json, seen: Set<Json>): boolean {
  if (!isObject(schema)) return schema === true;
  if (seen.has(schema)) return false;
  seen.add(schema);
  if (typeof schema['$ref'] === 'string') return takesNull(resolvePointer(root, schema['$ref']), root, seen);
  const { type, anyOf, oneOf, allOf } = schema;
  if (type !== undefined) return type === 'null' || (Array.isArray(type) && type.includes('null'));
  if ('const' in schema) return schema['const'] === null;
  if (Array.isArray(schema['enum'])) return schema['enum'].includes(null);
  const choice = anyOf ?? oneOf;
  if (Array.isArray(choice)) return choice.some((entry) => takesNull(entry, root, seen));
  if (Array.isArray(allOf)) return allOf.every((entry) => takesNull(entry, root, seen));
  return !('properties' in schema || 'items' in schema);
}

/** Where a value can hold a `null` that only says "absent". */
export interface NullPlan {
  readonly lowered: readonly string[];
  readonly members: readonly (readonly [name: string, plan: NullPlan])[];
  readonly prefix: readonly (NullPlan | undefined)[];
  readonly rest: NullPlan | undefined;
  readonly all: readonly NullPlan[];
  readonly choices: readonly { readonly schema: unknown; readonly plan: NullPlan | undefined }[];
  readonly root: Json;
}

/** The plan of a schema as it was before lowering; `undefined` when there is nothing to drop. */
export function nullPlan(schema: JsonSchema): NullPlan | undefined {
  const root = schema;
  const plans = new Map<Json, NullPlan | undefined>();
  let any = false;

  const planOf = (node: unknown): NullPlan | undefined => {
    if (!isObject(node)) return undefined;
    if (plans.has(node)) return plans.get(node);
    const plan = {
      lowered: loweredMembers(node, root),
      members: [] as [string, NullPlan][],
      prefix: [] as (NullPlan | undefined)[],
      rest: undefined as NullPlan | undefined,
      all: [] as NullPlan[],
      choices: [] as { schema: unknown; plan: NullPlan | undefined }[],
      root,
    };
    // Before anything below is asked, so that recursive types find it.
    plans.set(node, plan);
    any ||= plan.lowered.length > 0;
    if (isObject(node['properties'])) {
      for (const [name, member] of Object.entries(node['properties'])) {
        const below = planOf(member);
        if (below) plan.members.push([name, below]);
      }
    }
    const { items, prefixItems, allOf } = node;
    if (Array.isArray(prefixItems)) plan.prefix.push(...prefixItems.map(planOf));
    if (Array.isArray(items)) plan.prefix.push(...items.map(planOf));
    else plan.rest = planOf(items);
    for (const entry of [
      ...(Array.isArray(allOf) ? allOf : []),
      typeof node['$ref'] === 'string' && resolvePointer(root, node['$ref']),
    ]) {
      const below = planOf(entry);
      if (below) plan.all.push(below);
    }
    const choices = [node['anyOf'], node['oneOf']]
      .flatMap((list) => (Array.isArray(list) ? list : []))
      .map((entry: unknown) => ({ schema: entry, plan: planOf(entry) }));
    if (choices.some((choice) => choice.plan)) plan.choices.push(...choices);
    const empty =
      !plan.lowered.length &&
      !plan.members.length &&
      !plan.prefix.some(Boolean) &&
      !plan.rest &&
      !plan.all.length &&
      !plan.choices.length;
    if (empty) plans.set(node, undefined);
    return empty ? undefined : plan;
  };

  const plan = planOf(root);
  return any ? plan : undefined;
}

/** Drops them from a value of our own, in place. */
export function dropLoweredNulls(value: unknown, plan: NullPlan): void {
  if (Array.isArray(value)) {
    value.forEach((entry, index) => {
      const below = plan.prefix[index] ?? plan.rest;
      if (below) dropLoweredNulls(entry, below);
    });
  } else if (isObject(value)) {
    for (const name of plan.lowered) if (value[name] === null && Object.hasOwn(value, name)) delete value[name];
    for (const [name, below] of plan.members) if (Object.hasOwn(value, name)) dropLoweredNulls(value[name], below);
  } else return;
  for (const below of plan.all) dropLoweredNulls(value, below);
  if (plan.choices.length === 0) return;
  const choice =
    plan.choices.find(({ schema }) => fits(schema, value, plan.root, true, 0)) ??
    plan.choices.find(({ schema }) => fits(schema, value, plan.root, false, 0));
  if (choice?.plan) dropLoweredNulls(value, choice.plan);
}

/**
 * Whether a value has the shape of a schema, `null` for optional members allowed: enough to tell the branches of a union
 * apart, no validation. `closed`: members that the schema does not name are a mismatch.
 */
function fits(schema: unknown, value: unknown, root: Json, closed: boolean, depth: number): boolean {
  if (!isObject(schema) || depth > 100) return schema !== false;
  const below = (part: unknown, at: unknown, isClosed = closed): boolean => fits(part, at, root, isClosed, depth + 1);
  if (typeof schema['$ref'] === 'string') return below(resolvePointer(root, schema['$ref']), value);
  const { type, anyOf, oneOf, allOf } = schema;
  if (type !== undefined && !(Array.isArray(type) ? type : [type]).some((kind) => isKind(value, kind))) return false;
  if ('const' in schema && !jsonEqual(schema['const'], value)) return false;
  if (Array.isArray(schema['enum']) && !schema['enum'].some((entry) => jsonEqual(entry, value))) return false;
  for (const choice of [anyOf, oneOf])
    if (Array.isArray(choice) && !choice.some((entry) => below(entry, value))) return false;
  if (Array.isArray(allOf) && !allOf.every((entry) => below(entry, value, false))) return false;
  if (Array.isArray(value)) {
    const { items, prefixItems } = schema;
    const prefix: unknown[] = Array.isArray(prefixItems) ? prefixItems : [];
    return value.every((entry, index) => below(index < prefix.length ? prefix[index] : (items ?? true), entry));
  }
  if (!isObject(value) || !isObject(schema['properties'])) return true;
  const { properties, required } = schema;
  if (Array.isArray(required) && !required.every((name) => Object.hasOwn(value, name as string))) return false;
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(value).every(([name, member]) => {
    if (!Object.hasOwn(properties, name)) return !closed;
    return (member === null && !needed.has(name)) || below(properties[name], member);
  });
}

/** Whether a value is of a JSON Schema `type`. */
export function isKind(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
