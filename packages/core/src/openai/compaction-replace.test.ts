import { describe, expect, it } from 'vitest';
import { MemorySession } from '../index.ts';
import type { AgentInputItem } from '../index.ts';
import { SessionOutcomeUnknownError } from '../sessions/errors.ts';
import { RunContext } from '../state/context.ts';
import { FourFunctions, said, summary, talk } from '../../test/compaction-kit.ts';
import { rejection, user } from '../../test/run-kit.ts';
import { replaceAll, replaceSuffix } from './compaction-replace.ts';

const old = talk(2);
type Around = (change: () => Promise<unknown>, memory: MemorySession) => Promise<unknown>;

/** Replacements of a history in one step, each of which goes through `around`. */
const ways = {
  'the end of a history': (memory: MemorySession, around: Around) => {
    const apply = memory.applyHistoryTransaction.bind(memory);
    memory.applyHistoryTransaction = async (...args) => void (await around(async () => await apply(...args), memory));
    return replaceSuffix({ session: memory, ctx: undefined, old, compacted: [summary] });
  },
  'a history by its version': (memory: MemorySession, around: Around) => {
    const session = Object.assign(new FourFunctions(), {
      memory,
      readHistory: memory.readHistory.bind(memory),
      appendIfVersion: memory.appendIfVersion.bind(memory),
      replaceHistory: async (...args: Parameters<MemorySession['replaceHistory']>) =>
        (await around(async () => await memory.replaceHistory(...args), memory)) as string,
    });
    return replaceAll({ session, ctx: undefined, old, compacted: [summary] });
  },
};

describe.each(Object.entries(ways))('a replacement of %s', (_, replace) => {
  it('is repeated while nobody knows whether it was stored, and stored once [SESS-315]', async () => {
    const memory = new MemorySession('s', { items: old });
    let lost = 2;
    const isReplaced = await replace(memory, async (change) => {
      const value = await change();
      // Another writer comes before the repetition: only its operation id tells that it was stored.
      if (lost === 2) await memory.addItems([user('after')]);
      if (lost-- > 0) throw new SessionOutcomeUnknownError('lost', { operation: 'replace' });
      return value;
    });
    expect(isReplaced).toBe(true);
    expect(await memory.getItems()).toEqual([summary, user('after')]);
  });

  it('is tried three times against others who append, and then given up [SESS-316]', async () => {
    for (const times of [2, 3]) {
      const memory = new MemorySession('s', { items: old });
      let left = times;
      const isReplaced = await replace(memory, async (change) => {
        if (left-- > 0) await memory.addItems([user('meanwhile')]);
        return await change();
      });
      const meanwhile = Array.from({ length: times }, () => user('meanwhile'));
      expect(isReplaced).toBe(times === 2);
      expect(await memory.getItems()).toEqual([...(times === 2 ? [summary] : old), ...meanwhile]);
    }
  });

  it('that fails in another way is not tried again [SESS-315]', async () => {
    const memory = new MemorySession('s', { items: old });
    let calls = 0;
    const error = new Error('disk full');
    const failed = replace(memory, async () => {
      calls++;
      throw error;
    });
    expect([await rejection(failed), calls]).toEqual([error, 1]);
    expect(await memory.getItems()).toEqual(old);
  });

  it('keeps very much that others appended [SESS-316]', async () => {
    const meanwhile = talk(300, 'meanwhile');
    const memory = new MemorySession('s', { items: [...old, ...meanwhile] });
    expect(await replace(memory, async (change) => await change())).toBe(true);
    expect(await memory.getItems()).toEqual([summary, ...meanwhile]);
  });
});

describe('a replacement of a history in two steps', () => {
  it('keeps very much that others appended [SESS-316]', async () => {
    const session = new FourFunctions();
    const meanwhile = talk(300, 'meanwhile');
    await session.addItems([...old, ...meanwhile]);
    expect(await replaceAll({ session, ctx: undefined, old, compacted: [summary] })).toBe(true);
    expect(await session.getItems()).toEqual([summary, ...meanwhile]);
  });

  it.each([
    ['was aborted', 'AbortError'],
    ['failed', 'Error'],
  ])('puts back a history of the same length where the add was stored, but %s [SESS-315]', async (_, name) => {
    const session = new FourFunctions();
    await session.addItems([said('only')]);
    const error = Object.assign(new Error('no answer'), { name });
    let isFirst = true;
    session.addItems = async (items) => {
      await session.memory.addItems(items);
      if (isFirst) {
        isFirst = false;
        throw error;
      }
    };
    const failed = replaceAll({ session, ctx: undefined, old: [said('only')], compacted: [summary] });
    expect(await rejection(failed)).toBe(error);
    expect(await session.getItems()).toEqual([said('only')]);
  });

  it('gives the context of the run to each call, those that put back included [SESS-033, SESS-315]', async () => {
    const memory = new MemorySession('s', { items: old });
    const ctx = new RunContext({ tenant: 'a' });
    const seen: [string, unknown][] = [];
    const session = {
      acceptsRunContext: true as const,
      sessionId: 's',
      getItems: async (limit?: number, context?: RunContext) => {
        seen.push(['read', context]);
        return await memory.getItems(limit);
      },
      addItems: async (items: readonly AgentInputItem[], context?: RunContext) => {
        seen.push(['add', context]);
        if (seen.length === 3) throw new Error('disk full');
        await memory.addItems(items);
      },
      popItem: async () => await memory.popItem(),
      clearSession: async (context?: RunContext) => {
        seen.push(['clear', context]);
        await memory.clearSession();
      },
    };
    await rejection(replaceAll({ session, ctx, old, compacted: [summary] }));
    expect(seen).toEqual(['read', 'clear', 'add', 'read', 'add'].map((call) => [call, ctx]));
    expect(await memory.getItems()).toEqual(old);
  });
});
