// Needs a PostgreSQL: DATABASE_URL=postgres://… node src/main.ts
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execArgv, execPath, pid } from 'node:process';
import { promisify } from 'node:util';
import { Pool } from 'pg';
import { Receiver } from './receiver.ts';

if (env['DATABASE_URL'] === undefined) throw new Error('DATABASE_URL is to be the address of a PostgreSQL.');
const database = new Pool({ connectionString: env['DATABASE_URL'] });
const table = `example_orders_${pid}`;
const folder = await mkdtemp(join(tmpdir(), 'agents-opentelemetry-'));
const receiver = await Receiver.start();

/** One of the two processes, started as an application is. */
async function start(file: string): Promise<string> {
  const url = (name: string): string => new URL(name, import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(
    execPath,
    [...execArgv, '--import', url('telemetry.mjs'), url(file), join(folder, 'state.json')],
    { env: { ...env, ORDERS_TABLE: table, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: receiver.url } },
  );
  return stdout;
}

try {
  await database.query(`CREATE TABLE ${table} (id int PRIMARY KEY, status text NOT NULL)`);
  await database.query(`INSERT INTO ${table} VALUES (7, 'paid')`);
  await start('pause.ts');
  console.log((await start('finish.ts')).trim());
  const { rows } = await database.query<{ status: string }>(`SELECT status FROM ${table}`);
  console.log(`In the database: ${rows[0]?.status}`);

  console.log(receiver.tree().replaceAll(table, 'orders'));
  if (rows[0]?.status !== 'refunded') throw new Error('The order was not paid back.');
  if (receiver.traces !== 1) throw new Error(`There are ${receiver.traces} traces instead of one.`);
} finally {
  await database.query(`DROP TABLE IF EXISTS ${table}`);
  await database.end();
  await receiver.stop();
  await rm(folder, { recursive: true });
}
