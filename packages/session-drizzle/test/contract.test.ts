import { sessionContract } from '@agents/core/testing';
import { describe, expect, it } from 'vitest';

import type { DriverName } from './support/databases.ts';
import { fixtureOf, isElsewhere, noSkip } from './support/fixture.ts';
import { openedFor } from './support/opened.ts';

describe.each<DriverName>(['node-postgres', 'postgres.js', 'PGlite', 'mysql2', 'better-sqlite3', 'libsql'])(
  'contract, %s [SESS#51, SESS-262, 263, 264, 342]',
  (driver) => {
    const opened = openedFor(driver);

    const cases = sessionContract(() => fixtureOf(opened)).filter(({ id }) => !isElsewhere(driver, id));
    it.each(cases)('$title', async (contractCase) => {
      await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
    });
  },
);
