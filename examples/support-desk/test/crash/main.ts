// `pnpm crash [kills] [first seed]`: kills the desk again and again, and says what came of it.
import { trial } from './trial.ts';
import type { Tally } from './trial.ts';

const KILLS_OF_A_TRIAL = 4;
const AT_ONCE = 2;

const [, , kills = '200', first = '1'] = process.argv;
const tally: Tally = { kills: 0, paused: 0, paidUnfinished: 0, visits: 0 };
const failures: string[] = [];
let seed = Number(first);

async function worker(): Promise<void> {
  while (tally.kills < Number(kills)) {
    try {
      await trial(seed++, KILLS_OF_A_TRIAL, tally);
    } catch (error) {
      failures.push((error as Error).message);
      if (failures.length > 10) return;
    }
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, worker));
for (const failure of failures) process.stderr.write(`${failure}\n\n`);
process.stdout.write(
  `${tally.kills} kills in ${tally.visits} visits, seeds ${first} to ${seed - 1}: ${tally.paused} left a run that waits, ${tally.paidUnfinished} a refund whose run was not over; ${failures.length} failures.\n`,
);
process.exitCode = failures.length === 0 ? 0 : 1;
