import { expect, test } from 'vitest';
import { toolOutputText } from './tool-output.ts';

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

test.each<[string, unknown, string]>([
  ['a string as it is [TOOL-R1]', ' {"a": 1}\n', ' {"a": 1}\n'],
  ['undefined as nothing [TOOL-F41]', undefined, ''],
  ['null', null, 'null'],
  ['a boolean', false, 'false'],
  ['a number', 1.5, '1.5'],
  ['no number', Number.NaN, 'NaN'],
  ['a bigint', 12n, '12'],
  ['an object as JSON', { a: 1, b: undefined, c: ['ü'] }, '{"a":1,"c":["ü"]}'],
  ['an empty list [TOOL-R4]', [], '[]'],
  ['a list', [1, 'a', { b: null }], '[1,"a",{"b":null}]'],
  ['what toJSON says', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
  ['bytes', new Uint8Array(3), '[byte array (3 bytes)]'],
  [
    'bytes inside',
    { a: new Uint8Array(3), b: Buffer.from('xy') },
    '{"a":"[byte array (3 bytes)]","b":"[byte array (2 bytes)]"}',
  ],
  ['a bigint inside', { n: 12n }, '{"n":"12"}'],
  ['a cycle as a fixed text', cycle, '[value without a JSON form]'],
  ['a function as a fixed text', () => 'secret', '[value without a JSON form]'],
  ['a symbol as a fixed text', Symbol('secret'), '[value without a JSON form]'],
  ['something without JSON', { toJSON: () => undefined }, '[value without a JSON form]'],
])('the model reads %s [TOOL-R6]', (_, value, text) => {
  expect(toolOutputText(value)).toBe(text);
});
