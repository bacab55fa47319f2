import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { Agent, configureLogging, run } from '@agents/core';
import { ScriptedModel } from '@agents/core/testing';
import { sql } from 'drizzle-orm/sql/sql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { makeTables } from './support/tables.ts';

/**
 * `python3 -m venv .cache/python && .cache/python/bin/pip install 'openai-agents[sqlalchemy]==0.24.0' asyncpg aiosqlite
 * aiomysql`, in the root of the repository.
 */
const python = fileURLToPath(new URL('../../../.cache/python/bin/python', import.meta.url));
const hasPython = existsSync(python);
if (!hasPython) console.warn('No Python SDK in .cache/python: running it side by side is not tested.');

/** Takes commands as lines of JSON and answers each with one. */
const script = `
import asyncio, json, os, sys
from agents.extensions.memory import SQLAlchemySession
async def do(session, action, argument):
    if action == "add":
        await session.add_items(argument)
    elif action == "pop":
        return await session.pop_item()
    elif action == "clear":
        await session.clear_session()
    elif action == "write":
        for batch in range(50):
            await session.add_items([{"role": "user", "content": f"{argument}/{batch}/{index}"} for index in range(3)])
    return await session.get_items()
async def main():
    sessions = {}
    for line in iter(sys.stdin.readline, ""):
        url, session_id, action, argument = json.loads(line)
        key = (url, session_id)
        if key not in sessions:
            sessions[key] = SQLAlchemySession.from_url(session_id, url=url, create_tables="aiomysql" not in url)
        print(json.dumps(await do(sessions[key], action, argument)), flush=True)
asyncio.run(main())
# Without the farewell of connections that are still open.
sys.stdout.flush()
os._exit(0)
`;

const items: readonly object[] = [
  { role: 'user', content: 'Grüße 😀 漢字 "quoted" \\ / \u007f \u2028 tab\t' },
  { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'thinking' }] },
  { type: 'function_call', call_id: 'call_1', name: 'refund', arguments: '{"id": "7"}' },
  { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  { type: 'numbers', values: [0, -1, 0.1, 1e-7, 1.5e300, 9007199254740991] },
];

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

/** Python cannot make its tables on MySQL; it works on those that we made. */
describe.each<DriverName>(hasPython ? ['node-postgres', 'mysql2', 'better-sqlite3'] : [])(
  'the Python SDK on the same tables, %s',
  (driver) => {
    let opened: Opened;
    let ask: (id: string, action: string, argument?: unknown) => Promise<unknown>;
    const child = spawn(python, ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
    beforeAll(async () => {
      opened = await open(driver);
      const url =
        opened.dialect === 'sqlite'
          ? `sqlite+aiosqlite:///${opened.url}`
          : opened.url.replace(/^\w+:/, opened.dialect === 'pg' ? 'postgresql+asyncpg:' : 'mysql+aiomysql:');
      const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
      ask = async (id, action, argument = null) => {
        child.stdin.write(`${JSON.stringify([url, id, action, argument])}\n`);
        const { value } = (await answers.next()) as { value?: string };
        return JSON.parse(value ?? 'null') as unknown;
      };
      if (opened.dialect === 'mysql') await makeTables(opened);
    }, 60_000);
    afterAll(async () => {
      child.stdin.end();
      await new Promise((resolve) => child.once('exit', resolve));
      await opened?.close();
    });

    it(
      'is gone on with where Python began, and takes what is missing [SESS#6, SESS-267, 351, 352]',
      { timeout: 180_000 },
      async () => {
        await ask('live', 'add', items);
        const bare = new DrizzleSession<object>('live', { db: opened.db });
        expect(await bare.getItems()).toEqual(items);
        expect(bare.applyHistoryTransaction === undefined).toBe(opened.dialect !== 'mysql');
        // A migration adds ours.
        await makeTables(opened);
        const session = new DrizzleSession<object>('live', { db: opened.db });
        expect(await session.popItem()).toEqual(items.at(-1));
        await session.addItems(items.slice(-1));
        expect(await ask('live', 'get')).toEqual(items);
        expect(await ask('live', 'pop')).toEqual(items.at(-1));
        await ask('live', 'add', items.slice(-1));
        expect(await session.getItems()).toEqual(items);
        await ask('live', 'clear');
        expect(await session.getItems()).toEqual([]);
        await session.applyHistoryTransaction?.({ operationId: 'op', transaction: { type: 'append_items', items } });
        expect(await ask('live', 'get')).toEqual(items);
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
      const write = async (name: string): Promise<void> => {
        const session = new DrizzleSession<object>('shared', { db: opened.db });
        for (let batch = 0; batch < 50; batch++)
          await session.addItems([0, 1, 2].map((index) => ({ role: 'user', content: `${name}/${batch}/${index}` })));
      };
      await Promise.all([ask('shared', 'write', 'python'), write('ours-1'), write('ours-2')]);
      const session = new DrizzleSession<{ content: string }>('shared', { db: opened.db });
      const contents = (await session.getItems()).map(({ content }) => content);
      expect(contents).toHaveLength(450);
      expect(new Set(contents).size).toBe(450);
      for (const name of ['ours-1', 'ours-2', 'python']) {
        const own = contents.filter((content) => content.startsWith(name));
        expect(own).toEqual(Array.from({ length: 150 }, (_, index) => `${name}/${Math.floor(index / 3)}/${index % 3}`));
      }
      expect(await ask('shared', 'get')).toEqual(await session.getItems());
      const popped = await Promise.all([
        ask('shared', 'pop'),
        session.popItem(),
        ask('shared', 'pop'),
        session.popItem(),
      ]);
      expect(new Set(popped.map((item) => (item as { content: string }).content)).size).toBe(4);
    });
  },
);
