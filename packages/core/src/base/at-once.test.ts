import { expect, it } from 'vitest';
import { idle, unhandledDuring } from '../../test/run-kit.ts';
import { answersLater, atOnce, isThenable } from './at-once.ts';
import { UserError } from './errors.ts';

const refusing: unknown = new Proxy(
  {},
  {
    get() {
      throw new Error('no');
    },
  },
);

/** What acts like a promise, or nearly so. */
const thenable = (then: unknown, target: object = {}): object =>
  // oxlint-disable-next-line unicorn/no-thenable -- what others may hand in
  Object.assign(target, Object.fromEntries([['then', then]]));

it('tells promises, and what acts like one, from all other values; it never throws [TOOL-F17]', () => {
  const thenables = [
    Promise.resolve(),
    thenable(() => {}),
    thenable(
      () => {},
      () => {},
    ),
  ];
  const others = [undefined, null, 0, 'then', {}, thenable(1), () => {}, refusing];
  expect(thenables.map(isThenable)).toEqual([true, true, true]);
  expect(others.map(isThenable)).toEqual(others.map(() => false));
});

it('leaves no rejection of a promise that nobody waits for [TOOL-F17]', async () => {
  const seen = await unhandledDuring(async () => {
    expect(answersLater(Promise.reject(new Error('later')))).toBe(true);
    expect(
      answersLater(
        thenable(() => {
          throw new Error('odd');
        }),
      ),
    ).toBe(true);
    expect(() => atOnce(Promise.reject(new Error('later')), 'the callback')).toThrow(UserError);
    expect(atOnce(5, 'the callback')).toBe(5);
    await idle(3);
  });
  expect(seen).toEqual([]);
});
