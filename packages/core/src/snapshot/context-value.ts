import { answersLater } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { isObject, isPlainObject, setOwn } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { Json } from './json.ts';
import { compact, visibleCause } from './json.ts';

/** How the application context is written, and what of it survives (STATE §14). */
export interface ContextOptions {
  readonly contextSerializer?: ((context: never) => JsonObject) | undefined;
  readonly strictContext?: boolean | undefined;
}

/** The application context in JSON: its value and what a reader has to know about it. */
export interface WrittenContext {
  readonly value: JsonValue;
  readonly meta: JsonObject;
}

type Via = 'none' | 'mapping' | 'context_serializer' | 'model_dump' | 'asdict' | 'omitted';

/**
 * @throws UserError `context_serializer_failed`, `context_serializer_result`, `context_not_object`, `context_not_json`
 */
export function writeContextValue(value: unknown, options: ContextOptions): WrittenContext {
  if (value === undefined || value === null) return { value: null, meta: meta(value, 'none') };
  if (options.contextSerializer !== undefined) {
    return { value: serialized(value, options.contextSerializer), meta: meta(value, 'context_serializer') };
  }
  if (isPlainObject(value)) return { value: jsonCopy(value), meta: meta(value, 'mapping') };
  if (options.strictContext === true) {
    throw new UserError(
      'The context of this run is no plain object, so it cannot be written. Pass contextSerializer, or leave out strictContext.',
      { code: 'context_not_object' },
    );
  }
  return writeOther(value);
}

/** Whatever has data of its own is written as that data; the rest is left out. Both with a warning. */
function writeOther(value: unknown): WrittenContext {
  const log = getLogger('run_state');
  if (isObject(value)) {
    const data = dataOf(value);
    if (data !== undefined) {
      log.warn(
        'The context of a run state was written as plain data: its class is lost. Pass contextSerializer, and contextDeserializer or context to the restore.',
      );
      return { value: data.json, meta: meta(value, data.via) };
    }
  }
  log.warn(
    'The context of a run state cannot be written and was left out. Pass contextSerializer to toString() or toJSON().',
  );
  return { value: {}, meta: meta(value, 'omitted') };
}

function dataOf(value: object): { readonly json: JsonObject; readonly via: Via } | undefined {
  try {
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === 'function') {
      const json: unknown = toJSON.call(value, '');
      if (answersLater(json)) return undefined;
      return isPlainObject(json) ? { json: jsonCopy(json), via: 'model_dump' } : undefined;
    }
    // Maps, sets, promises and the like have no own members; an empty object would look like data.
    if (Object.keys(value).length === 0) return undefined;
    return { json: jsonCopy({ ...value }), via: 'asdict' };
  } catch {
    return undefined;
  }
}

function serialized(value: unknown, serializer: (context: never) => JsonObject): JsonObject {
  let result: unknown;
  try {
    result = serializer(value as never);
  } catch (error) {
    throw new UserError('contextSerializer threw while the run state was written.', {
      code: 'context_serializer_failed',
      ...visibleCause(error),
    });
  }
  if (answersLater(result))
    throw new UserError('contextSerializer must answer at once: it returned a promise, which nobody waits for here.', {
      code: 'context_serializer_result',
    });
  if (!isPlainObject(result))
    throw new UserError('contextSerializer must return a plain object.', { code: 'context_serializer_result' });
  return jsonCopy(result);
}

function meta(value: unknown, via: Via): JsonObject {
  const needsHelp = via !== 'none' && via !== 'mapping';
  return compact({
    original_type: originalType(value),
    serialized_via: via,
    requires_deserializer: needsHelp,
    omitted: via === 'omitted',
    class_path: needsHelp && typeof value === 'object' ? className(value) : undefined,
  });
}

function originalType(value: unknown): 'none' | 'mapping' | 'custom' {
  if (value === undefined || value === null) return 'none';
  return isPlainObject(value) ? 'mapping' : 'custom';
}

function className(value: object | null): string | undefined {
  const name: unknown = value?.constructor?.name;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** A copy as JSON that loses nothing in silence. @throws UserError `context_not_json` */
function jsonCopy(object: Record<string, unknown>): JsonObject {
  const parents: object[] = [object];
  const path: string[] = [];
  const refuse = (what: string): UserError => {
    const where = path.join('.');
    return new UserError(
      `The context of this run cannot be written: '${where}' is ${what}. Keep such values out of it, or pass contextSerializer.`,
      { code: 'context_not_json' },
    );
  };
  const copy = (value: unknown): JsonValue | undefined => {
    switch (typeof value) {
      case 'string':
      case 'boolean':
      case 'undefined':
        return value;
      case 'number':
        if (!Number.isFinite(value)) throw refuse('a number that JSON does not have');
        return value;
      case 'object':
        return value === null ? null : copyObject(value);
      default:
        throw refuse(`a ${typeof value}`);
    }
  };
  const copyObject = (value: object): JsonValue | undefined => {
    if (parents.includes(value)) throw refuse('part of itself (a cycle)');
    parents.push(value);
    let result: JsonValue | undefined;
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === 'function') {
      const json: unknown = toJSON.call(value, path.at(-1) ?? '');
      if (answersLater(json)) throw refuse('an object whose toJSON gives a promise');
      result = copy(json);
    } else if (Array.isArray(value))
      result = value.map((member: unknown, index) => within(String(index), member) ?? null);
    else if (isPlainObject(value)) result = copyMembers(value);
    else throw refuse(`an instance of ${className(value) ?? 'a class'}`);
    parents.pop();
    return result;
  };
  const copyMembers = (value: Record<string, unknown>): JsonObject => {
    const result: Json = {};
    for (const key of Object.keys(value)) {
      const member = within(key, value[key]);
      if (member !== undefined) setOwn(result, key, member);
    }
    return result;
  };
  const within = (key: string, value: unknown): JsonValue | undefined => {
    path.push(key);
    const result = copy(value);
    path.pop();
    return result;
  };
  return copyMembers(object);
}
