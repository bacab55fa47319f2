// A chat whose turns are answered by whichever server gets them: what was said is in Redis. REDIS_URL says where.
import { Agent, run } from '@agents/core';
import { SessionVersionConflictError } from '@agents/core/session';
import { OfflineModel } from '@agents/core/testing';
import { RedisSession, RedisSessionStore } from '@agents/session-redis';
import { Redis } from 'ioredis';

const agent = new Agent({ name: 'Assistant', model: new OfflineModel() });

const DAY = 24 * 60 * 60 * 1000;

export async function main(
  url: string,
  keyPrefix: string,
): Promise<{ answers: unknown[]; listed: unknown[]; conflict: boolean; left: number }> {
  const [first, second] = [new Redis(url), new Redis(url)];
  try {
    /** One turn, as a request handler has it: a session object is cheap, the client is shared. */
    const answer = async (client: Redis, user: string, text: string): Promise<string | undefined> => {
      const session = new RedisSession(`user-${user}`, { client, keyPrefix, ttlMs: 30 * DAY });
      const { finalOutput } = await run(agent, text, { session });
      return finalOutput;
    };
    const answers = [
      await answer(first, 'ada', 'My name is Ada.'),
      await answer(second, 'bob', 'My name is Bob.'),
      await answer(second, 'ada', 'What is my name?'),
    ];

    // Two servers on one conversation: the one that is late notices it by the version.
    const here = new RedisSession('user-bob', { client: first, keyPrefix });
    const there = new RedisSession('user-bob', { client: second, keyPrefix });
    const { version } = await here.readHistory(0);
    await there.addItems([{ role: 'user', content: 'Are you there?' }]);
    const conflict = await here.appendIfVersion(version, [{ role: 'user', content: 'Hello?' }]).then(
      () => false,
      (error: unknown) => error instanceof SessionVersionConflictError,
    );

    // What a page of conversations needs, and what a nightly job does.
    const store = new RedisSessionStore({ client: first, keyPrefix });
    await store.setMetadata('user-ada', { title: 'Names' });
    const { sessions } = await store.list({ withCount: true });
    const listed = sessions
      .map(({ sessionId, itemCount, metadata }) => ({ sessionId, itemCount, metadata }))
      .toSorted((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
    for (const { sessionId } of sessions) await store.delete(sessionId);
    const left = (await store.list()).sessions.length;
    return { answers, listed, conflict, left };
  } finally {
    await Promise.all([first, second].map((client) => client.quit()));
  }
}

if (process.argv[1] === import.meta.filename)
  console.log(await main(process.env['REDIS_URL'] ?? 'redis://localhost:6379', 'example:session'));
