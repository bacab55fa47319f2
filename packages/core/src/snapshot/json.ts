import { UserError } from '../base/errors.ts';
import { isObject, isPlainObject, setOwn } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';

/** Levels of nesting that are written and read. */
const maxDepth = 200;

/** A JSON object under construction. */
export type Json = { [key: string]: JsonValue | undefined };

/** An own member; what a prototype has is never seen. */
export function own(object: JsonObject, key: string): JsonValue | undefined {
  const value = object[key];
  return value !== undefined && Object.hasOwn(object, key) ? value : undefined;
}

/**
 * Foreign errors may quote the payload (a JSON parser shows some of it), so they are attached only where logging of
 * sensitive data was switched on.
 */
export function visibleCause(error: unknown): { cause?: unknown } {
  const logger = getLogger();
  return logger.dontLogModelData || logger.dontLogToolData ? {} : { cause: error };
}

/** Lists that make up most of a state. Their elements are looked at when they are made or read, each once and not per list. */
const longLists: ReadonlySet<string> = new Set([
  'original_input',
  'session_items',
  'generated_items',
  'model_responses',
]);

/** All but the elements of the long lists. @throws UserError `json_too_large` */
export function checkDepth(state: unknown): void {
  if (!isObject(state)) {
    if (Array.isArray(state)) descend(state, maxDepth);
    return;
  }
  for (const key in state) {
    const member = state[key];
    if (typeof member === 'object' && member !== null && !(longLists.has(key) && Array.isArray(member)))
      descend(member, maxDepth - 1);
  }
}

/** An element of one of the long lists. @throws UserError `json_too_large` */
export function checkElementDepth(element: unknown): void {
  if (typeof element === 'object' && element !== null) descend(element, maxDepth - 2);
}

function descend(value: object, left: number): void {
  if (Array.isArray(value)) descendArray(value, left);
  else descendObject(value as Record<string, unknown>, left);
}

function descendArray(array: readonly unknown[], left: number): void {
  if (left === 0) throw tooDeep();
  for (let i = 0; i < array.length; i++) {
    const member = array[i];
    if (typeof member === 'object' && member !== null) descend(member, left - 1);
  }
}

function descendObject(object: Record<string, unknown>, left: number): void {
  if (left === 0) throw tooDeep();
  for (const key in object) {
    const member = object[key];
    if (typeof member === 'object' && member !== null) descend(member, left - 1);
  }
}

/** @throws UserError `json_too_large`: what is deeper could be written, but never read again. */
export function stringify(document: JsonObject): string {
  checkDepth(document);
  return JSON.stringify(document);
}

/** A copy that shares nothing with the run: what `toJSON` gives away. */
export function detach(document: JsonObject): JsonObject {
  checkDepth(document);
  return detachValue(document) as JsonObject;
}

function detachValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((member) => (member === undefined ? null : detachValue(member)));
  // Wire objects of a model of one's own may hold dates and the like.
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return JSON.parse(JSON.stringify(value));
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    if (member !== undefined) setOwn(copy, key, detachValue(member));
  }
  return copy;
}

/**
 * A copy of a tree that may come from anywhere. Nothing of the input is called: no accessor, no `toJSON`.
 *
 * @throws UserError `json_not_plain`, `json_too_large`
 */
export function copyPlain(value: unknown, maxBytes: number): unknown {
  let bytes = 0;
  const count = (more: number): void => {
    bytes += more;
    // Shared members are copied once per place, so a small graph can be a huge tree.
    if (bytes > maxBytes) throw overLimit(maxBytes);
  };
  const copy = (node: unknown, left: number): unknown => {
    switch (typeof node) {
      case 'string':
        count(node.length + 2);
        return node;
      case 'boolean':
        count(4);
        return node;
      case 'number':
        if (!Number.isFinite(node)) throw notPlain('a number that is not finite');
        count(1);
        return node;
      case 'object':
        if (node === null) return node;
        if (left === 0) throw tooDeep();
        count(2);
        return Array.isArray(node) ? copyArray(node, left) : copyObject(node, left);
      default:
        throw notPlain(`a value of type ${typeof node}`);
    }
  };
  const copyArray = (array: readonly unknown[], left: number): unknown[] => {
    const result: unknown[] = [];
    for (let i = 0; i < array.length; i++) {
      const member = Object.getOwnPropertyDescriptor(array, i);
      if (member === undefined) throw notPlain('an array with holes');
      if (!('value' in member)) throw notPlain('an accessor');
      result.push(copy(member.value, left - 1));
    }
    return result;
  };
  const copyObject = (object: object, left: number): object => {
    if (!isPlainObject(object)) throw notPlain('a class instance');
    const result: Record<string, unknown> = {};
    for (const key of Reflect.ownKeys(object)) {
      if (typeof key === 'symbol') throw notPlain('a symbol as key');
      const member = Object.getOwnPropertyDescriptor(object, key);
      if (member === undefined || !('value' in member)) throw notPlain('an accessor');
      if (member.value === undefined) continue;
      count(key.length + 4);
      setOwn(result, key, copy(member.value, left - 1));
    }
    return result;
  };
  return copy(value, maxDepth);
}

/** Members without `undefined`. */
export function compact(members: Json): Json {
  for (const key of Object.keys(members)) if (members[key] === undefined) delete members[key];
  return members;
}

function tooLarge(how: string): UserError {
  return new UserError(`The run state ${how}.`, { code: 'json_too_large' });
}

function tooDeep(): UserError {
  return tooLarge(
    `is nested more than ${maxDepth} levels deep. Flatten what is nested in the context, the items or the outputs`,
  );
}

export function overLimit(maxBytes: number): UserError {
  return tooLarge(`has more than ${maxBytes} bytes. If it is one of yours, pass a higher limit as the option maxBytes`);
}

function notPlain(what: string): UserError {
  return new UserError(
    `A run state must be plain JSON, but this one holds ${what}. Pass what toJSON() of a RunState gave, or use fromString.`,
    { code: 'json_not_plain' },
  );
}
