import { configureLogging } from '@agents/core';
import { drizzle } from 'drizzle-orm/mysql2';
import { sql } from 'drizzle-orm/sql/sql';
import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { openedFor } from './support/opened.ts';
import { makeTables } from './support/tables.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

const user = (content: string) => ({ role: 'user', content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));

type Transaction = <R>(run: (tx: Opened['db']) => Promise<R>) => Promise<R>;
const transactionOf = ({ db }: Opened): Transaction =>
  (db as unknown as { transaction: Transaction }).transaction.bind(db);

describe.each<DriverName>(['node-postgres', 'postgres.js', 'PGlite', 'mysql2', 'libsql'])(
  'a transaction of the user, %s',
  (driver) => {
    const opened = openedFor(driver);

    /** What sessions do, two at once. */
    const change = async (db: Opened['db'], ids: readonly string[]): Promise<void> => {
      const operation = { operationId: 'op', transaction: { type: 'append_items', items: users(1, 9) } } as const;
      await Promise.all(
        ids.map(async (id) => {
          const session = new DrizzleSession<object>(id, { db });
          await session.addItems(users(3));
          await session.popItem();
          const { version } = await session.readHistory();
          await session.appendIfVersion(version, users(1, 3));
          await session.applyHistoryTransaction?.(operation);
          expect(await session.getItems()).toEqual([...users(3), ...users(1, 9)]);
        }),
      );
    };
    const items = async (id: string): Promise<object[]> =>
      await new DrizzleSession<object>(id, { db: opened.db }).getItems();

    it('sessions over it see what they did, and others see it when it is committed [SESS-264]', async () => {
      await transactionOf(opened)(async (tx) => await change(tx, ['a', 'b']));
      for (const id of ['a', 'b']) expect(await items(id)).toEqual([...users(3), ...users(1, 9)]);
    });

    it('what sessions over it did is undone with it [SESS-264]', async () => {
      const undone = transactionOf(opened)(async (tx) => {
        await change(tx, ['c', 'd']);
        throw new Error('no, after all');
      });
      await expect(undone).rejects.toThrow('no, after all');
      for (const id of ['c', 'd']) expect(await items(id)).toEqual([]);
    });
  },
);

describe.each<DriverName>(['node-postgres', 'postgres.js', 'PGlite', 'mysql2', 'better-sqlite3', 'libsql'])(
  'a change that fails half way, %s',
  (driver) => {
    const opened = openedFor(driver);

    beforeAll(async () => {
      const refuse = {
        pg: sql`create function refuse() returns trigger as $$ begin if new.message_data like '%poison%' then raise exception 'not this one'; end if; return new; end $$ language plpgsql`,
        mysql: sql`create trigger refuse before insert on agent_messages for each row if new.message_data like '%poison%' then signal sqlstate '45000' set message_text = 'not this one'; end if`,
        sqlite: sql`create trigger refuse before insert on agent_messages when new.message_data like '%poison%' begin select raise(abort, 'not this one'); end`,
      };
      await execute(opened, refuse[opened.dialect]);
      if (opened.dialect === 'pg')
        await execute(
          opened,
          sql`create trigger refuse before insert on agent_messages for each row execute function refuse()`,
        );
    });

    it('leaves all as it was: items, operations, and no session that was not there [SESS-263, SESS#51]', async () => {
      const one = new DrizzleSession<object>('one', { db: opened.db });
      await one.addItems(users(3));
      const poison = [user('x'), user('poison')];
      const changes = (session: DrizzleSession<object>): Record<string, () => Promise<unknown> | undefined> => ({
        append: () => session.addItems(poison),
        replace: () => session.replaceHistory(poison),
        'replace under an id': () =>
          session.applyHistoryTransaction?.({
            operationId: 'op',
            transaction: { type: 'replace_suffix', expectedSuffix: [], replacement: poison },
          }),
      });
      for (const [name, change] of Object.entries(changes(one))) {
        await expect(change(), name).rejects.toThrow(/not this one/);
        expect(await one.getItems(), name).toEqual(users(3));
      }
      for (const [name, change] of Object.entries(changes(new DrizzleSession<object>('none', { db: opened.db }))))
        await expect(change(), name).rejects.toThrow(/not this one/);
      expect(await execute(opened, sql`select session_id from agent_sessions`)).toEqual([{ session_id: 'one' }]);
      expect(await execute(opened, sql`select operation_id from agent_session_operations`)).toEqual([]);
    });
  },
);

it('a change over a transaction that the server undid is not made again without it, mysql2 [SESS-263, 264]', async () => {
  const opened = await open('mysql2');
  const other = await open('mysql2', opened.url);
  try {
    await makeTables(opened);
    for (const id of ['one', 'two', 'beside'])
      await new DrizzleSession<object>(id, { db: opened.db }).addItems(users(1));
    let lost: Promise<void> | undefined;
    let code: unknown;
    await transactionOf(other)(async (tx) => {
      const on = { db: tx, dialect: other.dialect };
      // The one that changed less is the one that the server undoes.
      const rows = users(50).map((item) => sql`('beside', ${JSON.stringify(item)})`);
      await execute(on, sql`insert into agent_messages (session_id, message_data) values ${sql.join(rows, sql`, `)}`);
      await execute(on, sql`select 1 from agent_sessions where session_id = 'one' for update`);
      let holds: () => void = () => {};
      const isHeld = new Promise<void>((resolve) => (holds = resolve));
      lost = transactionOf(opened)(async (own) => {
        await new DrizzleSession<object>('two', { db: own }).addItems(users(1, 2));
        holds();
        await new DrizzleSession<object>('one', { db: own })
          .addItems(users(1, 2))
          .catch((error: { code?: unknown }) => {
            code = error.code;
            throw error;
          });
      });
      lost.catch(() => {});
      await isHeld;
      await execute(on, sql`select 1 from agent_sessions where session_id = 'two' for update`);
    });
    await expect(lost).rejects.toBeInstanceOf(Error);
    expect(code).toBe('ER_LOCK_DEADLOCK');
    for (const id of ['one', 'two'])
      expect(await new DrizzleSession<object>(id, { db: opened.db }).getItems()).toEqual(users(1));
  } finally {
    await other.close();
    await opened.close();
  }
});

it('on a pool of one: over the transaction a session works, beside it the wait for the connection ends in time, mysql2 [SESS-264]', async () => {
  const opened = await open('mysql2');
  const client = createPool({ uri: opened.url, connectionLimit: 1 });
  try {
    await makeTables(opened);
    const db = drizzle({ client });
    await db.transaction(async (tx) => {
      const beside = new DrizzleSession<object>('s', { db, operationTimeoutMs: 200 });
      await expect(beside.getItems()).rejects.toThrow('did not answer within 200 ms');
      const over = new DrizzleSession<object>('s', { db: tx });
      await over.addItems(users(2));
      expect(await over.popItem()).toEqual(user('2'));
    });
    expect(await new DrizzleSession<object>('s', { db }).getItems()).toEqual(users(1));
  } finally {
    await client.end();
    await opened.close();
  }
});
