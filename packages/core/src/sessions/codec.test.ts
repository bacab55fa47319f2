import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';

import { decodeItem, encodeItem } from './codec.ts';
import { SessionItemError } from './errors.ts';

describe('encodeItem', () => {
  it('writes as Python does, in both styles [SESS-131]', () => {
    const item = {
      role: 'user',
      content: 'Grüße 😊',
      list: [1, 0.5, true, null, {}],
      nested: { a: '"\\\n\r\t\b\f/\u0001\u007f' },
    };
    expect(encodeItem(item)).toBe(
      '{"role":"user","content":"Gr\\u00fc\\u00dfe \\ud83d\\ude0a","list":[1,0.5,true,null,{}],"nested":{"a":"\\"\\\\\\n\\r\\t\\b\\f/\\u0001\\u007f"}}',
    );
    expect(encodeItem(item, { style: 'spaced' })).toBe(
      '{"role": "user", "content": "Gr\\u00fc\\u00dfe \\ud83d\\ude0a", "list": [1, 0.5, true, null, {}], "nested": {"a": "\\"\\\\\\n\\r\\t\\b\\f/\\u0001\\u007f"}}',
    );
    expect(encodeItem({ content: 'Grüße 😊' }, { ascii: false })).toBe('{"content":"Grüße 😊"}');
  });

  it('drops undefined members, calls toJSON, keeps lone surrogates [SESS-135]', () => {
    expect(encodeItem({ a: undefined, at: new Date(0), lone: '\ud800' })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","lone":"\\ud800"}',
    );
    expect(encodeItem({ toJSON: () => ({ role: 'user' }) })).toBe('{"role":"user"}');
    expect(encodeItem(Object.assign(Object.create(null) as object, { a: 1 }))).toBe('{"a":1}');
  });

  it.each<[string, unknown, string]>([
    ['a function', { a: { b: () => 1 } }, 'a.b'],
    ['NaN', { a: [1, Number.NaN] }, 'a[1]'],
    ['a bigint', { a: 1n }, 'a'],
    ['a symbol', { a: Symbol('x') }, 'a'],
    ['an undefined element', { a: [undefined] }, 'a[0]'],
    ['a Map', { a: new Map() }, 'a'],
    ['a class instance', { a: new (class Secret {})() }, 'a'],
    ['an array as item', [], ''],
    ['what toJSON gives', { toJSON: () => 'text' }, ''],
  ])('refuses %s with the place and without the value [SESS-135]', (_name, item, path) => {
    let thrown: unknown;
    try {
      encodeItem(item as object);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(SessionItemError);
    expect(thrown).toMatchObject({ name: 'SessionItemError', code: 'session_item_invalid', index: 0, path });
  });

  it('gives a text to the native encoder, and goes over it, only where it has something to escape [SESS-132]', () => {
    const stringify = vi.spyOn(JSON, 'stringify');
    const replace = vi.spyOn(String.prototype, 'replace');
    try {
      const text = encodeItem({ role: 'user', content: [{ text: 'plain' }], n: 1, more: 'Grüße', quoted: '"' });
      const given = stringify.mock.calls.map(([value]: readonly unknown[]) => value);
      const searched = replace.mock.contexts.map(String).filter((one) => one.startsWith('"'));
      expect(given).toEqual(['Grüße', '"']);
      expect(searched).toEqual(['"Grüße"', '"\\""']);
      expect(text).toBe('{"role":"user","content":[{"text":"plain"}],"n":1,"more":"Gr\\u00fc\\u00dfe","quoted":"\\""}');
    } finally {
      vi.restoreAllMocks();
    }
  });

  it(
    'takes 100,000 items, and a text of 10 MB, in little more than the native encoder [SESS-132]',
    { timeout: 30_000 },
    () => {
      const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x'.repeat(380) }] };
      let length = 0;
      for (let index = 0; index < 100_000; index += 1) length += encodeItem({ ...item, index }).length;
      expect(length).toBeGreaterThan(45e6);
      expect(encodeItem({ content: 'x'.repeat(10e6) })).toHaveLength(10e6 + 14);
    },
  );

  it('takes 500 levels and no more [SESS-136]', () => {
    const nested = (levels: number): object => {
      let value: object = {};
      for (let level = 1; level < levels; level++) value = { inner: value };
      return value;
    };
    expect(decodeItem(encodeItem(nested(500)))).toEqual(nested(500));
    expect(() => encodeItem(nested(501))).toThrow(SessionItemError);
    expect(() => encodeItem(nested(100_000))).toThrow(SessionItemError);
  });
});

describe('decodeItem', () => {
  it("takes any text of a JSON object, and Python's bare numbers as null [SESS-133]", () => {
    expect(decodeItem(' {"a" : NaN, "b": [-Infinity, "NaN"], "a": Infinity} ')).toEqual({ a: null, b: [null, 'NaN'] });
    const item = decodeItem<Record<string, unknown>>('{"__proto__": {"x": 1}}');
    expect(Object.hasOwn(item!, '__proto__')).toBe(true);
  });

  it.each(['3', 'null', '"x"', '[]', '', '{', '{"a":}', 'NaN', '{"a":1}x'])(
    'takes %j for corrupt [SESS-133]',
    (text) => {
      expect(decodeItem(text)).toBeUndefined();
    },
  );

  it('gives back what was encoded, in any style', () => {
    const style = fc.constantFrom('compact' as const, 'spaced' as const);
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
        style,
        fc.boolean(),
        (item, chosen, ascii) => {
          const text = encodeItem(item, { style: chosen, ascii });
          expect(JSON.stringify(decodeItem(text))).toBe(JSON.stringify(item));
          const plain = !ascii || text.split('').every((character) => character >= ' ' && character <= '~');
          expect(plain).toBe(true);
        },
      ),
    );
  });
});
