// `pnpm bench`: @agents/core, as built, beside other SDKs on the same task.
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { verdicts } from './goals.ts';
import { withJavaScript } from './javascript.ts';
import { measureAll, smoke } from './processes.ts';
import { groups, measurements } from './rows.ts';
import type { Measurement } from './rows.ts';
import { ROUNDS } from './sessions/rounds.ts';
import { fileSystem } from './sessions/file-system.ts';
import { summary } from './summary.ts';
import type { Measured } from './summary.ts';
import { table } from './table.ts';

const names = measurements.map(({ name }) => name);
const help = `pnpm bench [options]
  --only <name>   ${names.join(', ')}; may be repeated
  --rounds <n>    processes per peer (default 5)
  --seconds <s>   warm-up, and measured time, of each process (default 2)
  --smoke         only whether it works: a hundredth of each size, one round, one process per peer for all;
                  without those that need a server or are slow to start, unless they are named
  --json          JSON instead of a table`;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    smoke: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) console.log(help);
else if (!existsSync(fileURLToPath(import.meta.resolve('@agents/core')))) {
  console.error('@agents/core is not built: pnpm build');
  process.exitCode = 1;
} else await main();

async function main(): Promise<void> {
  const isChosen = ({ name, server, slow }: Measurement): boolean =>
    options.only?.includes(name) ?? !(options.smoke && (slow || server !== undefined));
  const chosen = measurements.filter(isChosen);
  const rounds = options.smoke ? 1 : Number(options.rounds);
  const all = await withJavaScript((folder) =>
    options.smoke ? smoke(folder, chosen) : measureAll(folder, chosen, { rounds, seconds: Number(options.seconds) }),
  );
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const machine = `${model}, ${cpus().length} cores, Node ${process.versions.node}, SQLite files on ${fileSystem()}`;
  const taken = options.smoke
    ? 'too small to mean anything'
    : `medians of ${rounds} processes, of sessions of ${ROUNDS} rounds in one (least–greatest)`;
  if (options.json) console.log(JSON.stringify({ machine, rows: all.map((row) => toJson(row, all)) }, undefined, 2));
  else console.log([`${machine}; ${taken}`, ...tables(all)].join('\n\n'));
}

function tables(all: readonly Measured[]): string[] {
  const ofGroups = groups.map((group) => {
    const rows = new Set(group.flatMap(({ rows }) => rows));
    return all.filter(({ row }) => rows.has(row));
  });
  return ofGroups.filter((group) => group.length > 0).map((group) => table(group));
}

function toJson(measured: Measured, all: readonly Measured[]): object {
  const { title, unit } = measured.row;
  const figures = [...measured.figures].map(([peer, given]) => [peer, { ...summary(given), all: given }]);
  return { title, unit, figures: Object.fromEntries(figures), goals: verdicts(measured, all) };
}
