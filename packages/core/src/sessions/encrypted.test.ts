import { afterEach, describe, expect, it, vi } from 'vitest';

import { thrown } from '../../test/run-kit.ts';
import type { UserError } from '../base/errors.ts';
import { configureLogging } from '../base/logger.ts';
import type { LogRecord } from '../base/logger.ts';
import { OpenAICompactionSession } from '../openai/compaction-session.ts';
import { OpenAIConversationsSession } from '../openai/conversations-session.ts';
import { RunContext } from '../state/context.ts';
import { sessionContract } from '../testing/contracts/session.ts';
import type { SessionFixture } from '../testing/contracts/session.ts';
import { supports } from './contract.ts';
import type { ManagedSession, Session, SessionSettings } from './contract.ts';
import { EncryptedSession } from './encrypted.ts';
import { SessionOutcomeUnknownError } from './errors.ts';
import { masterBytes, open, seal, sessionKey } from './fernet.ts';
import { MemorySession } from './memory.ts';
import { MemorySessionStore } from './memory-store.ts';

afterEach(() => configureLogging({ sink: null, level: 'warn' }));

const KEY = 'correct horse';
const user = (content: string) => ({ role: 'user', content });
/** A session of the four methods alone, over another. */
function plainSession(inner: Session<object>): Session<object> {
  return {
    sessionId: inner.sessionId,
    getItems: (limit?: number) => inner.getItems(limit),
    addItems: (items: readonly object[]) => inner.addItems(items),
    popItem: () => inner.popItem(),
    clearSession: () => inner.clearSession(),
  };
}
/** The wrapper of a managed session has its capabilities. */
function managed(session: EncryptedSession<object>): ManagedSession<object> {
  return session as unknown as ManagedSession<object>;
}

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract', () => {
  const make = (): SessionFixture => {
    const store = new MemorySessionStore();
    let failing: 'before' | 'after' | undefined;
    /** Breaks the next change of the wrapped session. */
    const breakable = (id: string, options?: { sessionSettings?: SessionSettings }): Session<object> => {
      const inner = store.session(id, options) as unknown as MemorySession<object>;
      for (const name of ['addItems', 'popItem', 'clearSession', 'applyHistoryTransaction'] as const) {
        const method = (inner[name] as (...args: unknown[]) => Promise<unknown>).bind(inner);
        const broken = async (...args: unknown[]): Promise<unknown> => {
          const when = failing;
          failing = undefined;
          if (when === 'before') throw new Error('the store is away');
          const result = await method(...args);
          if (when === 'after') throw new SessionOutcomeUnknownError('lost', { operation: 'append' });
          return result;
        };
        Object.defineProperty(inner, name, { value: broken });
      }
      return inner;
    };
    return {
      open: (id, options) => new EncryptedSession<object>(breakable(id, options), { encryptionKey: KEY, ttlMs: null }),
      // For the wrapper, what was never encrypted is what a broken record is for others.
      addCorrupt: (id, record) => store.session(id).addItems([{ record } as never]),
      failNext(when) {
        failing = when;
      },
    };
  };
  it.each(sessionContract(make).filter(({ id }) => id !== 'H3'))('$title [SESS-342]', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('contract over a session of four methods', () => {
  const make = (): SessionFixture => {
    const store = new MemorySessionStore();
    return {
      open(id, options) {
        const inner = plainSession(store.session(id));
        const session = new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: null });
        session.sessionSettings = options?.sessionSettings;
        return session;
      },
    };
  };
  // It pops in two steps, so others may come in between (F3, F4).
  const four = /^(A|B|C|D|F1|F2|F7|K)/;
  it.each(sessionContract(make).filter(({ id }) => four.test(id) && id !== 'K22'))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('keys', () => {
  it('are those of the Python SDK, and so are the tokens [SESS#54, SESS-281, 282, 283]', async () => {
    const key = await sessionKey(masterBytes(KEY), 'user-42');
    const text = '{"role":"user","content":"Grüße 漢字"}';
    const iv = Uint8Array.from({ length: 16 }, (_, index) => index);
    const token = await seal(key, text, 1_700_000_000_999, iv);
    expect(token).toBe(
      'gAAAAABlU_EAAAECAwQFBgcICQoLDA0OD1TSv_mnY_Rlf7reIByCTETWP7uxRuC_YTnfOkTBUtdvuiQJQOzI7_a708FLGApVmAp_CMv99MRjVCzvR4gCeprx8oaQaNmcmOJx7vJJYtGD',
    );
    expect(await open([key], token)).toEqual({ text, seconds: 1_700_000_000 });
  });

  it('are read from base64 as leniently as Python reads it [SESS-282]', () => {
    const zero = new Uint8Array(32);
    const raw = (key: string) => new TextEncoder().encode(key);
    const a43 = 'A'.repeat(43);
    expect(masterBytes(a43)).toEqual(raw(a43));
    expect(masterBytes(`${a43}=`)).toEqual(zero);
    expect(masterBytes(`${a43.slice(0, 20)} ${a43.slice(20)}=`)).toEqual(zero);
    expect(masterBytes(`${a43}=more`)).toEqual(zero);
    // No padding that is complete.
    expect(masterBytes(`AA=AAAA=${'A'.repeat(37)}=`)).toEqual(zero);
    expect(masterBytes('A'.repeat(44))).toEqual(raw('A'.repeat(44)));
    expect(masterBytes(`${a43}ü=`)).toEqual(raw(`${a43}ü=`));
    expect(masterBytes('correct horse')).toEqual(raw('correct horse'));
    expect(masterBytes(`-_${'A'.repeat(41)}=`)).toEqual(masterBytes(`+/${'A'.repeat(41)}=`));
  });

  it('of the list: the first writes, all read [SESS#56, SESS-286]', async () => {
    const inner = new MemorySession<object>('s');
    const of = (...keys: [string, ...string[]]) =>
      new EncryptedSession<object>(inner, { encryptionKey: keys, ttlMs: null });
    await of('old').addItems([user('1')]);
    await of('new', 'old').addItems([user('2')]);
    expect(await of('new', 'old').getItems()).toEqual([user('1'), user('2')]);
    expect(await of('old').getItems()).toEqual([user('1')]);
    expect(await of('new').getItems()).toEqual([user('2')]);
    expect(await of('newest', 'new', 'old').getItems()).toEqual([user('1'), user('2')]);
    expect((await inner.getItems()).map((item) => (item as { kid: unknown }).kid)).toEqual(['hkdf-v1', 'hkdf-v1']);
  });

  it('are derived from the id: an item of another session is not read [SESS-281]', async () => {
    const [a, b] = [new MemorySession<object>('a'), new MemorySession<object>('b')];
    await new EncryptedSession<object>(a, { encryptionKey: KEY }).addItems([user('x')]);
    await b.addItems(await a.getItems());
    expect(await new EncryptedSession(b, { encryptionKey: KEY }).getItems()).toEqual([]);
  });
});

describe('what is stored', () => {
  it('is an envelope without a word of the item [SESS-283]', async () => {
    const inner = new MemorySession<object>('s');
    await new EncryptedSession<object>(inner, { encryptionKey: KEY }).addItems([user('secret'), user('secret')]);
    const stored = await inner.getItems();
    expect(stored).toEqual(
      [1, 2].map(() => ({ __enc__: 1, v: 1, kid: 'hkdf-v1', payload: expect.stringMatching(/^gAAAA[\w-]+=*$/) })),
    );
    expect(JSON.stringify(stored)).not.toMatch(/secret|user/);
    expect(new Set(stored.map((item) => (item as { payload: string }).payload)).size).toBe(2);
  });

  it('is compact JSON in UTF-8 to who has the key [SESS-283]', async () => {
    const inner = new MemorySession<object>('s');
    await new EncryptedSession<object>(inner, { encryptionKey: KEY }).addItems([user('漢字')]);
    const [stored] = (await inner.getItems()) as { payload: string }[];
    const key = await sessionKey(masterBytes(KEY), 's');
    expect((await open([key], stored?.payload))?.text).toBe('{"role":"user","content":"漢字"}');
  });

  it('is not read once a byte of it was changed [SESS#54, SESS-283]', async () => {
    const inner = new MemorySession<object>('s');
    const session = new EncryptedSession<object>(inner, { encryptionKey: KEY });
    await session.addItems([user('x')]);
    const [envelope] = (await inner.getItems()) as { payload: string }[];
    const payload = envelope?.payload ?? '';
    for (const at of [0, 8, 20, 40, payload.length - 8]) {
      const other = payload[at] === 'A' ? 'B' : 'A';
      await inner.replaceHistory([{ ...envelope, payload: payload.slice(0, at) + other + payload.slice(at + 1) }]);
      expect(await session.getItems()).toEqual([]);
      await expect(session.popItem()).rejects.toMatchObject({ code: 'session_error' });
    }
    for (const broken of ['', 'gAAAA', payload.slice(0, -4), 7, null]) {
      await inner.replaceHistory([{ ...envelope, payload: broken }]);
      expect(await session.getItems()).toEqual([]);
    }
    for (const foreign of ['!', ' ', '\n', '+', '/', 'é']) {
      await inner.replaceHistory([{ ...envelope, payload: payload.slice(0, 40) + foreign + payload.slice(41) }]);
      expect(await session.getItems(), foreign).toEqual([]);
      await expect(session.popItem(), foreign).rejects.toMatchObject({ code: 'session_error' });
    }
  });

  it('is not read in the other alphabet of base64 [SESS#54, SESS-281]', async () => {
    const inner = new MemorySession<object>('s');
    const session = new EncryptedSession<object>(inner, { encryptionKey: KEY });
    let payload = '';
    // Random bytes: one of them needs the last letters of the alphabet soon.
    while (!/[-_]/.test(payload)) {
      await inner.clearSession();
      await session.addItems([user('x')]);
      payload = ((await inner.getItems()) as { payload: string }[])[0]?.payload ?? '';
    }
    const [envelope] = await inner.getItems();
    await inner.replaceHistory([{ ...envelope, payload: payload.replaceAll('-', '+').replaceAll('_', '/') }]);
    expect(await session.getItems()).toEqual([]);
  });
});

describe('age', () => {
  it('hides items, which no limit counts, and pop drops them [SESS#55, SESS-284, IL-024]', async () => {
    const inner = new MemorySession<object>('s');
    let now = 1_700_000_000_000;
    const of = (ttlMs: number | null | undefined) =>
      new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs, now: () => now });
    await of(1000).addItems([user('old')]);
    now += 1000;
    expect(await of(1000).getItems()).toEqual([user('old')]);
    now += 999;
    expect(await of(1000).getItems()).toEqual([user('old')]);
    now += 1;
    await of(1000).addItems([user('fresh')]);
    await inner.addItems([(await inner.getItems())[0]!]);
    expect(await of(1000).getItems()).toEqual([user('fresh')]);
    expect(await of(1000).getItems(1)).toEqual([user('fresh')]);
    expect(await of(null).getItems()).toEqual([user('old'), user('fresh'), user('old')]);
    expect(await inner.getItems()).toHaveLength(3);
    expect(await of(1000).popItem()).toEqual(user('fresh'));
    expect(await inner.getItems()).toHaveLength(1);
    now += 599_000;
    expect(await of(undefined).getItems()).toEqual([]);
    now -= 1000;
    expect(await of(undefined).getItems()).toEqual([user('old')]);
  });

  it('refuses items of a clock that is more than a minute ahead [SESS-284]', async () => {
    const inner = new MemorySession<object>('s');
    let now = 1_700_000_060_000;
    const of = (ttlMs: number | null) =>
      new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs, now: () => now });
    await of(1000).addItems([user('x')]);
    now -= 60_000;
    expect(await of(1000).getItems()).toEqual([user('x')]);
    now -= 1000;
    expect(await of(1000).getItems()).toEqual([]);
    await expect(of(1000).popItem()).rejects.toMatchObject({ code: 'session_error' });
    expect(await of(null).popItem()).toEqual(user('x'));
  });

  it('is told at debug level, once per read [SESS-284]', async () => {
    const sink = vi.fn<(record: LogRecord) => void>();
    configureLogging({ sink, level: 'debug' });
    const inner = new MemorySession<object>('s', { items: [user('1'), user('2'), user('3')] });
    const told = expect.objectContaining({ level: 'debug', data: { sessionId: 's', count: 3 } }) as LogRecord;
    const session = new EncryptedSession(inner, { encryptionKey: KEY });
    await session.getItems();
    expect(sink.mock.calls).toEqual([[told]]);
    // In windows of 1, 2 and 4.
    await session.getItems(1);
    expect(sink.mock.calls).toEqual([[told], [told]]);
  });
});

describe('pop', () => {
  it('never takes what another key encrypted [SESS#86, SESS-283]', async () => {
    const inner = new MemorySession<object>('s');
    const [right, wrong] = [KEY, 'another'].map(
      (encryptionKey) => new EncryptedSession<object>(inner, { encryptionKey, ttlMs: null }),
    );
    await right!.addItems([user('x')]);
    expect(await wrong!.getItems()).toEqual([]);
    await expect(wrong!.popItem()).rejects.toThrow(/another key.*nothing was removed/);
    expect(await inner.getItems()).toHaveLength(1);
    expect(await right!.popItem()).toEqual(user('x'));
  });

  it('drops what was never encrypted, or returns it where that is wanted [SESS#87, SESS-287]', async () => {
    const whole = { __enc__: 1, v: 1, kid: 'hkdf-v1', payload: 'x' };
    const incomplete = [
      ...Object.keys(whole).map((missing) => Object.fromEntries(Object.entries(whole).filter(([k]) => k !== missing))),
      { ...whole, __enc__: true },
    ];
    for (const plaintext of ['skip', 'pass'] as const) {
      const inner = new MemorySession<object>('s');
      const session = new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: null, plaintext });
      await session.addItems([user('1')]);
      await inner.addItems([user('plain'), ...incomplete]);
      await session.addItems([user('2')]);
      const all = [user('1'), user('plain'), ...incomplete, user('2')];
      expect(await session.getItems()).toEqual(plaintext === 'pass' ? all : [user('1'), user('2')]);
      expect(await session.popItem()).toEqual(user('2'));
      expect(await session.popItem()).toEqual(plaintext === 'pass' ? incomplete.at(-1) : user('1'));
      expect(await inner.getItems()).toHaveLength(plaintext === 'pass' ? 1 + incomplete.length : 0);
    }
  });

  it('removes exactly the item that it looked at, whatever others write meanwhile [SESS-283]', async () => {
    for (const capable of [true, false]) {
      const store = new MemorySession<object>('s');
      const inner = capable ? store : plainSession(store);
      const session = new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: null });
      await session.addItems([user('1')]);
      const foreign = new EncryptedSession<object>(store, { encryptionKey: 'another', ttlMs: null });
      const getItems = inner.getItems.bind(inner);
      let written = false;
      Object.defineProperty(inner, 'getItems', {
        async value(limit?: number) {
          const items = await getItems(limit);
          if (!written) await foreign.addItems([user('foreign')]);
          written = true;
          return items;
        },
      });
      await expect(session.popItem()).rejects.toMatchObject({ code: 'session_error' });
      expect(await store.getItems()).toHaveLength(2);
      expect(await session.getItems()).toEqual([user('1')]);
      expect(await foreign.getItems()).toEqual([user('foreign')]);
    }
  });

  it('gives nothing that another one popped meanwhile [SESS-283]', async () => {
    for (const capable of [true, false]) {
      const store = new MemorySession<object>('s');
      const inner = capable ? store : plainSession(store);
      const session = new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: null });
      await session.addItems([user('1')]);
      const getItems = inner.getItems.bind(inner);
      Object.defineProperty(inner, 'getItems', {
        async value(limit?: number) {
          const items = await getItems(limit);
          await store.popItem();
          return items;
        },
      });
      expect(await session.popItem()).toBeUndefined();
    }
  });
});

it('reads until it has found enough, or until maxScanItems [SESS#88, SESS-285]', async () => {
  const inner = new MemorySession<object>('s', { items: Array.from({ length: 6 }, () => user('plain')) });
  await new EncryptedSession<object>(inner, { encryptionKey: KEY }).addItems([user('1'), user('2')]);
  const windows: (number | undefined)[] = [];
  const getItems = inner.getItems.bind(inner);
  inner.getItems = async (limit) => {
    windows.push(limit);
    return await getItems(limit);
  };
  const read = async (maxScanItems: number | undefined, limit?: number) =>
    await new EncryptedSession<object>(inner, { encryptionKey: KEY, maxScanItems }).getItems(limit);
  const both = [user('1'), user('2')];
  expect(await read(4, 2)).toEqual(both);
  await expect(read(16, 3)).rejects.toThrow(/maxScanItems/);
  await expect(read(8)).rejects.toMatchObject({ code: 'session_error' });
  expect(await read(9)).toEqual(both);
  // What is left has to be more than the last window.
  await expect(read(6, 3)).rejects.toThrow(/maxScanItems/);
  expect(windows).toEqual([2, 3, 6, 7, 8, 9, 3]);
  windows.length = 0;
  expect(await read(undefined)).toEqual(both);
  expect(await read(undefined, 3)).toEqual(both);
  expect(windows).toEqual([undefined, 3, 6, 12]);
  await new EncryptedSession<object>(inner, { encryptionKey: KEY }).addItems([user('3')]);
  await inner.addItems([user('plain')]);
  expect(await read(undefined, 2)).toEqual([user('2'), user('3')]);
});

describe('capabilities', () => {
  it('are those of the wrapped session [SESS-038]', () => {
    const full = new EncryptedSession<object>(new MemorySession<object>('s'), { encryptionKey: KEY });
    const four = new EncryptedSession<object>(plainSession(new MemorySession<object>('s')), { encryptionKey: KEY });
    for (const capability of ['transactions', 'versions'] as const) {
      expect(supports(full, capability)).toBe(true);
      expect(supports(four, capability)).toBe(false);
    }
    expect(supports(full, 'runContext')).toBe(false);
    expect([managed(full).closed, managed(four).closed]).toEqual([false, undefined]);
    expect('close' in four).toBe(false);
  });

  it('know an operation by its plain items: repeating it stores one batch [SESS#57, SESS-036, SESS-288]', async () => {
    const inner = new MemorySession<object>('s');
    const session = managed(new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: null }));
    const append = async (content: string) =>
      await session.applyHistoryTransaction({
        operationId: 'op',
        transaction: { type: 'append_items', items: [user(content)] },
      });
    await append('x');
    await append('x');
    await expect(append('y')).rejects.toMatchObject({ code: 'session_operation_mismatch' });
    const version = (await session.readHistory()).version;
    const first = await session.appendIfVersion(version, [user('z')], { operationId: 'op 2' });
    expect(await session.appendIfVersion(version, [user('z')], { operationId: 'op 2' })).toBe(first);
    const replaced = await session.replaceHistory([user('w')], { operationId: 'op 3' });
    expect(await session.replaceHistory([user('w')], { operationId: 'op 3' })).toBe(replaced);
    expect(await session.getItems()).toEqual([user('w')]);
  });

  it('replace a suffix of what can be read, keep what only others can read, and let go of what is too old [SESS-288, SESS-328]', async () => {
    const inner = new MemorySession<object>('s');
    let now = 1_700_000_000_000;
    const session = managed(new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: 60_000, now: () => now }));
    const foreign = new EncryptedSession<object>(inner, { encryptionKey: 'another', ttlMs: null });
    await foreign.addItems([user('first')]);
    await session.addItems([user('old')]);
    now += 120_000;
    await session.addItems([user('1')]);
    await foreign.addItems([user('theirs')]);
    await inner.addItems([user('plain'), (await inner.getItems())[1]!]);
    await session.addItems([user('2')]);
    const replace = async () =>
      await session.applyHistoryTransaction({
        operationId: 'op',
        transaction: {
          type: 'replace_suffix',
          expectedSuffix: [{ content: '1', role: 'user' }, user('2')],
          replacement: [user('summary')],
        },
      });
    await replace();
    await replace();
    expect(await session.getItems()).toEqual([user('summary')]);
    expect(await foreign.getItems()).toEqual([user('first'), user('theirs')]);
    // The old one before stays, that in between went.
    expect((await inner.getItems()).map((item) => '__enc__' in item)).toEqual([true, true, true, false, true]);
  });

  it('reclaim what is too old at the head of the history with a suffix, and nowhere else [SESS-328]', async () => {
    for (const before of [[], ['plain'], ['theirs'], ['fresh']]) {
      const inner = new MemorySession<object>('s');
      let now = 1_700_000_000_000;
      const of = (encryptionKey: string) =>
        managed(new EncryptedSession<object>(inner, { encryptionKey, ttlMs: 60_000, now: () => now }));
      const session = of(KEY);
      if (before[0] === 'plain') await inner.addItems([user('plain')]);
      if (before[0] === 'theirs') await of('another').addItems([user('theirs')]);
      await session.addItems(Array.from({ length: 40 }, () => user('old')));
      now += 120_000;
      if (before[0] === 'fresh') await session.addItems([user('fresh')]);
      await session.addItems([user('1')]);
      await session.applyHistoryTransaction({
        operationId: 'op',
        transaction: { type: 'replace_suffix', expectedSuffix: [user('1')], replacement: [user('2')] },
      });
      expect((await session.getItems()).at(-1)).toEqual(user('2'));
      expect(await inner.getItems()).toHaveLength(before.length === 0 ? 1 : 41 + before.length);
    }
  });

  it('pop exactly once though the answer to it was lost [SESS-102, SESS-283]', async () => {
    const inner = new MemorySession<object>('s');
    const session = new EncryptedSession<object>(inner, { encryptionKey: KEY, ttlMs: null });
    await session.addItems([user('1'), user('2')]);
    const apply = inner.applyHistoryTransaction.bind(inner);
    let lost = 2;
    inner.applyHistoryTransaction = async (operation) => {
      await apply(operation);
      if (lost-- > 0) throw new SessionOutcomeUnknownError('lost', { operation: 'replace' });
    };
    expect(await session.popItem()).toEqual(user('2'));
    expect(await session.getItems()).toEqual([user('1')]);
    lost = 3;
    await expect(session.popItem()).rejects.toMatchObject({ code: 'session_outcome_unknown' });
  });

  it('hand the context down to sessions that want it, and no others see it [SESS-032, SESS-033, SESS-288]', async () => {
    const calls: unknown[][] = [];
    const store = new MemorySession<object>('s');
    const spy = (accepts: boolean): Session<object> =>
      Object.assign(
        Object.fromEntries(
          (['getItems', 'addItems', 'popItem', 'clearSession'] as const).map((name) => [
            name,
            async (...args: unknown[]) => {
              calls.push([name, ...args]);
              return await (store[name] as (...given: unknown[]) => Promise<unknown>).call(store, ...args.slice(0, 1));
            },
          ]),
        ) as unknown as Session<object>,
        { sessionId: 's', ...(accepts && { acceptsRunContext: true }) },
      );
    const context = new RunContext({});
    const session = new EncryptedSession<object>(spy(true), { encryptionKey: KEY });
    await session.getItems(undefined, context);
    await session.getItems(3, context);
    await session.getItems(0, context);
    await session.addItems([], context);
    await session.popItem(context);
    await session.clearSession(context);
    expect(calls).toEqual([
      ['getItems', undefined, context],
      ['getItems', 3, context],
      ['getItems', 0, context],
      ['addItems', [], context],
      ['getItems', 1, context],
      ['clearSession', context],
    ]);
    await session.addItems([user('x')]);
    calls.length = 0;
    await session.popItem(context);
    expect(calls).toEqual([
      ['getItems', 1, context],
      ['popItem', context],
    ]);
    calls.length = 0;
    const plain = new EncryptedSession<object>(spy(false), { encryptionKey: KEY });
    await plain.getItems();
    await plain.getItems(3);
    await plain.clearSession();
    expect(calls).toEqual([['getItems'], ['getItems', 3], ['clearSession']]);
  });

  it('hand the context down with transactions and versions, too [SESS-033, SESS-288]', async () => {
    const context = new RunContext({});
    const inner = Object.assign(new MemorySession<object>('s'), { acceptsRunContext: true });
    const without: string[] = [];
    for (const name of [
      'getItems',
      'applyHistoryTransaction',
      'readHistory',
      'appendIfVersion',
      'replaceHistory',
    ] as const) {
      const method = (inner[name] as (...args: unknown[]) => Promise<unknown>).bind(inner);
      const value = async (...args: unknown[]): Promise<unknown> => {
        if (args.at(-1) !== context) without.push(name);
        return await method(...args);
      };
      Object.defineProperty(inner, name, { value });
    }
    const session = new EncryptedSession<object>(inner, { encryptionKey: KEY }) as unknown as {
      [name in keyof ManagedSession<object>]: (...args: unknown[]) => Promise<never>;
    };
    const { version } = await session.readHistory(undefined, context);
    await session.appendIfVersion(version, [user('1')], {}, context);
    await session.replaceHistory([user('1')], {}, context);
    for (const transaction of [
      { type: 'append_items', items: [user('2')] },
      { type: 'replace_suffix', expectedSuffix: [user('2')], replacement: [user('3')] },
    ])
      await session.applyHistoryTransaction({ operationId: transaction.type, transaction }, context);
    expect(await session.popItem(context)).toEqual(user('3'));
    expect(without).toEqual([]);
  });
});

it('refuses what has to see the items: a session that compacts, and a conversation of OpenAI [SESS-288]', () => {
  const wrap = (session: unknown) => new EncryptedSession(session as Session<object>, { encryptionKey: KEY });
  const refused = (session: unknown, why: RegExp): void => {
    const message = thrown(() => wrap(session)) as UserError;
    expect([message.name, message.message]).toEqual(['UserError', expect.stringMatching(why)]);
  };
  const memory = new MemorySession('s');
  expect(wrap(memory).session).toBe(memory);
  refused(new OpenAICompactionSession(memory), /cannot wrap a session that compacts/);
  refused(Object.assign(new MemorySession('s'), { runCompaction() {} }), /cannot wrap a session that compacts/);
  refused(new OpenAIConversationsSession('conv_1'), /cannot wrap a conversation that OpenAI keeps/);
});

it('has the id and the settings of the wrapped session, and writes them through [SESS-285]', async () => {
  const inner = plainSession(new MemorySession<object>('s'));
  const session = new EncryptedSession<object>(inner, { encryptionKey: KEY });
  session.sessionSettings = { limit: 1 };
  expect(inner.sessionSettings).toEqual({ limit: 1 });
  await session.addItems([user('1'), user('2'), user('3')]);
  expect(await session.getItems()).toEqual([user('3')]);
  Object.assign(inner, { sessionSettings: { limit: 2 } });
  expect(session.sessionSettings).toEqual({ limit: 2 });
  expect(await session.getItems()).toEqual([user('2'), user('3')]);
  expect([session.sessionId, await session.getSessionId()]).toEqual(['s', 's']);
});

it.each([
  [{}],
  [{ encryptionKey: '' }],
  [{ encryptionKey: [] }],
  [{ encryptionKey: ['secret', ''] }],
  [{ encryptionKey: ['secret', 7] }],
  [{ encryptionKey: 'secret', ttlMs: 0 }],
  [{ encryptionKey: 'secret', ttlMs: -1000 }],
  [{ encryptionKey: 'secret', ttlMs: 1500 }],
  [{ encryptionKey: 'secret', maxScanItems: 0 }],
  [{ encryptionKey: 'secret', plaintext: 'keep' }],
  [{ encryptionKey: 'secret', ttl: 600 }],
  [undefined],
])('refuses wrong options without telling the key [SESS-282, SESS-284, SESS-285]', (options) => {
  const make = () => new EncryptedSession(new MemorySession<object>('s'), options as never);
  expect(make).toThrow(expect.objectContaining({ name: 'UserError' }));
  expect(make).not.toThrow(/secret/);
});
