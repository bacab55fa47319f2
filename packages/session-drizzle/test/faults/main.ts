// Every change meets every fault, many times: `pnpm faults drizzle [rounds] [drivers]` prints what came of it, and ends at
// the first time that the store broke its word.
import { configureLogging } from '@agents/core';
import { faultTable } from '@agents/testkit';

import type { DriverName } from '../support/databases.ts';
import { startSubject } from './subject.ts';

configureLogging({ level: 'error' });
const [rounds = '30', drivers = 'node-postgres,mysql2'] = process.argv.slice(2);
for (const driver of drivers.split(',') as DriverName[]) {
  const subject = await startSubject(driver);
  for await (const line of faultTable(driver, subject, Number(rounds))) console.log(line);
  await subject.stop();
}
process.exit();
