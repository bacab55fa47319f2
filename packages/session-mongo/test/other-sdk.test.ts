import { checkWithOpenAIAgents } from '@agents/testkit/openai-agents';
import type { TheirItem } from '@agents/testkit/openai-agents';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { freshName, mongoUrl } from './mongo.ts';

let client: MongoClient;
const database = freshName();
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(async () => {
  await client.db(database).dropDatabase();
  await client.close();
});

it('is the session of a runner of @openai/agents over three turns with a tool, its changes of history too [SESS#75, SESS-393]', async () => {
  const open = () => new MongoDBSession<TheirItem>('theirs', { client, database });
  await expect(checkWithOpenAIAgents(open)).resolves.toBeUndefined();
});
