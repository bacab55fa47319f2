import { describe, expect, it } from 'vitest';
import { mergeSettings, settingsToJSON, settingsToTrace } from './settings.ts';

describe('mergeSettings', () => {
  it('inherits what is undefined, takes what is given (false and 0 too), clears with null [MODEL-204] [MODEL#43]', () => {
    const base = { temperature: 1, topP: 0.5, store: true, maxTokens: 5 };
    expect(mergeSettings(base, { temperature: 0, store: false, topP: undefined, maxTokens: null })).toEqual({
      temperature: 0,
      topP: 0.5,
      store: false,
    });
    expect(base).toEqual({ temperature: 1, topP: 0.5, store: true, maxTokens: 5 });
    expect(mergeSettings({ temperature: null }, undefined)).toEqual({});
  });

  it('merges extraArgs per key and replaces the other records as a whole [MODEL-205]', () => {
    const base = {
      extraArgs: { a: 1, b: 1 },
      extraBody: { a: 1 },
      extraHeaders: { a: '1' },
      extraQuery: { a: '1' },
      metadata: { a: '1' },
      reasoning: { effort: 'low' as const },
    };
    const merged = mergeSettings(base, {
      extraArgs: { b: 2 },
      extraBody: { b: 2 },
      extraHeaders: { b: '2' },
      extraQuery: { b: '2' },
      metadata: { b: '2' },
      reasoning: { summary: 'auto' as const },
    });
    expect(merged).toEqual({
      extraArgs: { a: 1, b: 2 },
      extraBody: { b: 2 },
      extraHeaders: { b: '2' },
      extraQuery: { b: '2' },
      metadata: { b: '2' },
      reasoning: { summary: 'auto' },
    });
    expect(base.extraArgs).toEqual({ a: 1, b: 1 });
    expect(mergeSettings({ extraArgs: {} }, { extraArgs: {} })).toEqual({});
    expect(mergeSettings({ extraArgs: { a: 1 } }, { extraArgs: null })).toEqual({});
  });
});

it('counts 0 and false of the override as given [MODEL-206]', () => {
  const base = { topLogprobs: 5, parallelToolCalls: true, preserveRawUsage: true, timeoutMs: 5 };
  const given = { topLogprobs: 0, parallelToolCalls: false, preserveRawUsage: false };
  expect(mergeSettings(base, given)).toEqual({ ...given, timeoutMs: 5 });
});

/** Members that traces have, too. */
const unsetOfTraces = {
  temperature: null,
  top_p: null,
  frequency_penalty: null,
  presence_penalty: null,
  tool_choice: null,
  parallel_tool_calls: null,
  truncation: null,
  max_tokens: null,
  reasoning: null,
  verbosity: null,
  metadata: null,
  store: null,
  prompt_cache_retention: null,
  include_usage: null,
  response_include: null,
  top_logprobs: null,
  retry: null,
  context_management: null,
  prompt_cache_options: null,
  timeout: null,
};

describe('settingsToJSON', () => {
  const unset = {
    ...unsetOfTraces,
    extra_query: null,
    extra_body: null,
    extra_headers: null,
    extra_args: null,
    preserve_raw_usage: null,
  };

  it('has the names and units of the Python edition, null where unset; a removed header is null [MODEL-208]', () => {
    expect(settingsToJSON({})).toEqual(unset);
    const settings = {
      topP: 0,
      toolChoice: { serverLabel: 'crm', name: 'find' },
      parallelToolCalls: false,
      maxTokens: 9,
      timeoutMs: 1500,
      extraHeaders: { 'X-A': null, 'X-B': 'b' },
      extraArgs: { seed: 1 },
      preserveRawUsage: true,
    };
    expect(settingsToJSON(settings)).toEqual({
      ...unset,
      top_p: 0,
      tool_choice: { server_label: 'crm', name: 'find' },
      parallel_tool_calls: false,
      max_tokens: 9,
      timeout: 1.5,
      extra_headers: { 'X-A': null, 'X-B': 'b' },
      extra_args: { seed: 1 },
      preserve_raw_usage: true,
    });
  });
});

describe('settingsToTrace', () => {
  const settings = {
    temperature: 0,
    metadata: { secret: 'x' },
    extraHeaders: { authorization: 'x' },
    extraArgs: { a: 1 },
    extraBody: { b: 1 },
    extraQuery: { c: 1 },
    preserveRawUsage: true,
    timeoutMs: 2500,
  };

  it('has the traceable members alone, null where unset, and nothing of extra [MODEL-209]', () => {
    expect(settingsToTrace(settings, true)).toEqual({
      ...unsetOfTraces,
      temperature: 0,
      metadata: { secret: 'x' },
      timeout: 2.5,
    });
  });

  it('has no metadata without data [MODEL-940]', () => {
    expect(settingsToTrace(settings, false)).not.toHaveProperty('metadata');
  });
});
