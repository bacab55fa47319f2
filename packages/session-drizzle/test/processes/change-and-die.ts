// Makes a change and dies before one of its statements, as if killed. Arguments: driver, path, operation, the number of
// statements that it still makes. Says with which version it began, and when the change was acknowledged.
import { writeSync } from 'node:fs';

import { configureLogging } from '@agents/core';
import { faultStart, makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';

import { sessionOn } from '../faults/subject.ts';
import { open } from '../support/databases.ts';
import type { DriverName } from '../support/databases.ts';
import { makeTables } from '../support/tables.ts';

configureLogging({ level: 'error' });
const [driver = '', path = '', operation = '', statements = '0'] = process.argv.slice(2);
let left = Number.POSITIVE_INFINITY;

type Methods = Record<string, (...args: never[]) => unknown>;

/** Counts the calls of these methods. */
function count(target: object, ...names: readonly string[]): void {
  const methods = target as Methods;
  for (const name of names) {
    const original = methods[name];
    if (original === undefined) continue;
    methods[name] = function counted(this: object, ...args: never[]) {
      if (left-- === 0) process.kill(process.pid, 'SIGKILL');
      return Reflect.apply(original, this, args);
    };
  }
}

const opened = await open(driver as DriverName, path);
const client = (opened.db as unknown as { readonly $client: Methods }).$client;
if ('prepare' in client) {
  // better-sqlite3 and node:sqlite: its transactions begin and end by such statements, too.
  count(Object.getPrototypeOf(client['prepare']?.('select 1' as never)) as object, 'run', 'all');
} else {
  count(client, 'execute', 'query', 'exec');
  const begin = client['transaction']?.bind(client);
  client['transaction'] = async (given: never) => {
    if (typeof given !== 'function') {
      const transaction = (await begin?.(given)) as object;
      count(transaction, 'execute', 'commit');
      return transaction;
    }
    const body = given as (transaction: object) => unknown;
    return await begin?.(((transaction: object) => {
      count(transaction, 'query', 'exec');
      return body(transaction);
    }) as never);
  };
}

await makeTables(opened);
const session = sessionOn(opened, 's');
await session.addItems(faultStart);
const { version } = await session.readHistory(0);
writeSync(1, `${version}\n`);
left = Number(statements);
await makeChange(session, operation as FaultOperation, version);
writeSync(1, 'done\n');
process.kill(process.pid, 'SIGKILL');
