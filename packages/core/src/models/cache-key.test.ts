import { describe, expect, it } from 'vitest';
import { makePromptCacheKey, needsPromptCacheKey, withPromptCacheKey } from './cache-key.ts';
import type { Model } from './model.ts';

const throwing = {
  get sessionId(): string {
    throw new Error('not yet');
  },
};

describe('prompt cache key', () => {
  it('is of the conversation, else the session, else the group, else random; equal to the Python edition [MODEL-902] [RUN-308]', () => {
    const all = { conversationId: 'c1', session: { sessionId: 's1' }, groupId: 'g1' };
    expect(makePromptCacheKey(all)).toBe(`agents-sdk:conversation:${sha('c1')}`);
    expect(makePromptCacheKey({ ...all, conversationId: undefined })).toBe(`agents-sdk:session:${sha('s1')}`);
    expect(makePromptCacheKey({ groupId: ' g1 ' })).toBe(`agents-sdk:group:${sha('g1')}`);
    expect(makePromptCacheKey({ session: throwing, groupId: '  ' })).toMatch(/^agents-sdk:run:[0-9a-f]{32}$/u);
    expect(makePromptCacheKey({})).not.toBe(makePromptCacheKey({}));
  });

  it('is added for models that take one, where the user gave none, and never to the user settings [MODEL-901]', () => {
    const model = { supportsDefaultPromptCacheKey: () => true } as Model;
    expect(needsPromptCacheKey(model, {})).toBe(true);
    expect(needsPromptCacheKey({} as Model, {})).toBe(false);
    expect(needsPromptCacheKey(model, { extraArgs: { prompt_cache_key: 'own' } })).toBe(false);
    expect(needsPromptCacheKey(model, { extraBody: { prompt_cache_key: 'own' } })).toBe(false);
    const settings = { extraArgs: { a: 1 } };
    expect(withPromptCacheKey(settings, 'k')).toEqual({ extraArgs: { a: 1, prompt_cache_key: 'k' } });
    expect(settings).toEqual({ extraArgs: { a: 1 } });
  });
});

/** First 32 hex digits of SHA-256, computed outside (`printf c1 | sha256sum`). */
function sha(id: 'c1' | 's1' | 'g1'): string {
  return {
    c1: 'd0f631ca1ddba8db3bcfcb9e057cdc98',
    s1: 'e8bc163c82eee18733288c7d4ac636db',
    g1: '711430f6164e93803d93428bc1fab80f',
  }[id];
}
