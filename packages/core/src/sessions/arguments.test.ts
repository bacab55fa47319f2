import { describe, expect, it } from 'vitest';

import { OpenAICompactionSession } from '../openai/compaction-session.ts';
import { EncryptedSession } from './encrypted.ts';
import { MemorySessionStore } from './memory-store.ts';
import { MemorySession } from './memory.ts';
import { migrateSession } from './migrate.ts';

const user = (content: string) => ({ role: 'user' as const, content });
const noSessions = [undefined, null, 5, 'secret', [], {}, () => {}, { getItems() {}, addItems() {}, popItem() {} }];

async function* each(...lines: readonly unknown[]): AsyncGenerator<string> {
  for (const line of lines) yield line as string;
}

describe('what is given in place of a session is named before anything is done', () => {
  it.each(noSessions)('to a wrapper: %s [SESS-038]', (given) => {
    const encrypted = () => new EncryptedSession(given as never, { encryptionKey: 'key' });
    expect(encrypted).toThrow(
      /^The session of EncryptedSession must be a session .*(getItems|clearSession) is missing/,
    );
    expect(encrypted).not.toThrow(/secret/);
    expect(() => new OpenAICompactionSession(given as never)).toThrow(
      /^The session of OpenAICompactionSession must be a session/,
    );
  });

  it.each(noSessions)('to a migration: %s', async (given) => {
    const other = new MemorySession('s');
    await other.addItems([user('a')]);
    const named = (which: string) => ({
      name: 'UserError',
      message: expect.stringMatching(`^The ${which} argument of migrateSession\\(\\) must be a session`) as string,
    });
    await expect(migrateSession(given as never, other)).rejects.toMatchObject(named('first'));
    await expect(migrateSession(other, given as never)).rejects.toMatchObject(named('second'));
  });
});

describe('a store', () => {
  it('names what no metadata can be in a query, and finds nothing by a member that is not given', async () => {
    const store = new MemorySessionStore();
    await store.setMetadata('a', { tenant: 'acme' });
    for (const value of [1n, Number.NaN, () => {}, new Map()])
      await expect(store.list({ metadata: { tenant: value } })).rejects.toThrow(
        /^Option 'metadata' of MemorySessionStore\.list\(\) takes JSON: member 'tenant' is/,
      );
    expect((await store.list({ metadata: { tenant: undefined } })).sessions).toEqual([]);
    expect((await store.list({ metadata: { tenant: 'acme' } })).sessions).toHaveLength(1);
  });

  it('tells metadata with lone surrogates apart, and cursors of such queries [SESS-375]', async () => {
    const store = new MemorySessionStore();
    for (const id of ['a', 'b', 'c'])
      await store.setMetadata(id, { x: id === 'c' ? '\ud83d' : '\ud83c', all: { y: '\ud800' } });
    const page = await store.list({ metadata: { x: '\ud83c' }, limit: 1 });
    expect((await store.list({ metadata: { x: '\ud83c' } })).sessions).toHaveLength(2);
    expect((await store.list({ metadata: { all: { y: '\ud801' } } })).sessions).toEqual([]);
    await expect(store.list({ metadata: { x: '\ud83d' }, limit: 1, cursor: page.cursor! })).rejects.toThrow(/'cursor'/);
  });

  it('has no id with a NUL', async () => {
    const store = new MemorySessionStore();
    await store.setMetadata('a', { x: 1 });
    expect(await store.list({ prefix: 'a\0' })).toEqual({ sessions: [] });
  });

  it('says what a prune needs when nothing is given', async () => {
    const store = new MemorySessionStore();
    await expect(store.prune(undefined as never)).rejects.toThrow(/prune\(\) needs 'idleForMs', 'olderThan' or/);
    await expect(store.prune(null as never)).rejects.toThrow(/Options of MemorySessionStore\.prune\(\) must be/);
  });

  it.each([5, null, undefined, {}])(
    'refuses an export with a line that is %s, and takes nothing of it',
    async (line) => {
      const store = new MemorySessionStore();
      await store.session('a').addItems([user('x')]);
      const lines: string[] = [];
      for await (const one of store.export('a')) lines.push(one);
      await expect(store.import('b', each(lines[0], line))).rejects.toThrow(
        'The export has a line 2 that is no string; nothing was imported.',
      );
      expect(await store.get('b')).toBeUndefined();
    },
  );
});
