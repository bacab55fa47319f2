import { expect, test } from 'vitest';
import { trial } from './crash/trial.ts';

// `pnpm crash` in the root kills it 200 times.
test('a desk that is killed again and again loses no answer and pays no refund twice', async () => {
  const tally = { kills: 0, paused: 0, paidUnfinished: 0, visits: 0 };
  await Promise.all([trial(1, 3, tally), trial(2, 3, tally)]);
  expect(tally.kills).toBe(6);
});
