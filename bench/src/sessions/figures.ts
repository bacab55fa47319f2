import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { backends } from './backends.ts';
import type { BackendName } from './backends.ts';
import { batch } from './items.ts';
import { bytesOf } from './memory.ts';
import { timesOfEach } from './rounds.ts';
import { serverUrl } from './servers.ts';
import type { OpenBackend, Store } from './store.ts';
import { openWire } from './wire.ts';
import type { Protocol, Traffic } from './wire.ts';

/** Batches that make a history in one append: few enough for a packet of MariaDB. */
const AT_ONCE = 500;
const TAIL = 20;

export interface SessionSizes {
  /** Items of the history that is appended to and read. */
  readonly long: number;
  /** Of the one that it is compared with. */
  readonly short: number;
  /** Of each round. */
  readonly ms: number;
}

/** The figures of each round, in the order of the rows (`sessionRows`). */
export async function sessionFigures(name: BackendName, sizes: SessionSizes): Promise<number[][]> {
  const entry = backends[name];
  const folder = mkdtempSync(join(tmpdir(), 'agents-bench-'));
  const { open } = await entry.load();
  const backend = await open(entry.server === undefined ? folder : serverUrl(entry.server));
  try {
    const [floor, long] = [await backend.floor(`${name}-long`), await backend.session(`${name}-long`)];
    const short = await backend.session(`${name}-short`);
    for (const store of [floor, long]) await fill(store, sizes.long);
    await fill(short, sizes.short);
    for (const store of [floor, long, short]) await check(store);
    const figures = await figuresOf({ floor, long, short }, sizes.ms);
    const traffic = entry.server === undefined ? [] : await trafficOfBoth(open, entry.server, `${name}-counted`);
    for (const store of [floor, long, short]) await store.close();
    return figures.map((round) => [...round, ...traffic]);
  } finally {
    await backend.close();
    rmSync(folder, { recursive: true });
  }
}

async function figuresOf(stores: Record<'floor' | 'long' | 'short', Store>, ms: number): Promise<number[][]> {
  const { floor, long, short } = stores;
  const appends = await timesOfEach([appending(floor), appending(long)], 2 * ms);
  const tails = await timesOfEach([reading(floor), reading(long), reading(short)], ms);
  const memory = (await bytesOf(reading(long))) / (await bytesOf(reading(short)));
  return appends.map((append, round) => {
    const [tailOfFloor = Number.NaN, tail = Number.NaN, tailOfShort = Number.NaN] = tails[round] ?? [];
    return [...append, tailOfFloor, tail, tail / tailOfShort, memory];
  });
}

/** Statements and round trips of an append, then round trips of a read; of the floor, then of ours. */
async function trafficOfBoth(open: OpenBackend, server: Protocol, id: string): Promise<number[]> {
  const wire = await openWire(serverUrl(server), server);
  const backend = await open(wire.url);
  try {
    const stores = [await backend.floor(id), await backend.session(id)];
    const appends: Traffic[] = [];
    const reads: Traffic[] = [];
    for (const store of stores) {
      await fill(store, TAIL);
      // The first ones prepare statements, too.
      await check(store);
      await reading(store)();
      appends.push(await wire.trafficOf(appending(store)));
      reads.push(await wire.trafficOf(reading(store)));
    }
    const statements = appends.map((traffic) => traffic.statements);
    return [...statements, ...[...appends, ...reads].map(({ roundTrips }) => roundTrips)];
  } finally {
    await backend.close();
    wire.close();
  }
}

async function fill(store: Store, items: number): Promise<void> {
  for (let index = 0; index < items / 4; index += AT_ONCE) {
    const batches = Array.from({ length: Math.min(AT_ONCE, items / 4 - index) }, (_, of) => batch(index + of));
    await store.append(batches.flat());
  }
}

let appended = 0;

function appending(store: Store): () => Promise<void> {
  return () => store.append(batch((appended += 1)));
}

/** Nobody is faster because he stores less. */
async function check(store: Store): Promise<void> {
  const items = batch((appended += 1));
  await store.append(items);
  if (!isDeepStrictEqual(await store.tail(4), items)) throw new Error('The tail is not what was appended last.');
}

function reading(store: Store): () => Promise<readonly object[]> {
  return async () => {
    const items = await store.tail(TAIL);
    if (items.length !== TAIL) throw new Error(`${items.length} items were read.`);
    return items;
  };
}
