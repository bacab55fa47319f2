// Closes while its server stands still; says what became of a read that was under way, and that it has closed.
// close.ts <url> <process id of the server> session|store|idle
import { setTimeout } from 'node:timers/promises';

import { MongoDBSession, MongoDBSessionStore } from '../../src/index.ts';

const [url = '', server = '', what] = process.argv.slice(2);
// A connection that the driver begins to make with that server is made for ever. For `idle` none is left when it is closed: the
// driver makes one to say good-bye.
const clientOptions = { connectTimeoutMS: 0, ...(what === 'idle' && { maxIdleTimeMS: 1 }) };
const options = { url, operationTimeoutMs: 2000, clientOptions };
const owner = what === 'store' ? new MongoDBSessionStore(options) : new MongoDBSession<object>('s', options);
const session = owner instanceof MongoDBSession ? owner : owner.session('s');
// However long that takes.
while (!(await session.ping()));
await setTimeout(5);
process.kill(Number(server), 'SIGSTOP');
const read =
  what === 'idle'
    ? 'no read'
    : session.getItems().then(
        () => 'read',
        (error: unknown) => (error as Error).name,
      );
await owner.close();
console.log(await read);
