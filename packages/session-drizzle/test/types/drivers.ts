// What users write, for each driver: compiled with both releases of drizzle-orm that are supported, never run.
import { PGlite } from '@electric-sql/pglite';
import { createClient } from '@libsql/client';
import { drizzle as betterSqlite } from 'drizzle-orm/better-sqlite3';
import { drizzle as libsql } from 'drizzle-orm/libsql';
import { drizzle as mysql2 } from 'drizzle-orm/mysql2';
import { drizzle as nodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as pglite } from 'drizzle-orm/pglite';
import { drizzle as postgresJs } from 'drizzle-orm/postgres-js';

import { DrizzleSession, DrizzleSessionStore } from '../../src/index.ts';
import * as mysql from '../../src/mysql.ts';
import * as pg from '../../src/pg.ts';
import * as sqlite from '../../src/sqlite.ts';

export async function onPostgres(): Promise<void> {
  const databases = [
    nodePostgres('postgres://localhost/app'),
    postgresJs('postgres://localhost/app'),
    pglite({ client: new PGlite() }),
  ] as const;
  for (const db of databases) {
    await pg.createTables(db);
    await pg.createTables(db, pg.createAgentTables({ schema: 'agents', idType: 'bigserial' }));
    await new DrizzleSession('s', { db, tables: pg }).getItems();
    await db.transaction(async (tx) => {
      await new DrizzleSession('s', { db: tx }).addItems([]);
    });
  }
}

export async function onMySql(): Promise<void> {
  const db = mysql2('mysql://localhost/app');
  await mysql.createTables(db, mysql.createAgentTables({ idType: 'bigserial' }));
  await new DrizzleSession('s', { db, tables: mysql }).getItems();
  await new DrizzleSessionStore({ db }).list();
}

export async function onSQLite(): Promise<void> {
  for (const db of [betterSqlite('app.db'), libsql({ client: createClient({ url: 'file:app.db' }) })] as const) {
    await sqlite.createTables(db);
    const tables = sqlite.createAgentTables({ names: { agentMessages: 'items' } });
    await new DrizzleSession('s', { db, tables }).getItems();
  }
}
