import type { ModelSettings } from '../models/model.ts';
import type { Check } from '../base/options.ts';
import { UserError } from '../base/errors.ts';
import { kindOf, kinds, nearestName } from '../base/options.ts';

const aboveZero: Check = (value) =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? undefined : 'a finite number above 0';

/** Every setting and what it takes besides `null`. */
const settings: Readonly<Record<keyof ModelSettings, Check>> = {
  temperature: kinds.number,
  topP: kinds.number,
  frequencyPenalty: kinds.number,
  presencePenalty: kinds.number,
  toolChoice: kinds.either(kinds.nonEmptyString, kinds.object),
  parallelToolCalls: kinds.boolean,
  truncation: kinds.oneOf('auto', 'disabled'),
  maxTokens: kinds.integer(1),
  reasoning: kinds.object,
  verbosity: kinds.oneOf('low', 'medium', 'high'),
  metadata: kinds.object,
  store: kinds.boolean,
  promptCacheRetention: kinds.oneOf('in_memory', '24h'),
  promptCacheOptions: kinds.object,
  contextManagement: kinds.array,
  includeUsage: kinds.boolean,
  responseInclude: kinds.array,
  topLogprobs: kinds.integer(0),
  timeoutMs: aboveZero,
  preserveRawUsage: kinds.boolean,
  extraArgs: kinds.object,
  extraBody: kinds.object,
  extraQuery: kinds.object,
  extraHeaders: kinds.object,
};

/** Members of settings that are objects themselves; `reasoning` takes whatever newer models know. */
const nested: readonly (readonly [setting: keyof ModelSettings, known: readonly string[]])[] = [
  ['toolChoice', ['serverLabel', 'name']],
  ['promptCacheOptions', ['mode', 'ttl']],
  ['contextManagement', ['type', 'compact_threshold']],
];

/**
 * Checks settings and returns a frozen copy of them, nested objects included, so that what the caller changes later has
 * no effect on a run. Members that are `undefined` are not given.
 *
 * @throws UserError for unknown keys (all of them, sorted) and values of a wrong kind; `where` begins the message
 * @internal
 */
export function checkModelSettings(given: ModelSettings, where: string): ModelSettings {
  const object: unknown = given;
  if (typeof object !== 'object' || object === null || Array.isArray(object))
    throw new UserError(`${where}: model settings are an object, not ${kindOf(object)}.`);
  refuseUnknown(object, Object.keys(settings), where);
  for (const [key, check] of Object.entries(settings)) {
    const value: unknown = given[key as keyof ModelSettings];
    const expected = value === undefined || value === null ? undefined : check(value);
    if (expected !== undefined)
      throw new UserError(`${where}: ${key} must be ${expected} or null, not ${kindOf(value)}.`);
  }
  for (const [setting, known] of nested) {
    const value: unknown = given[setting];
    const entries = Array.isArray(value)
      ? value.map((entry: unknown, index) => [`${setting}[${index}]`, entry] as const)
      : [[setting, value] as const];
    for (const [path, entry] of entries)
      if (typeof entry === 'object' && entry !== null) refuseUnknown(entry, known, `${where}: ${path}`);
  }
  return frozenCopy(given);
}

function refuseUnknown(object: object, known: readonly string[], where: string): void {
  const unknown = Object.keys(object)
    .filter((key) => !known.includes(key))
    .toSorted();
  if (unknown.length === 0) return;
  const hints = unknown.flatMap((key) => nearestName(key, known) ?? []);
  throw new UserError(
    `${where}: unknown ${unknown.join(', ')}.${hints.length > 0 ? ` Did you mean ${hints.join(', ')}?` : ''}`,
  );
}

/** Plain containers are copied, whatever else somebody put into `extraArgs` is kept as it is. */
function frozenCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy)) as T;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.freeze(
    Object.fromEntries(
      Object.entries(value).flatMap(([key, member]) => (member === undefined ? [] : [[key, frozenCopy(member)]])),
    ),
  ) as T;
}
