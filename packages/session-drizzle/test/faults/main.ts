// Every change, with every fault, many times: `pnpm faults drizzle [attempts] [drivers]`
// prints what came of it, and ends at the first time that the store broke its word.
import { configureLogging } from '@agents/core';

import type { DriverName } from '../support/databases.ts';
import { FaultGround } from '../support/fault-ground.ts';
import { faults, mutations } from '../support/faults.ts';
import type { Outcome } from '../support/faults.ts';

configureLogging({ level: 'error' });
const [attempts = '30', names = 'node-postgres,mysql2'] = process.argv.slice(2);
const outcomes: readonly Outcome[] = ['ok', 'refused', 'unknown, committed', 'unknown, absent'];
for (const driver of names.split(',')) {
  const ground = await FaultGround.start(driver as DriverName);
  console.log(`\n${driver}\nchange          fault            ${outcomes.join('   ')}`);
  for (const mutation of mutations)
    for (const fault of faults) {
      const counts = new Map<Outcome, number>(outcomes.map((outcome) => [outcome, 0]));
      // A restart has eight changes under way.
      const runs = fault === 'server restart' ? Math.ceil(Number(attempts) / 8) : Number(attempts);
      for (let attempt = 0; attempt < runs; attempt++)
        for (const outcome of await ground.run(mutation, fault, attempt))
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      const row = outcomes.map((outcome) => String(counts.get(outcome)).padStart(outcome.length));
      console.log(`${mutation.padEnd(15)} ${fault.padEnd(16)} ${row.join('   ')}`);
    }
  await ground.stop();
}
process.exit();
