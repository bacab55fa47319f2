// The table of faults on real servers: `pnpm faults redis [rounds] [lua,multi,cluster,cluster-again]`.
import { faultTable } from '@agents/testkit';
import type { FaultSubject } from '@agents/testkit';

import { startClusterSubject } from './cluster-subject.ts';
import { startSubject } from './subject.ts';

const subjects: Record<string, readonly [string, () => Promise<FaultSubject & { stop(): Promise<void> }>]> = {
  lua: ['Redis, by scripts', () => startSubject('lua')],
  multi: ['Redis, by MULTI', () => startSubject('multi')],
  cluster: ['Redis Cluster, a client that tells of broken connections', () => startClusterSubject(false)],
  'cluster-again': ['Redis Cluster, a client that sends again', () => startClusterSubject(true)],
};
const [rounds = '30', names = Object.keys(subjects).join(',')] = process.argv.slice(2);
for (const name of names.split(',')) {
  const found = subjects[name];
  if (found === undefined) throw new Error(`There is no '${name}'; there are ${Object.keys(subjects).join(', ')}.`);
  const [title, start] = found;
  const subject = await start();
  for await (const line of faultTable(title, subject, Number(rounds))) console.log(line);
  await subject.stop();
}
