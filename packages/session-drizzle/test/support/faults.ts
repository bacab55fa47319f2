// One change of a session while something breaks, and what became of it. Used by the test and by the table of many runs.
import { SessionOutcomeUnknownError } from '@agents/core/session';
import type { Cut, CuttingProxy, RunningServer } from '@agents/testkit';
import { sql } from 'drizzle-orm/sql/sql';

import { DrizzleSession } from '../../src/index.ts';
import type { DrizzleDatabase } from '../../src/index.ts';
import type { Opened } from './databases.ts';
import { execute } from './fixture.ts';

export const mutations = ['append', 'replace', 'pop', 'clear', 'appendIfVersion'] as const;
export type Mutation = (typeof mutations)[number];
export const faults = ['before send', 'sent', 'reply lost', 'mid frame', 'server restart', 'client killed'] as const;
export type Fault = (typeof faults)[number];
export type Outcome = 'ok' | 'refused' | 'unknown, committed' | 'unknown, absent';

type Items = readonly object[];
const user = (content: string): object => ({ role: 'user', content });
export const BEFORE: Items = ['1', '2', '3', '4'].map(user);
const NEW: Items = ['a', 'b', 'c'].map(user);
export const AFTER: Readonly<Record<Mutation, Items>> = {
  append: [...BEFORE, ...NEW],
  appendIfVersion: [...BEFORE, ...NEW],
  replace: [...BEFORE.slice(0, 2), ...NEW],
  pop: BEFORE.slice(0, -1),
  clear: [],
};

/** Makes the change; again with the same arguments is the same operation. `pop` and `clear` have no id. */
export async function mutate(db: DrizzleDatabase, id: string, mutation: Mutation, version: string): Promise<void> {
  const session = new DrizzleSession<object>(id, { db, operationTimeoutMs: 20_000 });
  switch (mutation) {
    case 'append':
      await session.applyHistoryTransaction?.({
        operationId: 'op',
        transaction: { type: 'append_items', items: NEW },
      });
      return;
    case 'replace':
      await session.applyHistoryTransaction?.({
        operationId: 'op',
        transaction: { type: 'replace_suffix', expectedSuffix: BEFORE.slice(2), replacement: NEW },
      });
      return;
    case 'appendIfVersion':
      await session.appendIfVersion(version, NEW, { operationId: 'op' });
      return;
    case 'pop':
      await session.popItem();
      return;
    case 'clear':
      await session.clearSession();
      return;
    default:
      mutation satisfies never;
  }
}

export async function seed(direct: Opened, id: string): Promise<string> {
  const session = new DrizzleSession<object>(id, { db: direct.db });
  await session.addItems(BEFORE);
  return (await session.readHistory(0)).version;
}

/** What became of the change, or an error that says how the store broke its word. */
export async function judge(
  direct: Opened,
  id: string,
  mutation: Mutation,
  version: string,
  result: PromiseSettledResult<void>,
): Promise<Outcome> {
  const session = new DrizzleSession<object>(id, { db: direct.db });
  // A statement that the server got is done, or its lock is waited for.
  await execute(direct, sql`update agent_sessions set session_id = ${id} where session_id = ${id}`);
  const found = JSON.stringify(await session.getItems());
  const committed = found === JSON.stringify(AFTER[mutation]);
  if (!committed && found !== JSON.stringify(BEFORE))
    throw new Error(`${mutation}: neither before nor after: ${found}`);
  const reason: unknown = result.status === 'rejected' ? result.reason : undefined;
  const unknown = reason instanceof SessionOutcomeUnknownError;
  if (result.status === 'fulfilled' && !committed) throw new Error(`${mutation} was acknowledged and is not there`);
  if (result.status === 'rejected' && !unknown && committed)
    throw new Error(`${mutation} was refused and is there`, { cause: reason });
  if (mutation !== 'pop' && mutation !== 'clear') {
    await mutate(direct.db, id, mutation, version);
    const settled = JSON.stringify(await session.getItems());
    if (settled !== JSON.stringify(AFTER[mutation])) throw new Error(`${mutation}: not settled: ${settled}`);
  }
  if (result.status === 'fulfilled') return 'ok';
  return unknown ? (committed ? 'unknown, committed' : 'unknown, absent') : 'refused';
}

/** The statement that decides: the one of an append in PostgreSQL, else `commit`. */
export function deciding(dialect: Opened['dialect'], mutation: Mutation): (request: Buffer) => boolean {
  // By an item of it: postgres.js prepares the statement first, which does nothing yet.
  const text = dialect === 'pg' && mutation === 'append' ? /content/ : /commit(?!ted)/;
  return (request) => text.test(request.toString('latin1'));
}

const CUTS: Readonly<Partial<Record<Fault, readonly Cut[]>>> = {
  'before send': ['before'],
  sent: ['sent'],
  'reply lost': ['reply'],
  'mid frame': ['middle', 'answer'],
};

export interface Ground {
  /** Past the proxy, to look and to settle. */
  readonly direct: Opened;
  /** Through the proxy. */
  readonly broken: Opened;
  readonly proxy: CuttingProxy;
}

/** `attempt` varies what can be varied: where the frame is cut, whether an earlier statement of a transaction is hit. */
export async function cut(ground: Ground, mutation: Mutation, fault: Fault, attempt: number): Promise<Outcome> {
  const { direct, broken, proxy } = ground;
  const id = `${mutation}-${fault}-${attempt}-${Math.random().toString(36).slice(2)}`;
  const version = await seed(direct, id);
  const cuts = CUTS[fault] ?? [];
  const how = cuts[attempt % cuts.length] ?? 'before';
  const isAlone = direct.dialect === 'pg' && mutation === 'append';
  const early = !isAlone && attempt % 3 === 2;
  const matching = early
    ? (request: Buffer) => /insert into|delete from|for update/.test(request.toString('latin1'))
    : deciding(direct.dialect, mutation);
  void proxy.cutNext(how, { matching, reset: attempt % 2 === 1 });
  const [result] = await Promise.allSettled([mutate(broken.db, id, mutation, version)]);
  proxy.disarm();
  return await judge(direct, id, mutation, version, result);
}

/** Ends the server while changes are under way, and starts it again where it was. */
export async function restart(
  ground: Ground & {
    readonly server: RunningServer;
    readonly again: (server: RunningServer) => Promise<RunningServer>;
  },
  mutation: Mutation,
  attempt: number,
): Promise<{ readonly outcomes: readonly Outcome[]; readonly server: RunningServer }> {
  const { direct, server, again } = ground;
  const ids = Array.from({ length: 8 }, (_, index) => `${mutation}-restart-${attempt}-${index}`);
  const versions: string[] = [];
  for (const id of ids) versions.push(await seed(direct, id));
  // Some before, some amid, some after the end.
  const changes = ids.map(async (id, index) => {
    await new Promise((resolve) => setTimeout(resolve, index * 5));
    await mutate(direct.db, id, mutation, versions[index] ?? '');
  });
  const killed = new Promise<void>((resolve) => setTimeout(resolve, 15 + (attempt % 5) * 8)).then(() => server.kill());
  const results = await Promise.allSettled(changes);
  await killed;
  const started = await again(server);
  await answering(direct);
  const outcomes: Outcome[] = [];
  for (const [index, result] of results.entries())
    outcomes.push(await judge(direct, ids[index] ?? '', mutation, versions[index] ?? '', result));
  return { outcomes, server: started };
}

/** A server that takes connections may still be reading its log. */
async function answering(direct: Opened): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await execute(direct, sql`select 1`);
      return;
    } catch (error) {
      if (attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
