// Makes one change; whoever started it kills it meanwhile. Arguments: driver, url, session id, operation.
import { makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';

import { sessionOn } from '../faults/subject.ts';
import { open } from '../support/databases.ts';
import type { DriverName } from '../support/databases.ts';

const [driver = '', url = '', id = '', operation = ''] = process.argv.slice(2);
const { db, close } = await open(driver as DriverName, url);
const session = sessionOn({ db }, id);
const { version } = await session.readHistory(1);
await makeChange(session, operation as FaultOperation, version);
await close();
