import { afterEach, describe, expect, test, vi } from 'vitest';
import { UserError } from '../base/errors.ts';
import { getDefaultModel, getDefaultModelSettings } from './model-defaults.ts';
import { checkModelSettings } from './model-settings.ts';

afterEach(() => vi.unstubAllEnvs());

describe('the default model', () => {
  test.each([
    [undefined, 'gpt-5.6-luna'],
    ['', 'gpt-5.6-luna'],
    ['  ', 'gpt-5.6-luna'],
    ['GPT-4.1', 'gpt-4.1'],
  ])('OPENAI_DEFAULT_MODEL=%s is read when asked [MODEL-301]', (value, wanted) => {
    vi.stubEnv('OPENAI_DEFAULT_MODEL', value);
    expect(getDefaultModel()).toBe(wanted);
  });

  test.each([
    [
      'none',
      [
        'gpt-5.1',
        'gpt-5.1-2026-01-31',
        'gpt-5.3-codex',
        'gpt-5.4-mini',
        'gpt-5.5-2026-01-31',
        'gpt-5.6-luna',
        'gpt-5.6-sol-2026-01-31',
      ],
    ],
    ['low', ['gpt-5', 'gpt-5-2025-08-07', 'gpt-5.2-codex']],
    ['medium', ['gpt-5.2-pro', 'gpt-5.4-pro-2026-01-31']],
    [undefined, ['gpt-5-mini', 'gpt-5-nano', 'gpt-5.1-codex', 'gpt-5.3-codex-2026-01-31', 'gpt-5.1-20260131']],
  ])('effort %s [MODEL-302]', (effort, names) => {
    for (const name of names)
      expect(getDefaultModelSettings(name), name).toEqual({
        ...(effort && { reasoning: { effort } }),
        verbosity: 'low',
      });
  });

  test('nothing for models that do not reason [MODEL-302]', () => {
    for (const name of ['gpt-4.1', 'o3', 'gpt-5-chat-latest', 'gpt-5.3-chat-latest', 'my/gpt-5', ''])
      expect(getDefaultModelSettings(name), name).toEqual({});
  });

  test('are a fresh object each time, of the default model without a name [MODEL-302]', () => {
    expect(getDefaultModelSettings()).toEqual(getDefaultModelSettings('gpt-5.6-luna'));
    expect(getDefaultModelSettings('gpt-5')).not.toBe(getDefaultModelSettings('gpt-5'));
    expect(getDefaultModelSettings('gpt-5').reasoning).not.toBe(getDefaultModelSettings('gpt-5').reasoning);
  });
});

describe('checked settings', () => {
  const check = (settings: object): unknown => checkModelSettings(settings, 'run: modelSettings');

  test('are a frozen copy, records and arrays included; undefined is not given, null is kept [MODEL-201]', () => {
    const client = new (class Client {})();
    const given = {
      temperature: 0,
      topP: undefined,
      maxTokens: null,
      metadata: { a: 'b' },
      responseInclude: ['x'],
      extraArgs: { deep: { n: 1 }, client },
    };
    const settings = check(given) as typeof given;
    given.metadata.a = 'c';
    given.responseInclude.push('y');
    given.extraArgs.deep.n = 2;
    expect(settings).toEqual({
      temperature: 0,
      maxTokens: null,
      metadata: { a: 'b' },
      responseInclude: ['x'],
      extraArgs: { deep: { n: 1 }, client },
    });
    expect('topP' in settings).toBe(false);
    expect(Object.isFrozen(settings) && Object.isFrozen(settings.metadata)).toBe(true);
    expect(settings.extraArgs.client).toBe(client);
  });

  test('list all unknown keys, sorted, with where they stand [MODEL-202]', () => {
    expect(() => check({ zeta: 1, temprature: 1 })).toThrow(
      'run: modelSettings: unknown temprature, zeta. Did you mean temperature',
    );
    expect(() => check({ toolChoice: { server: 'x', name: 'y' } })).toThrow(
      'run: modelSettings: toolChoice: unknown server',
    );
    expect(() => check({ promptCacheOptions: { tl: 'x' } })).toThrow('promptCacheOptions: unknown tl');
    expect(() => check({ contextManagement: [{ type: 'compaction' }, { type: 'x', threshold: 1 }] })).toThrow(
      'contextManagement[1]: unknown threshold',
    );
    expect(check({ reasoning: { effort: 'low', brand_new: true } })).toEqual({
      reasoning: { effort: 'low', brand_new: true },
    });
    expect(() => check({ retry: 1 })).toThrow(UserError);
  });

  test.each([
    { temperature: 'hot' },
    { temperature: Number.NaN },
    { parallelToolCalls: 'yes' },
    { truncation: 'always' },
    { maxTokens: 1.5 },
    { metadata: [] },
    { toolChoice: 7 },
    { extraHeaders: 'x' },
  ])('have values of their kinds: %o', (settings) => {
    expect(() => check(settings)).toThrow(UserError);
    expect(() => check(settings)).toThrow(Object.keys(settings)[0]);
  });

  test('are an object', () => {
    for (const wrong of [null, [], 'x']) expect(() => check(wrong as never)).toThrow(/an object/);
  });
});
