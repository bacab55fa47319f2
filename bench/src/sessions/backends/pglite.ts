import { createTables } from '@agents/session-drizzle/pg';
import { PGlite } from '@electric-sql/pglite';
import { drizzle } from 'drizzle-orm/pglite';
import { join } from 'node:path';
import { drizzleSession } from '../ours.ts';
import type { OpenBackend } from '../store.ts';
import { append, create, newest, PostgresFloor } from './postgres.ts';

/** PostgreSQL within the process; each of the two has a database of its own, in a folder. */
export const open: OpenBackend = async (folder) => {
  const bare = await PGlite.create(join(folder, 'bare'));
  const client = await PGlite.create(join(folder, 'session'));
  await createTables(drizzle({ client: bare }));
  const db = drizzle({ client });
  await createTables(db);
  return {
    async floor(sessionId) {
      await bare.query(create, [sessionId]);
      return new PostgresFloor(sessionId, {
        append: async (...values) => (await bare.query(append, values)).affectedRows ?? 0,
        newest: async (...values) => (await bare.query<{ message_data: string }>(newest, values)).rows,
      });
    },
    session: async (sessionId) => drizzleSession(sessionId, db),
    async close() {
      await Promise.all([bare.close(), client.close()]);
    },
  };
};
