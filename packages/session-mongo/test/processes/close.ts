// Closes while its server stands still; nothing may keep it then. Says what became of a read that was under way.
// close.ts <url> <process id of the server> session|store
import { MongoDBSession, MongoDBSessionStore } from '../../src/index.ts';

const [url = '', server = '', what] = process.argv.slice(2);
const options = { url, operationTimeoutMs: 500 };
const owner = what === 'store' ? new MongoDBSessionStore(options) : new MongoDBSession<object>('s', options);
const session = owner instanceof MongoDBSession ? owner : owner.session('s');
await session.addItems([{ role: 'user', content: '1' }]);
process.kill(Number(server), 'SIGSTOP');
const read = session.getItems().then(
  () => 'read',
  (error: unknown) => (error as Error).name,
);
await owner.close();
console.log(await read);
