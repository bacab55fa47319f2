import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonEncodeError, canonicalJson, encodeJson, pythonJson } from './json-encode.ts';
import { decodeJson } from './json-text.ts';

/** JSON values without what JavaScript changes on its own (-0). */
const jsonObject = fc
  .dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ stringUnit: 'binary' }))
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

describe('encodeJson', () => {
  test('spaced and compact, escaped and not, as the stores of Python have it [SESS-131]', () => {
    const item = { role: 'user', content: 'Grüße 😊' };
    expect(encodeJson(item, { style: 'spaced' })).toBe(
      String.raw`{"role": "user", "content": "Gr\u00fc\u00dfe \ud83d\ude0a"}`,
    );
    expect(encodeJson(item)).toBe(String.raw`{"role":"user","content":"Gr\u00fc\u00dfe \ud83d\ude0a"}`);
    expect(encodeJson(item, { ascii: false })).toBe('{"role":"user","content":"Grüße 😊"}');
    expect(encodeJson({ a: [1, {}], b: [] }, { style: 'spaced' })).toBe('{"a": [1, {}], "b": []}');
  });

  test('escapes are those of Python: DEL is one, the slash is none, keys too [SESS-131]', () => {
    expect(encodeJson({ 'é"': '"\\\n\r\t\b\f/\u0001\u007f\u2028' })).toBe(
      String.raw`{"\u00e9\"":"\"\\\n\r\t\b\f/\u0001\u007f\u2028"}`,
    );
  });

  test('fractions are printed as Python prints them', () => {
    expect(encodeJson([1, 1.5, 1e-7, 1e21, -0, 1e20, 0.1])).toBe('[1,1.5,1e-07,1e+21,0,100000000000000000000,0.1]');
  });

  test('every JSON object comes back the same, in every style [SESS-131]', () => {
    fc.assert(
      fc.property(jsonObject, fc.constantFrom('compact', 'spaced'), fc.boolean(), (value, style, ascii) => {
        const text = encodeJson(value, { style, ascii });
        expect(decodeJson(text)).toEqual(value);
        expect(Object.keys(decodeJson(text) ?? {})).toEqual(Object.keys(value));
        expect(ascii && /[^ -~]/.test(text)).toBe(false);
      }),
    );
  });

  test('plain objects of any realm, toJSON and undefined members are fine; lone surrogates are kept [SESS-135]', () => {
    const foreign: unknown = runInNewContext('({ a: [1], b: undefined })');
    expect(
      encodeJson({ foreign, at: new Date(0), bare: Object.assign(Object.create(null), { x: 1 }), lone: '\ud800' }),
    ).toBe(String.raw`{"foreign":{"a":[1]},"at":"1970-01-01T00:00:00.000Z","bare":{"x":1},"lone":"\ud800"}`);
    expect(encodeJson({ own: { toJSON: () => ({ toJSON: 1, a: 2 }) } })).toBe('{"own":{"toJSON":1,"a":2}}');
  });

  test.each<[unknown, string]>([
    [{ a: [undefined] }, 'a[0] is undefined.'],
    [{ a: { b: () => 'secret' } }, 'a.b is a function.'],
    [{ a: Symbol('secret') }, 'a is a symbol.'],
    [{ a: [{ b: 1n }] }, 'a[0].b is a bigint.'],
    [{ a: Number.NaN }, 'a is not a finite number.'],
    [{ a: new Map([['secret', 1]]) }, 'a is no plain object.'],
    [{ a: new Uint8Array(1) }, 'a is no plain object.'],
    [new (class Secret {})(), 'The value is no plain object.'],
  ])('refuses what JSON would lose, naming the place and never the value [SESS-135] (%#)', (value, message) => {
    expect(() => encodeJson(value)).toThrow(JsonEncodeError);
    expect(() => encodeJson(value)).toThrow(message);
  });

  test('500 levels are written, more and cycles are an error and no stack overflow [SESS-136]', () => {
    const nested = (levels: number): unknown => JSON.parse('{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1));
    expect(encodeJson(nested(500))).toContain('{}');
    expect(() => encodeJson(nested(501))).toThrow(/is nested deeper than 500 levels/);
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(() => encodeJson(cycle)).toThrow(JsonEncodeError);
  });
});

describe('pythonJson and canonicalJson', () => {
  test('one sorts and escapes with blanks, the other without and literally', () => {
    const value = { z: 1, '😀': 'é', '\ue000': [true, null], a: undefined };
    expect(pythonJson(value)).toBe(String.raw`{"z": 1, "\ue000": [true, null], "\ud83d\ude00": "\u00e9"}`);
    expect(canonicalJson(value)).toBe('{"z":1,"\ue000":[true,null],"😀":"é"}');
  });

  test('text with a lone surrogate has no canonical form, in keys neither', () => {
    expect(canonicalJson({ a: '\ud800' })).toBeUndefined();
    expect(canonicalJson({ 'x\udc00': 1 })).toBeUndefined();
    expect(canonicalJson({ a: '\ud83d\ude00' })).toBe('{"a":"😀"}');
  });

  test('the order of members does not matter', () => {
    fc.assert(
      fc.property(jsonObject, (value) => {
        const turned = Object.fromEntries(Object.entries(value).toReversed());
        expect(pythonJson(turned)).toBe(pythonJson(value));
        expect(canonicalJson(turned)).toBe(canonicalJson(value));
      }),
    );
  });
});
