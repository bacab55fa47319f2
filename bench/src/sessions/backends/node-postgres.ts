import { createTables } from '@agents/session-drizzle/pg';
import { drizzle } from 'drizzle-orm/node-postgres';
import { Pool } from 'pg';
import { drizzleSession } from '../ours.ts';
import type { OpenBackend } from '../store.ts';
import { append, create, newest, PostgresFloor } from './postgres.ts';

export const open: OpenBackend = async (url) => {
  const [bare, client] = [new Pool({ connectionString: url }), new Pool({ connectionString: url })];
  const db = drizzle({ client });
  await createTables(db);
  return {
    async floor(sessionId) {
      await bare.query(create, [sessionId]);
      return new PostgresFloor(sessionId, {
        // With a name a connection prepares a statement once.
        append: async (...values) => (await bare.query({ name: 'append', text: append, values })).rowCount ?? 0,
        newest: async (...values) => (await bare.query({ name: 'newest', text: newest, values })).rows,
      });
    },
    session: async (sessionId) => drizzleSession(sessionId, db),
    async close() {
      await Promise.all([bare.end(), client.end()]);
    },
  };
};
