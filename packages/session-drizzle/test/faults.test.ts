import { configureLogging } from '@agents/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { DriverName } from './support/databases.ts';
import { FaultGround } from './support/fault-ground.ts';
import { faults, mutations } from './support/faults.ts';
import type { Fault, Mutation, Outcome } from './support/faults.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

const cells = (chosen: readonly Fault[], changes: readonly Mutation[]): [Mutation, Fault][] =>
  chosen.flatMap((fault) => changes.map((mutation): [Mutation, Fault] => [mutation, fault]));
/** Each with one attempt of each kind; `pnpm faults drizzle` runs them all, many times. */
const quick = faults.filter((fault) => fault !== 'server restart' && fault !== 'client killed');

/** postgres.js 3.4 throws outside of any call when a connection breaks within a transaction: what needs none. */
const changesOf = (driver: DriverName): readonly Mutation[] => (driver === 'postgres.js' ? ['append'] : mutations);

describe.each<DriverName>(['node-postgres', 'postgres.js', 'mysql2'])('%s, a server of its own', (driver) => {
  let ground: FaultGround;
  beforeAll(async () => {
    ground = await FaultGround.start(driver);
  }, 60_000);
  afterAll(async () => await ground?.stop(), 60_000);

  // Acknowledged: there; refused: not there; unknown: whole or not at all, and settled by its id. `judge` says so.
  it.each(cells(quick, changesOf(driver)))('%s, %s [SESS-034, 151, 156]', async (mutation, fault) => {
    for (let attempt = 0; attempt < 3; attempt++) expect(await ground.run(mutation, fault, attempt)).toHaveLength(1);
  });

  it('knows an outcome that it cannot know from one that it can [G2, G3, SESS-151]', async () => {
    const outcome = async (mutation: Mutation, fault: Fault, attempt: number): Promise<Outcome | undefined> =>
      (await ground.run(mutation, fault, attempt))[0];
    expect(await outcome('append', 'reply lost', 0)).toBe('unknown, committed');
    expect(await outcome('append', 'before send', 0)).toBe('unknown, absent');
    if (driver === 'postgres.js') return;
    expect(await outcome('replace', 'reply lost', 0)).toBe('unknown, committed');
    expect(await outcome('clear', 'reply lost', 0)).toBe('unknown, committed');
    // Before the commit was sent nothing can have been stored.
    expect(await outcome('replace', 'before send', 2)).toBe('refused');
    expect(await outcome('pop', 'reply lost', 2)).toBe('refused');
  });

  it('loses nothing that it acknowledged when the server crashes, and stores nothing twice [SESS-006]', async () => {
    for (const mutation of changesOf(driver).slice(0, 2))
      expect(await ground.run(mutation, 'server restart', 2)).toHaveLength(8);
  });

  it('stores a batch of a client that was killed as a whole or not at all [SESS#12, SESS-006]', async () => {
    for (const attempt of [0, 2]) expect((await ground.run('append', 'client killed', attempt))[0]).toMatch(/^unknown/);
    if (driver !== 'postgres.js') await ground.run('appendIfVersion', 'client killed', 1);
  });
});
