// Does one operation on a session: node worker.ts <url> <operation> <session id> <version>. Made to be killed.
import { MongoClient } from 'mongodb';

import { MongoDBSession } from '../../src/index.ts';
import { perform } from './cells.ts';
import type { Operation } from './cells.ts';

const [url = '', operation = '', id = '', version = ''] = process.argv.slice(2);
const client = new MongoClient(url);
await perform(new MongoDBSession(id, { client }), operation as Operation, `op-${id}`, version);
await client.close();
