// A chat whose turns are answered by whichever server gets them: what was said is in MongoDB. MONGO_URL says where.
import { Agent, run } from '@agents/core';
import { OfflineModel } from '@agents/core/testing';
import { MongoDBSession, MongoDBSessionStore } from '@agents/session-mongo';
import { MongoClient } from 'mongodb';

const agent = new Agent({ name: 'Assistant', model: new OfflineModel() });

/** One turn, as a request handler has it: a session object is cheap, the client is shared. */
async function answer(client: MongoClient, database: string, user: string, text: string): Promise<string | undefined> {
  const session = new MongoDBSession(`user-${user}`, { client, database });
  const { finalOutput } = await run(agent, text, { session });
  return finalOutput;
}

export async function main(
  url: string,
  database: string,
): Promise<{ answers: unknown[]; listed: unknown[]; left: unknown }> {
  const servers = [new MongoClient(url), new MongoClient(url)] as const;
  const [first, second] = servers;
  try {
    const answers = [
      await answer(first, database, 'ada', 'My name is Ada.'),
      await answer(second, database, 'bob', 'My name is Bob.'),
      await answer(second, database, 'ada', 'What is my name?'),
    ];
    // What a page of conversations needs, and what a nightly job does.
    const store = new MongoDBSessionStore({ client: first, database });
    await store.setMetadata('user-ada', { title: 'Names' });
    const { sessions } = await store.list({ order: 'id', withCount: true });
    const listed = sessions.map(({ sessionId, itemCount, metadata }) => ({ sessionId, itemCount, metadata }));
    await store.prune({ maxItems: 2 });
    const left = (await store.get('user-ada'))?.itemCount;
    return { answers, listed, left };
  } finally {
    await first.db(database).dropDatabase();
    await Promise.all(servers.map((client) => client.close()));
  }
}

if (process.argv[1] === import.meta.filename)
  console.log(await main(process.env['MONGO_URL'] ?? 'mongodb://localhost', 'agents_example'));
