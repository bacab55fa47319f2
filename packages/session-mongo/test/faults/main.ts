// The table of faults: every operation meets every fault, so many times; anything but what it allows ends it with an error.
//   node --conditions=source packages/session-mongo/test/faults/main.ts [times, default 30]
import { faults, operations, runCell } from './cells.ts';
import type { Outcome } from './cells.ts';
import { Rig } from './rig.ts';

const times = Number(process.argv[2] ?? 30);
const outcomes: readonly Outcome[] = ['ok', 'refused', 'unknown, done', 'unknown, absent'];
for (const topology of ['standalone', 'replica set'] as const) {
  const rig = await Rig.start(topology);
  console.log(
    `\n${topology}, ${times} times each\n\n| operation | fault | ${outcomes.join(' | ')} |\n|---|---|${'---:|'.repeat(4)}`,
  );
  for (const operation of operations) {
    for (const fault of faults) {
      const counts = new Map<Outcome, number>();
      for (let time = 0; time < times; time++) {
        const outcome = await runCell(rig, operation, fault, time % 2 === 0);
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      }
      console.log(`| ${operation} | ${fault} | ${outcomes.map((outcome) => counts.get(outcome) ?? 0).join(' | ')} |`);
    }
  }
  await rig.stop();
}
