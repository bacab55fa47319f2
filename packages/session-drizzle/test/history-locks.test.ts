// What a history does while others are at work on the same session: statement by statement.
import { configureLogging } from '@agents/core';
import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { sql } from 'drizzle-orm/sql/sql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { DrizzleHistory } from '../src/history.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { historyOf, read, text, textsOf } from './support/history.ts';
import { makeTables } from './support/tables.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

/** Changes, and what they leave of three items. */
const changes: Readonly<Record<string, readonly [(history: DrizzleHistory) => Promise<unknown>, readonly string[]]>> = {
  pop: [(history) => history.pop(), textsOf(2)],
  clear: [(history) => history.clear(), []],
  replace: [(history) => history.write({ type: 'replace', texts: textsOf(1, 7) }), textsOf(1, 7)],
  'replacement of a suffix': [
    (history) => history.write({ type: 'replace_suffix', expected: textsOf(1, 3), texts: textsOf(1, 8) }),
    [...textsOf(2), text(8)],
  ],
  'replacement of a suffix by nothing': [
    (history) => history.write({ type: 'replace_suffix', expected: textsOf(1, 3), texts: [] }),
    textsOf(2),
  ],
  'two of one operation': [
    async (history) =>
      await Promise.all(
        [1, 2].map(
          async () => await history.write({ type: 'replace', texts: textsOf(2), operation: { id: 'o', digest: 'd' } }),
        ),
      ),
    textsOf(2),
  ],
};

type Transaction = (run: (tx: Opened['db']) => Promise<void>) => Promise<void>;

describe.each<DriverName>(['node-postgres', 'mysql2'])('locks of a history on %s', (driver) => {
  let opened: Opened;
  /** Of a server whose transactions see one moment by default. */
  let strict: Opened;
  let writer: Opened;
  beforeAll(async () => {
    opened = await open(driver);
    await makeTables(opened);
    writer = await open(driver, opened.url);
    const isolation = driver === 'mysql2' ? '' : '?options=-c%20default_transaction_isolation%3Dserializable';
    strict = await open(driver, `${opened.url}${isolation}`);
  }, 60_000);
  afterAll(async () => {
    await strict?.close();
    await writer?.close();
    await opened?.close();
  });

  /** Somebody else's transaction, that has the lock of the session's row. */
  const holding = async (id: string, run: (on: Pick<Opened, 'db' | 'dialect'>) => Promise<void>): Promise<void> => {
    const transaction = (writer.db as unknown as { transaction: Transaction }).transaction.bind(writer.db);
    await transaction(async (tx) => {
      const on = { db: tx, dialect: writer.dialect };
      await execute(on, sql`select 1 from agent_sessions where session_id = ${id} for update`);
      await run(on);
    });
  };
  /** Until so many wait for a lock. */
  const waiters = async (count: number, isDone: () => boolean): Promise<void> => {
    const waiting =
      opened.dialect === 'pg'
        ? sql`select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
        : sql`select count(*) as n from information_schema.innodb_trx where trx_state = 'LOCK WAIT'`;
    // Who asks for `innodb_trx` again within 100 ms of the last time gets the answer of that time.
    const pause = opened.dialect === 'pg' ? 5 : 120;
    do await new Promise((resolve) => setTimeout(resolve, pause));
    while (!isDone() && Number((await execute(opened, waiting))[0]?.['n']) < count);
  };

  it.each(Object.entries(changes))(
    '%s: waits for the session first, holds nothing meanwhile, and is done at once when it has it [SESS-261, 263, 266]',
    async (name, [change, left]) => {
      const id = `waits, ${name}`;
      await historyOf(opened.db, id).write({ type: 'append', texts: textsOf(3) });
      const history = historyOf(strict.db, id);
      await history.read(0);
      const transactions = vi.spyOn(strict.db, 'transaction');
      const count = name.startsWith('two') ? 2 : 1;
      const state = { isDone: false };
      let changed: Promise<unknown> | undefined;
      await holding(id, async (on) => {
        // What the waiting one saw before must not count for it.
        await execute(on, sql`update agent_sessions set created_at = created_at where session_id = ${id}`);
        changed = change(history);
        void changed.finally(() => (state.isDone = true)).catch(() => {});
        await waiters(count, () => state.isDone);
        expect(state.isDone).toBe(false);
        const held = await execute(on, sql`select id from agent_messages where session_id = ${id} for update nowait`);
        expect(held).toHaveLength(3);
      });
      await changed;
      expect(transactions).toHaveBeenCalledTimes(count);
      transactions.mockRestore();
      expect(await read(history)).toEqual(left);
    },
  );

  it.each(['pop', 'clear', 'replace', 'replacement of a suffix'])(
    '%s: has the session until the end, also while it waits for a message [SESS-263, 266]',
    async (name) => {
      const id = `keeps, ${name}`;
      const history = historyOf(opened.db, id);
      await history.write({ type: 'append', texts: textsOf(3) });
      const [change, left] = changes[name] ?? [async () => {}, []];
      const transaction = (writer.db as unknown as { transaction: Transaction }).transaction.bind(writer.db);
      let changed: Promise<unknown> | undefined;
      const state = { isDone: false };
      await transaction(async (tx) => {
        const on = { db: tx, dialect: writer.dialect };
        await execute(on, sql`select id from agent_messages where session_id = ${id} for update`);
        changed = change(history);
        void changed.finally(() => (state.isDone = true)).catch(() => {});
        await waiters(1, () => state.isDone);
        // Not even shared: two who share it and want more wait for each other.
        const shared = opened.dialect === 'pg' ? sql`for share` : sql`lock in share mode`;
        const look = execute(opened, sql`select 1 from agent_sessions where session_id = ${id} ${shared} nowait`);
        await expect(look.then(() => 'free')).rejects.toThrow(/Failed query|lock/i);
      });
      await changed;
      expect(await read(history)).toEqual(left);
    },
  );

  it.each(['alone', 'with a version'] as const)(
    'an append, %s, that waited for a writer comes behind what that one stored meanwhile [SESS-261]',
    async (way) => {
      const id = `behind, ${way}`;
      const history = historyOf(opened.db, id);
      await history.write({ type: 'append', texts: textsOf(1) });
      const now = opened.dialect === 'pg' ? sql`cast(clock_timestamp() as timestamp)` : sql`sysdate(6)`;
      let appended: Promise<unknown> | undefined;
      await holding(id, async (on) => {
        appended =
          way === 'alone'
            ? history.write({ type: 'append', texts: textsOf(1, 3) })
            : history.write({ type: 'replace_suffix', expected: [], texts: textsOf(1, 3) });
        await waiters(1, () => false);
        await execute(
          on,
          sql`insert into agent_messages (session_id, message_data, created_at) values (${id}, ${text(2)}, ${now})`,
        );
      });
      await appended;
      expect(await read(history)).toEqual(textsOf(3));
    },
  );
});

it('two who pop what lost its session row get different items, mysql2 [SESS-266, 274]', async () => {
  const opened = await open('mysql2');
  const other = await open('mysql2', opened.url);
  try {
    await makeTables(opened);
    await execute(opened, sql`alter table agent_messages drop foreign key agent_messages_session_id_fkey`);
    const history = historyOf(opened.db, 's');
    await history.write({ type: 'append', texts: textsOf(3) });
    await execute(opened, sql`delete from agent_sessions`);
    let popped: Promise<{ readonly text: string | undefined } | undefined> | undefined;
    const transaction = (other.db as unknown as { transaction: Transaction }).transaction.bind(other.db);
    await transaction(async (tx) => {
      await execute({ db: tx, dialect: 'mysql' }, sql`delete from agent_messages where message_data = ${text(3)}`);
      popped = history.pop();
      const waiting = sql`select count(*) as n from information_schema.innodb_trx where trx_state = 'LOCK WAIT'`;
      do await new Promise((resolve) => setTimeout(resolve, 120));
      while (Number((await execute(opened, waiting))[0]?.['n']) === 0);
    });
    expect((await popped)?.text).toBe(text(2));
    expect(await read(history)).toEqual(textsOf(1));
  } finally {
    await other.close();
    await opened.close();
  }
});

describe('history on better-sqlite3', () => {
  /** Something happens at the statements that drizzle logs. */
  async function logging(
    onQuery: (statement: string) => void,
  ): Promise<{ opened: Opened; history: DrizzleHistory; close: () => Promise<void> }> {
    const opened = await open('better-sqlite3');
    await makeTables(opened);
    const client = new Database(opened.url, { timeout: 0 });
    const db = drizzle({ client, logger: { logQuery: onQuery } });
    const close = async (): Promise<void> => {
      client.close();
      await opened.close();
    };
    return { opened, history: historyOf(db, 's'), close };
  }

  it.each([undefined, 700])(
    'gives a history of one moment although it is another one between two of its pages, %s [SESS-160]',
    async (count) => {
      let pages = 0;
      const other: { replace?: () => void } = {};
      const { opened, history, close } = await logging((statement) => {
        if (statement.startsWith('select id, message_data') && ++pages === 2) other.replace?.();
      });
      await history.write({ type: 'append', texts: textsOf(1200) });
      const client = new Database(opened.url);
      other.replace = () => {
        client.exec("delete from agent_messages where session_id = 's' and id > 900");
        client.close();
      };
      pages = 0;
      expect(await read(history, count)).toEqual(textsOf(count ?? 900, count === undefined ? 1 : 201));
      await close();
    },
  );

  it('lets no other writer in between the look and the change of a transaction [SESS-264]', async () => {
    const met: unknown[] = [];
    const other: { write?: () => void } = {};
    const { opened, history, close } = await logging((statement) => {
      // From the look on, at each statement.
      if (statement.startsWith('select digest, result') || met.length > 0) other.write?.();
    });
    await history.write({ type: 'append', texts: textsOf(1) });
    const client = new Database(opened.url, { timeout: 0 });
    other.write = () => {
      try {
        client.exec("update agent_sessions set updated_at = '2001-01-01 00:00:00'");
        met.push('written');
      } catch (error) {
        met.push((error as { code?: unknown }).code);
      }
    };
    // One write of some forgets old operations afterwards, in a transaction of its own: not this one.
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.999);
    await history.write({ type: 'replace', texts: textsOf(2), operation: { id: 'op', digest: 'd' } });
    random.mockRestore();
    expect(met.length).toBeGreaterThan(4);
    expect(new Set(met)).toEqual(new Set(['SQLITE_BUSY']));
    client.close();
    await close();
  });
});
