import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startServer } from '@agents/testkit';
import { peerNames } from './peers/peer.ts';
import type { PeerName } from './peers/peer.ts';
import type { Contestant, Measurement, Row } from './rows.ts';
import { variableOf } from './sessions/servers.ts';
import type { Measured } from './summary.ts';

/**
 * Each measurement runs in a process of its own, the peers in turn, so that what else the machine does hits all of them.
 *
 * @param folder where the measuring code is
 * @param options.seconds of warm-up, and of measured time, of each process
 */
export async function measureAll(
  folder: string,
  measurements: readonly Measurement[],
  options: { readonly rounds: number; readonly seconds: number },
): Promise<Measured[]> {
  const all: Measured[] = [];
  for (const measurement of measurements) {
    console.error(`Measuring ${measurement.name}`);
    const collected = new Collected(measurement);
    await withServers([measurement], async (env) => {
      for (let round = 0; round < (measurement.once ? 1 : options.rounds); round += 1) {
        for (const process of collected.processes) {
          const [rounds = []] = await measure(folder, process, options.seconds, 1, [measurement], env);
          collected.add(process, rounds);
        }
      }
    });
    all.push(...collected.rows);
  }
  return all;
}

/** Every measurement once, as small as it gets. Its figures say nothing. */
export async function smoke(folder: string, measurements: readonly Measurement[]): Promise<Measured[]> {
  const all = measurements.map((measurement) => new Collected(measurement));
  const ofPeer = async (peer: PeerName, env: NodeJS.ProcessEnv): Promise<void> => {
    // The last ones are about loading a package, and can't be had once it is loaded.
    const chosen = all.filter(({ processes }) => processes.includes(peer)).toReversed();
    const names = chosen.map(({ measurement }) => measurement);
    const figures = await measure(folder, peer, 0, 100, names, env);
    for (const [index, collected] of chosen.entries()) collected.add(peer, figures[index] ?? []);
  };
  await withServers(measurements, async (env) => {
    await Promise.all(peerNames.map((peer) => ofPeer(peer, env)));
  });
  return all.flatMap(({ rows }) => rows);
}

/** Starts what is measured against, each keeping what it acknowledged, and stops it afterwards. */
async function withServers(
  measurements: readonly Measurement[],
  use: (env: NodeJS.ProcessEnv) => Promise<void>,
): Promise<void> {
  const names = new Set(measurements.flatMap(({ server }) => server ?? []));
  const env: NodeJS.ProcessEnv = { ...process.env };
  const stops: (() => Promise<void>)[] = [];
  try {
    for (const name of names) {
      const server = await startServer(name, { durable: true });
      stops.push(() => server.stop());
      env[variableOf(name)] = server.url;
    }
    await use(env);
  } finally {
    for (const stop of stops) await stop();
  }
}

/** What the processes of a measurement gave. */
class Collected {
  readonly measurement: Measurement;
  /** The peers that have a process of their own. */
  readonly processes: readonly PeerName[];
  readonly rows: readonly {
    readonly row: Row;
    readonly figures: Map<Contestant, number[]>;
    readonly together: boolean;
  }[];

  constructor(measurement: Measurement) {
    const { peers, together = false, rows } = measurement;
    this.measurement = measurement;
    this.processes = together ? ['@agents/core'] : peerNames.filter((name) => peers.includes(name));
    this.rows = rows.map((row) => ({
      row,
      figures: new Map((row.peers ?? peers).map((peer) => [peer, []])),
      together,
    }));
  }

  /** A process gives for each row its own figure, or those of all peers; of each of its rounds. */
  add(process: PeerName, rounds: readonly (readonly number[])[]): void {
    for (const given of rounds) {
      const rest = given.values();
      for (const { figures, together } of this.rows)
        for (const peer of together ? figures.keys() : [process])
          figures.get(peer)?.push(rest.next().value ?? Number.NaN);
    }
  }
}

/** One process; gives the figures of each round of each measurement. */
async function measure(
  folder: string,
  peer: PeerName,
  seconds: number,
  divisor: number,
  measurements: readonly Measurement[],
  env: NodeJS.ProcessEnv,
): Promise<number[][][]> {
  const names = measurements.map(({ name }) => name);
  try {
    const args = [join(folder, 'measure.js'), peer, String(seconds), String(divisor), ...names];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return JSON.parse(stdout) as number[][][];
  } catch (error) {
    throw new Error(`Measuring ${names.join(', ')} of ${peer} failed.`, { cause: error });
  }
}
