import { describe, expect, it } from 'vitest';

import type { SessionPage, SessionPageResult } from './store-backend.ts';
import { listPage, readQuery } from './store-query.ts';

const COUNT = 3000;

/** Sessions of which every so many-th one has the tag, and the sizes of the pages that were asked for. */
function storeOf(every: number) {
  const asked: number[] = [];
  const list = ({ limit, after }: SessionPage): SessionPageResult => {
    asked.push(limit);
    const from = Number(after?.[0] ?? 0);
    const sessions = Array.from({ length: Math.min(limit, COUNT - from) }, (_, index) => ({
      sessionId: `s${from + index}`,
      metadata: (from + index) % every === 0 ? { tag: 1 } : {},
    }));
    const next = from + sessions.length;
    return next < COUNT ? { sessions, next: [next] } : { sessions };
  };
  return { list, asked };
}

async function allOf(list: (page: SessionPage) => SessionPageResult, limit: number): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const query = { metadata: { tag: 1 }, order: 'id', limit, ...(cursor !== undefined && { cursor }) } as const;
    const page = await listPage(readQuery(query, 'list()'), list);
    expect(page.sessions.length).toBeLessThanOrEqual(limit);
    ids.push(...page.sessions.map(({ sessionId }) => sessionId));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return ids;
}

describe('a list by conditions that the backend does not know [SESS-372]', () => {
  it.each([1, 2, 3, 7, 100, 2999])('gives each session once, in pages of any size: every %sth one', async (every) => {
    const expected = Array.from({ length: Math.ceil(COUNT / every) }, (_, index) => `s${index * every}`);
    for (const limit of [1, 2, 5, 50, 499, 5000]) expect(await allOf(storeOf(every).list, limit)).toEqual(expected);
  });

  it('asks for more at once where few match: not one by one for the last place of a page', async () => {
    const { list, asked } = storeOf(1000);
    expect(await allOf(list, 4)).toEqual(['s0', 's1000', 's2000']);
    expect(asked).toEqual([4, 8, 16, 32, 64, 128, 256, 500, 500, 500, 500, 500]);
  });

  it('asks for no more than it needs where all match', async () => {
    const { list, asked } = storeOf(1);
    expect(await listPage(readQuery({ metadata: { tag: 1 }, limit: 10 }, 'list()'), list)).toMatchObject({
      sessions: { length: 10 },
    });
    expect(asked).toEqual([10]);
  });
});
