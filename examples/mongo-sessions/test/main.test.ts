import { expect, it } from 'vitest';

import { main } from '../src/main.ts';

it('two servers share the conversations, and a store lists and shortens them', async () => {
  const { TEST_MONGO_URL: url, TEST_MONGO_URL_MISSING: missing } = process.env;
  if (url === undefined) throw new Error(missing ?? 'TEST_MONGO_URL is not set.');
  expect(await main(url, `example_${process.pid}_${Date.now()}`)).toEqual({
    answers: [expect.stringContaining('Ada'), expect.stringContaining('Bob'), 'You said earlier: "My name is Ada."'],
    listed: [
      { sessionId: 'user-ada', itemCount: 4, metadata: { title: 'Names' } },
      { sessionId: 'user-bob', itemCount: 2, metadata: undefined },
    ],
    left: 2,
  });
});
