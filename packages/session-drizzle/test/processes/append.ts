// Appends batches. Arguments: driver, url, session id, name, number of batches, their size.
import { DrizzleSession } from '../../src/index.ts';
import { open } from '../support/databases.ts';
import type { DriverName } from '../support/databases.ts';

const [driver = '', url = '', id = '', name = '', batches = '0', size = '0'] = process.argv.slice(2);
const { db, close } = await open(driver as DriverName, url);
const session = new DrizzleSession<object>(id, { db });
for (let batch = 0; batch < Number(batches); batch++)
  await session.addItems(
    Array.from({ length: Number(size) }, (_, index) => ({ role: 'user', content: `${name}/${batch}/${index}` })),
  );
await close();
console.log('closed');
