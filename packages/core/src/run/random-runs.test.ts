import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configureLogging } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { weatherOf } from '../../test/random/drive.ts';
import { runSeeds } from '../../test/random/runs.ts';
import type { Weather } from '../../test/random/script.ts';

// Whatever interrupts a run (people, programs, appends, models, tools, hooks and handlers that fail, time limits, aborts,
// cancels), in whichever form and process it goes on: in the end it did what it would have done at one go, and nothing
// twice (STATE-534). AGENTS_SEED=7 runs one seed, AGENTS_SEEDS=20000 so many of them, AGENTS_FIRST_SEED=1 from there.

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

const { AGENTS_SEED: only, AGENTS_SEEDS: count = '200', AGENTS_FIRST_SEED: first = '1' } = process.env;
const seeds =
  only === undefined ? Array.from({ length: Number(count) }, (_, index) => Number(first) + index) : [Number(only)];

/** Long enough for as many as anybody asks for. */
const TIMEOUT_MS = 60_000 + 200 * seeds.length;

/** What went wrong; empty: nothing. */
async function findings(weather: Weather): Promise<string> {
  const own = seeds.filter((seed) => weatherOf(seed) === weather);
  const { failures } = await runSeeds(own);
  return failures.length === 0 ? '' : `${failures.length} of ${own.length}\n${failures.slice(0, 20).join('\n\n')}`;
}

describe('a run of any script, interrupted anywhere', () => {
  it(
    'by people, programs and limits does what it would have done at one go, and asks the model once a turn [STATE-534]',
    async () => expect(await findings('calm')).toBe(''),
    TIMEOUT_MS,
  );

  it(
    'by appends, models, tools, hooks and handlers that fail, too: nothing is done twice or lost [STATE-534]',
    async () => expect(await findings('faults')).toBe(''),
    TIMEOUT_MS,
  );

  it(
    'by aborts and cancels of both kinds at any point, too [STATE-534, RUN-1413]',
    async () => expect(await findings('cancels')).toBe(''),
    TIMEOUT_MS,
  );
});
