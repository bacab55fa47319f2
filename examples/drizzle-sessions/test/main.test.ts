import { expect, it } from 'vitest';

import { main } from '../src/main.ts';

it('conversations live in a schema of their own, an operation counts once, a fork stops before a turn', async () => {
  const { TEST_POSTGRES_URL: url, TEST_POSTGRES_URL_MISSING: missing } = process.env;
  if (url === undefined) throw new Error(missing ?? 'TEST_POSTGRES_URL is not set.');
  expect(await main(url)).toEqual({
    answers: [expect.stringContaining('"My name is Ada."'), 'You said earlier: "My name is Ada."'],
    once: 1,
    forked: 2,
    listed: [
      { sessionId: 'user-ada', itemCount: 4, metadata: { title: 'Names' } },
      { sessionId: 'user-ada-again', itemCount: 2, metadata: undefined },
      { sessionId: 'user-bob', itemCount: 1, metadata: undefined },
    ],
  });
});
