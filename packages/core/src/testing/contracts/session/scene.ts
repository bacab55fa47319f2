import { randomHex } from '../../../base/ids.ts';
import { supports } from '../../../sessions/contract.ts';
import type { ManagedSession, Session, SessionCapabilities, SessionSettings } from '../../../sessions/contract.ts';
import { same, skip } from '../case.ts';
import type { SessionFixture } from '../session.ts';

/** A case as data. */
export interface SessionCase {
  readonly id: string;
  readonly title: string;
  readonly body: (scene: Scene) => Promise<void>;
}

export type Items = readonly object[];

/** What the cases work with: a fixture and an id that nobody else has. */
export class Scene {
  readonly fixture: SessionFixture;
  readonly id: string = `contract-${randomHex(8)}`;

  constructor(fixture: SessionFixture) {
    this.fixture = fixture;
  }

  async open(sessionSettings?: SessionSettings, id: string = this.id): Promise<Session<object>> {
    return await this.fixture.open(id, sessionSettings && { sessionSettings });
  }

  /** A session that holds these items. */
  async filled(items: Items, sessionSettings?: SessionSettings): Promise<Session<object>> {
    const session = await this.open(sessionSettings);
    await session.addItems(items);
    return session;
  }

  async sibling(): Promise<Session<object>> {
    return await this.open(undefined, `${this.id}-sibling`);
  }

  /** Sessions of other ids that a store could take for the same, or for a pattern that means this one. It may refuse some. */
  async alike(): Promise<readonly Session<object>[]> {
    const sessions: Session<object>[] = [];
    for (const id of this.#alike())
      try {
        sessions.push(await this.open(undefined, id));
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'session_id_invalid') throw error;
      }
    return sessions;
  }

  #alike(): readonly string[] {
    const { id } = this;
    const long = id.padEnd(1023, '-');
    return [
      `%${id}`,
      `*${id}`,
      id.replaceAll('-', '_'),
      id.toUpperCase(),
      `${id}-sibling`,
      `${id} `,
      `${id}\u00e9`,
      `${id}e\u0301`,
      `${long}1`,
      `${long}2`,
    ];
  }

  async capable<K extends keyof SessionCapabilities>(
    capability: K,
    session?: Session<object>,
  ): Promise<SessionCapabilities<object>[K]> {
    const opened: unknown = session ?? (await this.open());
    return supports(opened, capability) ? opened : skip(`the session has no capability '${capability}'`);
  }

  async managed(): Promise<ManagedSession<object>> {
    const session = await this.open();
    return 'close' in session && typeof session.close === 'function'
      ? (session as ManagedSession<object>)
      : skip('the session has no close()');
  }
}

/** Looks again and again until the work has ended. */
export async function lookWhile(work: Promise<unknown>, look: () => Promise<void>): Promise<void> {
  const state = { pending: true };
  const ended = work.finally(() => {
    state.pending = false;
  });
  while (state.pending) {
    await look();
    await new Promise((resolve) => setTimeout(resolve));
  }
  await ended;
}

/** The items as `getItems` reads them, and as `readHistory` does where the session has versions. */
export async function read(session: Session<object>, limit?: number): Promise<Items> {
  const items = limit === undefined ? await session.getItems() : await session.getItems(limit);
  const given: unknown = session;
  if (supports(given, 'versions')) same((await given.readHistory(limit)).items, items, 'items of readHistory()');
  return items;
}

export function user(text: string): object {
  return { role: 'user', content: text };
}

/** `user('1') … user(String(count))`, or from another number on. */
export function users(count: number, from = 1): object[] {
  return Array.from({ length: count }, (_, index) => user(String(from + index)));
}
