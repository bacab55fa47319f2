import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';

import { Agent, configureLogging, run, toUsage } from '@agents/core';
import { EncryptedSession } from '@agents/core/session';
import { ScriptedModel } from '@agents/core/testing';
import { checkTurnsWithPython, checkWritingBesidePython, pythonForTests } from '@agents/testkit/python';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { SQLiteSession } from '../src/index.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-python-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

const expected = JSON.parse(readFileSync(fixture('python.json'), 'utf8')) as Record<string, object[]>;

function texts(path: string, id: string): string[] {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  const rows = database.prepare('SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id').all(id) as {
    message_data: string;
  }[];
  database.close();
  return rows.map((row) => row.message_data);
}

describe('a file that the Python SDK wrote', () => {
  it.each(Object.keys(expected))('is read as Python reads it: %s [SESS#4, SESS-131, 181, 351]', async (id) => {
    const path = join(folder, `read-${id}.db`);
    copyFileSync(fixture('python.db'), path);
    await using session = new SQLiteSession<object>(id, path);
    expect(await session.getItems()).toEqual(expected[id]);
  });

  it('gets rows of ours that are byte for byte what Python writes for the same items [SESS#4, SESS-131, 351]', async () => {
    const path = join(folder, 'bytes.db');
    copyFileSync(fixture('python.db'), path);
    await using session = new SQLiteSession<object>('ours', path);
    await session.addItems(expected['all-kinds']!);
    expect(texts(path, 'ours')).toEqual(texts(path, 'all-kinds'));
  });

  it('is gone on with by a run [SESS#4, SESS-181]', async () => {
    const path = join(folder, 'run.db');
    copyFileSync(fixture('python.db'), path);
    await using session = new SQLiteSession('all-kinds', path);
    const model = new ScriptedModel(['done']);
    // Python's store may hold kinds that a model takes and our types do not name.
    await run(new Agent({ name: 'A', model }), 'and now?', { session });
    expect(model.calls[0]?.request.input).toEqual([...expected['all-kinds']!, { role: 'user', content: 'and now?' }]);
    expect(await session.getItems()).toHaveLength(expected['all-kinds']!.length + 2);
  });
});

describe('a file that the EncryptedSession of the Python SDK wrote', () => {
  it.each([
    ['raw-key', 'correct horse'],
    ['Grüße-42', `${'A'.repeat(43)}=`],
  ])('is read as Python reads it: %s [SESS#54, SESS-281, SESS-282, SESS-283, SESS-351]', async (id, encryptionKey) => {
    const path = join(folder, `encrypted-${id}.db`);
    copyFileSync(fixture('encrypted.db'), path);
    await using inner = new SQLiteSession<object>(id, path);
    const session = new EncryptedSession<object>(inner, { encryptionKey, ttlMs: null });
    expect(await session.getItems()).toEqual(expected['all-kinds']);
    const later = new EncryptedSession<object>(inner, { encryptionKey, now: () => Date.now() + 601_000 });
    expect(await later.getItems()).toEqual([]);
    expect(await session.popItem()).toEqual(expected['all-kinds']!.at(-1));
  });
});

const onSession = `
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession, EncryptedSession
async def advanced(path, session_id, branch, actions):
    session = AdvancedSQLiteSession(session_id=session_id, db_path=path, create_tables=True)
    answers = []
    try:
        if branch is not None:
            await session.switch_to_branch(branch)
        for action, *arguments in actions:
            try:
                answers.append(await getattr(session, action)(*arguments))
            except ValueError as error:
                answers.append(str(error))
        return answers
    finally:
        session.close()
async def on_session(place, action, argument):
    path, session_id, *keys = place
    if action == "advanced":
        return await advanced(path, session_id, *argument)
    plain = SQLiteSession(session_id, path)
    session = plain if not keys else EncryptedSession(session_id, plain, *keys)
    try:
        return await act(session, action, argument)
    finally:
        plain.close()
`;

describe('the Python SDK on the same file', () => {
  const python = pythonForTests(onSession);
  const on = (path: string, ...key: readonly string[]) => python([path, 's', ...key]);

  it('reads, pops and clears what we wrote, and the other way round [SESS#4, SESS-352]', async () => {
    const path = join(folder, 'live.db');
    await using session = new SQLiteSession<object>('s', path);
    await expect(checkTurnsWithPython(session, on(path))).resolves.toBeUndefined();
    await session.addItems(expected['all-kinds']!);
    expect(await on(path)('get')).toEqual(expected['all-kinds']);
  });

  it('leaves what we remember of operations when it clears: what was stored before is not appended again; our clear takes it along [SESS-354]', async () => {
    const path = join(folder, 'settled.db');
    await using session = new SQLiteSession<object>('s', path);
    const items = expected['all-kinds']!.slice(0, 1);
    const operation = { operationId: 'op', transaction: { type: 'append_items', items } } as const;
    await session.applyHistoryTransaction(operation);
    await on(path)('clear');
    await session.applyHistoryTransaction(operation);
    expect(await on(path)('get')).toEqual([]);
    await session.clearSession();
    await session.applyHistoryTransaction(operation);
    expect(await on(path)('get')).toEqual(items);
  });

  it('reads and pops what our EncryptedSession wrote, and the other way round [SESS-281, SESS-283, SESS-352]', async () => {
    const path = join(folder, 'live-encrypted.db');
    const key = 'correct horse';
    await using inner = new SQLiteSession<object>('s', path);
    const session = new EncryptedSession<object>(inner, { encryptionKey: key });
    await expect(checkTurnsWithPython(session, on(path, key))).resolves.toBeUndefined();
  });

  it('has the same branches, tool names and usage as we do, on one file [SESS#65, SESS#92, SESS-203, SESS-205, SESS-208]', async () => {
    const path = join(folder, 'branches.db');
    const advanced = async (branch: string | null, ...actions: readonly (readonly unknown[])[]) =>
      (await on(path)('advanced', [branch, actions])) as unknown[];
    const user = (content: string) => ({ role: 'user', content });
    await using main = new SQLiteSession<object>('s', path);
    // Two turns of ours, a third one of Python.
    await main.addItems([user('1'), { type: 'shell_call', call_id: 'c' }]);
    await main.addItems([
      user('2'),
      { type: 'function_call', name: 'f', namespace: 'n', call_id: 'd', arguments: '{}' },
    ]);
    await using branch = main.branch('ours', { fromTurn: 2 });
    await branch.addItems([user('other')]);
    await main.addUsage(toUsage({ inputTokens: 7, outputTokens: 2, totalTokens: 9 }));
    const [items, turns, tools, usage, branches] = await advanced(
      null,
      ['get_items'],
      ['get_conversation_turns'],
      ['get_tool_usage'],
      ['get_session_usage'],
      ['list_branches'],
    );
    expect(items).toEqual(await main.getItems());
    expect((turns as { turn: number }[]).map((one) => one.turn)).toEqual([1, 2]);
    expect(tools).toEqual([
      ['shell_call', 1, 1],
      ['n.f', 1, 2],
    ]);
    expect(usage).toMatchObject({ requests: 1, input_tokens: 7, total_tokens: 9, total_turns: 1 });
    expect(
      (branches as { branch_id: string; message_count: number }[]).map((one) => [one.branch_id, one.message_count]),
    ).toEqual(
      expect.arrayContaining([
        ['main', 4],
        ['ours', 3],
      ]),
    );
    // Python goes on with our branch, makes its own, and may not use an id of ours again.
    const [, inBranch, made, taken] = await advanced(
      'ours',
      ['add_items', [user('python')]],
      ['get_items'],
      ['create_branch_from_turn', 2, 'theirs'],
      ['create_branch_from_turn', 1, 'ours'],
    );
    expect(inBranch).toEqual(await branch.getItems());
    expect([made, taken]).toEqual(['theirs', expect.stringContaining('already been used')]);
    expect(
      await main
        .branch('theirs', { fromTurn: 1 })
        .getItems()
        .catch((error: Error) => error.message),
    ).toMatch(/used before/);
    // Pops of both take what is theirs alone; shared rows stay.
    expect(await advanced('ours', ['pop_item'], ['pop_item'], ['pop_item'])).toEqual([
      user('python'),
      user('other'),
      { type: 'shell_call', call_id: 'c' },
    ]);
    expect(await branch.getItems()).toEqual([user('1')]);
    expect(await main.getItems()).toHaveLength(4);
    // A clear in Python puts our objects on main, and one of ours its.
    await advanced(null, ['clear_session']);
    expect(await branch.getItems()).toEqual([]);
    expect(branch.branchId).toBe('main');
    await main.addItems([user('new')]);
    expect(await advanced(null, ['get_items'], ['get_session_usage'])).toEqual([[user('new')], null]);
  });

  it('writes beside us without a lost item or a split batch [SESS-187, 352]', async () => {
    const path = join(folder, 'beside.db');
    await using one = new SQLiteSession<object>('s', path);
    await using two = new SQLiteSession<object>('s', path);
    await expect(checkWritingBesidePython({ one, two }, on(path))).resolves.toBeUndefined();
  });
});
