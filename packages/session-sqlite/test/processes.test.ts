import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { startProcess } from '@agents/testkit';
import { afterAll, expect, it } from 'vitest';

import { SQLiteSession } from '../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-processes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const user = (content: string) => ({ role: 'user', content });
const script = (name: string): URL => new URL(`processes/${name}.ts`, import.meta.url);

async function contents(path: string, id = 'shared'): Promise<string[]> {
  await using session = new SQLiteSession<{ content: string }>(id, path);
  return (await session.getItems()).map((item) => item.content);
}

/** Every batch whole, contiguous and in order; resolves to its names. */
function batchesOf(items: readonly string[], size: number): string[] {
  expect(items.length % size).toBe(0);
  const names: string[] = [];
  for (let at = 0; at < items.length; at += size) {
    const name = items[at]!.replace(/\/\d+$/, '');
    expect(items.slice(at, at + size)).toEqual(Array.from({ length: size }, (_, index) => `${name}/${index}`));
    names.push(name);
  }
  return names;
}

/** Writers that begin at the same moment. */
async function writers(
  paths: readonly string[],
  names: readonly string[],
  batches: number,
  size: number,
): Promise<void> {
  const children = names.map((name) => startProcess(script('append'), paths.join(','), 'shared', name, batches, size));
  await Promise.all(children.map((child) => child.line(1)));
  for (const child of children) child.process.stdin.write('go\n');
  expect(await Promise.all(children.map((child) => child.ended))).toEqual(names.map(() => 0));
}

it(
  'is one conversation for agents that several processes run on it at once [SESS-006, 012, 081, 187]',
  { timeout: 60_000 },
  async () => {
    const path = join(folder, 'agents.db');
    const names = ['a', 'b', 'c'];
    const children = names.map((name) => startProcess(script('agent'), path, 'shared', name, 4));
    await Promise.all(children.map((child) => child.line(1)));
    for (const child of children) child.process.stdin.write('go\n');
    expect(await Promise.all(children.map((child) => child.ended))).toEqual(names.map(() => 0));
    await using session = new SQLiteSession<{ type?: string; role?: string; call_id?: string }>('shared', path);
    const items = await session.getItems();
    // Turns stand in between one another, and none of them is parted.
    expect(items).toHaveLength(3 * 4 * 6);
    const calls = items
      .flatMap(({ type }, index) => (type === 'function_call' ? [index] : []))
      .filter((_, n) => n % 2 === 0);
    for (const at of calls) {
      const turn = items.slice(at, at + 4);
      expect(turn.map(({ type }) => type).join(' ')).toMatch(/^(function_call ){2}(function_call_output ?){2}$/);
      expect(new Set(turn.map(({ call_id: id }) => id?.slice(0, -1))).size).toBe(1);
    }
    expect(items.filter(({ role }) => role === 'user')).toHaveLength(12);
  },
);

it(
  'takes batches of several processes without losing or splitting one [SESS#7, SESS-006, 183, 187, IL-013]',
  { timeout: 60_000 },
  async () => {
    const path = join(folder, 'writers.db');
    await writers([path], ['a', 'b'], 100, 3);
    const batches = batchesOf(await contents(path), 3);
    expect(batches).toHaveLength(200);
    // In the order of each writer.
    for (const name of ['a', 'b']) {
      expect(batches.filter((batch) => batch.startsWith(name))).toEqual(
        Array.from({ length: 100 }, (_, index) => `${name}/${index}`),
      );
    }
  },
);

it('lets several processes make fresh files at once [SESS-181, 182, IL-008, IL-012]', { timeout: 60_000 }, async () => {
  const paths = Array.from({ length: 20 }, (_, index) => join(folder, `fresh-${index}.db`));
  await writers(paths, ['a', 'b', 'c'], 1, 2);
  for (const path of paths) expect(batchesOf(await contents(path), 2).sort()).toEqual(['a/0', 'b/0', 'c/0']);
});

it(
  'lets the event loop go on while another process holds the lock, and appends once it is free [SESS#8, SESS-183]',
  { timeout: 60_000 },
  async () => {
    const path = join(folder, 'locked.db');
    await using session = new SQLiteSession<object>('s', path);
    await session.addItems([user('1')]);
    const holder = startProcess(script('lock'), path);
    await holder.line(1);
    let settled = false;
    const appended = session.addItems([user('2')]).finally(() => {
      settled = true;
    });
    for (let tick = 0; tick < 50; tick++) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(settled).toBe(false);
    // A reader is not held up by a writer.
    await using reader = new SQLiteSession<object>('s', path);
    expect(await reader.getItems()).toEqual([user('1')]);
    holder.process.stdin.end();
    await appended;
    expect(await session.getItems()).toEqual([user('1'), user('2')]);
    expect(await holder.ended).toBe(0);
  },
);

it(
  'loses no acknowledged batch and leaves no part of one when the process is killed at any moment [SESS#12, SESS-189]',
  { timeout: 120_000 },
  async () => {
    const path = join(folder, 'killed.db');
    const acknowledged: string[] = [];
    for (let round = 0; round < 5; round++) {
      const writer = startProcess(script('append'), path, 'shared', `w${round}`, '1000000', '5');
      await writer.line(1);
      writer.process.stdin.write('go\n');
      await writer.line(2);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
      writer.process.kill('SIGKILL');
      expect(await writer.ended).toBe('SIGKILL');
      acknowledged.push(
        ...writer
          .lines()
          .slice(1)
          .map((batch) => `w${round}/${batch}`),
      );
      const stored = batchesOf(await contents(path), 5);
      const names = new Set(stored);
      expect(acknowledged.filter((batch) => !names.has(batch))).toEqual([]);
      // At most the batch that was in flight came on top.
      expect(stored.length - acknowledged.length).toBeLessThanOrEqual(round + 1);
    }
    const database = new DatabaseSync(path);
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    database.close();
  },
);

it.each([
  ['before', 'COMMIT', 0],
  ['after', 'COMMIT', 3],
  ['after', 'INSERT INTO "agent_messages"', 0],
])(
  'is killed %s %s: the batch has %i items [SESS#12, SESS-189]',
  { timeout: 60_000 },
  async (when, statement, count) => {
    const path = join(folder, `die-${when}-${count}-${statement.length}.db`);
    await using session = new SQLiteSession<object>('s', path);
    await session.addItems([user('before')]);
    const dying = startProcess(script('die'), path, 's', statement, when);
    expect(await dying.ended).toBe('SIGKILL');
    expect(await session.getItems()).toHaveLength(1 + count);
    // No repair is needed to go on.
    await session.addItems([user('after')]);
    expect((await session.getItems()).at(-1)).toEqual(user('after'));
  },
);

it('lets a process end that did not close its sessions, whether calls succeeded or gave up [SESS-157]', async () => {
  const child = startProcess(script('linger'), join(folder, 'linger.db'));
  child.process.stdin.end();
  expect(await child.ended).toBe(0);
  expect(child.lines()).toEqual(['SessionBusyError']);
});
