// One measurement, in a process of its own: `node measure.ts <measurement> <peer> <seconds>` prints its figures as JSON.
// Times are CPU times of the main thread: what they are on an idle machine, whatever else this one does.
import { statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Measurement } from './rows.ts';
import { loadPeer } from './peers/peer.ts';
import type { PeerName } from './peers/peer.ts';

const [measurement, peer, seconds] = process.argv.slice(2);
const figures = await measure(measurement as Measurement['name'], peer as PeerName, Number(seconds ?? 1) * 1000);
process.stdout.write(JSON.stringify(figures));

async function measure(measurement: Measurement['name'], name: PeerName, ms: number): Promise<number[]> {
  switch (measurement) {
    case 'tool-call': {
      const { peer } = await loadPeer[name]();
      const { answer } = await import('./task.ts');
      const run = peer.oneToolCall();
      expect(await run(), answer);
      return [(await msPerRun(run, ms)) * 1000];
    }
    case 'text-deltas': {
      const { peer } = await loadPeer[name]();
      const { pieces } = await import('./task.ts');
      const run = peer.textDeltas();
      expect(await run(), pieces.length);
      return [pieces.length / (await msPerRun(run, ms))];
    }
    case 'state-input': {
      const { stateTimes } = await import('./state.ts');
      const { save, stringify, restore, parse } = await stateTimes('input', 10_000, ms, cpuMs);
      const large = await stateTimes('input', 100_000, ms, cpuMs);
      return [save, save / stringify, restore, restore / parse, large.save / save, large.restore / restore];
    }
    case 'state-items': {
      const { stateTimes } = await import('./state.ts');
      const { firstSave, save, stringify, restore, parse } = await stateTimes('items', 10_000, ms, cpuMs);
      return [save, save / stringify, firstSave / stringify, restore, restore / parse];
    }
    case 'import': {
      const start = cpuMs();
      await import(name);
      return [cpuMs() - start];
    }
    case 'footprint': {
      const files = await importedFiles(name);
      const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
      return [files.length, bytes / 1024, new Set(files.map(packageOf)).size - 1];
    }
    default:
      return measurement satisfies never;
  }
}

/** What is faster because it does less is no peer. */
function expect(got: string | number, wanted: string | number): void {
  if (got !== wanted) throw new Error(`A run gave ${got} instead of ${wanted}.`);
}

function cpuMs(): number {
  // Linux brings the clock of a thread up to date at each tick, 4 ms, and when it is asked for that of the process.
  process.cpuUsage();
  // Before Node 23.9 only the process has a clock.
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
}

/** Mean time of runs one after another, after a warm-up of the same length. At least one run each. */
async function msPerRun(run: () => Promise<unknown>, ms: number): Promise<number> {
  await spend(run, ms);
  return await spend(run, ms);
}

/** Every 10 ms the event loop has a turn, so that timers and finalizers get to run; it costs nothing beside the runs. */
async function spend(run: () => Promise<unknown>, ms: number): Promise<number> {
  const start = cpuMs();
  let runs = 0;
  do {
    const sliceEnd = performance.now() + Math.min(10, ms);
    do {
      await run();
      runs += 1;
    } while (performance.now() < sliceEnd);
    await setImmediate();
  } while (cpuMs() - start < ms);
  return (cpuMs() - start) / runs;
}

async function importedFiles(name: string): Promise<string[]> {
  const files: string[] = [];
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) files.push(fileURLToPath(url));
      return next(url, context);
    },
  });
  await import(name);
  return files;
}

/** The folder of the package that a file belongs to. */
function packageOf(file: string): string {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+|^.*\/packages\/[^/]+/u.exec(file)?.[0] ?? file;
}
