import { describe, expect, it } from 'vitest';

import type { DriverName } from './support/databases.ts';
import { start } from './processes/child.ts';

/** The release that is not the one of the other tests; in a process of its own, which has no other. */
describe('with the next release of drizzle-orm', () => {
  it.each<[DriverName, string, number]>([
    ['node:sqlite', 'all', 93],
    ['better-sqlite3', 'AFGI', 33],
    ['node-postgres', 'AFGI', 35],
    ['postgres.js', 'AFGI', 35],
    ['mysql2', 'AFGI', 35],
  ])('the contract holds: %s, groups %s [SESS#51, SESS-265]', async (driver, groups, count) => {
    const child = start('contract.ts', { release: 1 }, driver, groups);
    expect(await child.ended).toBe(0);
    const results = child.lines().map((line) => JSON.parse(line) as { title: string; error?: string });
    expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(results.length).toBeGreaterThanOrEqual(count);
  });
});
