// Finds or starts the MongoDB that the tests share; its address comes by the environment. Says which one it is.
import { MongoClient } from 'mongodb';

import { provide } from '../../../scripts/services.mjs';

export default async function setup() {
  const stop = await provide(['mongo']);
  const url = process.env.TEST_MONGO_URL;
  if (url !== undefined) {
    const client = new MongoClient(url);
    const info = await client.db('admin').command({ buildInfo: 1 });
    await client.close();
    const isOurs = info.gitVersion === 'agents-mongo-server';
    console.log(`MongoDB of the tests: ${isOurs ? 'packages/mongo-server' : `MongoDB ${info.version}`}`);
  }
  return stop;
}
