// Makes one change of a session; whoever started it kills it meanwhile.
// change.ts <url> lua|multi <session id> <operation>
import { makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';

import { RedisSession } from '../../src/index.ts';

const [url = '', scripting, id = '', operation] = process.argv.slice(2);
const session = new RedisSession<{ n: string }>(id, { url, scripting: scripting === 'multi' ? 'multi' : 'lua' });
const { version } = await session.readHistory(1);
await makeChange(session, operation as FaultOperation, version);
await session.close();
