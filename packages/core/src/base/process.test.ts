import { createHash, randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { brand } from './brand.ts';
import { portableHash, sha256Base64Url, sha256Hex } from './digest.ts';
import { env, envFlag } from './env.ts';
import { randomHex } from './ids.ts';
import { onReset, resetAll } from './reset.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

describe('digests', () => {
  test('are those of SHA-256 over UTF-8, with and without the crypto of Node', () => {
    for (const text of ['', 'abc', 'Grüße 😊', randomBytes(300).toString('latin1')]) {
      const hash = createHash('sha256').update(text, 'utf8');
      expect(sha256Hex(text)).toBe(hash.copy().digest('hex'));
      expect(sha256Base64Url(text)).toBe(hash.copy().digest('base64url'));
      expect(portableHash(text, 'hex')).toBe(hash.copy().digest('hex'));
      expect(portableHash(text, 'base64url')).toBe(hash.copy().digest('base64url'));
    }
  });
});

describe('random ids', () => {
  test('are hex of the wanted length and do not repeat over refills of the pool', () => {
    const ids = Array.from({ length: 2000 }, () => randomHex(16));
    expect(new Set(ids).size).toBe(2000);
    expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
    expect(randomHex(12)).toMatch(/^[0-9a-f]{24}$/);
  });
});

describe('environment', () => {
  test('flags: true and 1 in any case, the default only when the variable is missing', () => {
    vi.stubEnv('AGENTS_TEST_FLAG', 'TRUE');
    expect(envFlag('AGENTS_TEST_FLAG', false)).toBe(true);
    vi.stubEnv('AGENTS_TEST_FLAG', '');
    expect(envFlag('AGENTS_TEST_FLAG', true)).toBe(false);
    vi.stubEnv('AGENTS_TEST_FLAG', undefined);
    expect(envFlag('AGENTS_TEST_FLAG', true)).toBe(true);
  });

  test('a runtime without process, or without the right to read it, has no variables', () => {
    vi.stubGlobal('process', undefined);
    expect(env('PATH')).toBeUndefined();
    vi.stubGlobal('process', {
      get env(): never {
        throw new Error('Requires env access');
      },
    });
    expect(env('PATH')).toBeUndefined();
  });
});

test('resetAll puts every registered default back', () => {
  const reset = vi.fn<() => void>();
  onReset(reset);
  onReset(reset);
  resetAll();
  expect(reset).toHaveBeenCalledTimes(1);
});

test('instanceof works over copies of a class, and a subclass of a user keeps its own meaning', () => {
  const copyOf = () => {
    class Thing {
      static {
        brand(this, 'TestThing');
      }
    }
    return Thing;
  };
  const One = copyOf();
  const Other = copyOf();
  class Mine extends One {}
  expect(new Other() instanceof One).toBe(true);
  expect(new Mine() instanceof Other).toBe(true);
  expect(new Other() instanceof Mine).toBe(false);
  expect(new Mine() instanceof Mine).toBe(true);
  expect(({} as unknown) instanceof One).toBe(false);
  expect((null as unknown) instanceof (One as never)).toBe(false);
});
