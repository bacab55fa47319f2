import type { MaybePromise } from '../../agent/tool.ts';
import type { Session, SessionSettings } from '../../sessions/contract.ts';
import { contractCase } from './case.ts';
import type { ContractCase } from './case.ts';
import { basics } from './session/basics.ts';
import { concurrency } from './session/concurrency.ts';
import { corrupt } from './session/corrupt.ts';
import { faults } from './session/faults.ts';
import { fidelity } from './session/fidelity.ts';
import { lifecycle } from './session/lifecycle.ts';
import { limits } from './session/limits.ts';
import { operations } from './session/operations.ts';
import { refusals } from './session/refusals.ts';
import { runs } from './session/runs.ts';
import { Scene } from './session/scene.ts';
import { versions } from './session/versions.ts';

export interface SessionFixture<T extends object = object> {
  /** A session object; a second one with the same id sees the same history. */
  open(sessionId: string, options?: { sessionSettings?: SessionSettings }): MaybePromise<Session<T>>;
  /** Puts a record that cannot be decoded at the end. */
  addCorrupt?(sessionId: string, record: string): MaybePromise<void>;
  /** The records that cannot be decoded, oldest first, as the store has them: so that a case sees whether they were kept. */
  readCorrupt?(sessionId: string): MaybePromise<readonly string[]>;
  /** Breaks the next mutation: before it reaches the store, or after it was stored and the answer is lost. */
  failNext?(when: 'before' | 'after'): void;
  dispose?(): MaybePromise<void>;
}

/**
 * What every session must do, as cases for any test runner. `make` is called for each case; it may reuse server and
 * database, since a case touches only ids that it drew.
 *
 * @example for (const c of sessionContract(() => ({ open: (id) => new MySession(id) }))) it(c.title, (t) => c.run(t));
 */
export function sessionContract<T extends object>(make: () => MaybePromise<SessionFixture<T>>): ContractCase[] {
  const groups = [
    basics,
    limits,
    fidelity,
    refusals,
    corrupt,
    concurrency,
    faults,
    lifecycle,
    operations,
    versions,
    runs,
  ];
  return groups.flat().map(({ id, title, body }) =>
    contractCase(id, title, async () => {
      const fixture = await make();
      try {
        await body(new Scene(fixture));
      } finally {
        await fixture.dispose?.();
      }
    }),
  );
}
