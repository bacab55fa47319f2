import { randomHex } from '../../../base/ids.ts';
import type { Session } from '../../../sessions/contract.ts';
import type { SessionInfo, SessionQuery, SessionStore } from '../../../sessions/store.ts';
import { check, skip } from '../case.ts';
import type { SessionStoreFixture } from '../session-store.ts';

export interface StoreCase {
  readonly id: string;
  readonly title: string;
  readonly body: (scene: StoreScene) => Promise<void>;
}

export type Items = readonly object[];

/** Fixtures give sessions of any item; cases write plain objects. */
export interface AnyStore extends Omit<SessionStore, 'session' | 'fork'> {
  session(...given: Parameters<SessionStore['session']>): Session<object>;
  fork(...given: Parameters<SessionStore['fork']>): Promise<Session<object>>;
}

export class StoreScene {
  readonly fixture: SessionStoreFixture;
  readonly id: string = `store-${randomHex(8)}`;
  readonly #opened: AnyStore[] = [];

  constructor(fixture: SessionStoreFixture) {
    this.fixture = fixture;
  }

  async open(): Promise<AnyStore> {
    const store = (await this.fixture.open()) as unknown as AnyStore;
    this.#opened.push(store);
    return store;
  }

  async closeAll(): Promise<void> {
    for (const store of this.#opened) await store.close();
  }

  /** A store with one session of these items. */
  async filled(items: Items, id: string = this.id): Promise<AnyStore> {
    const store = await this.open();
    await store.session(id).addItems(items);
    return store;
  }

  async age(sessionId: string, ms: number): Promise<void> {
    if (this.fixture.age === undefined) skip('the fixture cannot make sessions look older');
    await this.fixture.age(sessionId, ms);
  }

  needsOrder(): void {
    if (this.fixture.ordered === false) skip('lists of this store have no order');
  }
}

/** All pages of a list. */
export async function all(store: AnyStore, query: SessionQuery = {}): Promise<SessionInfo[]> {
  const sessions: SessionInfo[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await store.list({ ...query, ...(cursor !== undefined && { cursor }) });
    const { limit } = query;
    check(limit === undefined || page.sessions.length <= limit, `at most ${limit} sessions on a page`);
    sessions.push(...page.sessions);
    const isNew = page.cursor === undefined || !cursors.has(page.cursor);
    check(
      isNew,
      `pages that end: the one after ${sessions.at(-1)?.sessionId} gives its own cursor, so it begins with what the page before it ended with`,
    );
    if (page.cursor !== undefined) cursors.add(page.cursor);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return sessions;
}

export function idsOf(sessions: readonly SessionInfo[]): string[] {
  return sessions.map(({ sessionId }) => sessionId);
}

export const DAY: number = 24 * 60 * 60 * 1000;

const user = (content: string): object => ({ role: 'user', content });
const answer = (content: string): object => ({ role: 'assistant', content });
const call = (id: string): object => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
const output = (id: string): object => ({ type: 'function_call_output', call_id: id, output: id });

/** Three turns: a question, reasoning, a call with its output, an answer. */
export function turn(number: number): object[] {
  const id = `call_${number}`;
  return [
    user(`question ${number}`),
    { type: 'reasoning', id: `rs_${number}`, summary: [] },
    call(id),
    output(id),
    answer(`answer ${number}`),
  ];
}

export function turns(count: number): object[] {
  return Array.from({ length: count }, (_, index) => turn(index + 1)).flat();
}

export { answer, call, output, user };
