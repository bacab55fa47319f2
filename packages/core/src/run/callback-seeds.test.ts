import { afterEach, beforeEach, expect, it } from 'vitest';
import { configureLogging } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { runSeeds } from '../../test/callbacks/runs.ts';

// Hooks, guardrails, filters, mappers, predicates, tools, agent tools and handoffs that throw, reject, answer with a wrong
// kind, hang until the run is aborted, settle when it is over, or change what they were given to read: the run ends with the
// error that is theirs, goes on from its state, and does nothing twice (test/callbacks). AGENTS_SEED=7 runs one seed,
// AGENTS_SEEDS=2000 so many of them, `pnpm seeds 5000` as well, with the matrix of what was hit.

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

const { AGENTS_SEED: only, AGENTS_SEEDS: count = '40', AGENTS_FIRST_SEED: first = '1' } = process.env;
const seeds =
  only === undefined ? Array.from({ length: Number(count) }, (_, index) => Number(first) + index) : [Number(only)];

it(
  'callbacks of any kind that misbehave in any way end the run as said, in both forms alike, and it can be gone on with [RUN-512, STATE-139, STATE-534]',
  async () => {
    const { failures } = await runSeeds(seeds);
    expect(failures.slice(0, 10)).toEqual([]);
  },
  60_000 + 200 * seeds.length,
);
