import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { peerNames } from './peers/peer.ts';
import type { PeerName } from './peers/peer.ts';
import type { Measurement } from './rows.ts';
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
    const given = new Map<PeerName, number[][]>(measurement.peers.map((peer) => [peer, []]));
    for (let round = 0; round < (measurement.exact ? 1 : options.rounds); round += 1) {
      for (const [peer, list] of given) list.push(...(await measure(folder, peer, options.seconds, 1, [measurement])));
    }
    all.push(...toRows(measurement, given));
  }
  return all;
}

/** Every measurement once, as small as it gets. Its figures say nothing. */
export async function smoke(folder: string, measurements: readonly Measurement[]): Promise<Measured[]> {
  const given = new Map(measurements.map(({ name }) => [name, new Map<PeerName, number[][]>()]));
  // The last ones are about loading a package, and can't be had once it is loaded.
  const lastFirst = measurements.toReversed();
  const ofPeer = async (peer: PeerName): Promise<void> => {
    const chosen = lastFirst.filter(({ peers }) => peers.includes(peer));
    const figures = await measure(folder, peer, 0, 100, chosen);
    for (const [index, { name }] of chosen.entries()) given.get(name)?.set(peer, figures.slice(index, index + 1));
  };
  await Promise.all(peerNames.map(ofPeer));
  return measurements.flatMap((measurement) => toRows(measurement, given.get(measurement.name) ?? new Map()));
}

/** One process; gives the figures of each measurement. */
async function measure(
  folder: string,
  peer: PeerName,
  seconds: number,
  divisor: number,
  measurements: readonly Measurement[],
): Promise<number[][]> {
  const names = measurements.map(({ name }) => name);
  try {
    const args = [join(folder, 'measure.js'), peer, String(seconds), String(divisor), ...names];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return JSON.parse(stdout) as number[][];
  } catch (error) {
    throw new Error(`Measuring ${names.join(', ')} of ${peer} failed.`, { cause: error });
  }
}

function toRows({ peers, rows }: Measurement, given: ReadonlyMap<PeerName, readonly number[][]>): Measured[] {
  return rows.map((row, index) => ({
    row,
    figures: new Map(
      peers.map((peer) => [peer, (given.get(peer) ?? []).map((figures) => figures[index] ?? Number.NaN)]),
    ),
  }));
}
