// Every change meets every fault, many times: `pnpm faults drizzle [rounds] [drivers] [changes]` prints what came of it, and
// ends at the first time that the store broke its word.
import { configureLogging } from '@agents/core';
import { faultOperations, faultTable } from '@agents/testkit';

import type { DriverName } from '../support/databases.ts';
import { embedded, dieWithin } from './embedded.ts';
import type { Embedded } from './embedded.ts';
import { startSubject } from './subject.ts';

configureLogging({ level: 'error' });
const [given = '30', drivers = 'node-postgres,mysql2', changes = faultOperations.join()] = process.argv.slice(2);
const rounds = Number(given);
const chosen = faultOperations.filter((operation) => changes.split(',').includes(operation));

async function* deathTable(driver: Embedded): AsyncGenerator<string> {
  yield `${driver}, its process dies within, before ${rounds} statements each: ok / unknown but committed / unknown and absent`;
  for (const operation of chosen) {
    const counts = { ok: 0, committed: 0, absent: 0 };
    for (let round = 0; round < rounds; round++) counts[await dieWithin(driver, operation, round)]++;
    yield `${operation.padEnd(20)}${Object.values(counts).join(' / ')}`;
  }
}

const isEmbedded = (driver: string): driver is Embedded => embedded.some((name) => name === driver);
for (const driver of drivers.split(',')) {
  if (isEmbedded(driver)) {
    for await (const line of deathTable(driver)) console.log(line);
    continue;
  }
  const subject = await startSubject(driver as DriverName);
  // postgres.js 3.4 throws outside of any call when a connection breaks within a transaction: what needs none.
  const operations = driver === 'postgres.js' ? (['append'] as const) : chosen;
  for await (const line of faultTable(driver, subject, rounds, operations)) console.log(line);
  await subject.stop();
}
process.exit();
