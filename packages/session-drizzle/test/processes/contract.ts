// Runs the contract on one driver and writes a line for each case. Arguments: the driver, the groups (`AFGI`, or `all`).
import { configureLogging } from '@agents/core';
import { sessionContract } from '@agents/core/testing';

import { open } from '../support/databases.ts';
import type { DriverName } from '../support/databases.ts';
import { fixtureOf, isElsewhere, noSkip } from '../support/fixture.ts';
import { makeTables } from '../support/tables.ts';

// What corrupt records cause; the output is for results.
configureLogging({ level: 'error' });
const [driver = '', groups = ''] = process.argv.slice(2);
const opened = await open(driver as DriverName);
try {
  await makeTables(opened);
  for (const contractCase of sessionContract(() => fixtureOf(opened))) {
    const { id, title } = contractCase;
    if ((groups !== 'all' && !groups.includes(id[0] ?? '')) || isElsewhere(opened.driver, id)) continue;
    const error = await contractCase.run(noSkip).then(
      () => undefined,
      (thrown: unknown) => (thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)),
    );
    console.log(JSON.stringify({ title, error }));
  }
} finally {
  await opened.close();
}
