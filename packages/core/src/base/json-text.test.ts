import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from './digest.ts';
import { CanonicalText, canonicalJson } from './json-encode.ts';
import { canonicalizeJsonText, decodeJson } from './json-text.ts';

describe('canonicalizeJsonText', () => {
  test.each([
    ['1.0', '1.0'],
    ['1e3', '1000.0'],
    ['1e16', '1e+16'],
    ['1E15', '1000000000000000.0'],
    ['1e-7', '1e-07'],
    ['0.0001', '0.0001'],
    ['0.00001', '1e-05'],
    ['1.5e300', '1.5e+300'],
    ['5e-324', '5e-324'],
    ['-0.0', '-0.0'],
    ['-0', '0'],
    ['1e999', 'Infinity'],
    ['-1e999', '-Infinity'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['9007199254740993', '9007199254740993'],
    ['[NaN,Infinity,-Infinity]', '[NaN,Infinity,-Infinity]'],
  ])('the number %s is written %s, as Python prints it', (source, canonical) => {
    expect(canonicalizeJsonText(source)).toBe(canonical);
  });

  test('keys are sorted by code point, blanks go, the last of equal members stays', () => {
    expect(canonicalizeJsonText(' { "😀" : 1 , "\ue000" : 2 , "b":null, "a" : [ ] , "b" : { } } ')).toBe(
      '{"a":[],"b":{},"\ue000":2,"😀":1}',
    );
  });

  test('escapes are the ones that Python writes; non-ASCII stays', () => {
    expect(canonicalizeJsonText(String.raw`"\u00e9\/\u0041\n\u0001\u007f\ud83d\ude00"`)).toBe(
      '"é/A\\n\\u0001\u007f😀"',
    );
  });

  test.each([
    ['{"a":"é 😀"}', '{"a":"é 😀"}'],
    ['{"":""}', '{"":""}'],
    ['{"a":-12}', '{"a":-12}'],
    ['{"a":-0}', '{"a":0}'],
    ['{"a":1.0}', '{"a":1.0}'],
    ['{"a":12345678901234567890}', '{"a":12345678901234567890}'],
    ['{"a":null}', '{"a":null}'],
    ['{"a": true}', '{"a":true}'],
    [String.raw`{"a":"\u0041"}`, '{"a":"A"}'],
    ['{"a":"\t"}', undefined],
    ['{"a\n":1}', undefined],
    ['{"a":01}', undefined],
    ['{"a":1}}', undefined],
    ['{"a":1}\n', '{"a":1}'],
    ['{"a":nul}', undefined],
  ])('an object of one member, %j', (source, canonical) => {
    expect(canonicalizeJsonText(source)).toBe(canonical);
  });

  test('members that have meaning in JavaScript are data', () => {
    expect(canonicalizeJsonText('{"toString":1,"__proto__":{"a":1},"2":0,"10":0}')).toBe(
      '{"10":0,"2":0,"__proto__":{"a":1},"toString":1}',
    );
  });

  test.each([
    '',
    '{',
    '{"a"}',
    '[1,]',
    '{,}',
    '01',
    '+1',
    '.5',
    '1.',
    "'a'",
    '"a',
    '"\n"',
    '"\\x"',
    '1 2',
    'nul',
    '\ufeff1',
    '{"a":1,}',
    '-',
  ])('no JSON: %j', (text) => {
    expect(canonicalizeJsonText(text)).toBeUndefined();
  });

  test('deep texts are refused without a stack overflow, 500 levels are read', () => {
    expect(canonicalizeJsonText('['.repeat(500) + ']'.repeat(500))).toHaveLength(1000);
    expect(canonicalizeJsonText('['.repeat(501) + ']'.repeat(501))).toBeUndefined();
    expect(canonicalizeJsonText('['.repeat(1_000_000))).toBeUndefined();
  });

  test('a string of megabytes is read', () => {
    const text = JSON.stringify('é\\"'.repeat(1_000_000));
    expect(canonicalizeJsonText(text)).toBe(text);
  });

  test('any JSON means the same afterwards, and a second pass changes nothing', () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false }), (text) => {
        const canonical = canonicalizeJsonText(text);
        expect(JSON.parse(canonical ?? '')).toEqual(JSON.parse(text));
        expect(canonicalizeJsonText(canonical ?? '')).toBe(canonical);
      }),
    );
  });

  test('accepts what JSON.parse accepts and nothing else, but for the bare tokens of Python', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', '"', '\\', ',', ':', '}', ']', '0', '-', 'e', '.', '\n'),
        (json, at, put) => {
          const position = at % (json.length + 1);
          const text = json.slice(0, position) + put + json.slice(position + 1);
          let accepted = true;
          try {
            JSON.parse(text);
          } catch {
            accepted = false;
          }
          expect(canonicalizeJsonText(text) !== undefined).toBe(accepted);
        },
      ),
    );
  });
});

test('the fingerprint and scope of a call come out as in Python', () => {
  const scope = sha256Hex(canonicalJson({ type: 'function_call', tool_lookup_key: ['bare', 'refund_order'] }) ?? '');
  expect(scope).toBe('4e140fb1f4ad47a9286469a92fa9afa640cf7416670dc43eefb0c5766f201356');
  const source = canonicalizeJsonText('{"order_id":7,"note":"é","ratio":1.0}') ?? '';
  const payload = { type: 'function_call', approval_scope: scope, arguments: new CanonicalText(source) };
  expect(sha256Hex(canonicalJson(payload) ?? '')).toBe(
    '73c90c5e4667ef487528d6acb1c497b6f610f521ea4093485a34318087f4dac3',
  );
});

describe('decodeJson', () => {
  test('bare numbers that Python may write are read as null, in strings they are text [SESS-133]', () => {
    expect(decodeJson('{"a": NaN, "b": [Infinity, -Infinity], "c": "NaN, \\" Infinity", "Infinity": 1}')).toEqual({
      a: null,
      b: [null, null],
      c: 'NaN, " Infinity',
      Infinity: 1,
    });
  });

  test.each(['3', 'null', '"x"', '[]', '', '{', '{"a":NaNx}', '{"a":Inf}', 'NaN'])('corrupt: %j [SESS-133]', (text) => {
    expect(decodeJson(text)).toBeUndefined();
  });

  test('the last of equal members wins and __proto__ is data [SESS-133]', () => {
    const item = decodeJson('{"a":1,"a":2,"__proto__":{"polluted":true}}') as Record<string, unknown>;
    expect(item['a']).toBe(2);
    expect(Object.keys(item)).toEqual(['a', '__proto__']);
    expect(item['polluted']).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('a large corrupt text costs no stack', () => {
    expect(decodeJson(`{"a":"${'x'.repeat(5_000_000)}`)).toBeUndefined();
  });
});
