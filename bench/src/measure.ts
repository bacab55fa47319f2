// A process that measures: `node measure.ts <peer> <seconds> <1/size> <measurement> …` prints the figures of each as JSON.
import { cpuMs, msPerRun } from './clock.ts';
import { runsAtOnce } from './concurrent.ts';
import { footprint } from './footprint.ts';
import type { MeasurementName } from './rows.ts';
import { loadPeer } from './peers/peer.ts';
import type { Peer, PeerName } from './peers/peer.ts';
import { loadStore } from './sqlite/store.ts';
import type { StoreTask, StoreTimes } from './sqlite/times.ts';
import type { Script } from './task.ts';

const [peerName, seconds, divisor, ...names] = process.argv.slice(2);
const name = peerName as PeerName;
const ms = Number(seconds) * 1000;
const all: number[][] = [];
for (const measurement of names) all.push(await measure(measurement as MeasurementName));
process.stdout.write(JSON.stringify(all));

async function measure(measurement: MeasurementName): Promise<number[]> {
  switch (measurement) {
    case 'tool-call':
      return [(await msOf({ turns: 1, calls: 1 })) * 1000];
    case 'tool-call-traced':
      return [(await msOf({ turns: 1, calls: 1, traced: true })) * 1000];
    case 'turns-50':
      return [await usPerTurn(sized(50))];
    case 'turns-500':
      return [await usPerTurn(sized(500))];
    case 'text-deltas': {
      const { textPieces } = await import('./task.ts');
      const pieces = textPieces(sized(5_000));
      const run = (await load()).streamed(pieces);
      expect(await run(), pieces.length);
      return [pieces.length / (await msPerRun(run, ms))];
    }
    case 'runs-at-once':
      return await runsAtOnce(await scripted({ turns: 1, calls: 1, latencyMs: 10 }), sized(1_000));
    case 'calls-100':
      return [await msOf({ turns: 1, calls: sized(100) })];
    case 'calls-1000':
      return [await msOf({ turns: 1, calls: sized(1_000) })];
    case 'state-input': {
      const { stateTimes } = await import('./state.ts');
      const { save, stringify, restore, parse } = await stateTimes('input', sized(10_000), ms, cpuMs);
      const large = await stateTimes('input', sized(100_000), ms, cpuMs);
      return [save, save / stringify, restore, restore / parse, large.save / save, large.restore / restore];
    }
    case 'state-items': {
      const { stateTimes } = await import('./state.ts');
      const { firstSave, save, stringify, restore, parse } = await stateTimes('items', sized(10_000), ms, cpuMs);
      return [save, save / stringify, firstSave / stringify, restore, restore / parse];
    }
    case 'sqlite-normal': {
      const { append, tail } = await store({ history: sized(2_000), synchronous: 'NORMAL' });
      return [append, tail];
    }
    case 'sqlite-operation':
      return [(await store({ history: sized(2_000), synchronous: 'NORMAL', withOperationId: true })).append];
    case 'sqlite-full':
      return [(await store({ history: sized(2_000), synchronous: 'FULL' })).append];
    case 'sqlite-full-operation':
      return [(await store({ history: sized(2_000), synchronous: 'FULL', withOperationId: true })).append];
    case 'sqlite-long': {
      const { append, tail } = await store({ history: sized(20_000), synchronous: 'NORMAL' });
      return [append, tail];
    }
    case 'import': {
      const start = cpuMs();
      await import(name);
      return [cpuMs() - start];
    }
    case 'footprint':
      return await footprint(name);
    default:
      return measurement satisfies never;
  }
}

/** How large a thing is here that is this large in earnest. */
function sized(size: number): number {
  return Math.ceil(size / Number(divisor));
}

async function load(): Promise<Peer> {
  return (await loadPeer[name]()).peer;
}

/** A run that was tried once: what is faster because it does less is no peer, and what is loaded late is there. */
async function scripted(script: Script): Promise<() => Promise<string>> {
  const { answer } = await import('./task.ts');
  const run = (await load()).scripted(script);
  expect(await run(), answer);
  return run;
}

async function msOf(script: Script): Promise<number> {
  return await msPerRun(await scripted(script), ms);
}

async function usPerTurn(turns: number): Promise<number> {
  return ((await msOf({ turns, calls: 1 })) * 1000) / turns;
}

async function store(task: Omit<StoreTask, 'calls'>): Promise<StoreTimes> {
  const { storeTimes } = await import('./sqlite/times.ts');
  const loaded = await loadStore[name]?.();
  if (loaded === undefined) throw new Error(`${name} has no session in SQLite.`);
  return await storeTimes(loaded.openStore, { ...task, calls: sized(500) }, ms);
}

function expect(got: string | number, wanted: string | number): void {
  if (got !== wanted) throw new Error(`A run gave ${got} instead of ${wanted}.`);
}
