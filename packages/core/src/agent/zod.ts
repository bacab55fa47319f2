import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnySchema } from './schema.ts';
import { isObject, isPlainObject } from '../base/json.ts';

/**
 * What zod 4 offers to libraries: one run of a schema. In a context that does not say `async`, refinements give a promise
 * where they wait for something, and transforms throw then.
 */
interface ZodInternals {
  readonly def: Readonly<Record<string, unknown>>;
  run?(payload: ZodPayload, context: Readonly<Record<string, never>>): ZodPayload | PromiseLike<ZodPayload>;
  /** Of a check. */
  readonly check?: unknown;
}

interface ZodPayload {
  value: unknown;
  issues: readonly { readonly message?: string; readonly path?: readonly PropertyKey[] }[];
}

/** Whether a schema waits for something: only code of the user's own may, `async` functions do. */
type Waits = 'never' | 'perhaps' | 'always';

/** Schemas whose parts were looked at. */
const known = new WeakMap<object, Waits>();

/**
 * Runs a zod schema that may wait for something. zod itself tries everything at once first, and lets go of promises that
 * it finds then: one that rejects would end the process.
 *
 * @returns a promise for a schema that waits; `undefined` for those that cannot, and for all others than zod's
 */
export function runPatiently(
  schema: AnySchema,
  value: unknown,
): StandardSchemaV1.Result<unknown> | PromiseLike<unknown> | undefined {
  const internals = internalsOf(schema);
  if (typeof internals?.run !== 'function') return undefined;
  const waits = waitsOf(schema);
  if (waits === 'never') return undefined;
  if (waits === 'always') return Promise.resolve();
  const result = internals.run({ value, issues: [] }, {});
  if (!('issues' in result)) return result;
  if (result.issues.length === 0) return { value: result.value };
  return { issues: result.issues.map(({ message = 'Invalid input', path = [] }) => ({ message, path })) };
}

/** Whether no part of a zod schema waits for anything: a promise of it then hides that something threw. */
export function neverWaits(schema: AnySchema): boolean {
  return internalsOf(schema) !== undefined && waitsOf(schema) === 'never';
}

/** `undefined`: no schema and no check of zod 4. */
function internalsOf(schema: object): ZodInternals | undefined {
  const { _zod: internals } = schema as { readonly _zod?: unknown };
  return isObject(internals) && isObject(internals['def']) ? (internals as unknown as ZodInternals) : undefined;
}

function waitsOf(schema: object): Waits {
  let waits = known.get(schema);
  if (waits === undefined) {
    waits = search(schema, new Set());
    known.set(schema, waits);
  }
  return waits;
}

/** Refinements, checks and transforms; parts that are made when they are needed may have some. */
const ownCode = new Set(['custom', 'transform', 'promise', 'lazy', 'function']);
/** Values of the user's own, some of which are made when they are looked at. */
const values = new Set(['defaultValue', 'catchValue', 'values', 'entries']);

function search(part: unknown, seen: Set<unknown>): Waits {
  if ((typeof part !== 'object' && typeof part !== 'function') || part === null || seen.has(part)) return 'never';
  seen.add(part);
  if (Array.isArray(part)) return most(part.map((member) => search(member, seen)));
  const internals = internalsOf(part);
  const def = internals?.def ?? (isPlainObject(part) ? part : undefined);
  if (def === undefined) return 'never';
  const within = most(Object.keys(def).map((key) => (values.has(key) ? 'never' : search(def[key], seen))));
  return internals === undefined ? within : most([within, ownWaits(def, internals.check)]);
}

function ownWaits({ type, check, fn, transform }: Readonly<Record<string, unknown>>, own: unknown): Waits {
  const isAsync = (code: unknown): boolean => Object.prototype.toString.call(code) === '[object AsyncFunction]';
  if ([fn, transform, own].some(isAsync)) return 'always';
  const mayWait = ownCode.has(String(type)) || ownCode.has(String(check));
  return mayWait || typeof fn === 'function' || typeof transform === 'function' ? 'perhaps' : 'never';
}

function most(all: readonly Waits[]): Waits {
  if (all.includes('always')) return 'always';
  return all.includes('perhaps') ? 'perhaps' : 'never';
}
