import { configureLogging } from '@agents/core';
import { faultKinds, faultOperations, faultStart, makeChange, meetFault } from '@agents/testkit';
import type { FaultKind, FaultOperation, FaultOutcome } from '@agents/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { dieWithin } from './faults/embedded.ts';
import { startSubject } from './faults/subject.ts';
import type { DriverName } from './support/databases.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

/** What a fault of the request that decides may lead to. (Of a statement before it: `refused`.) */
const possible: Record<FaultKind, readonly FaultOutcome[]> = {
  before: ['absent'],
  middle: ['committed', 'absent'],
  sent: ['committed', 'absent'],
  reply: ['committed'],
  restart: ['ok', 'committed', 'absent'],
  killed: ['committed', 'absent'],
};

/** A process or a server is started anew for these: all of them are in `pnpm faults drizzle`. */
const costly: Partial<Record<FaultKind, readonly FaultOperation[]>> = {
  restart: ['append', 'pop'],
  killed: ['append', 'clear'],
};
const cells = faultKinds.flatMap((fault) =>
  faultOperations
    .filter((operation) => costly[fault]?.includes(operation) ?? true)
    .map((operation) => [operation, fault] as const),
);
/** postgres.js 3.4 throws outside of any call when a connection breaks within a transaction: what needs none. */
const cellsOf = (driver: DriverName): typeof cells =>
  driver === 'postgres.js' ? cells.filter(([operation]) => operation === 'append') : cells;

describe.each<DriverName>(['node-postgres', 'postgres.js', 'mysql2'])('%s, a server of its own', (driver) => {
  let subject: Awaited<ReturnType<typeof startSubject>>;
  beforeAll(async () => {
    subject = await startSubject(driver);
  }, 60_000);
  afterAll(async () => await subject?.stop(), 60_000);

  // Acknowledged: there; refused: not there; unknown: whole or not at all, and settled by its id. `meetFault` says so.
  it.each(cellsOf(driver))(
    '%s, %s: whole or not at all, and settled by its id [SESS#12, G2, SESS-006, 034, 151]',
    async (operation, fault) => {
      for (const round of fault === 'killed' ? [0] : fault === 'middle' ? [0, 3] : [0, 1])
        expect(possible[fault]).toContain(await meetFault(subject, operation, fault, round));
    },
  );

  // Before the commit was sent nothing can have been stored.
  it.each(cellsOf(driver).filter(([operation, fault]) => needsTransaction(driver, operation) && fault === 'sent'))(
    '%s, %s before its commit: refused with the error of the driver [G3, SESS-151]',
    async (operation, fault) => {
      expect(await meetFault(subject, operation, fault, 2)).toBe('refused');
    },
  );

  // The driver does not come as far as the change.
  it.each(driver === 'postgres.js' ? [] : (['sent', 'reply'] as const))(
    'a connection that ends with the beginning of a transaction, %s: the error of the driver [G1, SESS-151]',
    async (fault) => {
      const id = `begins, ${fault}`;
      const [direct, session] = [subject.direct(id), subject.open(id)];
      await direct.addItems(faultStart);
      await session.readHistory(0);
      for (const operation of ['pop', 'clear', 'replace'] as const) {
        const cut = subject.proxy.cutNext(fault, {
          matching: (request) => /\bbegin\b/.test(request.toString('latin1')),
        });
        await expect(makeChange(session, operation, '')).rejects.not.toMatchObject({ code: 'session_outcome_unknown' });
        await cut;
        expect(await direct.getItems()).toEqual(faultStart);
      }
    },
  );
});

// Between the items and the operation; between what goes and what comes; before the commit.
it.each([
  ['better-sqlite3', 'append', 6],
  ['better-sqlite3', 'replace', 4],
  ['libsql', 'clear', 2],
] as const)(
  '%s, whose process dies within a change, %s: nothing of it is there [SESS#12, SESS-006, 034]',
  async (driver, operation, statements) => {
    expect(await dieWithin(driver, operation, statements)).toBe('absent');
  },
);

const needsTransaction = (driver: DriverName, operation: FaultOperation): boolean =>
  driver === 'mysql2' || operation !== 'append';
