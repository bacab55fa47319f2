import { expect, it } from 'vitest';

import { main } from '../src/main.ts';

it('two servers share the conversations, and the late one notices the other', async () => {
  const { TEST_REDIS_URL: url, TEST_REDIS_URL_MISSING: missing } = process.env;
  if (url === undefined) throw new Error(missing ?? 'TEST_REDIS_URL is not set.');
  expect(await main(url, `example:${process.pid}:${Date.now()}`)).toEqual({
    answers: [
      expect.stringContaining('"My name is Ada."'),
      expect.stringContaining('"My name is Bob."'),
      'You said earlier: "My name is Ada."',
    ],
    conflict: true,
    listed: [
      { sessionId: 'user-ada', itemCount: 4, metadata: { title: 'Names' } },
      { sessionId: 'user-bob', itemCount: 3, metadata: undefined },
    ],
    left: 0,
  });
});
