import { sessionContract } from '@agents/core/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { fixtureOf, isElsewhere, noSkip } from './support/fixture.ts';
import { makeTables } from './support/tables.ts';

describe.each<DriverName>(['node-postgres', 'postgres.js', 'PGlite', 'mysql2', 'better-sqlite3', 'libsql'])(
  'contract, %s [SESS#51, SESS-262, 263, 264, 342]',
  (driver) => {
    let opened: Opened;
    beforeAll(async () => {
      opened = await open(driver);
      await makeTables(opened);
      // PGlite needs seconds to start on a machine that is busy.
    }, 60_000);
    afterAll(async () => await opened?.close());

    const cases = sessionContract(() => fixtureOf(opened)).filter(({ id }) => !isElsewhere(driver, id));
    it.each(cases)('$title', async (contractCase) => {
      await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
    });
  },
);
