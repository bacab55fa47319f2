// Every change of a store within the process meets every fault, many times: `pnpm faults sqlite [rounds] [stores]` prints what
// came of it, and ends at the first time that the store broke its word. `file` is `FileSession`.
import { configureLogging } from '@agents/core';
import { faultOperations } from '@agents/testkit';

import { embeddedFaults, meetEmbeddedFault } from './faults.ts';
import { stores } from './subjects.ts';
import type { StoreName } from './subjects.ts';

configureLogging({ level: 'error' });
const [given = '30', names = stores.join()] = process.argv.slice(2);
const rounds = Number(given);

for (const store of names.split(',') as StoreName[]) {
  console.log(`${store}, ${rounds} times each: ok / refused / unknown but committed / unknown and absent`);
  console.log(['', ...embeddedFaults].map((cell) => cell.padEnd(20)).join(''));
  for (const operation of faultOperations) {
    const row: string[] = [operation];
    for (const fault of embeddedFaults) {
      const counts = { ok: 0, refused: 0, committed: 0, absent: 0 };
      for (let round = 0; round < rounds; round++) counts[await meetEmbeddedFault(store, operation, fault, round)]++;
      row.push(Object.values(counts).join(' / '));
    }
    console.log(row.map((cell) => cell.padEnd(20)).join(''));
  }
}
process.exit();
