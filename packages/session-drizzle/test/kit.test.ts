import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';
import { afterEach, describe, expect, it } from 'vitest';

import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { makeTables } from './support/tables.ts';

const opened: Opened[] = [];
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
});
async function fresh(driver: DriverName): Promise<Opened> {
  const database = await open(driver);
  opened.push(database);
  return database;
}

const bin = join(dirname(createRequire(import.meta.url).resolve('drizzle-kit')), 'bin.cjs');
const KIT_NAMES = { pg: 'postgresql', mysql: 'mysql', sqlite: 'sqlite' } as const;

/** A command of drizzle-kit on a schema file that exports the tables of this dialect; gives what it wrote. */
function kit(command: 'generate' | 'push', dialect: Opened['dialect'], ...more: string[]): string {
  const schema = fileURLToPath(new URL(`kit/${dialect}.ts`, import.meta.url));
  const args = ['--conditions=source', bin, command, '--dialect', KIT_NAMES[dialect], '--schema', schema, ...more];
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0 || /Error/.test(stderr)) throw new Error(`drizzle-kit: ${stderr}${stdout}`);
  return stdout;
}

/** The statements of the first migration. */
function generate(dialect: Opened['dialect']): string[] {
  const out = mkdtempSync(join(tmpdir(), 'session-drizzle-kit-'));
  try {
    kit('generate', dialect, '--out', out);
    expect(readdirSync(join(out, 'meta')).toSorted()).toEqual(['0000_snapshot.json', '_journal.json']);
    const [file = ''] = readdirSync(out).filter((name) => name.endsWith('.sql'));
    return readFileSync(join(out, file), 'utf8').split('--> statement-breakpoint');
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Makes the database what the schema says. */
function push({ dialect, url }: Opened): string {
  return kit('push', dialect, '--force', '--verbose', '--url', dialect === 'sqlite' ? `file:${url}` : url);
}

/** All that the database knows of its tables. */
const CATALOG: Readonly<Record<Opened['dialect'], readonly SQL[]>> = {
  pg: [
    sql`select table_name, ordinal_position, column_name, data_type, is_nullable, column_default, character_maximum_length, datetime_precision
      from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position`,
    sql`select conrelid::regclass::text as on_table, conname, pg_get_constraintdef(oid) as definition
      from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`,
    sql`select tablename, indexname, indexdef from pg_indexes where schemaname = 'public' order by 1, 2`,
  ],
  mysql: [
    sql`select table_name, ordinal_position, column_name, column_type, is_nullable, column_default, character_set_name, collation_name, column_key, extra
      from information_schema.columns where table_schema = database() order by table_name, ordinal_position`,
    sql`select c.constraint_name, c.table_name, c.constraint_type, r.referenced_table_name, r.delete_rule, r.update_rule
      from information_schema.table_constraints c left join information_schema.referential_constraints r
      on r.constraint_schema = c.constraint_schema and r.constraint_name = c.constraint_name and r.table_name = c.table_name
      where c.table_schema = database() order by c.table_name, c.constraint_name`,
    sql`select table_name, index_name, seq_in_index, column_name, non_unique from information_schema.statistics
      where table_schema = database() order by 1, 2, 3`,
    sql`select table_name, engine, table_collation from information_schema.tables where table_schema = database() order by 1`,
  ],
  sqlite: [
    sql`select m.name as on_table, c.* from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' order by m.name, c.cid`,
    sql`select m.name as on_table, f.* from sqlite_master m, pragma_foreign_key_list(m.name) f where m.type = 'table' order by m.name, f.id`,
    sql`select m.name as on_table, l.name, l."unique", l.origin, i.seqno, i.name as of_column
      from sqlite_master m, pragma_index_list(m.name) l, pragma_index_info(l.name) i where m.type = 'table' order by 1, 2, i.seqno`,
    sql`select name, sql like '%autoincrement%' as counts from sqlite_master where type = 'table' order by name`,
  ],
};
const catalogOf = async (database: Opened): Promise<unknown[]> => {
  const parts: unknown[] = [];
  for (const query of CATALOG[database.dialect]) parts.push(await execute(database, query));
  return parts;
};

it.each<DriverName>(['node-postgres', 'mysql2', 'libsql'])(
  'drizzle-kit generates the tables that createTables() makes, %s [SESS-273]',
  { timeout: 60_000 },
  async (driver) => {
    const [ours, its] = [await fresh(driver), await fresh(driver)];
    await makeTables(ours);
    for (const statement of generate(its.dialect)) await execute(its, sql.raw(statement));
    const catalog = await catalogOf(ours);
    expect(JSON.stringify(catalog)).toContain('agent_session_operations');
    expect(await catalogOf(its)).toEqual(catalog);
  },
);

/** Recorded: what openai-agents 0.24 makes. (On MySQL it cannot make its tables.) */
const BY_PYTHON = {
  'node-postgres': { id: 'SERIAL NOT NULL', stamp: 'TIMESTAMP WITHOUT TIME ZONE', key: ', PRIMARY KEY (id)' },
  libsql: { id: 'INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT', stamp: 'TIMESTAMP', key: '' },
} as const;

/** On MariaDB its `push` wants to alter any table, whoever made it. */
describe.each(['node-postgres', 'libsql'] as const)('drizzle-kit push, %s', (driver) => {
  it('finds nothing to change in tables that createTables() made [SESS-273]', async () => {
    const ours = await fresh(driver);
    await makeTables(ours);
    expect(push(ours)).toContain('No changes detected');
  }, 60_000);

  it('makes ours beside tables that Python made, and leaves those as they are [SESS-273, SESS#52]', async () => {
    const [ours, python] = [await fresh(driver), await fresh(driver)];
    const { id, stamp, key } = BY_PYTHON[driver];
    for (const statement of [
      `CREATE TABLE agent_sessions (session_id VARCHAR NOT NULL, created_at ${stamp} DEFAULT CURRENT_TIMESTAMP NOT NULL, updated_at ${stamp} DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (session_id))`,
      `CREATE TABLE agent_messages (id ${id}, session_id VARCHAR NOT NULL, message_data TEXT NOT NULL, created_at ${stamp} DEFAULT CURRENT_TIMESTAMP NOT NULL${key}, FOREIGN KEY(session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE)`,
      'CREATE INDEX idx_agent_messages_session_time ON agent_messages (session_id, created_at)',
    ])
      await execute(python, sql.raw(statement));
    await makeTables(ours);
    // Whoever changed those would have made them anew.
    const changes = push(python).match(/^(create|alter|drop|insert|pragma)[^(]*/gim) ?? [];
    expect(changes.length).toBeGreaterThanOrEqual(2);
    for (const change of changes) expect(change).toMatch(/^(CREATE|ALTER) TABLE .agent_session_(operations|metadata)/);
    expect(withAffinities(await catalogOf(python))).toEqual(withAffinities(await catalogOf(ours)));
  }, 60_000);
});

/** Of SQLite: types of one affinity are the same to it. */
function withAffinities(catalog: readonly unknown[]): string {
  return JSON.stringify(catalog, undefined, 1)
    .replaceAll('"VARCHAR"', '"text"')
    .replaceAll('"TEXT"', '"text"')
    .replaceAll('"TIMESTAMP"', '"numeric"');
}
