// Makes one change of a session; whoever started it kills it meanwhile: change.ts <url> <session id> <operation>
import { makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';

import { MongoDBSession } from '../../src/index.ts';

const [url = '', id = '', operation] = process.argv.slice(2);
const session = new MongoDBSession<{ n: string }>(id, { url });
const { version } = await session.readHistory(1);
await makeChange(session, operation as FaultOperation, version);
await session.close();
