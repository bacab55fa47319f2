import { answersLater } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';

/**
 * A detached copy of a value as plain JSON data: `undefined` members go, iterables become arrays, `toJSON` is asked.
 * `name` is how errors call the value.
 * @throws UserError that names the path of what JSON cannot hold
 */
export function plainCopy<T>(value: T, name: string): T {
  const walk: Walk = { keys: [name], parents: [] };
  try {
    return copy(value, walk) as T;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UserError(`${name} is nested too deeply.`, { cause: error });
  }
}

/** Where the copy is: keys for error messages, objects to find cycles. */
interface Walk {
  readonly keys: string[];
  readonly parents: object[];
}

function copy(value: unknown, walk: Walk): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value !== 'object') throw notPlain(walk, `is ${kindOf(value)}`);
  if (walk.parents.includes(value)) throw notPlain(walk, 'contains itself');
  walk.parents.push(value);
  const plain = copyObject(value, walk);
  walk.parents.pop();
  return plain;
}

function copyObject(value: object, walk: Walk): unknown {
  if (Array.isArray(value)) return copyList(value, walk);
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    const json = (value as { toJSON(): unknown }).toJSON();
    if (answersLater(json)) throw notPlain(walk, 'has a toJSON that gives a promise');
    return copy(json, walk);
  }
  if (Symbol.iterator in value) return copyList(value as Iterable<unknown>, walk);
  const plain: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    walk.keys.push(`.${key}`);
    const copied = copy(member, walk);
    walk.keys.pop();
    // Assigning __proto__ would set the prototype instead.
    if (key === '__proto__')
      Object.defineProperty(plain, key, { value: copied, enumerable: true, writable: true, configurable: true });
    else plain[key] = copied;
  }
  return plain;
}

function copyList(list: Iterable<unknown>, walk: Walk): unknown[] {
  const plain: unknown[] = [];
  for (const member of list) {
    walk.keys.push(`[${plain.length}]`);
    plain.push(copy(member, walk));
    walk.keys.pop();
  }
  return plain;
}

function notPlain(walk: Walk, what: string): UserError {
  return new UserError(`${walk.keys.join('')} ${what}, which JSON cannot hold.`);
}
