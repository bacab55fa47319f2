import { configureLogging } from '../../src/index.ts';
import { runSeeds, table, unhit } from './runs.ts';

// Many seeds of callbacks that misbehave: `pnpm seeds 5000` runs 1 to 5000, `pnpm seeds 100 4000` a hundred from 4000 on.

configureLogging({ level: 'silent' });
const [count = 1000, first = 1] = process.argv.slice(2).map(Number);
const started = performance.now();
const { failures, matrix } = await runSeeds(Array.from({ length: count }, (_, index) => first + index));
if (process.env.AGENTS_QUIET === undefined) console.log(table(matrix));
for (const failure of failures.slice(0, 8)) console.log(`\n${failure}`);
const missed = unhit(matrix);
console.log(
  `\n${count} seeds from ${first}, ${failures.length} failures, ${missed.length} cells not hit: ${missed.slice(0, 40).join(', ')}`,
);
console.log(
  `${Math.round((performance.now() - started) / 1000)} s, ${Math.round(process.cpuUsage().user / 1e6)} s of CPU`,
);
process.exitCode = failures.length > 0 ? 1 : 0;
