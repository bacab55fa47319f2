import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { isObject, isPlainObject, setOwn } from './json.ts';

class Point {
  x = 1;
}

describe('what an object is', () => {
  test.each([
    ['a literal', {}, true, true],
    ['one without a prototype', Object.create(null), true, true],
    ['one of another realm', runInNewContext('({ a: 1 })'), true, true],
    ['an instance', new Point(), true, false],
    ['an instance of another realm', runInNewContext('new (class Point {})()'), true, false],
    ['one that inherits members', Object.create(Object.assign(Object.create(null), { a: 1 })), true, false],
    ['a map', new Map(), true, false],
    ['a list', [], false, false],
    ['a list of another realm', runInNewContext('[]'), false, false],
    ['null', null, false, false],
    ['a function', () => {}, false, false],
  ])('%s', (_, value: unknown, object, plain) => {
    expect([isObject(value), isPlainObject(value)]).toEqual([object, plain]);
  });
});

test('a member named __proto__ is a member like any other', () => {
  const target: Record<string, unknown> = {};
  setOwn(target, '__proto__', { admin: true });
  setOwn(target, 'a', 1);
  expect(Object.entries(target)).toEqual([
    ['__proto__', { admin: true }],
    ['a', 1],
  ]);
  expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
});
