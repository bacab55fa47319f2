import type { SessionFixture } from '@agents/core/testing';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';

import { DrizzleSession } from '../../src/index.ts';
import type { DrizzleDatabase, DrizzleSessionOptions } from '../../src/index.ts';
import type { Opened } from './databases.ts';

/** What the tests call of a database of drizzle. */
interface AnyDatabase {
  execute(query: SQL): Promise<unknown>;
  all(query: SQL): unknown;
  run(query: SQL): unknown;
  transaction(run: unknown, config?: unknown): unknown;
}

/** Any statement, past the package. */
export async function execute({ db, dialect }: Pick<Opened, 'db' | 'dialect'>, query: SQL): Promise<Row[]> {
  const database = db as unknown as AnyDatabase;
  if (dialect === 'sqlite') {
    if (/^\s*(select|explain)/i.test(startOf(query))) return (await database.all(query)) as Row[];
    await database.run(query);
    return [];
  }
  const result = await database.execute(query);
  if (Array.isArray(result)) return (Array.isArray(result[0]) ? result[0] : result) as Row[];
  return (result as { rows: Row[] }).rows;
}
export type Row = Record<string, unknown>;

/** How its text begins; releases of drizzle keep it in different ways. */
function startOf(query: SQL): string {
  const [first]: unknown[] = (query as unknown as { queryChunks: unknown[] }).queryChunks;
  return typeof first === 'string' ? first : String((first as { value?: unknown } | undefined)?.value);
}

/** The cases of the contract on one database. */
export function fixtureOf(opened: Opened, options?: Partial<DrizzleSessionOptions>): SessionFixture {
  const { db, failNext } = breakable(opened.db);
  return {
    open: (id, more) => new DrizzleSession<object>(id, { db, ...options, ...more }),
    addCorrupt: async (id, record) =>
      void (await execute(
        opened,
        sql`insert into agent_messages (session_id, message_data, created_at)
          select ${id}, ${record}, max(created_at) from (select created_at from agent_messages where session_id = ${id}
          union all select updated_at from agent_sessions where session_id = ${id}) as stamps`,
      )),
    failNext,
  };
}

/** The same database, whose next change fails: before it is sent, or after it was done and the answer was lost. */
export function breakable(db: DrizzleDatabase): {
  db: DrizzleDatabase;
  readonly failNext: (when: 'before' | 'after') => void;
} {
  let armed: 'before' | 'after' | undefined;
  const breaking = (work: () => unknown): unknown => {
    const when = armed;
    armed = undefined;
    if (when === 'before')
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
    const result = work();
    if (when !== 'after') return result;
    return Promise.resolve(result).then(() => {
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
    });
  };
  const proxy = new Proxy(db, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const call = (...args: unknown[]): unknown => Reflect.apply(member, target, args);
      if (name === 'transaction') return (...args: unknown[]) => breaking(() => call(...args));
      // As it is: what is wrapped runs nothing that is prepared.
      if (name !== 'execute') return member;
      return (query: SQL) => (startOf(query).startsWith('with ') ? breaking(() => call(query)) : call(query));
    },
  });
  return {
    db: proxy,
    failNext: (when) => {
      armed = when;
    },
  };
}

/** Cases that cannot be run on a driver are left out by name; any other must not be skipped. */
export const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

/** H2: a session whose database was handed in is never closed. G2, G3: SQLite answers within the call. */
export function isElsewhere(driver: Opened['driver'], id: string): boolean {
  const answersAtOnce = driver === 'better-sqlite3' || driver === 'node:sqlite';
  return id === 'H2' || (answersAtOnce && (id === 'G2' || id === 'G3'));
}
