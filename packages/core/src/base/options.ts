import { UserError } from './errors.ts';
import { isObject, isPlainObject } from './json.ts';

/** What is wrong with a value, as the end of "… must be …" (`a string`); `undefined` when it is fine. */
export type Check = (value: unknown) => string | undefined;

/**
 * Checks an options object: a plain mistake of the caller becomes a `UserError` that names the option. `undefined` as a
 * whole or as a member means "not given". `where` says whose options these are: `Agent`, `run()`, `tool "refund"`.
 *
 * @throws UserError for anything but a plain object, unknown keys (with the nearest known one) and values of a wrong kind
 */
export function checkOptions(
  options: unknown,
  known: readonly string[] | Readonly<Record<string, Check>>,
  where: string,
): void {
  if (options === undefined) return;
  checkObject(options, where);
  for (const [key, value] of Object.entries(options)) {
    const isKnown = isList(known) ? known.includes(key) : Object.hasOwn(known, key);
    if (!isKnown) throw unknownOption(key, isList(known) ? known : Object.keys(known), where);
    if (value === undefined || isList(known)) continue;
    const expected = known[key]?.(value);
    if (expected !== undefined)
      throw new UserError(`Option '${key}' of ${where} must be ${expected}, not ${kindOf(value)}.`);
  }
}

/**
 * The first part of `checkOptions`, for whoever takes options apart before they are checked. Only of a plain object are the
 * members seen that it was given.
 *
 * @throws UserError
 */
export function checkObject(options: unknown, where: string): asserts options is object {
  if (!isObject(options)) throw new UserError(`Options of ${where} must be an object, not ${kindOf(options)}.`);
  if (isPlainObject(options)) return;
  const tag = Object.prototype.toString.call(options).slice(8, -1);
  const kind = tag === 'Object' ? 'an instance of a class' : `a ${tag}`;
  throw new UserError(`Options of ${where} must be a plain object, not ${kind}.`);
}

/** Kinds of values for `checkOptions`. */
export const kinds: {
  readonly any: Check;
  readonly string: Check;
  readonly nonEmptyString: Check;
  readonly boolean: Check;
  readonly number: Check;
  readonly function: Check;
  readonly object: Check;
  readonly array: Check;
  readonly abortSignal: Check;
  integer(min: number): Check;
  oneOf(...values: readonly string[]): Check;
  nullable(check: Check): Check;
  either(...checks: readonly Check[]): Check;
} = {
  any: () => undefined,
  string: (value) => (typeof value === 'string' ? undefined : 'a string'),
  nonEmptyString: (value) =>
    typeof value === 'string' && value.trim() !== '' ? undefined : 'a string that is not empty',
  boolean: (value) => (typeof value === 'boolean' ? undefined : 'true or false'),
  number: (value) => (typeof value === 'number' && Number.isFinite(value) ? undefined : 'a finite number'),
  function: (value) => (typeof value === 'function' ? undefined : 'a function'),
  object: (value) => (isObject(value) ? undefined : 'an object'),
  array: (value) => (Array.isArray(value) ? undefined : 'an array'),
  // Of any maker: what of it is used has to be there.
  abortSignal: (value) => {
    const { aborted, addEventListener, removeEventListener } = (value ?? {}) as Partial<AbortSignal>;
    const isSignal =
      typeof aborted === 'boolean' &&
      typeof addEventListener === 'function' &&
      typeof removeEventListener === 'function';
    return isSignal ? undefined : 'an AbortSignal';
  },
  integer: (min) => (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min
      ? undefined
      : `an integer of at least ${min}`,
  oneOf: (...values) => {
    const expected = values.map((value) => `'${value}'`).join(' or ');
    return (value) => (typeof value === 'string' && values.includes(value) ? undefined : expected);
  },
  nullable: (check) => (value) => {
    const expected = value === null ? undefined : check(value);
    return expected === undefined ? undefined : `${expected} or null`;
  },
  either:
    (...checks) =>
    (value) => {
      const expected: string[] = [];
      for (const check of checks) {
        const problem = check(value);
        if (problem === undefined) return undefined;
        expected.push(problem);
      }
      return expected.join(' or ');
    },
};

/** A value's kind without the value: what error messages may show. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'undefined';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number' && !Number.isInteger(value))
    return Number.isFinite(value) ? 'a fraction' : String(value);
  if (typeof value === 'number') return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The known name that `name` was probably meant to be. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  // A third of the letters may be wrong; case and separators do not count (`max_turns`).
  let best = Math.floor(Math.max(name.length, 3) / 3) + 1;
  const wanted = simplified(name);
  for (const candidate of known) {
    const distance = editDistance(wanted, simplified(candidate));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

function unknownOption(key: string, names: readonly string[], where: string): UserError {
  const nearest = nearestName(key, names);
  const hint = nearest === undefined ? `Known: ${names.join(', ') || 'none'}.` : `Did you mean '${nearest}'?`;
  return new UserError(`Unknown option '${key}' of ${where}. ${hint}`);
}

function isList(known: readonly string[] | Readonly<Record<string, Check>>): known is readonly string[] {
  return Array.isArray(known);
}

function simplified(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
