// Makes one change through the address that it is given. Arguments: driver, url, session id, mutation, version.
import { open } from '../support/databases.ts';
import type { DriverName } from '../support/databases.ts';
import { mutate } from '../support/faults.ts';
import type { Mutation } from '../support/faults.ts';

const [driver = '', url = '', id = '', mutation = '', version = ''] = process.argv.slice(2);
const { db } = await open(driver as DriverName, url);
await mutate(db, id, mutation as Mutation, version).catch(() => undefined);
console.log('ended');
setInterval(() => {}, 1000);
