import { describe, expect, it } from 'vitest';

import { sessionContract } from '../testing/contracts/session.ts';
import type { SessionSettings } from './contract.ts';
import { MemorySession } from './memory.ts';

/** Cases that cannot be run here are left out by name; any other must not be skipped. */
const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract', () => {
  const make = () => {
    // A store that objects can share, so that cases about a second object mean something.
    const sessions = new Map<string, MemorySession<object>>();
    return {
      async open(id: string, options?: { sessionSettings?: SessionSettings }) {
        const known = sessions.get(id);
        if (known !== undefined)
          return options === undefined
            ? known
            : new MemorySession(id, { ...options, items: await known.getItems(Number.MAX_SAFE_INTEGER) });
        const session = new MemorySession<object>(id, options);
        sessions.set(id, session);
        return session;
      },
    };
  };
  // Nothing in memory is corrupt, fails or was handed in.
  const impossible = /^(E|G|H3)/;
  it.each(sessionContract(make).filter(({ id }) => !impossible.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

it('draws an id when none is given', () => {
  expect(new MemorySession().sessionId).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
});
