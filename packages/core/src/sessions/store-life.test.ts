import { expect, it } from 'vitest';

import type { SessionInfo, SessionStoreBackend, StagedHistory } from '../session.ts';
import type { HistoryBackend, StoredRecord } from './history-backend.ts';
import { MemorySession } from './memory.ts';
import { StoredSessionStore } from './stored-store.ts';

const text = '{"role":"user","content":"1"}';

/** A store whose answers come at the next turn of the event loop, or, of one call, when they are let go. */
class Backend implements SessionStoreBackend<MemorySession> {
  readonly steps: string[] = [];
  readonly #held: string | undefined;
  #letGo = (): void => undefined;
  #isReached = (): void => undefined;
  /** The call that is held has been made. */
  readonly reached: Promise<void> = new Promise((resolve) => {
    this.#isReached = resolve;
  });

  readonly #pages: number;

  constructor(held?: string, pages = 2) {
    this.#held = held;
    this.#pages = pages;
  }

  letGo(): void {
    this.#letGo();
  }

  async #answer<R>(call: string, answer: R): Promise<R> {
    this.steps.push(call);
    await new Promise<void>((resolve) => {
      if (call !== this.#held) return void setImmediate(resolve);
      this.#letGo = resolve;
      this.#isReached();
    });
    return answer;
  }

  session(sessionId: string): MemorySession {
    return new MemorySession(sessionId);
  }

  history(): HistoryBackend {
    const version = '1';
    return {
      read: async () =>
        await this.#answer('read', { records: [1, 2].map((position) => ({ text, position })), version }),
      write: async () => await this.#answer('write', version),
      pop: () => undefined,
      clear: () => undefined,
    };
  }

  async list(): Promise<{ sessions: SessionInfo[]; next?: string[] }> {
    const page = this.steps.filter((step) => step === 'list').length;
    const sessions = Array.from({ length: 60 }, (_, index) => `${page}-${index}`);
    return await this.#answer('list', {
      sessions: sessions.map((sessionId) => ({ sessionId, itemCount: 2, updatedAt: new Date(0) })),
      ...(page + 1 < this.#pages && { next: ['0'] }),
    });
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    return await this.#answer('get', sessionId.startsWith('new') ? undefined : { sessionId });
  }

  async remove(ids: readonly string[]): Promise<{ sessions: number; items: number }> {
    return await this.#answer('remove', { sessions: ids.length, items: 0 });
  }

  async setMetadata(): Promise<void> {
    await this.#answer('setMetadata', undefined);
  }

  async *parts(): AsyncGenerator<readonly StoredRecord[]> {
    for (const position of [1, 2]) yield await this.#answer('part', [{ text, position }]);
  }

  async stage(): Promise<StagedHistory> {
    return await this.#answer('stage', {
      append: async () => await this.#answer('append', undefined),
      publish: async () => await this.#answer('publish', undefined),
      discard: async () => await this.#answer('discard', undefined),
    });
  }

  async check(): Promise<string[]> {
    return await this.#answer('check', []);
  }

  sweep(): void {
    this.steps.push('sweep');
  }

  close(): void {
    this.steps.push('close');
  }
}

type Store = StoredSessionStore<MemorySession>;

const storeOf = (backend: Backend): Store => new StoredSessionStore(backend, { name: 'TestStore' });

async function exported(): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of storeOf(new Backend()).export('a')) lines.push(line);
  return lines;
}

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

const closedError = expect.objectContaining({ code: 'session_closed' });
const refused = { status: 'rejected', reason: closedError };

async function settled(call: Promise<unknown>): Promise<PromiseSettledResult<unknown>> {
  const [result] = await Promise.allSettled([call]);
  return result;
}

it.each<[string, (store: Store) => Promise<unknown>, string[]]>([
  ['list', async (store) => await store.list({ limit: 120 }), ['list', 'list']],
  ['get', async (store) => await store.get('a'), ['get']],
  ['delete', async (store) => await store.delete('a'), ['remove']],
  ['setMetadata', async (store) => await store.setMetadata('a', { x: 1 }), ['setMetadata']],
  ['check', async (store) => await store.check(), ['check']],
  ['fork', async (store) => await store.fork('a', 'new'), ['stage', 'part', 'append', 'part', 'append', 'publish']],
])(
  '%s that is called before close goes on to its end, and the client is let go after it [SESS-154]',
  async (_, call, steps) => {
    const backend = new Backend();
    const store = storeOf(backend);
    const called = call(store);
    const closing = store.close();
    await expect(call(store)).rejects.toThrow(closedError);
    await called;
    await closing;
    expect(backend.steps).toEqual([...steps, 'close']);
  },
);

it('an import whose lines were all given goes on to its end when the store is closed [SESS-154, SESS-376]', async () => {
  const lines = await exported();
  const backend = new Backend('append');
  const store = storeOf(backend);
  const imported = store.import('new', each(lines));
  await backend.reached;
  const closing = store.close();
  backend.letGo();
  expect(await imported).toBe(2);
  await closing;
  expect(backend.steps).toEqual(['get', 'stage', 'append', 'publish', 'close']);
});

it('an import that waits for lines ends with the store, which takes away what was staged first [SESS-154, SESS-376]', async () => {
  const [header = '', ...items] = await exported();
  const backend = new Backend();
  const store = storeOf(backend);
  let isWaiting = (): void => undefined;
  const waiting = new Promise<void>((resolve) => {
    isWaiting = resolve;
  });
  async function* unfinished(): AsyncGenerator<string> {
    yield header;
    for (let item = 0; item <= 500; item++) yield items[0] ?? '';
    isWaiting();
    await new Promise(() => undefined);
  }
  const called = settled(store.import('new', unfinished()));
  await waiting;
  await store.close();
  expect(await called).toEqual(refused);
  expect(backend.steps).toEqual(['get', 'stage', 'append', 'discard', 'close']);
});

it('an import reads no more lines of a store that was closed while it stored some [SESS-154, SESS-376]', async () => {
  const [header = '', ...items] = await exported();
  const backend = new Backend('append');
  const store = storeOf(backend);
  let given = 0;
  let isLetGo = false;
  async function* endless(): AsyncGenerator<string> {
    try {
      yield header;
      for (; ; given++) yield items[0] ?? '';
    } finally {
      isLetGo = true;
    }
  }
  const called = settled(store.import('new', endless()));
  await backend.reached;
  const before = given;
  const closing = store.close();
  backend.letGo();
  expect(await called).toEqual(refused);
  await closing;
  expect(given - before).toBeLessThanOrEqual(1);
  expect(isLetGo).toBe(true);
  expect(backend.steps.slice(-2)).toEqual(['discard', 'close']);
});

it.each([
  ['list', ['list', 'close']],
  ['remove', ['list', 'remove', 'close']],
])('a prune stops behind the step that is under way at close, %s [SESS-154, SESS-374]', async (held, steps) => {
  const backend = new Backend(held);
  const store = storeOf(backend);
  const called = settled(store.prune({ idleForMs: 1 }));
  await backend.reached;
  const closing = store.close();
  backend.letGo();
  expect(await called).toEqual(refused);
  await closing;
  expect(backend.steps).toEqual(steps);
});

it.each([1, 2])('a prune of %i pages stops behind the first one at close [SESS-154, SESS-374]', async (pages) => {
  const backend = new Backend('list', pages);
  const store = storeOf(backend);
  const called = settled(store.prune({ olderThan: new Date(0) }));
  await backend.reached;
  const closing = store.close();
  backend.letGo();
  expect(await called).toEqual(refused);
  await closing;
  expect(backend.steps).toEqual(['list', 'close']);
});

it('a prune by length stops between two sessions, and one that goes on sweeps at the end [SESS-154, SESS-374]', async () => {
  const stopped = new Backend('read');
  const store = storeOf(stopped);
  const called = settled(store.prune({ maxItems: 1 }));
  await stopped.reached;
  const closing = store.close();
  stopped.letGo();
  expect(await called).toEqual(refused);
  await closing;
  expect(stopped.steps.filter((step) => step === 'read')).toHaveLength(1);
  const whole = new Backend();
  await storeOf(whole).prune({ idleForMs: 1 });
  expect(whole.steps).toEqual(['list', 'remove', 'remove', 'list', 'remove', 'remove', 'sweep']);
});

it('close waits for the part of an export that is read; the next one is refused [SESS-154, SESS-375]', async () => {
  const backend = new Backend('part');
  const store = storeOf(backend);
  const lines = store.export('a')[Symbol.asyncIterator]();
  const first = lines.next();
  await backend.reached;
  const closing = store.close();
  backend.letGo();
  expect((await first).value).toContain('agents-session');
  await closing;
  expect(backend.steps).toEqual(['get', 'part', 'close']);
  expect((await lines.next()).value).toContain(text);
  await expect(lines.next()).rejects.toThrow(closedError);
});

it('close waits for the first look of an export, and its first part is refused then [SESS-154, SESS-375]', async () => {
  const backend = new Backend('get');
  const store = storeOf(backend);
  const called = settled(store.export('a')[Symbol.asyncIterator]().next());
  await backend.reached;
  const closing = store.close();
  await new Promise(setImmediate);
  expect(backend.steps).toEqual(['get']);
  backend.letGo();
  expect(await called).toEqual(refused);
  await closing;
  expect(backend.steps).toEqual(['get', 'close']);
});
