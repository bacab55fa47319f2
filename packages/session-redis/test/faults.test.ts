import { faultKinds, faultOperations, meetFault } from '@agents/testkit';
import type { FaultKind, FaultOperation, FaultOutcome } from '@agents/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startSubject } from './faults/subject.ts';

/** What a fault may lead to. */
const possible: Record<FaultKind, readonly FaultOutcome[]> = {
  before: ['absent', 'refused'],
  middle: ['absent'],
  sent: ['committed', 'absent'],
  reply: ['committed'],
  restart: ['ok', 'committed', 'absent', 'refused'],
  killed: ['committed', 'absent'],
};

/** A process or a server is started anew for these: all of them are in `pnpm faults redis`. */
const costly: Partial<Record<FaultKind, readonly FaultOperation[]>> = {
  restart: ['append', 'pop'],
  killed: ['append'],
};

describe.each(['lua', 'multi'] as const)('changes by %s', (scripting) => {
  let subject: Awaited<ReturnType<typeof startSubject>>;
  beforeAll(async () => {
    subject = await startSubject(scripting);
  });
  afterAll(() => subject.stop());

  const cells = faultKinds.flatMap((fault) =>
    faultOperations
      .filter((operation) => costly[fault]?.includes(operation) ?? true)
      .map((operation) => [operation, fault] as const),
  );
  it.each(cells)(
    '%s, %s: whole or not at all, and settled by its id [SESS-006, 034, 151, 226]',
    async (operation, fault) => {
      for (const round of fault === 'killed' ? [0] : [0, 1])
        expect(possible[fault]).toContain(await meetFault(subject, operation, fault, round));
    },
  );
});
