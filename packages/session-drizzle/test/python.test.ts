import { Agent, configureLogging, run } from '@agents/core';
import { ScriptedModel } from '@agents/core/testing';
import {
  checkTurnsWithPython,
  checkWritingBesidePython,
  pythonItems as items,
  startPython,
} from '@agents/testkit/python';
import type { PythonAction, PythonSessions } from '@agents/testkit/python';
import { sql } from 'drizzle-orm/sql/sql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { makeTables } from './support/tables.ts';

const onSession = `
from agents.extensions.memory import SQLAlchemySession
sessions = {}
async def on_session(place, action, argument):
    url, session_id = place
    if session_id not in sessions:
        # It cannot make its tables on MySQL; it works on those that we made.
        sessions[session_id] = SQLAlchemySession.from_url(session_id, url=url, create_tables="aiomysql" not in url)
    return await act(sessions[session_id], action, argument)
`;

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

describe.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])(
  'the Python SDK on the same tables, %s',
  (driver) => {
    let opened: Opened;
    let python: PythonSessions;
    let url: string;
    beforeAll(async () => {
      opened = await open(driver);
      url =
        opened.dialect === 'sqlite'
          ? `sqlite+aiosqlite:///${opened.url}`
          : opened.url.replace(/^\w+:/, opened.dialect === 'pg' ? 'postgresql+asyncpg:' : 'mysql+aiomysql:');
      python = await startPython(onSession);
      if (opened.dialect === 'mysql') await makeTables(opened);
    }, 60_000);
    afterAll(async () => {
      await python?.end();
      await opened?.close();
    });
    const on = (id: string) => (action: PythonAction, argument?: unknown) => python.ask([url, id], action, argument);
    const ask = (id: string, action: PythonAction, argument?: unknown) => on(id)(action, argument);

    it(
      'is gone on with where Python began, and takes what is missing [SESS#6, SESS-267, 351, 352, 354]',
      { timeout: 180_000 },
      async () => {
        await ask('live', 'add', items);
        const bare = new DrizzleSession<object>('live', { db: opened.db });
        expect(await bare.getItems()).toEqual(items);
        expect(bare.applyHistoryTransaction === undefined).toBe(opened.dialect !== 'mysql');
        // A migration adds ours.
        await makeTables(opened);
        const session = new DrizzleSession<object>('live', { db: opened.db });
        await session.clearSession();
        await expect(checkTurnsWithPython(session, on('live'))).resolves.toBeUndefined();
        await session.applyHistoryTransaction?.({ operationId: 'op', transaction: { type: 'append_items', items } });
        expect(await ask('live', 'get')).toEqual(items);
        // Python's clear takes what we remember of operations along, but for SQLite: what is settled then is appended.
        await ask('live', 'clear');
        await session.applyHistoryTransaction?.({ operationId: 'op', transaction: { type: 'append_items', items } });
        expect(await ask('live', 'get')).toEqual(opened.dialect === 'sqlite' ? [] : items);
        await session.clearSession();
        expect(await ask('live', 'get')).toEqual([]);
      },
    );

    it('gets the same text for the same items [SESS-131, 351]', async () => {
      await ask('theirs', 'add', items);
      await new DrizzleSession<object>('ours', { db: opened.db }).addItems(items);
      const texts = async (id: string): Promise<unknown[]> =>
        (
          await execute(
            opened,
            sql`select message_data as text from agent_messages where session_id = ${id} order by id`,
          )
        ).map(({ text }) => text);
      expect(await texts('ours')).toEqual(await texts('theirs'));
    });

    it('runs go on from each other [SESS#6]', async () => {
      await ask('run', 'add', [{ role: 'user', content: 'first' }]);
      const model = new ScriptedModel(['second', 'fourth']);
      const agent = new Agent({ name: 'A', model });
      const session = new DrizzleSession('run', { db: opened.db });
      await run(agent, 'and?', { session });
      await ask('run', 'add', [{ role: 'user', content: 'third' }]);
      await run(agent, 'and now?', { session });
      expect(await ask('run', 'get')).toEqual(await session.getItems());
      expect(await session.getItems()).toHaveLength(6);
      expect(model.calls[1]?.request.input).toHaveLength(5);
    });

    it('writes beside us without a lost item or a split batch [SESS-261, 352]', { timeout: 120_000 }, async () => {
      const session = new DrizzleSession<object>('shared', { db: opened.db });
      const ours = { one: session, two: new DrizzleSession<object>('shared', { db: opened.db }) };
      // Python's rows of one batch may get different times.
      await expect(checkWritingBesidePython(ours, on('shared'), { batchesTogether: false })).resolves.toBeUndefined();
    });
  },
);
