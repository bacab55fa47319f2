import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { UserError } from '../base/errors.ts';
import { SessionOutcomeUnknownError } from './errors.ts';
import type { HistoryBackend, StoredRecord } from './history-backend.ts';
import { MemorySession } from './memory.ts';
import type { SessionInfo, SessionStoreBackend, StagedHistory } from '../session.ts';
import { StoredSessionStore } from './stored-store.ts';

type Call = keyof SessionStoreBackend | 'read' | 'write' | keyof StagedHistory;

const never = new Promise<never>(() => undefined);
const texts = ['{"role":"user","content":"1"}', '{"role":"user","content":"2"}'];

/** A store that answers everything but the calls of these names. */
class Backend implements SessionStoreBackend<MemorySession> {
  readonly calls: string[] = [];
  readonly parts?: (sessionId: string) => AsyncIterable<readonly StoredRecord[]>;
  readonly stage?: (sessionId: string) => Promise<StagedHistory>;
  readonly #hanging: readonly Call[];
  readonly #exists: (sessionId: string) => boolean;

  constructor(hanging: readonly Call[], { inParts = false, exists = (id: string) => id === 'a' } = {}) {
    this.#hanging = hanging;
    this.#exists = exists;
    if (!inParts) return;
    this.parts = async function* (this: Backend) {
      for (const text of texts) {
        await this.#answer('parts', undefined);
        yield [{ text, position: 0 }];
      }
    }.bind(this);
    this.stage = async () =>
      await this.#answer('stage', {
        append: async (given: readonly string[]) => await this.#answer('append', undefined, given),
        publish: async (how: string) => await this.#answer('publish', undefined, how),
        discard: async () => await this.#answer('discard', undefined),
      });
  }

  session(sessionId: string): MemorySession {
    return new MemorySession(sessionId);
  }

  history(): HistoryBackend {
    return {
      read: async () =>
        await this.#answer('read', { records: texts.map((text, position) => ({ text, position })), version: '1' }),
      write: async () => await this.#answer('write', '2'),
      pop: () => undefined,
      clear: () => undefined,
      outcomeUnknown: (error) => error instanceof Error && error.message === 'connection lost',
    };
  }

  async list(): Promise<{ sessions: SessionInfo[] }> {
    return await this.#answer('list', { sessions: [{ sessionId: 'a', itemCount: 2, updatedAt: new Date(0) }] });
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    return await this.#answer('get', this.#exists(sessionId) ? { sessionId, itemCount: 2 } : undefined);
  }

  async remove(ids: readonly string[]): Promise<{ sessions: number; items: number }> {
    return await this.#answer('remove', { sessions: ids.length, items: 0 }, ids.length);
  }

  async setMetadata(): Promise<void> {
    await this.#answer('setMetadata', undefined);
  }

  async check(): Promise<string[]> {
    return await this.#answer('check', []);
  }

  failing: Error | undefined;

  async #answer<R>(call: Call, answer: R, given?: unknown): Promise<R> {
    this.calls.push(given === undefined ? call : `${call} ${JSON.stringify(given)}`);
    if (!this.#hanging.includes(call)) return answer;
    if (this.failing !== undefined) throw this.failing;
    return await never;
  }
}

const makeStore = (backend: Backend, timeoutMs?: number): StoredSessionStore<MemorySession> =>
  new StoredSessionStore(backend, { name: 'TestStore', timeoutMs });

async function linesOf(store: StoredSessionStore<MemorySession>, id: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of store.export(id)) lines.push(line);
  return lines;
}

/** `fork()` of `async (store) => await store.fork('a', 'b')`. */
const nameOf = (work: unknown): string => `${/store\.(\w+)/.exec(String(work))?.[1] ?? 'export'}()`;

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

describe('a store of sessions whose backend does not answer', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** The error of a call, when the time of one call has passed. */
  async function errorAfter(ms: number, work: () => Promise<unknown>): Promise<unknown> {
    const end = work().then(
      () => 'no error',
      (error: unknown) => error,
    );
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(await Promise.race([end, Promise.resolve('waiting')])).toBe('waiting');
    await vi.advanceTimersByTimeAsync(1);
    return await end;
  }

  const reads: [Call, boolean, (store: StoredSessionStore<MemorySession>) => Promise<unknown>][] = [
    ['list', false, async (store) => await store.list()],
    ['get', false, async (store) => await store.get('a')],
    ['check', false, async (store) => await store.check()],
    ['read', false, async (store) => await store.fork('a', 'b')],
    ['read', false, async (store) => await linesOf(store, 'a')],
    ['parts', true, async (store) => await linesOf(store, 'a')],
    ['parts', true, async (store) => await store.fork('a', 'b', { untilTurn: 2 })],
    ['stage', true, async (store) => await store.fork('a', 'b')],
    ['append', true, async (store) => await store.fork('a', 'b')],
  ];
  for (const [call, inParts, work] of reads) {
    it(`ends '${call}' in time, of ${nameOf(work)} [SESS-156]`, async () => {
      const store = makeStore(new Backend([call], { inParts }), 300);
      const error = await errorAfter(300, () => work(store));
      expect(error).toMatchObject({ code: 'session_error', message: expect.stringContaining('within 300 ms') });
    });
  }

  const changes: [Call, boolean, string, (store: StoredSessionStore<MemorySession>) => Promise<unknown>][] = [
    ['remove', false, 'clear', async (store) => await store.delete('a')],
    ['remove', false, 'clear', async (store) => await store.prune({ idleForMs: 1 })],
    ['setMetadata', false, 'replace', async (store) => await store.setMetadata('a', { x: 1 })],
    ['write', false, 'replace', async (store) => await store.fork('a', 'b')],
    ['write', false, 'replace', async (store) => await store.prune({ maxItems: 1 })],
    ['publish', true, 'replace', async (store) => await store.fork('a', 'b')],
  ];
  for (const [call, inParts, operation, work] of changes) {
    const title = `of ${nameOf(work)}`;
    it(`tells that the outcome of '${call}' is unknown, ${title} [SESS-156]`, async () => {
      const store = makeStore(new Backend([call], { inParts }), 300);
      const error = await errorAfter(300, () => work(store));
      expect(error).toBeInstanceOf(SessionOutcomeUnknownError);
      expect(error).toMatchObject({ operation });
    });

    it(`hears from the backend that the outcome of '${call}' is unknown, ${title} [SESS-151]`, async () => {
      const backend = new Backend([call], { inParts });
      backend.failing = new Error('connection lost');
      const store = makeStore(backend);
      await expect(work(store)).rejects.toMatchObject({ operation, cause: backend.failing });
      backend.failing = new Error('refused');
      await expect(work(store)).rejects.toBe(backend.failing);
    });
  }

  it('gives an import the time of a call for each of its parts [SESS-156, SESS-376]', async () => {
    const lines = await linesOf(makeStore(new Backend([])), 'a');
    const backend = new Backend(['publish'], { inParts: true });
    const store = makeStore(backend, 300);
    async function* slow(): AsyncGenerator<string> {
      for (const line of lines) {
        await new Promise((resolve) => {
          setTimeout(resolve, 1000);
        });
        yield line;
      }
    }
    const error = await errorAfter(4300, async () => await store.import('b', slow()));
    expect(error).toBeInstanceOf(SessionOutcomeUnknownError);
    expect(backend.calls.slice(-3)).toEqual([`append ${JSON.stringify(texts)}`, 'publish "create"', 'discard']);
  });

  it('fails with what failed, not with remains that could not be taken away in time either', async () => {
    const store = makeStore(new Backend(['append', 'discard'], { inParts: true }), 300);
    const error = await errorAfter(600, async () => await store.fork('a', 'b'));
    expect(error).toMatchObject({ message: expect.stringContaining('within 300 ms') });
  });

  it('waits for as long as it takes without a limit', async () => {
    const store = makeStore(new Backend(['get']));
    const end = Promise.race([store.get('a'), vi.advanceTimersByTimeAsync(3_600_000).then(() => 'waiting')]);
    expect(await end).toBe('waiting');
  });
});

describe('a store of sessions, to its backend,', () => {
  it('stages a fork part by part, and an empty one with no texts [SESS-373]', async () => {
    const backend = new Backend([], { inParts: true });
    await makeStore(backend).fork('a', 'b');
    const appends = texts.map((text) => `append ${JSON.stringify([text])}`);
    expect(backend.calls).toEqual(['stage', 'parts', appends[0], 'parts', appends[1], 'publish "create"']);

    const empty = new Backend([], { inParts: true });
    await makeStore(empty).import('b', each(await linesOf(makeStore(emptyHistory()), 'a')));
    expect(empty.calls.slice(1)).toEqual(['stage', 'append []', 'publish "create"']);
  });

  it.each([
    ['begins a fork anew whose source is changed meanwhile', 2, 1, undefined],
    ['gives up a fork whose source is changed all the time', 99, 5, 'session_version_conflict'],
  ])('%s [SESS-373]', async (_, changes, discards, code) => {
    const backend = new Backend([], { inParts: true });
    let readings = 0;
    Object.assign(backend, {
      parts: async function* (): AsyncGenerator<readonly StoredRecord[]> {
        // Each reading finds another text until the changes end.
        const text = JSON.stringify({ role: 'user', content: String(Math.min(readings++, changes)) });
        yield [text, texts[1] ?? ''].map((one) => ({ text: one, position: 0 }));
      },
    });
    const [end] = await Promise.allSettled([makeStore(backend).fork('a', 'b', { untilTurn: 2 })]);
    expect(end.status === 'rejected' ? (end.reason as { code?: unknown }).code : undefined).toBe(code);
    const count = (call: string): number => backend.calls.filter((one) => one.startsWith(call)).length;
    expect([count('publish'), count('discard')]).toEqual([code === undefined ? 1 : 0, discards]);
  });

  it('lets go of what it reads from when a reader leaves early', async () => {
    const backend = new Backend([], { inParts: true });
    let ended = false;
    Object.assign(backend, {
      parts: async function* (): AsyncGenerator<readonly StoredRecord[]> {
        try {
          for (const text of texts) yield [{ text, position: 0 }];
        } finally {
          ended = true;
        }
      },
    });
    for await (const line of makeStore(backend).export('a')) if (line.includes('content')) break;
    expect(ended).toBe(true);
  });

  it('stages an import by its size too [SESS-376]', async () => {
    const source = makeStore(new Backend([]));
    const [header = '', , , end = ''] = await linesOf(source, 'a');
    expect(end).toContain('"items":2');
    const large = JSON.stringify({ role: 'user', content: 'x'.repeat(600 * 1024) });
    const backend = new Backend([], { inParts: true });
    const lines = [header, large, large, large, end];
    // The hash at the end is another one: all was staged by then, and goes.
    await expect(makeStore(backend).import('b', each(lines))).rejects.toMatchObject({ code: 'session_error' });
    const sizes = backend.calls
      .filter((call) => call.startsWith('append'))
      .map((call) => call.split('xx\\"}').length - 1);
    expect(sizes).toEqual([2]);
    expect(backend.calls.at(-1)).toBe('discard');
  });

  it('deletes some sessions with each call [SESS-374]', async () => {
    const backend = new Backend([]);
    const sessions = Array.from({ length: 120 }, (_, index) => ({ sessionId: `s${index}`, updatedAt: new Date(0) }));
    const limits: number[] = [];
    backend.list = async ({ limit }: { limit?: number } = {}) => {
      limits.push(limit ?? 0);
      return { sessions };
    };
    expect(await makeStore(backend).prune({ idleForMs: 1 })).toEqual({ sessions: 120, items: 0 });
    expect(backend.calls).toEqual(['remove 50', 'remove 50', 'remove 20']);
    expect(limits).toEqual([500]);
  });

  it('cuts the others where somebody else wrote a session under an id that none of ours has [SESS-374]', async () => {
    const backend = new Backend([]);
    const history = backend.history();
    const ids = ['a', ' a', 'b'];
    backend.list = async () => ({ sessions: ids.map((sessionId) => ({ sessionId, itemCount: 2 })) });
    const asked: string[] = [];
    backend.history = (sessionId?: string) => {
      asked.push(sessionId ?? '');
      if (sessionId === ' a') throw new UserError('No id.', { code: 'session_id_invalid' });
      return history;
    };
    await makeStore(backend).prune({ maxItems: 1 });
    expect(asked).toEqual(ids);
    backend.history = () => {
      throw new UserError('Another one.');
    };
    await expect(makeStore(backend).prune({ maxItems: 1 })).rejects.toThrow('Another one.');
  });

  it('lets the backend take away what stayed of sessions, by time alone and never as a trial [SESS-374]', async () => {
    const swept: Date[] = [];
    const backend = Object.assign(new Backend([]), { sweep: (idleSince: Date) => void swept.push(idleSince) });
    backend.list = async () => ({ sessions: [] });
    const olderThan = new Date(1000);
    await makeStore(backend).prune({ maxItems: 1 });
    await makeStore(backend).prune({ olderThan, dryRun: true });
    expect(swept).toEqual([]);
    await makeStore(backend).prune({ olderThan });
    expect(swept).toEqual([olderThan]);
  });
});

function emptyHistory(): Backend {
  const backend = new Backend([]);
  backend.history = () => ({
    read: () => ({ records: [], version: '0' }),
    write: () => '1',
    pop: () => undefined,
    clear: () => undefined,
  });
  return backend;
}
