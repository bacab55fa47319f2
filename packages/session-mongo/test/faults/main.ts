// Every change meets every fault, many times: `pnpm faults mongo [rounds] [part of a name]` prints what came of it, and ends at the first time
// that the store broke its word.
import { configureLogging } from '@agents/core';
import { faultTable } from '@agents/testkit';

import { startSubject } from './subject.ts';

configureLogging({ level: 'error' });
const [rounds = '30', only = ''] = process.argv.slice(2);
for (const [name, topology, tries] of [
  ['MongoDB, standalone', 'standalone', 1],
  ['MongoDB, replica set', 'replica set', 1],
  ['MongoDB, replica set, the second try of the driver is cut, too', 'replica set', 2],
] as const) {
  if (!name.includes(only)) continue;
  const subject = await startSubject(topology, tries);
  for await (const line of faultTable(name, subject, Number(rounds))) console.log(line);
  await subject.stop();
}
