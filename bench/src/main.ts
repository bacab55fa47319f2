// `pnpm bench`: @agents/core, as built, beside other SDKs on the same task.
// Each measurement runs in a process of its own, the peers in turn, so that what else the machine does hits all of them.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import type { PeerName } from './peers/peer.ts';
import { measurements } from './rows.ts';
import type { Measurement } from './rows.ts';
import { summary, table, verdict } from './table.ts';
import type { Measured } from './table.ts';

const help = `pnpm bench [options]
  --only <name>   ${measurements.map(({ name }) => name).join(', ')}; may be repeated
  --rounds <n>    processes per peer (default 5)
  --seconds <s>   warm-up, and measured time, of each process (default 2)
  --json          JSON instead of a table`;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: measurements.map(({ name }) => name) },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
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
  const all: Measured[] = [];
  for (const measurement of measurements.filter(({ name }) => options.only.includes(name))) {
    console.error(`Measuring ${measurement.name}`);
    all.push(...(await measureAll(measurement)));
  }
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const machine = `${model}, ${cpus().length} cores, Node ${process.versions.node}`;
  if (options.json) console.log(JSON.stringify({ machine, rows: all.map(toJson) }, undefined, 2));
  else console.log(`${machine}; medians of ${options.rounds} processes (least–greatest)\n\n${table(all)}`);
}

async function measureAll(measurement: Measurement): Promise<Measured[]> {
  const given = new Map<PeerName, number[][]>(measurement.peers.map((peer) => [peer, []]));
  const rounds = measurement.exact ? 1 : Number(options.rounds);
  for (let round = 0; round < rounds; round += 1) {
    for (const [peer, list] of given) list.push(await measure(measurement, peer));
  }
  return measurement.rows.map((row, index) => ({
    row,
    figures: new Map([...given].map(([peer, list]) => [peer, list.map((figures) => figures[index] ?? Number.NaN)])),
  }));
}

async function measure({ name }: Measurement, peer: PeerName): Promise<number[]> {
  const script = fileURLToPath(new URL('measure.ts', import.meta.url));
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [script, name, peer, options.seconds]);
    return JSON.parse(stdout) as number[];
  } catch (error) {
    throw new Error(`Measuring ${name} of ${peer} failed.`, { cause: error });
  }
}

function toJson(measured: Measured): object {
  const { title, unit, goal } = measured.row;
  const figures = [...measured.figures].map(([peer, all]) => [peer, { ...summary(all), all }]);
  return { title, unit, figures: Object.fromEntries(figures), goal, reached: verdict(measured)?.reached };
}
