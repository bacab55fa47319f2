import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { configureLogging } from '../base/logger.ts';
import { decodeItem } from '../sessions/codec.ts';
import { sessionContract } from '../testing/contracts/session.ts';
import type { SessionFixture } from '../testing/contracts/session.ts';
import { FileSession } from './index.ts';

const root = mkdtempSync(join(tmpdir(), 'file-session-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => configureLogging({ level: 'warn' }));
let folders = 0;
const freshDir = (): string => join(root, String(++folders));
const user = (content: string) => ({ role: 'user', content });
const fileOf = (dir: string, id: string): string => join(dir, `${Buffer.from(id).toString('base64url')}.ndjson`);

/** The end becomes one item, `new`. */
async function replaceEnd(session: FileSession<object>, expectedSuffix: object[]): Promise<void> {
  await session.applyHistoryTransaction({
    operationId: `${Math.random()}`,
    transaction: { type: 'replace_suffix', expectedSuffix, replacement: [user('new')] },
  });
}

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract [SESS-322, SESS-342]', () => {
  const make = (): SessionFixture => {
    const dir = freshDir();
    return {
      open: (id, options) => new FileSession<object>(id, { dir, ...options }),
      async addCorrupt(id, record) {
        const session = new FileSession<object>(id, { dir });
        if (!existsSync(fileOf(dir, id))) await session.addItems([user('x')]).then(() => session.popItem());
        const { v } = JSON.parse(readFileSync(fileOf(dir, id), 'utf8').trim().split('\n').at(-1)!) as { v: string };
        const [epoch, count] = v.split(':');
        appendFileSync(
          fileOf(dir, id),
          `${JSON.stringify({ v: `${epoch}:${Number(count) + 1}`, at: 0, items: [record] })}\n`,
        );
      },
      readCorrupt: (id) =>
        readFileSync(fileOf(dir, id), 'utf8')
          .trim()
          .split('\n')
          .slice(1)
          .flatMap((line) => (JSON.parse(line) as { items: string[] }).items)
          .filter((text) => decodeItem(text) === undefined),
    };
  };
  // Faults are tested below, with files. Nothing is handed in but a folder, so close() has nothing to do.
  it.each(sessionContract(make).filter(({ id }) => !/^(G|H3)/.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('the file', () => {
  it('has a line per batch, and a name that cannot leave the folder [SESS-322, SESS-137]', async () => {
    const dir = freshDir();
    const id = '../../x';
    const session = new FileSession<object>(id, { dir: pathToFileURL(dir) });
    expect(await session.getItems()).toEqual([]);
    expect(existsSync(dir)).toBe(false);
    await session.addItems([user('1'), user('ü')]);
    await session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'append_items', items: [user('3')] },
    });
    expect(readdirSync(dir)).toEqual([`${Buffer.from(id).toString('base64url')}.ndjson`]);
    const lines = readFileSync(fileOf(dir, id), 'utf8').split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ format: 'agents-session-file', version: 1, sessionId: id }),
      expect.objectContaining({ items: ['{"role":"user","content":"1"}', '{"role":"user","content":"\\u00fc"}'] }),
      expect.objectContaining({ operation: ['op', expect.stringMatching(/^[0-9a-f]{64}$/)] }),
    ]);
  });

  it.skipIf(process.platform === 'win32')('is for its owner alone, also once it was written anew', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    for (const change of [() => session.addItems([user('1')]), () => session.popItem()]) {
      await change();
      expect(statSync(fileOf(dir, 's')).mode & 0o777).toBe(0o600);
    }
  });

  it('has the id for its name up to 200 characters, then its beginning and its hash [SESS-322]', async () => {
    const dir = freshDir();
    for (const id of ['a'.repeat(150), 'a'.repeat(151)])
      await new FileSession<object>(id, { dir }).addItems([user(id)]);
    const name = (length: number): string => Buffer.from('a'.repeat(length)).toString('base64url');
    const hash = createHash('sha256').update('a'.repeat(151)).digest('hex');
    const names = [`${name(150)}.ndjson`, `${name(151).slice(0, 100)}~${hash}.ndjson`];
    expect(readdirSync(dir).toSorted()).toEqual(names.toSorted());
  });

  it('of a long id has a name of its own [SESS-322]', async () => {
    const dir = freshDir();
    const ids = ['a', 'b'].map((end) => 'ü'.repeat(1000) + end);
    for (const id of ids) await new FileSession<object>(id, { dir }).addItems([user(id)]);
    for (const id of ids) expect(await new FileSession(id, { dir }).getItems()).toEqual([user(id)]);
  });

  it('is cut at its last finished line by the next writer [SESS-322, SESS-189]', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    await session.addItems([user('2'), user('3')]);
    const path = fileOf(dir, 's');
    const whole = readFileSync(path, 'utf8');
    const first = whole.split('\n').slice(0, 2).join('\n').length + 1;
    for (const size of [whole.length - 1, whole.length - 20, first + 1]) {
      writeFileSync(path, whole);
      truncateSync(path, size);
      expect(await session.getItems()).toEqual([user('1')]);
      await session.addItems([user('4')]);
      expect(await new FileSession('s', { dir }).getItems()).toEqual([user('1'), user('4')]);
    }
    for (const size of [0, 5, whole.indexOf('\n')]) {
      writeFileSync(path, whole.slice(0, size));
      expect(await session.getItems()).toEqual([]);
      await session.addItems([user('5')]);
      expect(await session.getItems()).toEqual([user('5')]);
    }
  });

  it('is cut before a torn line however long that is; a line that is no batch has no version [SESS-322, SESS-189]', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    const { version } = await session.readHistory();
    appendFileSync(fileOf(dir, 's'), 'x'.repeat(200_000));
    expect(await session.readHistory()).toEqual({ items: [user('1')], version });
    await session.addItems([user('2')]);
    const before = await session.readHistory();
    expect(before.items).toEqual([user('1'), user('2')]);
    appendFileSync(fileOf(dir, 's'), 'no batch\n');
    expect(await session.readHistory()).toEqual(before);
    expect(await session.readHistory(0)).toEqual({ items: [], version: before.version });
    await session.appendIfVersion(before.version, [user('3')]);
    expect(await session.getItems()).toHaveLength(3);
  });

  it('of another session, or of something else, is left alone [SESS-322]', async () => {
    const dir = freshDir();
    await new FileSession<object>('other', { dir }).addItems([user('x')]);
    const foreign = readFileSync(fileOf(dir, 'other'), 'utf8');
    await new FileSession<object>('s', { dir }).addItems([user('x')]);
    const own = readFileSync(fileOf(dir, 's'), 'utf8');
    const newer = own.replace('"version":1', '"version":2');
    const alike = own.replace('"agents-session-file"', '"another-format"');
    expect([newer, alike]).not.toContain(own);
    for (const content of [foreign, newer, alike, 'something else\n', '{"role":"user"}\n']) {
      writeFileSync(fileOf(dir, 's'), content);
      const session = new FileSession<object>('s', { dir });
      await expect(session.getItems()).rejects.toMatchObject({ code: 'session_schema' });
      await expect(session.addItems([user('x')])).rejects.toMatchObject({ code: 'session_schema' });
      expect(readFileSync(fileOf(dir, 's'), 'utf8')).toBe(content);
    }
    expect(readdirSync(dir).filter((name) => name.includes('lock'))).toEqual([]);
  });

  it('keeps what is not asked for unread: the tail of a long history [SESS-160]', async () => {
    const dir = freshDir();
    const session = new FileSession<{ n: number; text: string }>('s', { dir });
    const text = 'x'.repeat(1000);
    for (let batch = 0; batch < 20; batch++)
      await session.addItems(Array.from({ length: 100 }, (_, index) => ({ n: batch * 100 + index, text })));
    // What the tail does not need can't be read any more.
    const path = fileOf(dir, 's');
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(
      path,
      lines.map((line, index) => (index > 0 && index < 15 ? 'x'.repeat(line.length) : line)).join('\n'),
    );
    expect((await session.getItems(250)).map(({ n }) => n)).toEqual(
      Array.from({ length: 250 }, (_, index) => 1750 + index),
    );
  });

  it.each<[string, (session: FileSession<object>) => Promise<unknown>]>([
    ['an end that is replaced', async (session) => await replaceEnd(session, [user('3')])],
    ['another one further back', async (session) => await replaceEnd(session, [user('2'), user('3')])],
    ['a pop', async (session) => await session.popItem()],
    ['an append', async (session) => await session.addItems([user('4')])],
  ])('keeps what is no text, and lines that are no batch, as they are over %s [SESS-153]', async (_, change) => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    const path = fileOf(dir, 's');
    const odd = '{"role":"user","content":"no batch, but JSON"}';
    const { v } = JSON.parse(readFileSync(path, 'utf8').trim().split('\n').at(-1)!) as { v: string };
    const items = [JSON.stringify(user('2')), 7, { deep: 'kept' }, null, JSON.stringify(user('3'))];
    appendFileSync(path, `torn {"line"\n${odd}\n${JSON.stringify({ v: `${v}0`, at: 0, items })}\n`);
    expect(await session.getItems()).toEqual([user('1'), user('2'), user('3')]);
    await change(session);
    // Twice, since what was kept once is written in another form.
    await replaceEnd(session, [(await session.getItems()).at(-1) ?? {}]);
    const left = readFileSync(path, 'utf8');
    for (const kept of ['torn {"line"', odd])
      expect([kept, JSON.stringify(kept)].some((form) => left.includes(form))).toBe(true);
    expect(left).toContain('7,{"deep":"kept"},null');
    expect((await session.getItems())[0]).toEqual(user('1'));
  });

  it('tells of each record that is no item where it is, and why [SESS-153]', async () => {
    const dir = freshDir();
    await new FileSession<object>('s', { dir }).addItems([user('1')]);
    const path = fileOf(dir, 's');
    const { v } = JSON.parse(readFileSync(path, 'utf8').trim().split('\n').at(-1)!) as { v: string };
    appendFileSync(path, `${JSON.stringify({ v: `${v}0`, at: 0, items: [7, '{', [JSON.stringify(user('2'))]] })}\n`);
    const told: { position: number; reason: string }[] = [];
    const session = new FileSession<object>('s', { dir, onCorruptItem: (info) => void told.push(info) });
    expect(await session.getItems()).toEqual([user('1')]);
    const inOrder = told.toSorted((a, b) => a.position - b.position);
    expect(inOrder.map(({ reason }) => reason)).toEqual(['not text', 'not the JSON text of an object', 'not text']);
    expect(new Set(told.map(({ position }) => position)).size).toBe(3);
  });

  it('is not touched by what changes nothing: no items, or an end that cannot be there [SESS-007, SESS-035]', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    const suffix = { type: 'replace_suffix', expectedSuffix: [user('x')], replacement: [user('y')] } as const;
    await expect(session.applyHistoryTransaction({ operationId: 'op', transaction: suffix })).rejects.toMatchObject({
      code: 'session_suffix_mismatch',
    });
    expect(readdirSync(dir)).toEqual([]);
    await session.addItems([user('1')]);
    const before = readFileSync(fileOf(dir, 's'), 'utf8');
    const { version } = await session.readHistory();
    expect(await session.appendIfVersion(version, [])).toBe(version);
    expect(readFileSync(fileOf(dir, 's'), 'utf8')).toBe(before);
  });

  it('forgets popped, replaced and cleared items', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('secret 1'), user('secret 2')]);
    await session.popItem();
    expect(readFileSync(fileOf(dir, 's'), 'utf8')).not.toContain('secret 2');
    await session.replaceHistory([user('new')]);
    expect(readFileSync(fileOf(dir, 's'), 'utf8')).not.toContain('secret');
    // Of a writer that died over it.
    writeFileSync(`${fileOf(dir, 's')}.new`, 'secret');
    await session.clearSession();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('knows operations after its lines were written anew [SESS-034]', async () => {
    const dir = freshDir();
    const append = async (id: string) =>
      await new FileSession<object>('s', { dir }).applyHistoryTransaction({
        operationId: id,
        transaction: { type: 'append_items', items: [user(id)] },
      });
    await append('a');
    await append('b');
    const session = new FileSession<object>('s', { dir });
    await session.popItem();
    await append('a');
    await append('b');
    expect(await session.getItems()).toEqual([user('a')]);
    await session.clearSession();
    await append('a');
    expect(await session.getItems()).toEqual([user('a')]);
  });

  it('remembers operations of a day, and the last 64 in any case [SESS-034]', async () => {
    const DAY = 24 * 60 * 60 * 1000;
    for (const [age, forgotten] of [
      [2 * DAY, 6],
      [DAY / 2, 0],
    ] as const) {
      const dir = freshDir();
      const session = new FileSession<object>('s', { dir });
      const append = async (id: string, of = session) =>
        await of.applyHistoryTransaction({
          operationId: id,
          transaction: { type: 'append_items', items: [user(id)] },
        });
      for (let n = 0; n < 70; n++) await append(`op ${n}`);
      const path = fileOf(dir, 's');
      const aged = readFileSync(path, 'utf8').replaceAll(/"at":(\d+)/g, (_, at) => `"at":${Number(at) - age}`);
      writeFileSync(path, aged);
      // Each of them by an object that knows nothing yet.
      for (let n = 69; n >= forgotten; n--) await append(`op ${n}`, new FileSession<object>('s', { dir }));
      expect(await session.getItems()).toHaveLength(70);
      if (forgotten > 0) await append('op 0', new FileSession<object>('s', { dir }));
      expect(await session.getItems()).toHaveLength(forgotten > 0 ? 71 : 70);
    }
  });

  it('forgets operations with a clear, also where the new file has the inode of the old one [SESS-011]', async () => {
    const session = new FileSession<object>('s', { dir: freshDir() });
    const append = async (id: string, content = id) =>
      await session.applyHistoryTransaction({
        operationId: id,
        transaction: { type: 'append_items', items: [user(content)] },
      });
    for (const id of ['a', 'b']) await append(id);
    await session.clearSession();
    for (const id of ['x', 'y', 'z']) await append(id, 'long'.repeat(200));
    await append('a');
    expect(await session.getItems()).toHaveLength(4);
  });
});

describe('what is written', () => {
  /** `sync` as `instead` has it, which is told whether it is that of a file or of a folder. */
  async function withSync<R>(instead: (kind: 'file' | 'folder') => void, work: () => Promise<R>): Promise<R> {
    const file = await open(root, 'r');
    const prototype = Object.getPrototypeOf(file) as FileHandle;
    await file.close();
    const sync = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
      instead((await this.stat()).isDirectory() ? 'folder' : 'file');
    });
    try {
      return await work();
    } finally {
      sync.mockRestore();
    }
  }

  it('is brought to the disk with each change, and its folder with what is made or put in place [SESS-322]', async () => {
    const session = new FileSession<object>('s', { dir: join(freshDir(), 'in', 'new folders') });
    const synced: string[] = [];
    const during = async (change: Promise<unknown>): Promise<string[]> => {
      await change;
      return synced.splice(0);
    };
    await withSync(
      (kind) => void synced.push(kind),
      async () => {
        // Three folders, the file, and the folder that it is in.
        expect(await during(session.addItems([user('1')]))).toEqual(['folder', 'folder', 'folder', 'file', 'folder']);
        expect(await during(session.addItems([user('2')]))).toEqual(['file']);
        expect(await during(session.popItem())).toEqual(['file', 'folder']);
        expect(await during(session.replaceHistory([user('3')]))).toEqual(['file', 'folder']);
        expect(await during(session.clearSession())).toEqual(['folder']);
      },
    );
  });

  /** What a change ends with while files, or folders, cannot be brought to the disk. */
  async function failing(kind: 'file' | 'folder', change: (session: FileSession<object>) => Promise<unknown>) {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    const before = readFileSync(fileOf(dir, 's'), 'utf8');
    const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    const error = await withSync(
      (which) => {
        if (which === kind) throw full;
      },
      async () => await change(session).catch((thrown: unknown) => thrown),
    );
    return { dir, before, full, error };
  }

  it.each<[string, 'file' | 'folder', (session: FileSession<object>) => Promise<unknown>]>([
    ['an append', 'file', async (session) => await session.addItems([user('2')])],
    ['a replacement', 'folder', async (session) => await session.replaceHistory([user('2')])],
    ['a pop', 'folder', async (session) => await session.popItem()],
    ['a clear', 'folder', async (session) => await session.clearSession()],
  ])('is there, or not, where it cannot be brought to the disk: %s [SESS-322]', async (_, kind, change) => {
    const { error, full } = await failing(kind, change);
    expect(error).toMatchObject({ code: 'session_outcome_unknown', cause: full });
  });

  it.each<[string, (session: FileSession<object>) => Promise<unknown>]>([
    ['a replacement', async (session) => await session.replaceHistory([])],
    ['a pop', async (session) => await session.popItem()],
  ])('changes nothing where it fails before it is in its place: %s [SESS-151, SESS-322]', async (_, change) => {
    const { error, full, dir, before } = await failing('file', change);
    expect(error).toBe(full);
    expect(readFileSync(fileOf(dir, 's'), 'utf8')).toBe(before);
    expect(readdirSync(dir)).toHaveLength(1);
  });
});

describe('the lock', () => {
  const lockOf = (dir: string): string => `${fileOf(dir, 's')}.lock`;
  const owner = (pid: number, host = hostname(), start?: string): string =>
    JSON.stringify({ token: 't', pid, host, start });
  /** Of a process that has ended. */
  const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid;

  it('of a process that died is broken [SESS-322]', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    writeFileSync(lockOf(dir), owner(deadPid()));
    writeFileSync(`${lockOf(dir)}.break`, owner(deadPid()));
    await session.addItems([user('2')]);
    expect(await session.getItems()).toHaveLength(2);
    expect(readdirSync(dir)).toHaveLength(1);
  });

  it.runIf(process.platform === 'linux')('of a process whose id another one has now is broken [SESS-322]', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    writeFileSync(lockOf(dir), owner(process.pid, hostname(), '1'));
    await session.addItems([user('2')]);
    expect(await session.getItems()).toHaveLength(2);
  });

  it.runIf(process.platform === 'linux')('of a process that is only stopped is never broken [SESS-322]', async () => {
    const dir = freshDir();
    await new FileSession<object>('s', { dir }).addItems([user('1')]);
    const start = readFileSync(`/proc/${process.pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19];
    for (const path of [lockOf(dir), `${lockOf(dir)}.break`]) {
      writeFileSync(path, owner(process.pid, hostname(), start));
      const long = new Date(Date.now() - 3_600_000);
      utimesSync(path, long, long);
    }
    const session = new FileSession<object>('s', { dir, operationTimeoutMs: 1000 });
    await expect(session.addItems([user('2')])).rejects.toMatchObject({ code: 'session_busy' });
    expect(readdirSync(dir)).toHaveLength(3);
  });

  it('of a process of another user, which cannot be asked, is waited for', async () => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir, operationTimeoutMs: 1000 });
    await session.addItems([user('1')]);
    const pid = deadPid();
    writeFileSync(lockOf(dir), owner(pid));
    const kill = process.kill.bind(process);
    const asked = vi.spyOn(process, 'kill').mockImplementation((of, signal) => {
      if (of === pid) throw Object.assign(new Error('operation not permitted'), { code: 'EPERM' });
      return kill(of, signal);
    });
    try {
      await expect(session.addItems([user('2')])).rejects.toMatchObject({ code: 'session_busy' });
    } finally {
      asked.mockRestore();
    }
    await session.addItems([user('2')]);
    expect(await session.getItems()).toHaveLength(2);
  });

  it.each<[string, (session: FileSession<object>) => Promise<unknown>]>([
    ['an append', async (session) => await session.addItems([user('2')])],
    ['a replacement', async (session) => await session.replaceHistory([user('2')])],
    ['a pop', async (session) => await session.popItem()],
  ])('that another writer broke lets nothing be written: %s', async (_, change) => {
    const dir = freshDir();
    const session = new FileSession<object>('s', { dir });
    await session.addItems([user('1')]);
    const before = readFileSync(fileOf(dir, 's'), 'utf8');
    const changed = change(session).catch((error: unknown) => error);
    while (!existsSync(lockOf(dir))) await new Promise((resolve) => void setImmediate(resolve));
    writeFileSync(lockOf(dir), owner(process.pid));
    expect(await changed).toMatchObject({ code: 'session_busy' });
    expect(readFileSync(fileOf(dir, 's'), 'utf8')).toBe(before);
    // It is the other one's now.
    expect(readdirSync(dir).toSorted()).toEqual([fileOf('', 's'), `${fileOf('', 's')}.lock`]);
  });

  it('of a living process, or of another host, is waited for; nothing is written, and reads go on [SESS-322]', async () => {
    // A dead process of another host is none of this one.
    for (const text of [owner(process.ppid), owner(deadPid(), 'another host')]) {
      const dir = freshDir();
      // Only what has to fail is short of time: a disk may be busy with other things.
      const session = new FileSession<object>('s', { dir });
      const impatient = new FileSession<object>('s', { dir, operationTimeoutMs: 1000 });
      await session.addItems([user('1')]);
      writeFileSync(lockOf(dir), text);
      const almost = new Date(Date.now() - 50_000);
      utimesSync(lockOf(dir), almost, almost);
      await expect(impatient.addItems([user('2')])).rejects.toMatchObject({ code: 'session_busy' });
      await expect(impatient.popItem()).rejects.toMatchObject({ code: 'session_busy' });
      expect(await session.getItems()).toEqual([user('1')]);
      expect(readFileSync(lockOf(dir), 'utf8')).toBe(text);
      // After a minute nobody believes in it any more.
      const long = new Date(Date.now() - 61_000);
      utimesSync(lockOf(dir), long, long);
      await session.addItems([user('2')]);
      expect(await session.getItems()).toHaveLength(2);
    }
  });
});

it('stays in the folder that a relative path meant when it was made', async () => {
  const before = process.cwd();
  process.chdir(root);
  try {
    const session = new FileSession<object>('s', { dir: 'relative' });
    process.chdir(before);
    await session.addItems([user('x')]);
  } finally {
    process.chdir(before);
  }
  expect(readdirSync(join(root, 'relative'))).toHaveLength(1);
});

it('is told of folders that cannot be, with the error of the system', async () => {
  const dir = freshDir();
  writeFileSync(dir, 'a file');
  const session = new FileSession<object>('s', { dir });
  await expect(session.addItems([user('x')])).rejects.toMatchObject({ code: expect.stringMatching(/EEXIST|ENOTDIR/) });
  await expect(session.getItems()).rejects.toMatchObject({ code: 'ENOTDIR' });
});

it.each([
  [undefined],
  [{}],
  [{ dir: '' }],
  [{ dir: 'file:///x' }],
  [{ dir: 'a\0b' }],
  [{ dir: new URL('https://x') }],
  [{ path: 'x' }],
])('refuses wrong options', (options) => {
  expect(() => new FileSession('s', options as never)).toThrow(expect.objectContaining({ name: 'UserError' }));
});
