// The table of faults on a real server: `pnpm faults redis [rounds]`.
import { faultTable } from '@agents/testkit';

import { startSubject } from './subject.ts';

const rounds = Number(process.argv[2] ?? 30);
for (const scripting of ['lua', 'multi'] as const) {
  const subject = await startSubject(scripting);
  for await (const line of faultTable(`Redis, ${scripting}`, subject, rounds)) console.log(line);
  await subject.stop();
}
