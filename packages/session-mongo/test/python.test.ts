import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { freshName, mongoUrl, raw } from './mongo.ts';

/** `python3 -m venv .cache/python && .cache/python/bin/pip install openai-agents==0.24.0 pymongo`, in the root of the repository. */
const python = fileURLToPath(new URL('../../../.cache/python/bin/python', import.meta.url));
const isThere = existsSync(python);
if (!isThere) console.warn('No Python SDK in .cache/python: running it side by side is not tested.');

/** Takes commands as lines of JSON and answers each with one. */
const script = `
import asyncio, json, sys
from agents.extensions.memory import MongoDBSession
from pymongo.asynchronous.mongo_client import AsyncMongoClient
async def main(url):
    client = AsyncMongoClient(url)
    for line in iter(sys.stdin.readline, ""):
        database, session_id, action, *rest = json.loads(line)
        session = MongoDBSession(session_id, client=client, database=database)
        answer = None
        if action == "add":
            await session.add_items(rest[0])
        elif action == "pop":
            answer = await session.pop_item()
        elif action == "clear":
            await session.clear_session()
        elif action == "write":
            for batch in range(50):
                await session.add_items([{"role": "user", "content": f"{rest[0]}/{batch}/{index}"} for index in range(3)])
        else:
            answer = await session.get_items()
        print(json.dumps(answer), flush=True)
asyncio.run(main(sys.argv[1]))
`;

const items = [
  { role: 'user', content: 'Grüße 😀 漢字 "quoted" \\ / \u007f \u2028 tab\t' },
  { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'thinking' }], encrypted_content: 'gAAAA' },
  {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'refund',
    arguments: '{"id": "7"}',
    status: 'completed',
  },
  { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  { type: 'numbers', values: [0, -1, 0.1, 1e-7, 1.5e300, 9007199254740991], nothing: null },
];
const user = (content: string): object => ({ role: 'user', content });

describe.each(isThere ? [python] : [])('the Python SDK on the same collections', () => {
  let client: MongoClient;
  let database: string;
  let child: ReturnType<typeof start>;
  const start = () => {
    const process = spawn(python, ['-c', script, mongoUrl()], { stdio: ['pipe', 'pipe', 'inherit'] });
    const answers = createInterface(process.stdout)[Symbol.asyncIterator]();
    return {
      end: () => process.stdin.end(),
      async ask(...command: readonly unknown[]): Promise<unknown> {
        process.stdin.write(`${JSON.stringify(command)}\n`);
        const { value } = (await answers.next()) as { value?: string };
        return JSON.parse(value ?? 'null') as unknown;
      },
    };
  };
  const inPython = (...command: readonly unknown[]): Promise<unknown> => child.ask(database, 's', ...command);
  const ours = (): MongoDBSession<object> => new MongoDBSession<object>('s', { client, database });

  beforeAll(() => {
    client = new MongoClient(mongoUrl());
    child = start();
  });
  afterAll(async () => {
    child.end();
    await client.close();
  });
  beforeEach(() => (database = freshName()));
  afterEach(() => client.db(database).dropDatabase());

  it('reads, pops and clears what we wrote, and the other way round [SESS#41, SESS-242, 352]', async () => {
    const session = ours();
    await session.addItems(items);
    expect(await inPython('get')).toEqual(items);
    expect(await inPython('pop')).toEqual(items.at(-1));
    expect(await session.getItems()).toEqual(items.slice(0, -1));
    await inPython('add', items.slice(-1));
    expect(await session.popItem()).toEqual(items.at(-1));
    await inPython('add', [user('again')]);
    expect(await session.getItems(2)).toEqual([...items.slice(-2, -1), user('again')]);
    await inPython('clear');
    expect(await session.getItems()).toEqual([]);
    await session.addItems([user('1')]);
    await session.clearSession();
    await session.addItems([user('2')]);
    expect(await inPython('get')).toEqual([user('2')]);
    await inPython('clear');
    await inPython('add', [user('3')]);
    expect(await session.getItems()).toEqual([user('3')]);
  });

  it('writes the same text for the same items, and shares its indexes [SESS-131, 249, 351]', async () => {
    await inPython('add', items);
    await ours().addItems(items);
    const [theirs, our] = await raw(client, database).messages.find().sort({ seq: 1 }).toArray();
    expect(our?.message_data).toEqual(theirs?.message_data);
    for (const collection of [raw(client, database).sessions, raw(client, database).messages])
      expect(await collection.indexes()).toHaveLength(2);
  });

  it('sees a history that we replaced, and goes on with it, past 32 bits too [SESS-242, 247]', async () => {
    const session = ours();
    await session.addItems(items);
    for (const content of ['a', 'b', 'c', 'd']) await session.replaceHistory([user(content), user('end')]);
    const found = await raw(client, database).sessions.findOne();
    expect(Number(found?._generation)).toBeGreaterThan(2 ** 31);
    expect(await inPython('get')).toEqual([user('d'), user('end')]);
    await inPython('add', [user('theirs')]);
    expect(await inPython('pop')).toEqual(user('theirs'));
    expect(await inPython('pop')).toEqual(user('end'));
    await inPython('add', [user('theirs')]);
    expect(await session.getItems()).toEqual([user('d'), user('theirs')]);
    await session.replaceHistory([]);
    expect(await inPython('get')).toEqual([]);
  });

  it('sees no batch that was emptied, and keeps what we remember of operations [SESS-034, 245]', async () => {
    const session = ours();
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: [user('1')] } } as const;
    await session.applyHistoryTransaction(operation);
    await session.popItem();
    expect(await inPython('get')).toEqual([]);
    expect(await inPython('pop')).toBeNull();
    await session.applyHistoryTransaction(operation);
    expect(await inPython('get')).toEqual([]);
  });

  it('writes beside us without a lost item or a split batch [SESS-352]', async () => {
    const session = ours();
    await Promise.all([
      inPython('write', 'python'),
      (async () => {
        for (let batch = 0; batch < 50; batch++)
          await session.addItems([0, 1, 2].map((index) => user(`ours/${batch}/${index}`)));
      })(),
    ]);
    const contents = ((await session.getItems()) as { content: string }[]).map(({ content }) => content);
    expect(contents).toHaveLength(300);
    for (let at = 0; at < 300; at += 3) {
      const batch = contents[at]!.replace(/\/\d+$/, '');
      expect(contents.slice(at, at + 3)).toEqual([`${batch}/0`, `${batch}/1`, `${batch}/2`]);
    }
    expect(await inPython('get')).toEqual(await session.getItems());
  });
});
