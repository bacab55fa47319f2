// Makes changes, each of a session of its own, until it is killed; says when one begins and when it is acknowledged.
// Arguments: driver, path, operation.
import { writeSync } from 'node:fs';

import { configureLogging } from '@agents/core';
import { faultStart, makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';

import { sessionOn } from '../faults/subject.ts';
import { open } from '../support/databases.ts';
import type { DriverName } from '../support/databases.ts';
import { makeTables } from '../support/tables.ts';

configureLogging({ level: 'error' });
const [driver = '', path = '', operation = ''] = process.argv.slice(2);
const opened = await open(driver as DriverName, path);
await makeTables(opened);
for (let number = 0; ; number++) {
  const session = sessionOn(opened, `s${number}`);
  await session.addItems(faultStart);
  const { version } = await session.readHistory(0);
  writeSync(1, `begun ${version}\n`);
  await makeChange(session, operation as FaultOperation, version);
  writeSync(1, 'done\n');
}
