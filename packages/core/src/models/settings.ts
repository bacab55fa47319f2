import type { ModelSettings } from './model.ts';

/**
 * Lays settings over settings: `undefined` inherits, `null` clears. `extraArgs` merge per key, everything else
 * replaces as a whole. Neither argument is changed, and the result shares no container with `extraArgs` of either.
 */
export function mergeSettings(base: ModelSettings, override: ModelSettings | undefined): ModelSettings {
  const merged: Record<string, unknown> = {};
  for (const settings of [base, override]) {
    for (const [key, value] of Object.entries(settings ?? {})) {
      if (value === undefined) continue;
      if (value === null) delete merged[key];
      else merged[key] = value;
    }
  }
  const extraArgs = mergeExtraArgs(base.extraArgs, override?.extraArgs);
  if (extraArgs === undefined) delete merged['extraArgs'];
  else merged['extraArgs'] = extraArgs;
  return merged;
}

type ExtraArgs = ModelSettings['extraArgs'];

function mergeExtraArgs(base: ExtraArgs, override: ExtraArgs): Record<string, unknown> | undefined {
  if (override === null) return undefined;
  const merged = { ...base, ...override };
  return Object.keys(merged).length > 0 ? merged : undefined;
}

/** What a member has on the wire, where that is not the value itself. */
const wireForm = {
  toolChoice: (choice: unknown): unknown => {
    if (typeof choice !== 'object' || choice === null) return choice;
    const { serverLabel, name } = choice as { serverLabel?: unknown; name?: unknown };
    return { server_label: serverLabel, name };
  },
  seconds: (ms: unknown): unknown => (typeof ms === 'number' ? ms / 1000 : ms),
} as const;

/** Names and units of the Python edition. `hidden`: never in a trace, since `extra…` members carry headers and keys. */
const members: readonly (readonly [
  wire: string,
  member: keyof ModelSettings | undefined,
  options?: { readonly form?: (value: unknown) => unknown; readonly hidden?: true },
])[] = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['tool_choice', 'toolChoice', { form: wireForm.toolChoice }],
  ['parallel_tool_calls', 'parallelToolCalls'],
  ['truncation', 'truncation'],
  ['max_tokens', 'maxTokens'],
  ['reasoning', 'reasoning'],
  ['verbosity', 'verbosity'],
  ['metadata', 'metadata'],
  ['store', 'store'],
  ['prompt_cache_retention', 'promptCacheRetention'],
  ['include_usage', 'includeUsage'],
  ['response_include', 'responseInclude'],
  ['top_logprobs', 'topLogprobs'],
  ['extra_query', 'extraQuery', { hidden: true }],
  ['extra_body', 'extraBody', { hidden: true }],
  ['extra_headers', 'extraHeaders', { hidden: true }],
  ['extra_args', 'extraArgs', { hidden: true }],
  ['retry', undefined],
  ['context_management', 'contextManagement'],
  ['prompt_cache_options', 'promptCacheOptions'],
  ['timeout', 'timeoutMs', { form: wireForm.seconds }],
  ['preserve_raw_usage', 'preserveRawUsage', { hidden: true }],
];

const byMember: ReadonlyMap<string, (typeof members)[number]> = new Map(
  members.flatMap((entry) => (entry[1] === undefined ? [] : [[entry[1], entry] as const])),
);

type Wire = Record<string, unknown>;

/** Settings of which none is set. Copies of it are fast to make and to read; objects of so many members that grow one by one are not. */
function unsetOf(isShown: (entry: (typeof members)[number]) => boolean): Wire {
  return Object.fromEntries(members.filter(isShown).map(([wire]) => [wire, null]));
}

const unset: Wire = unsetOf(() => true);
const unsetInTraces: Wire = unsetOf(([, , options]) => options?.hidden !== true);
const unsetWithoutData: Wire = unsetOf(([wire, , options]) => options?.hidden !== true && wire !== 'metadata');

/** The JSON form of settings: all members, unset ones as `null`. */
export function settingsToJSON(settings: ModelSettings): Record<string, unknown> {
  return toWire(settings, unset);
}

/** The form of settings in `model_config` of a generation span: what a trace may show; without data no `metadata`. */
export function settingsToTrace(settings: ModelSettings, includeData: boolean): Record<string, unknown> {
  return toWire(settings, includeData ? unsetInTraces : unsetWithoutData);
}

function toWire(settings: ModelSettings, shown: Wire): Wire {
  const config = { ...shown };
  for (const [member, value] of Object.entries(settings)) {
    const entry = byMember.get(member);
    if (entry === undefined || value === undefined || value === null) continue;
    const [wire, , { form } = {}] = entry;
    if (Object.hasOwn(shown, wire)) config[wire] = form === undefined ? value : form(value);
  }
  return config;
}
