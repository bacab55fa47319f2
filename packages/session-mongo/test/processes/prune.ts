// Prunes what nobody used for a second: prune.ts <url> <database>
import { MongoClient } from 'mongodb';

import { MongoDBSessionStore } from '../../src/index.ts';

const [url = '', database] = process.argv.slice(2);
const client = new MongoClient(url, { retryReads: false });
await new MongoDBSessionStore({ client, database, createIndexes: false }).prune({ idleForMs: 1000 });
await client.close();
