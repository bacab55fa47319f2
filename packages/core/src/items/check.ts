import { answersLater } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { isObject, isPlainObject } from '../base/json.ts';
import { isJsonObject, JsonEncodeError } from '../base/json-encode.ts';
import { kindOf } from '../base/options.ts';

const ITEMS = 'Input items are plain objects, such as { role: "user", content: "…" }.';

/**
 * What callbacks and sessions give for a list of items: that it is a list, of objects. What is in them is not looked at.
 *
 * @param giver how the message begins: `callModelInputFilter returned`
 * @throws UserError naming the giver and the index
 */
export function checkItemList(list: unknown, giver: string): asserts list is readonly object[] {
  if (!Array.isArray(list)) {
    const later = answersLater(list) ? 'a promise' : kindOf(list);
    throw new UserError(`${giver} ${later} where an array of input items belongs.`);
  }
  // By index: holes are undefined items.
  for (let index = 0; index < list.length; index++) {
    const item: unknown = list[index];
    if (isObject(item) && !answersLater(item)) continue;
    throw new UserError(`${giver} ${kindOf(item)} as item ${index}. ${ITEMS}`);
  }
}

/**
 * New input, all of it: what can be sent, stored and written into a state, which is what `encodeItem` takes (SESS §4).
 *
 * @param name what the items are called: `input` for `input[2].content`
 * @throws UserError naming the place
 */
export function checkNewItems(items: readonly unknown[], name: string, where: string): void {
  for (let index = 0; index < items.length; index++) {
    const place = `${name}[${index}]`;
    let problem: string | undefined;
    let cause: unknown;
    try {
      problem = itemProblem(items[index], place);
    } catch (error) {
      cause = error;
      problem = error instanceof JsonEncodeError ? problemText(error, place) : `${place} cannot be read`;
    }
    if (problem !== undefined) throw new UserError(`${where}: ${problem}. ${ITEMS}`, { cause });
  }
}

function itemProblem(item: unknown, place: string): string | undefined {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return `${place} is ${kindOf(item)}`;
  const hasJson = typeof (item as { toJSON?: unknown }).toJSON === 'function';
  if (!hasJson && !isPlainObject(item)) return `${place} is no plain object`;
  return isJsonObject(item) ? undefined : `${place} is no object in JSON`;
}

function problemText({ path, problem }: JsonEncodeError, place: string): string {
  return `${place}${path === '' || path.startsWith('[') ? '' : '.'}${path} ${problem}`;
}
