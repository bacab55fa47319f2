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

/** What a trace may show of settings, by its wire name. `extra…` members carry headers and keys, so none of them is here. */
const traceable: readonly (readonly [wire: string, member: keyof ModelSettings | undefined])[] = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['tool_choice', 'toolChoice'],
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
  ['retry', undefined],
  ['context_management', 'contextManagement'],
  ['prompt_cache_options', 'promptCacheOptions'],
  ['timeout', undefined],
];

/** The form of settings in `model_config` of a generation span: all members, unset ones as `null`; without data no `metadata`. */
export function settingsToTrace(settings: ModelSettings, includeData: boolean): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const [wire, member] of traceable) {
    if (wire === 'metadata' && !includeData) continue;
    config[wire] = (member === undefined ? undefined : settings[member]) ?? null;
  }
  return config;
}
