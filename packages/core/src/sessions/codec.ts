import { isObject } from '../base/json.ts';
import { encodeJson, JsonEncodeError } from '../base/json-encode.ts';
import { decodeJson } from '../base/json-text.ts';
import { kindOf } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import { SessionItemError } from './errors.ts';

/**
 * JSON text as the Python SDK writes it. Default compact, non-ASCII escaped. Plain objects of strings, finite numbers,
 * booleans, null, arrays and plain objects, up to 500 levels; `toJSON` is called, `undefined` members are dropped.
 *
 * @throws SessionItemError (`index` 0) that names the member, never its value
 * @example encodeItem({ role: 'user', content: 'Grüße' }, { style: 'spaced' }) // {"role": "user", "content": "Gr\u00fc\u00dfe"}
 */
export function encodeItem(item: object, options?: { style?: 'compact' | 'spaced'; ascii?: boolean }): string {
  return encodeAt(item, 0, undefined, options);
}

/** All of a batch or nothing: the error names the item by its index. */
export function encodeItems(
  items: readonly object[],
  sessionId: string | undefined,
  options?: { style?: 'compact' | 'spaced'; ascii?: boolean },
): string[] {
  // By index: holes are undefined items.
  return Array.from(items, (item, index) => encodeAt(item, index, sessionId, options));
}

/** `undefined`: not the JSON text of an object. Python's bare `NaN` and `Infinity` are read as `null`. */
export function decodeItem<T extends object = AgentInputItem>(text: string): T | undefined {
  return decodeJson(text) as T | undefined;
}

function encodeAt(
  item: unknown,
  index: number,
  sessionId: string | undefined,
  options?: { style?: 'compact' | 'spaced'; ascii?: boolean },
): string {
  try {
    const text = isObject(item) ? encodeJson(item, options) : '';
    // An object's toJSON may give anything.
    if (text.startsWith('{')) return text;
    throw new JsonEncodeError([], `is ${text === '' ? kindOf(item) : 'no object in JSON'}`);
  } catch (error) {
    if (!(error instanceof JsonEncodeError)) throw error;
    const where = error.path === '' ? '' : `, member '${error.path}',`;
    throw new SessionItemError(
      `Item ${index} of the batch${where} ${error.problem}. Items are plain JSON objects; nothing was stored.`,
      {
        sessionId,
        index,
        path: error.path,
        cause: error,
      },
    );
  }
}
