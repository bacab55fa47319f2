import { createTables } from '@agents/session-drizzle/pg';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { drizzleSession } from '../ours.ts';
import type { OpenBackend } from '../store.ts';
import { append, create, newest, PostgresFloor } from './postgres.ts';

export const open: OpenBackend = async (url) => {
  const [bare, client] = [postgres(url, { onnotice: () => {} }), postgres(url, { onnotice: () => {} })];
  const db = drizzle({ client });
  await createTables(db);
  return {
    async floor(sessionId) {
      await bare.unsafe(create, [sessionId]);
      return new PostgresFloor(sessionId, {
        // A connection prepares a statement once, as it does for those that are written as templates.
        append: async (id, texts) => (await bare.unsafe(append, [id, texts as string[]], { prepare: true })).count,
        newest: async (id, count) => await bare.unsafe(newest, [id, count], { prepare: true }),
      });
    },
    session: async (sessionId) => drizzleSession(sessionId, db),
    async close() {
      await Promise.all([bare.end(), client.end()]);
    },
  };
};
