import { describe, expect, test } from 'vitest';
import { Agent, run, RunState, tool } from '../index.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { plainJson } from './plain.ts';

class Point {
  readonly x = 1;
}
class Money {
  readonly cents = 5;
  toJSON(): object {
    return { cents: this.cents, at: new Date(0) };
  }
}
const cycle: { [key: string]: unknown } = { a: 1 };
cycle['self'] = [cycle];
const shared = { s: 1 };

describe('the value of a tool as plain JSON', () => {
  test.each<[string, unknown, unknown]>([
    ['texts, numbers, booleans and null', ['a', 1.5, true, null], ['a', 1.5, true, null]],
    ['undefined', undefined, null],
    ['undefined members', { a: undefined, b: [undefined] }, { b: [null] }],
    ['a date', [{ d: new Date(0) }], [{ d: '1970-01-01T00:00:00.000Z' }]],
    ['an object with toJSON', { m: new Money() }, { m: { cents: 5, at: '1970-01-01T00:00:00.000Z' } }],
    ['a map', new Map([['a', 1]]), '[object Map]'],
    [
      'bytes',
      { a: new Uint8Array(3), b: Buffer.from('xy') },
      { a: '[byte array (3 bytes)]', b: '[byte array (2 bytes)]' },
    ],
    ['a set', { s: new Set([1]) }, { s: '[object Set]' }],
    ['a big integer', 12345678901234567890n, '12345678901234567890'],
    ['a function', [Math.max], [String(Math.max)]],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a class instance', new Point(), '[object Object]'],
    ['an error', new TypeError('wrong'), 'TypeError: wrong'],
    ['NaN and infinity', [Number.NaN, Number.NEGATIVE_INFINITY], [null, null]],
    ['an object without prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
    ['a cycle', cycle, { a: 1, self: ['[object Object]'] }],
    ['one object twice', [shared, shared], [shared, shared]],
    [
      'a proxy that throws whatever is asked',
      [
        new Proxy(
          {},
          new Proxy(
            {},
            {
              get: () => (): never => {
                throw new Error('x');
              },
            },
          ),
        ),
      ],
      ['[object Object]'],
    ],
    [
      'toJSON that throws',
      {
        v: {
          toJSON: (): never => {
            throw new Error('x');
          },
          toString: (): string => 'text',
        },
      },
      { v: 'text' },
    ],
    [
      'an accessor that throws',
      {
        get v(): never {
          throw new Error('x');
        },
      },
      '[object Object]',
    ],
    [
      'toString that throws',
      {
        toJSON: (): never => {
          throw new Error('x');
        },
        toString: (): never => {
          throw new Error('y');
        },
      },
      '[object Object]',
    ],
    ['a date that is none', new Date(Number.NaN), null],
  ])('%s [STATE-354], [IL-082]', (_, value, expected) => {
    expect(plainJson(value)).toEqual(expected);
  });

  test('a member called __proto__ stays a member', () => {
    const plain = plainJson(JSON.parse('{"__proto__":{"polluted":1}}')) as object;
    expect(Object.keys(plain)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(plain)).toBe(Object.prototype);
  });

  test('a value may be as deep as it likes: its state can be written and read all the same [STATE-354, STATE-402]', async () => {
    const nested = (depth: number): unknown => {
      let value: unknown = 'end';
      for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { in: value };
      return value;
    };
    for (const depth of [149, 300, 50_000]) {
      const tools = [
        tool({ name: 'deep', execute: () => nested(depth) }),
        tool({ name: 'pay', needsApproval: true, execute: () => 'paid' }),
      ];
      const model = new ScriptedModel([{ output: [toolCall('deep'), toolCall('pay')] }, 'Done.']);
      const agent = new Agent({ name: 'Desk', model, tools });
      const paused = await run(agent, 'go');
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      expect((await run(agent, state)).finalOutput).toBe('Done.');
    }
  });
});
