import type { ToolCallOutputItem } from '../items/items.ts';
import type { JsonObject } from '../items/wire.ts';
import type { ToolContext } from '../state/context.ts';
import type { FunctionTool, MaybePromise } from './tool.ts';
import { UserError } from '../base/errors.ts';
import { isPlainObject, setOwn } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { freezeDeep } from './schema-parts.ts';

/** What `customDataExtractor` gets: the call, what came of it, and what the model will see of that (frozen). */
export interface ToolCustomDataContext<out C = unknown> {
  readonly context: ToolContext<C>;
  readonly output: unknown;
  readonly rawItem: ToolCallOutputItem['rawItem'];
}

export type CustomDataExtractor<C> = (data: ToolCustomDataContext<C>) => MaybePromise<JsonObject | null | undefined>;

/**
 * Asks a tool for the facts that its output item keeps; `undefined`: there are none.
 * @throws what the extractor throws, and UserError when it gives anything but a plain object of JSON values
 */
export async function extractCustomData(
  tool: FunctionTool<never, never>,
  extractor: CustomDataExtractor<never>,
  context: ToolContext<never>,
  { output, rawItem }: ToolCallOutputItem,
): Promise<JsonObject | undefined> {
  const data: unknown = await extractor({ context, output, rawItem: freezeDeep(structuredClone(rawItem)) as never });
  if (data === undefined || data === null) return undefined;
  const where = `tool ${tool.name}: \`customDataExtractor\``;
  if (!isPlainObject(data)) throw new UserError(`${where} must return a plain object or nothing, not ${kindOf(data)}.`);
  const copy = copyJson(data, (what) => new UserError(`${where} must return JSON-compatible data; ${what}.`), []);
  return Object.keys(copy as object).length === 0 ? undefined : (copy as JsonObject);
}

/** States are read back up to twice this depth. */
const maxDepth = 100;

/** A copy, so that what the extractor holds may change. Members without a value are left out. */
function copyJson(value: unknown, refuse: (what: string) => UserError, parents: readonly object[]): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value !== 'object') throw refuse(`it holds ${kindOf(value)}`);
  if (parents.includes(value)) throw refuse('it contains itself');
  if (parents.length > maxDepth) throw refuse(`it is nested more than ${maxDepth} levels deep`);
  const below = [...parents, value];
  if (Array.isArray(value)) return value.map((member: unknown) => copyJson(member, refuse, below));
  if (!isPlainObject(value)) throw refuse('it holds an instance of a class');
  const copy: Record<string, unknown> = {};
  for (const key of Reflect.ownKeys(value)) {
    if (typeof key === 'symbol') throw refuse('it has a key that is no string');
    const member = value[key];
    if (member !== undefined) setOwn(copy, key, copyJson(member, refuse, below));
  }
  return copy;
}
