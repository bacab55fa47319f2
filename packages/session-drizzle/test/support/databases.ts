import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { DrizzleDatabase } from '../../src/index.ts';

/** A database of its own, for one file or process of tests. */
export interface Opened {
  readonly db: DrizzleDatabase;
  readonly driver: DriverName;
  readonly dialect: 'pg' | 'mysql' | 'sqlite';
  /** Of the server's database, or the path of the file: for a second connection. */
  readonly url: string;
  /** Lets go of the connections; the database goes with the one that made it. */
  readonly close: () => Promise<void>;
}

export const drivers = {
  'node-postgres': 'pg',
  'postgres.js': 'pg',
  PGlite: 'pg',
  mysql2: 'mysql',
  'better-sqlite3': 'sqlite',
  libsql: 'sqlite',
  // Of drizzle 1.0 alone.
  'node:sqlite': 'sqlite',
} as const;
export type DriverName = keyof typeof drivers;

/** The address of a server of the test command, or an error that says how to get it. */
export function serverUrl(dialect: 'pg' | 'mysql'): URL {
  const variable = dialect === 'pg' ? 'TEST_POSTGRES_URL' : 'TEST_MARIADB_URL';
  const url = process.env[variable];
  if (url === undefined) throw new Error(process.env[`${variable}_MISSING`] ?? `${variable} is not set.`);
  return new URL(url);
}

let made = 0;

/** Makes a database; with `url`: another connection to one that is there. */
export async function open(driver: DriverName, url?: string): Promise<Opened> {
  const dialect = drivers[driver];
  const connect = CONNECT[driver];
  if (dialect === 'sqlite' || driver === 'PGlite') {
    const folder = url === undefined ? mkdtempSync(join(tmpdir(), 'session-drizzle-')) : undefined;
    const path = url ?? join(folder ?? '', driver === 'PGlite' ? 'data' : 'test.db');
    const { db, close } = await connect(driver === 'PGlite' && url === undefined ? '' : path);
    return {
      db,
      driver,
      dialect,
      url: path,
      async close() {
        await close();
        if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      },
    };
  }
  if (url !== undefined) return { driver, dialect, url, ...(await connect(url)) };
  const own = serverUrl(dialect);
  const name = `agents_${process.pid}_${Date.now().toString(36)}_${++made}`;
  await administer(dialect, `create database ${name}`);
  own.pathname = `/${name}`;
  const { db, close } = await connect(own.href);
  return {
    db,
    driver,
    dialect,
    url: own.href,
    async close() {
      await close();
      await administer(dialect, dialect === 'pg' ? `drop database ${name} with (force)` : `drop database ${name}`);
    },
  };
}

async function administer(dialect: 'pg' | 'mysql', statement: string): Promise<void> {
  const { href } = serverUrl(dialect);
  if (dialect === 'pg') {
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: href });
    await client.connect();
    await client.query(statement);
    await client.end();
  } else {
    const { createConnection } = await import('mysql2/promise');
    const client = await createConnection(href);
    await client.query(statement);
    await client.end();
  }
}

type Connect = (url: string) => Promise<{ readonly db: DrizzleDatabase; readonly close: () => Promise<void> }>;

const CONNECT: Readonly<Record<DriverName, Connect>> = {
  async 'node-postgres'(url) {
    const [{ default: pg }, { drizzle }] = await Promise.all([import('pg'), import('drizzle-orm/node-postgres')]);
    const client = new pg.Pool({ connectionString: url, max: 10 });
    // Connections that were lost, idle ones and those of a transaction: without a listener each would end the process.
    client.on('error', () => {});
    client.on('connect', (connection) => void connection.on('error', () => {}));
    return { db: drizzle({ client }), close: () => client.end() };
  },
  async 'postgres.js'(url) {
    const [{ default: postgres }, { drizzle }] = await Promise.all([
      import('postgres'),
      import('drizzle-orm/postgres-js'),
    ]);
    // Its own first query has nobody who listens when the connection breaks.
    const client = postgres(url, { max: 10, onnotice: () => {}, fetch_types: false });
    return { db: drizzle({ client }), close: () => client.end({ timeout: 1 }) };
  },
  /** In memory, without a path. */
  async PGlite(path) {
    const [{ PGlite }, { drizzle }] = await Promise.all([import('@electric-sql/pglite'), import('drizzle-orm/pglite')]);
    const client = path === '' ? new PGlite() : await PGlite.create(path);
    return { db: drizzle({ client }), close: () => client.close() };
  },
  async mysql2(url) {
    const [{ createPool }, { drizzle }] = await Promise.all([import('mysql2/promise'), import('drizzle-orm/mysql2')]);
    const client = createPool({ uri: url, connectionLimit: 10 });
    return { db: drizzle({ client }), close: () => client.end() };
  },
  async 'better-sqlite3'(path) {
    const [{ default: Database }, { drizzle }] = await Promise.all([
      import('better-sqlite3'),
      import('drizzle-orm/better-sqlite3'),
    ]);
    const client = new Database(path, { timeout: 0 });
    client.pragma('journal_mode = WAL');
    client.pragma('synchronous = NORMAL');
    return { db: drizzle({ client }), close: async () => void client.close() };
  },
  async libsql(path) {
    const [{ createClient }, { drizzle }] = await Promise.all([import('@libsql/client'), import('drizzle-orm/libsql')]);
    const client = createClient({ url: `file:${path}` });
    await client.execute('PRAGMA journal_mode = WAL');
    return { db: drizzle({ client }), close: async () => client.close() };
  },
  async 'node:sqlite'(path) {
    const { DatabaseSync } = await import('node:sqlite');
    // Not in every release of drizzle that the types are of.
    const module = 'drizzle-orm/node-sqlite';
    const { drizzle } = (await import(/* @vite-ignore */ module)) as {
      readonly drizzle: (options: { client: object }) => DrizzleDatabase;
    };
    const client = new DatabaseSync(path);
    client.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    return { db: drizzle({ client }), close: async () => client.close() };
  },
};
