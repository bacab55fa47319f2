import { emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint';
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { batch } from './items.ts';
import { timesOfEach } from './rounds.ts';
import { serverUrl } from './servers.ts';
import type { Store } from './store.ts';

/** Beside each other: what LangGraph writes for a step whose state is four items, and an append of the same four items. */
interface Pair {
  readonly saver: BaseCheckpointSaver;
  readonly sessions: readonly Store[];
  close(): Promise<void>;
}

/** For each round the time of a `put`, then those of the appends of our sessions. */
export async function langGraphFigures(store: 'postgres' | 'sqlite', ms: number): Promise<number[][]> {
  const folder = mkdtempSync(join(tmpdir(), 'agents-bench-'));
  const pair = await pairs[store](folder);
  try {
    const put = putting(pair.saver);
    let appended = 0;
    const appends = pair.sessions.map((session) => () => session.append(batch((appended += 1))));
    return await timesOfEach([put, ...appends], 2 * ms);
  } finally {
    await pair.close();
    rmSync(folder, { recursive: true });
  }
}

/** Checkpoint after checkpoint of one thread, as its loop puts them: a new id and version each, the one before as parent. */
function putting(saver: BaseCheckpointSaver): () => Promise<void> {
  let step = 0;
  let config = { configurable: { thread_id: 'thread', checkpoint_ns: '' } };
  return async () => {
    step += 1;
    const checkpoint = {
      ...emptyCheckpoint(),
      id: uuid6(step),
      channel_values: { messages: batch(step) },
      channel_versions: { messages: step },
    };
    const metadata = { source: 'loop', step, parents: {} } as const;
    config = (await saver.put(config, checkpoint, metadata, { messages: step })) as typeof config;
  };
}

const pairs: Readonly<Record<'postgres' | 'sqlite', (folder: string) => Promise<Pair>>> = {
  async postgres() {
    const { PostgresSaver } = await import('@langchain/langgraph-checkpoint-postgres');
    const { open } = await import('./backends/node-postgres.ts');
    const url = serverUrl('postgres');
    const saver = PostgresSaver.fromConnString(url);
    await saver.setup();
    const backend = await open(url);
    return {
      saver,
      sessions: [await backend.session('session')],
      async close() {
        await Promise.all([saver.end(), backend.close()]);
      },
    };
  },
  async sqlite(folder) {
    const { SqliteSaver } = await import('@langchain/langgraph-checkpoint-sqlite');
    const { default: Database } = await import('better-sqlite3');
    const { open } = await import('./backends/better-sqlite3.ts');
    const { openStore } = await import('./sqlite/session.ts');
    const database = new Database(join(folder, 'langgraph.db'));
    const saver = new SqliteSaver(database);
    // It sets the journal; as durable as ours.
    database.pragma('synchronous = FULL');
    const backend = await open(folder);
    const session = openStore('session', join(folder, 'sqlite-session.db'), 'FULL');
    return {
      saver,
      sessions: [session, await backend.session('session')],
      async close() {
        await session.close();
        await backend.close();
        database.close();
      },
    };
  },
};
