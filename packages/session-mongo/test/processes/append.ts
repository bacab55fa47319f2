// Appends batches: node append.ts <url> <database> <session id> <name> <batches> <size>. Says ready, waits for a line, says each batch that was acknowledged.
import { once } from 'node:events';

import { MongoDBSession } from '../../src/index.ts';

const [url = '', database = '', id = '', name = '', batches = '', size = ''] = process.argv.slice(2);
const session = new MongoDBSession(id, { url, database });
await session.getItems();
process.stdout.write('ready\n');
await once(process.stdin, 'data');
for (let batch = 0; batch < Number(batches); batch++) {
  await session.addItems(
    Array.from({ length: Number(size) }, (_, index) => ({ role: 'user', content: `${name}/${batch}/${index}` })),
  );
  process.stdout.write(`${batch}\n`);
}
await session.close();
process.stdin.destroy();
