import { describe, expect, it } from 'vitest';
import { mergeSettings, settingsToTrace } from './settings.ts';

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
      metadata: { a: '1' },
      reasoning: { effort: 'low' as const },
    };
    const merged = mergeSettings(base, {
      extraArgs: { b: 2 },
      extraBody: { b: 2 },
      metadata: { b: '2' },
      reasoning: { summary: 'auto' as const },
    });
    expect(merged).toEqual({
      extraArgs: { a: 1, b: 2 },
      extraBody: { b: 2 },
      metadata: { b: '2' },
      reasoning: { summary: 'auto' },
    });
    expect(base.extraArgs).toEqual({ a: 1, b: 1 });
    expect(mergeSettings({ extraArgs: {} }, { extraArgs: {} })).toEqual({});
    expect(mergeSettings({ extraArgs: { a: 1 } }, { extraArgs: null })).toEqual({});
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
  };

  it('has the traceable members alone, null where unset, and nothing of extra [MODEL-209]', () => {
    expect(settingsToTrace(settings, true)).toEqual({
      temperature: 0,
      top_p: null,
      frequency_penalty: null,
      presence_penalty: null,
      tool_choice: null,
      parallel_tool_calls: null,
      truncation: null,
      max_tokens: null,
      reasoning: null,
      verbosity: null,
      metadata: { secret: 'x' },
      store: null,
      prompt_cache_retention: null,
      include_usage: null,
      response_include: null,
      top_logprobs: null,
      retry: null,
      context_management: null,
      prompt_cache_options: null,
      timeout: null,
    });
  });

  it('has no metadata without data [MODEL-940]', () => {
    expect(settingsToTrace(settings, false)).not.toHaveProperty('metadata');
  });
});
