import { Int32, Long } from 'mongodb';
import { describe, expect, it } from 'vitest';

import { replacedHistory, wentBefore } from './replaced.ts';

const batches = (count: number) => Array.from({ length: count }, (_, index) => ({ seq: 10 * index + 9 }));

describe('an item that was popped while its history was replaced [SESS-245, 247]', () => {
  it('went before when its batch had been popped from since, or was gone', () => {
    const replaced = replacedHistory(3, [{ seq: 19, _popped: 2 }, { seq: 9 }]);
    expect(wentBefore({ seq: 19, _popped: 1 }, 3, replaced)).toBe(true);
    expect(wentBefore({ seq: 29 }, 3, replaced)).toBe(true);
    expect(wentBefore({ seq: 5 }, 3, replaced)).toBe(true);
    expect(wentBefore({ seq: 5 }, 3, replacedHistory(3, []))).toBe(true);
  });

  it('was dealt with by the replacement when its batch was whole then', () => {
    const replaced = replacedHistory(3, [{ seq: 9 }, { seq: 19, _popped: 2 }]);
    expect(wentBefore({ seq: 19, _popped: 2 }, 3, replaced)).toBe(false);
    expect(wentBefore({ seq: 9 }, 3, replaced)).toBe(false);
  });

  it('is not known of another history, of one that was cleared, or of a batch that is older than those that are remembered', () => {
    expect(wentBefore({ seq: 29 }, 2, replacedHistory(3, batches(2)))).toBe(false);
    expect(wentBefore({ seq: 29 }, 0, undefined)).toBe(false);
    const replaced = replacedHistory(3, batches(20));
    expect(replaced.batches.map(({ seq }) => Number(seq))).toEqual([129, 139, 149, 159, 169, 179, 189, 199].slice(-8));
    expect(replacedHistory(3, batches(20).toReversed())).toEqual(replaced);
    expect(wentBefore({ seq: 125 }, 3, replaced)).toBe(false);
    expect(wentBefore({ seq: 135 }, 3, replaced)).toBe(true);
  });

  it('is remembered by whole numbers, large ones too [SESS-242]', () => {
    const {
      generation,
      batches: [batch],
    } = replacedHistory(2 ** 31, [{ seq: 2 ** 32, _popped: 1 }]);
    expect(generation).toBeInstanceOf(Long);
    expect(batch?.seq).toBeInstanceOf(Long);
    expect(batch?.popped).toBeInstanceOf(Int32);
  });
});
