import type { MaybePromise } from '../../agent/tool.ts';
import type { Session } from '../../sessions/contract.ts';
import type { SessionStore } from '../../sessions/store.ts';
import { contractCase } from './case.ts';
import type { ContractCase } from './case.ts';
import { copies } from './session-store/copies.ts';
import { exports } from './session-store/exports.ts';
import { lists } from './session-store/lists.ts';
import { metadata } from './session-store/metadata.ts';
import { retention } from './session-store/retention.ts';
import { StoreScene } from './session-store/scene.ts';
import { stores } from './session-store/stores.ts';

export interface SessionStoreFixture {
  /** A store object; a second one sees the same sessions. */
  open(): MaybePromise<SessionStore<Session>>;
  /** Makes a session look as if it was made and last updated so many milliseconds earlier than it was. */
  age?(sessionId: string, ms: number): MaybePromise<void>;
  /** Whether pages are sorted and have each session once (SESS-371). Default `true`. */
  readonly ordered?: boolean | undefined;
  dispose?(): MaybePromise<void>;
}

/**
 * What every store of sessions must do, as cases for any test runner. `make` is called for each case and gives a store that
 * is empty, and that nobody else uses: some cases prune all of it.
 *
 * @example for (const c of sessionStoreContract(() => ({ open: () => new MyStore() }))) it(c.title, (t) => c.run(t));
 */
export function sessionStoreContract(make: () => MaybePromise<SessionStoreFixture>): ContractCase[] {
  return [stores, lists, metadata, copies, retention, exports].flat().map(({ id, title, body }) =>
    contractCase(id, title, async () => {
      const fixture = await make();
      const scene = new StoreScene(fixture);
      try {
        await body(scene);
      } finally {
        await scene.closeAll();
        await fixture.dispose?.();
      }
    }),
  );
}
