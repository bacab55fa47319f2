// Closes while its server stands still; says what became of a read that was under way. close.ts <url> session|store
import { Redis } from 'ioredis';

import { RedisSession, RedisSessionStore } from '../../src/index.ts';

const [url = '', what] = process.argv.slice(2);
const admin = new Redis(url);
const pid = Number(/process_id:(\d+)/.exec(await admin.info('server'))?.[1]);
admin.disconnect();
const options = { url, operationTimeoutMs: 2000 };
const owner = what === 'store' ? new RedisSessionStore(options) : new RedisSession<object>('s', options);
const session = owner instanceof RedisSession ? owner : owner.session('s');
await session.addItems([{ role: 'user', content: '1' }]);
process.kill(pid, 'SIGSTOP');
const read = session.getItems().then(
  () => 'read',
  (error: unknown) => (error as Error).name,
);
await owner.close();
console.log(await read);
process.kill(pid, 'SIGCONT');
