import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { startServer } from '@agents/testkit';
import { sql } from 'drizzle-orm/sql/sql';

import type { DrizzleDatabase } from '../../src/index.ts';
import { open } from './databases.ts';
import type { DriverName, Opened } from './databases.ts';
import { execute } from './fixture.ts';
import { makeTables } from './tables.ts';

type ServerDriver = Extract<DriverName, 'node-postgres' | 'postgres.js' | 'mysql2'>;

/** A way into the server that is not its administrator's. */
export interface Guest {
  readonly user: 'writer' | 'reader';
  readonly password: string;
  /** Whether it looks at the certificate, which has expired. */
  readonly verify?: boolean;
  /** Of PostgreSQL: what transactions are unless they say otherwise. */
  readonly readOnly?: boolean;
}

export interface Connected {
  readonly db: DrizzleDatabase;
  /** Connections that are in use; `undefined`: the driver does not tell. */
  readonly busy: () => number | undefined;
  readonly close: () => Promise<void>;
}

/** A server with an expired certificate, and users with passwords: `writer`, and `reader` who may only look. */
export interface GuardedServer {
  readonly admin: Opened;
  readonly folder: string;
  /** A pool of two connections. Those that it makes later are made as `guest` says then. */
  connect(guest: Guest): Promise<Connected>;
  /** Ends the connections of all guests. */
  endConnections(): Promise<void>;
  /** Lets the disk be full for what the guests do from now on: for items of 2 MB, and operations. */
  fillDisk(): Promise<void>;
  stop(): Promise<void>;
}

export const PASSWORD = 'correct-horse';

export async function startGuarded(driver: ServerDriver): Promise<GuardedServer> {
  const name = driver === 'mysql2' ? 'mariadb' : 'postgres';
  const { cert, key, remove } = expiredCertificate(name === 'mariadb' ? 'mysql' : 'postgres');
  const args =
    name === 'mariadb'
      ? [
          `--ssl-cert=${cert}`,
          `--ssl-key=${key}`,
          // Tables share a file that ends somewhere.
          '--innodb-file-per-table=0',
          '--innodb-data-file-path=ibdata1:12M:autoextend:max:24M',
        ]
      : ['-cssl=on', `-cssl_cert_file=${cert}`, `-cssl_key_file=${key}`];
  const server = await startServer(name, { args });
  const admin = await open(driver, server.url);
  await makeTables(admin);
  await (name === 'mariadb' ? guardMariaDb(admin) : guardPostgres(admin, server.folder));
  const ca = readFileSync(cert, 'utf8');
  return {
    admin,
    folder: server.folder,
    connect: async (guest) => await CONNECT[driver](new URL(server.url), guest, ca),
    async endConnections() {
      await execute(
        admin,
        name === 'mariadb'
          ? sql`kill user writer`
          : sql`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'writer'`,
      );
    },
    fillDisk: async () => await (name === 'mariadb' ? fillMariaDb(admin) : fillPostgres(admin, server.folder)),
    async stop() {
      await admin.close();
      await server.stop();
      remove();
    },
  };
}

async function guardPostgres(admin: Opened, folder: string): Promise<void> {
  const rules = join(folder, 'pg_hba.conf');
  const guarded = 'host all writer,reader 127.0.0.1/32 scram-sha-256\n';
  writeFileSync(rules, guarded + readFileSync(rules, 'utf8'));
  for (const statement of [
    `create role writer login password '${PASSWORD}'`,
    `create role reader login password '${PASSWORD}'`,
    'grant all on all tables in schema public to writer',
    'grant all on all sequences in schema public to writer',
    'grant select on all tables in schema public to reader',
    'select pg_reload_conf()',
  ])
    await execute(admin, sql.raw(statement));
}

async function guardMariaDb(admin: Opened): Promise<void> {
  for (const statement of [
    `create user writer@'%' identified by '${PASSWORD}'`,
    `create user reader@'%' identified by '${PASSWORD}'`,
    "grant select, insert, update, delete on mysql.* to writer@'%'",
    "grant select on mysql.* to reader@'%'",
    // Users without a name would be the ones that are meant.
    "delete from global_priv where user = ''",
    'flush privileges',
  ])
    await execute(admin, sql.raw(statement));
}

/** For `localhost`, of yesterday, in files that the server's own user can read. */
function expiredCertificate(user: string): { cert: string; key: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'session-drizzle-tls-'));
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const openssl = (line: string): unknown => execFileSync('openssl', line.split(' '), { stdio: 'ignore', cwd: folder });
  openssl('req -new -newkey rsa:2048 -nodes -keyout key.pem -out csr.pem -subj /CN=localhost');
  openssl('x509 -req -in csr.pem -signkey key.pem -days -1 -out cert.pem');
  chmodSync(folder, 0o755);
  chmodSync(key, 0o600);
  if (process.getuid?.() === 0) execFileSync('chown', [user, key]);
  return { cert, key, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The file of operations, which are none yet, becomes one that takes nothing. For connections that have not opened it. */
async function fillPostgres(admin: Opened, folder: string): Promise<void> {
  const [place] = await execute(admin, sql`select pg_relation_filepath('agent_session_operations') as path`);
  const file = join(folder, String(place?.['path']));
  rmSync(file);
  symlinkSync('/dev/full', file);
}

/** Until the one file of its tables has its size. */
async function fillMariaDb(admin: Opened): Promise<void> {
  await execute(admin, sql`create table filler (data longblob) engine = InnoDB`);
  const isFull = async (): Promise<boolean> => {
    try {
      await execute(admin, sql`insert into filler values (repeat('x', 1000000))`);
      return false;
    } catch (error) {
      if (!inspect(error).includes('ER_RECORD_FILE_FULL')) throw error;
      return true;
    }
  };
  while (!(await isFull()));
}

type Connect = (url: URL, guest: Guest, ca: string) => Promise<Connected>;
const placeOf = (url: URL): { host: string; port: number; database: string } => ({
  host: 'localhost',
  port: Number(url.port),
  database: url.pathname.slice(1),
});

/** Asked for with each connection. Without `verify` whatever the server shows is fine. */
const tlsOf = (guest: Guest, ca: string): { ca: string; rejectUnauthorized: boolean } => ({
  ca,
  get rejectUnauthorized() {
    return guest.verify === true;
  },
  // mysql2 writes its default into it.
  set rejectUnauthorized(_) {},
});

const CONNECT: Readonly<Record<ServerDriver, Connect>> = {
  async 'node-postgres'(url, guest, ca) {
    const [{ default: pg }, { drizzle }] = await Promise.all([import('pg'), import('drizzle-orm/node-postgres')]);
    const client = new pg.Pool({
      ...placeOf(url),
      user: guest.user,
      password: () => guest.password,
      ssl: tlsOf(guest, ca),
      max: 2,
      ...(guest.readOnly === true && { options: '-c default_transaction_read_only=on' }),
    });
    client.on('error', () => {});
    const busy = (): number => client.totalCount - client.idleCount;
    return { db: drizzle({ client }), busy, close: () => client.end() };
  },
  async 'postgres.js'(url, guest, ca) {
    const [{ default: postgres }, { drizzle }] = await Promise.all([
      import('postgres'),
      import('drizzle-orm/postgres-js'),
    ]);
    const client = postgres({
      ...placeOf(url),
      user: guest.user,
      password: () => guest.password,
      ssl: tlsOf(guest, ca),
      max: 2,
      onnotice: () => {},
      fetch_types: false,
      backoff: () => 0,
      ...(guest.readOnly === true && { connection: { default_transaction_read_only: true } }),
    });
    return { db: drizzle({ client }), busy: () => undefined, close: () => client.end({ timeout: 1 }) };
  },
  async mysql2(url, guest, ca) {
    const [{ createPool }, { drizzle }] = await Promise.all([import('mysql2/promise'), import('drizzle-orm/mysql2')]);
    const client = createPool({
      ...placeOf(url),
      user: guest.user,
      ssl: tlsOf(guest, ca),
      connectionLimit: 2,
    });
    const { pool } = client as unknown as { readonly pool: { readonly config: { connectionConfig: object } } };
    // Its options take no function.
    Object.defineProperty(pool.config.connectionConfig, 'password', { get: () => guest.password });
    const count = (which: '_allConnections' | '_freeConnections'): number =>
      (Reflect.get(pool, which) as { readonly length: number }).length;
    const busy = (): number => count('_allConnections') - count('_freeConnections');
    return { db: drizzle({ client }), busy, close: () => client.end() };
  },
};
