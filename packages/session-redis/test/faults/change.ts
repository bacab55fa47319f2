// Makes one change of a session; whoever started it kills it meanwhile.
// change.ts <url, or JSON with a node and the natMap of a cluster> lua|multi <session id> <operation>
import { makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';
import { Cluster } from 'ioredis';
import type { NatMap } from 'ioredis';

import { RedisSession } from '../../src/index.ts';

const [target = '', scripting, id = '', operation] = process.argv.slice(2);
const cluster = target.startsWith('{') ? connect(target) : undefined;
const session = new RedisSession<{ n: string }>(id, {
  ...(cluster ? { client: cluster } : { url: target }),
  scripting: scripting === 'multi' ? 'multi' : 'lua',
});
const { version } = await session.readHistory(1);
await makeChange(session, operation as FaultOperation, version);
await session.close();
cluster?.disconnect();

function connect(json: string): Cluster {
  const { start, natMap } = JSON.parse(json) as { start: { host: string; port: number }; natMap: NatMap };
  // A machine that is busy with faults answers late.
  const client = new Cluster([start], { natMap, slotsRefreshTimeout: 30_000 });
  client.on('error', () => {});
  return client;
}
