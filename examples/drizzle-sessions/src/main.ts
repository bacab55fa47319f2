// Conversations in the PostgreSQL of a program that uses drizzle-orm. DATABASE_URL says where.
import { Agent, run } from '@agents/core';
import { OfflineModel } from '@agents/core/testing';
import { DrizzleSession, DrizzleSessionStore } from '@agents/session-drizzle';
import { createAgentTables, createTables } from '@agents/session-drizzle/pg';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { Pool } from 'pg';

const agent = new Agent({ name: 'Assistant', model: new OfflineModel() });

/** In a program of your own these stand in the schema file, and drizzle-kit makes the migrations. */
const tables = createAgentTables({ schema: 'example_chat', names: { agentMessages: 'items' } });

export async function main(
  url: string,
): Promise<{ answers: unknown[]; once: number; forked: number; listed: unknown[] }> {
  const pool = new Pool({ connectionString: url });
  // Without listeners a connection that breaks would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => void client.on('error', () => {}));
  const db = drizzle({ client: pool });
  try {
    await db.execute(sql`create schema if not exists example_chat`);
    await createTables(db, tables);
    const answers: unknown[] = [];
    for (const text of ['My name is Ada.', 'What is my name?']) {
      // Each turn in a session object of its own, as in a request handler.
      const session = new DrizzleSession('user-ada', { db, tables });
      answers.push((await run(agent, text, { session })).finalOutput);
    }

    // An answer that was lost: whoever asks again with the same operation id stores nothing twice.
    const session = new DrizzleSession('user-bob', { db, tables });
    const transaction = { type: 'append_items', items: [{ role: 'user', content: 'My name is Bob.' }] } as const;
    for (let time = 0; time < 3; time++)
      await session.applyHistoryTransaction?.({ operationId: 'greeting', transaction });
    const once = (await session.getItems()).length;

    const store = new DrizzleSessionStore({ db, tables });
    const fork = await store.fork('user-ada', 'user-ada-again', { untilTurn: 2 });
    const forked = (await fork.getItems()).length;
    await store.setMetadata('user-ada', { title: 'Names' });
    const { sessions } = await store.list({ order: 'id', withCount: true });
    const listed = sessions.map(({ sessionId, itemCount, metadata }) => ({ sessionId, itemCount, metadata }));
    return { answers, once, forked, listed };
  } finally {
    await db.execute(sql`drop schema if exists example_chat cascade`);
    await pool.end();
  }
}

if (process.argv[1] === import.meta.filename)
  console.log(await main(process.env['DATABASE_URL'] ?? 'postgres://localhost/postgres'));
