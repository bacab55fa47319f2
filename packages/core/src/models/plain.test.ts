import { describe, expect, it } from 'vitest';
import { plainCopy } from './plain.ts';

describe('plainCopy', () => {
  it('detaches plain data, drops undefined, makes lists of iterables, asks toJSON [MODEL-502]', () => {
    const source = { a: [1, { b: null }], c: undefined, d: new Set(['x']), e: new Date(0), f: new Map([['k', 1]]) };
    const copy = plainCopy(source, 'x');
    expect(copy).toEqual({ a: [1, { b: null }], d: ['x'], e: '1970-01-01T00:00:00.000Z', f: [['k', 1]] });
    expect(copy.a).not.toBe(source.a);
  });

  it('keeps a member named __proto__ as a member', () => {
    const copy = plainCopy(JSON.parse('{"__proto__":{"x":1}}') as object, 'x');
    expect(Object.keys(copy)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
  });

  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  it.each<[string, unknown, string]>([
    ['functions', { a: [() => 1] }, 'input.a[0] is a function, which JSON cannot hold.'],
    ['undefined in lists', [undefined], 'input[0] is undefined'],
    ['big integers', { n: 1n }, 'input.n is a bigint'],
    ['numbers that are none', [Number.NaN], 'input[0] is NaN'],
    ['cycles', loop, 'input.self contains itself'],
  ])('names the path of %s', (_name, value, message) => {
    expect(() => plainCopy(value, 'input')).toThrow(message);
  });

  it('takes the same object twice, which is no cycle', () => {
    const part = { a: 1 };
    expect(plainCopy([part, part], 'x')).toEqual([{ a: 1 }, { a: 1 }]);
  });

  it('says so when the depth is beyond the stack', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 200_000; level++) deep = [deep];
    expect(() => plainCopy(deep, 'input')).toThrow('input is nested too deeply.');
  });
});
