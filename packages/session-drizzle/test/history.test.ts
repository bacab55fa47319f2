// What a history promises to the session over it, statement by statement: what the contract, which sees sessions, cannot see.
import { configureLogging } from '@agents/core';
import type { HistoryWrite } from '@agents/core/session';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { DrizzleHistory } from '../src/history.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { historyOf, read, text, textsOf } from './support/history.ts';
import { openedFor } from './support/opened.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

describe.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])('history on %s', (driver) => {
  const opened = openedFor(driver);
  let ids = 0;
  const make = (): { readonly id: string; readonly history: DrizzleHistory } => {
    const id = `h${++ids}`;
    return { id, history: historyOf(opened.db, id) };
  };

  it('reads as many records as it is asked for, and no more [SESS-160]', async () => {
    const { history } = make();
    await history.write({ type: 'append', texts: textsOf(5) });
    for (const count of [1, 2, 5]) expect(await read(history, count)).toEqual(textsOf(count, 6 - count));
    expect(await read(history, 9)).toEqual(textsOf(5));
  });

  it('tells a repeated append the version of its first time, also one of no items [SESS-034, 037]', async () => {
    const { history } = make();
    await history.write({ type: 'append', texts: textsOf(2) });
    const append = async (id: string, texts: readonly string[]): Promise<string> =>
      await history.write({ type: 'append', texts, operation: { id, digest: id } });
    const first = await append('two', textsOf(2, 3));
    expect(first).toBe((await history.read(0)).version);
    expect(await history.write({ type: 'append', texts: [] })).toBe(first);
    const second = await append('none', []);
    expect(second).toBe((await history.read(0)).version);
    await history.write({ type: 'append', texts: textsOf(1, 5) });
    expect([await append('two', textsOf(2, 3)), await append('none', [])]).toEqual([first, second]);
    expect(await read(history)).toEqual(textsOf(5));
  });

  it('takes the greatest id of equal stamps for the newest, wherever its row lies [SESS-003, 010, 261]', async () => {
    const { id, history } = make();
    await history.write({ type: 'append', texts: textsOf(1) });
    const far = 900_000 + ids * 10;
    for (const offset of [3, 1, 2])
      await execute(
        opened,
        sql`insert into agent_messages (id, session_id, message_data, created_at)
          select ${far + offset}, session_id, ${text(1 + offset)}, updated_at from agent_sessions where session_id = ${id}`,
      );
    expect(await read(history)).toEqual(textsOf(4));
    expect(await read(history, 2)).toEqual(textsOf(2, 3));
    expect((await history.read(0)).version).toBe((await history.read(undefined)).version);
    expect((await history.pop())?.text).toBe(text(4));
    await history.write({ type: 'replace_suffix', expected: textsOf(1, 3), texts: [] });
    expect(await read(history)).toEqual(textsOf(2));
  });

  it('has removed nothing when a clear fails at its last statement [SESS-011, 266]', async () => {
    const { id, history } = make();
    await history.write({ type: 'append', texts: textsOf(2), operation: { id: 'op', digest: 'd' } });
    const name = sql.raw(`keep_${id}`);
    const quoted = sql.raw(`'${id}'`);
    const kept: Readonly<Record<Opened['dialect'], readonly SQL[]>> = {
      pg: [
        sql`create function ${name}() returns trigger as $$ begin if old.session_id = ${quoted} then raise exception 'kept'; end if; return old; end $$ language plpgsql`,
        sql`create trigger ${name} before delete on agent_sessions for each row execute function ${name}()`,
      ],
      mysql: [
        sql`create trigger ${name} before delete on agent_sessions for each row if old.session_id = ${quoted} then signal sqlstate '45000' set message_text = 'kept'; end if`,
      ],
      sqlite: [
        sql`create trigger ${name} before delete on agent_sessions when old.session_id = ${quoted} begin select raise(abort, 'kept'); end`,
      ],
    };
    for (const statement of kept[opened.dialect]) await execute(opened, statement);
    await expect(history.clear()).rejects.toThrow('kept');
    expect(await read(history)).toEqual(textsOf(2));
    // Its operation, too.
    await history.write({ type: 'append', texts: textsOf(2), operation: { id: 'op', digest: 'd' } });
    expect(await read(history)).toEqual(textsOf(2));
    await execute(
      opened,
      opened.dialect === 'pg' ? sql`drop trigger ${name} on agent_sessions` : sql`drop trigger ${name}`,
    );
  });

  it('has changed nothing when a change fails at its last statement [SESS-006, 034]', async () => {
    const { id, history } = make();
    await history.write({ type: 'append', texts: textsOf(3) });
    const before = await history.read(undefined);
    const name = sql.raw(`poisoned_${id}`);
    const refused: Readonly<Record<Opened['dialect'], readonly SQL[]>> = {
      pg: [
        sql`create function ${name}() returns trigger as $$ begin if new.operation_id = 'poison' then raise exception 'refused'; end if; return new; end $$ language plpgsql`,
        sql`create trigger ${name} before insert on agent_session_operations for each row execute function ${name}()`,
      ],
      mysql: [
        sql`create trigger ${name} before insert on agent_session_operations for each row if new.operation_id = 'poison' then signal sqlstate '45000' set message_text = 'refused'; end if`,
      ],
      sqlite: [
        sql`create trigger ${name} before insert on agent_session_operations when new.operation_id = 'poison' begin select raise(abort, 'refused'); end`,
      ],
    };
    for (const statement of refused[opened.dialect]) await execute(opened, statement);
    const operation = { id: 'poison', digest: 'd' };
    const writes: readonly HistoryWrite[] = [
      { type: 'append', texts: textsOf(2, 4), operation },
      { type: 'append', texts: textsOf(2, 4), operation, ifVersion: before.version },
      { type: 'replace', texts: textsOf(2, 4), operation },
      { type: 'replace_suffix', expected: textsOf(1, 3), texts: textsOf(2, 4), operation },
    ];
    for (const write of writes) {
      await expect(history.write(write)).rejects.toThrow('refused');
      expect(await history.read(undefined)).toEqual(before);
    }
  });

  it('forgets operations of more than a day beyond the last 64, and of its session alone [SESS-034]', async () => {
    const days = (count: number): SQL => {
      const parts = { pg: `now() - interval '${count} days'`, mysql: `now(6) - interval ${count} day` };
      return sql.raw(opened.dialect === 'sqlite' ? `datetime('now', '-${count} days')` : parts[opened.dialect]);
    };
    const remember = async (id: string, count: number, age: SQL, name: string): Promise<void> => {
      const rows = Array.from({ length: count }, (_, index) => sql`(${id}, ${`${name}${index}`}, 'd', '0', ${age})`);
      await execute(
        opened,
        sql`insert into agent_session_operations (session_id, operation_id, digest, result, created_at) values ${sql.join(rows, sql`, `)}`,
      );
    };
    const remembered = async (id: string): Promise<Record<string, number>> => {
      const found = await execute(
        opened,
        sql`select operation_id as id from agent_session_operations where session_id = ${id}`,
      );
      const counts: Record<string, number> = {};
      for (const row of found) {
        const name = String(row['id']).replace(/\d+$/, '');
        counts[name] = (counts[name] ?? 0) + 1;
      }
      return counts;
    };
    const [busy, idle, other] = [make(), make(), make()];
    for (const { history } of [busy, idle, other]) await history.write({ type: 'append', texts: textsOf(1) });
    await remember(busy.id, 10, days(3), 'old');
    await remember(busy.id, 70, days(0), 'fresh');
    await remember(idle.id, 10, days(4), 'oldest');
    await remember(idle.id, 63, days(3), 'old');
    await remember(other.id, 70, days(2), 'old');
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    for (const { history } of [busy, idle])
      await history.write({ type: 'append', texts: [], operation: { id: 'now', digest: 'd' } });
    random.mockRestore();
    expect(await remembered(busy.id)).toEqual({ fresh: 70, now: 1 });
    expect(await remembered(idle.id)).toEqual({ old: 63, now: 1 });
    expect(await remembered(other.id)).toEqual({ old: 70 });
  });

  it('leaves the time of the last use where a change is upkeep [SESS-374]', async () => {
    const { id, history } = make();
    await history.write({ type: 'append', texts: textsOf(4) });
    const past = {
      pg: sql`updated_at - interval '1 hour'`,
      mysql: sql`updated_at - interval 1 hour`,
      sqlite: sql`datetime(updated_at, '-1 hour')`,
    };
    await execute(opened, sql`update agent_sessions set updated_at = ${past[opened.dialect]} where session_id = ${id}`);
    const used = async (): Promise<string> => {
      const kind = opened.dialect === 'sqlite' ? sql`text` : opened.dialect === 'mysql' ? sql`char` : sql`varchar`;
      const [row] = await execute(
        opened,
        sql`select cast(updated_at as ${kind}) as used from agent_sessions where session_id = ${id}`,
      );
      return String(row?.['used']);
    };
    const before = await used();
    const version = await history.write({ type: 'replace', texts: textsOf(2, 3), upkeep: true });
    expect(await used()).toBe(before);
    expect(await history.read(undefined)).toMatchObject({ version, records: textsOf(2, 3).map((t) => ({ text: t })) });
  });
});
