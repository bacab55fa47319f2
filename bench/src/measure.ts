// A process that measures: `node measure.ts <peer> <seconds> <1/size> <measurement> …` prints the figures of each as JSON.
import { cpuMs, msPerRun, msPerRunOfEach } from './clock.ts';
import { runsAtOnce } from './concurrent.ts';
import { footprint } from './footprint.ts';
import type { MeasurementName } from './rows.ts';
import { loadPeer } from './peers/peer.ts';
import type { Peer, PeerName } from './peers/peer.ts';
import { isBackend } from './sessions/backends.ts';
import type { BackendName } from './sessions/backends.ts';
import type { Contestant, StoreTimes } from './sessions/sqlite/times.ts';
import type { Script } from './task.ts';

const [peerName, seconds, divisor, ...names] = process.argv.slice(2);
const name = peerName as PeerName;
const ms = Number(seconds) * 1000;
const all: (readonly (readonly number[])[])[] = [];
for (const measurement of names) all.push(await measureRounds(measurement as MeasurementName));
process.stdout.write(JSON.stringify(all));

/** The figures of each round: of sessions there are several. */
async function measureRounds(measurement: MeasurementName): Promise<readonly (readonly number[])[]> {
  switch (measurement) {
    case 'langgraph-postgres':
    case 'langgraph-sqlite': {
      const { langGraphFigures } = await import('./sessions/langgraph.ts');
      return await langGraphFigures(measurement === 'langgraph-sqlite' ? 'sqlite' : 'postgres', ms / 4);
    }
    default:
      if (!isBackend(measurement)) return [await measure(measurement)];
      const { sessionFigures } = await import('./sessions/figures.ts');
      return await sessionFigures(measurement, { long: sized(100_000), short: Math.max(sized(1_000), 20), ms: ms / 4 });
  }
}

type OneRound = Exclude<MeasurementName, BackendName | 'langgraph-postgres' | 'langgraph-sqlite'>;

async function measure(measurement: OneRound): Promise<number[]> {
  switch (measurement) {
    case 'tool-call':
      return [(await msOf({ turns: 1, calls: 1 })) * 1000];
    case 'tool-call-traced': {
      const runs = [await scripted({ turns: 1, calls: 1 }), await scripted({ turns: 1, calls: 1, traced: true })];
      const [untraced = Number.NaN, traced = Number.NaN] = await msPerRunOfEach(runs, ms);
      return [traced * 1000, traced / untraced];
    }
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
    case 'handoffs': {
      const { handoffTimes } = await import('./handoffs.ts');
      const [ten, fifty] = await handoffTimes([10, 50], ms);
      if (ten === undefined || fifty === undefined) throw new Error('Two chains were to be measured.');
      return [ten, fifty / ten];
    }
    case 'otel': {
      const { otelTimes } = await import('./otel.ts');
      const { bare, processor, exported } = await otelTimes(ms);
      return [bare, processor, exported * 100];
    }
    case 'trace-batches': {
      const { batchTimes } = await import('./trace-batches.ts');
      const { bare, batch, openai, exported } = await batchTimes(ms);
      return [bare, batch, openai, exported * 100];
    }
    case 'trace-outage': {
      const { outageTime } = await import('./trace-outage.ts');
      return [await outageTime(sized(100_000))];
    }
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
    case 'state-nested': {
      const { nestedTimes } = await import('./nested.ts');
      const [five, ten] = await nestedTimes([5, 10], ms, cpuMs);
      if (five === undefined || ten === undefined) throw new Error('Two depths were to be measured.');
      const ratios = (['pause', 'bytes', 'save', 'restore', 'resume'] as const).map((of) => ten[of] / five[of]);
      return [ten.pause, ...ratios];
    }
    case 'sqlite-normal': {
      const { bare, session, operation } = await besideBare('NORMAL');
      return [bare.append, session.append, operation.append, bare.tail, session.tail];
    }
    case 'sqlite-full': {
      const { bare, session, operation } = await besideBare('FULL');
      return [bare.append, session.append, operation.append];
    }
    case 'sqlite-long': {
      const { openStore } = await import('./sessions/sqlite/session.ts');
      const contestants = {
        short: { openStore, history: sized(2_000) },
        long: { openStore, history: sized(20_000) },
      };
      const { short, long } = await timesOf(contestants, 'NORMAL');
      return [long.append / short.append, long.tail / short.tail];
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

async function besideBare(
  synchronous: 'FULL' | 'NORMAL',
): Promise<Record<'bare' | 'session' | 'operation', StoreTimes>> {
  const floor = await import('./sessions/sqlite/floor.ts');
  const { openStore } = await import('./sessions/sqlite/session.ts');
  const history = sized(2_000);
  const contestants = {
    bare: { openStore: floor.openStore, history },
    session: { openStore, history },
    operation: { openStore, history, withOperationId: true },
  };
  return await timesOf(contestants, synchronous);
}

async function timesOf<Name extends string>(
  contestants: Record<Name, Contestant>,
  synchronous: 'FULL' | 'NORMAL',
): Promise<Record<Name, StoreTimes>> {
  const { storeTimes } = await import('./sessions/sqlite/times.ts');
  return await storeTimes(contestants, { synchronous, calls: sized(200), ms });
}

function expect(got: string | number, wanted: string | number): void {
  if (got !== wanted) throw new Error(`A run gave ${got} instead of ${wanted}.`);
}
