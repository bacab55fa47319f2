import { afterEach, describe, expect, it, vi } from 'vitest';
import { MemorySession, UserError } from '../index.ts';
import type { AgentInputItem } from '../index.ts';
import type { Session } from '../session.ts';
import { exchangeDigest } from '../sessions/compaction-hook.ts';
import { compactionEvidence } from '../sessions/contract.ts';
import type { CompactionOptions } from '../sessions/contract.ts';
import { resetDefaults } from '../testing/index.ts';
import { FourFunctions, item, logged, said, summary, talk, wrapped } from '../../test/compaction-kit.ts';
import { rejection, user } from '../../test/run-kit.ts';

afterEach(resetDefaults);

/** The session, compacted as a run does it that saw `exchange`, after `resp_0` was put off. */
async function automatic(session: Session, exchange: readonly AgentInputItem[], options: CompactionOptions = {}) {
  const rule = vi.fn<(asked: { items: readonly unknown[]; responseId: string | undefined }) => boolean>(() => true);
  const { compacting, asked, gives } = await wrapped(session, { shouldCompact: rule });
  await compacting.deferCompaction('resp_0');
  rule.mockClear();
  gives([summary]);
  const evidence = {
    itemDigests: exchange.map((one) => exchangeDigest(one, null, undefined)),
    reasoningItemIdPolicy: null,
    generation: undefined,
    signal: undefined,
  };
  const given = { mode: 'input', ...options, [compactionEvidence]: evidence } as const;
  const logs = await logged(() => compacting.runCompaction(given));
  return {
    asked: asked(),
    putOff: compacting.deferredResponseId,
    /** What the rule was asked about: how many items, after which response. */
    judged: rule.mock.calls.map(([{ items, responseId }]) => [items.length, responseId]),
    warnings: logs.filter(({ level }) => level === 'warn'),
  };
}

describe('an automatic compaction', () => {
  it('asks nothing where nothing of the history was seen, with one warning [SESS-323, 326, SESS#94]', async () => {
    for (const exchange of [[], [user('something else')]]) {
      const memory = new MemorySession('s', { items: talk(2) });
      const { asked, putOff, warnings } = await automatic(memory, exchange);
      expect([asked, putOff, warnings.length]).toEqual([[], 'resp_0', 1]);
      expect(await memory.getItems()).toEqual(talk(2));
    }
  });

  it('asks nothing where a part was seen that has no message of the user, and does not warn [SESS-323, 326]', async () => {
    const memory = new MemorySession('s', { items: talk(3) });
    const { asked, putOff, warnings } = await automatic(memory, talk(3).slice(1));
    expect([asked, putOff, warnings]).toEqual([[], 'resp_0', []]);
    expect(await memory.getItems()).toEqual(talk(3));
  });

  it.each([
    ['with history transactions', () => new MemorySession()],
    ['of four functions', () => new FourFunctions()],
  ])(
    'takes the whole of a history that was seen, from its beginning on, on a session %s [SESS-323]',
    async (_, make) => {
      const session = make();
      const all = [said('greeting'), ...talk(2)];
      await session.addItems(all);
      const { asked, putOff } = await automatic(session, [user('only seen'), ...all]);
      expect(asked.map(({ input }) => (input as unknown[]).length)).toEqual([4]);
      expect(putOff).toBeUndefined();
      expect(await session.getItems()).toEqual([summary]);
    },
  );

  it('reads no more than what was seen and what others may have appended, however long the history is [SESS-318]', async () => {
    const memory = new MemorySession('s', { items: talk(5000, 'old') });
    await memory.addItems(talk(2));
    const read = vi.spyOn(memory, 'getItems');
    await automatic(memory, talk(2), { force: true });
    expect(await memory.getItems(2)).toEqual([said('old4999'), summary]);
    // The first call decided what to put off.
    expect(read.mock.calls.slice(1).every(([limit]) => limit !== undefined && limit < 100)).toBe(true);
  });

  it('is skipped for a part where this very call is to ask by response alone [SESS-325]', async () => {
    const memory = new MemorySession('s', { items: [...talk(1, 'old'), ...talk(2)] });
    const byResponse = { mode: 'previous_response_id', responseId: 'resp_1' } as const;
    const { asked, putOff } = await automatic(memory, talk(2), byResponse);
    expect([asked, putOff]).toEqual([[], 'resp_0']);
    expect(await memory.getItems()).toEqual([...talk(1, 'old'), ...talk(2)]);
  });

  it('asks its rule about the whole, then about the part, after which response each time [SESS-325]', async () => {
    for (const force of [false, true]) {
      const memory = new MemorySession('s', { items: [...talk(1, 'old'), ...talk(2)] });
      const { asked, judged } = await automatic(memory, talk(2), { responseId: 'resp_1', force });
      expect(judged).toEqual([...(force ? [] : [[5, 'resp_1']]), [3, 'resp_1']]);
      expect(asked).toHaveLength(1);
    }
  });

  it('is skipped where calls are open, and goes on remembering what was put off [SESS-324, 326]', async () => {
    const open = item({ type: 'function_call', call_id: 'c', name: 't', arguments: '{}' });
    for (const old of [[], talk(1, 'old')]) {
      const memory = new MemorySession('s', { items: [...old, ...talk(2), open] });
      const { asked, putOff } = await automatic(memory, [...talk(2), open]);
      expect([asked, putOff]).toEqual([[], 'resp_0']);
    }
  });
});

describe('the way to ask', () => {
  it('is that which was given, where the service does not have the response either [SESS-313]', async () => {
    const { session, compacting, asked, gives } = await wrapped(new MemorySession());
    const compact = async (options: CompactionOptions) => {
      await session.addItems([user('again')]);
      gives([summary]);
      await compacting.runCompaction({ force: true, ...options });
      return asked().at(-1)?.['previous_response_id'];
    };
    const byResponse = { mode: 'previous_response_id', responseId: 'resp_1' } as const;
    expect(await compact({ ...byResponse, store: false })).toBe('resp_1');
    expect(await compact({ responseId: 'resp_1' })).toBeUndefined();
    // Another response is not known to be unstored; nor is the first one any more when somebody says that it is stored.
    expect(await compact({ responseId: 'resp_2' })).toBe('resp_2');
    expect(await compact({ responseId: 'resp_1' })).toBeUndefined();
    expect(await compact({ responseId: 'resp_1', store: true })).toBe('resp_1');
    expect(await compact({ responseId: 'resp_1' })).toBe('resp_1');
  });

  it('is refused where it is misspelled, before anything is remembered [SESS-319]', async () => {
    const { compacting, asked } = await wrapped(new MemorySession('s', { items: talk(10) }));
    for (const wrong of [{ modus: 'input' }, { mode: 'output' }, { store: 1 }, { force: 'yes' }, { responseId: '' }])
      await expect(compacting.runCompaction(wrong as never)).rejects.toThrow(/runCompaction\(\)/u);
    for (const wrong of [{ stored: false }, { store: 'no' }])
      await expect(compacting.deferCompaction('resp_1', wrong as never)).rejects.toThrow(/deferCompaction\(\)/u);
    expect([asked(), compacting.deferredResponseId]).toEqual([[], undefined]);
  });

  it('by response needs one, whether the session or the call wants it [SESS-313]', async () => {
    const { compacting, asked } = await wrapped(new MemorySession('s', { items: talk(2) }));
    const failed = compacting.runCompaction({ force: true, mode: 'previous_response_id' });
    expect(await rejection(failed)).toBeInstanceOf(UserError);
    expect(asked()).toEqual([]);
  });
});
