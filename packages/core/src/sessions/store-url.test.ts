import { expect, it } from 'vitest';

import { checkStoreUrl } from './store-url.ts';

const check = (url: unknown) => checkStoreUrl(url, ['redis', 'rediss'], 'Store.open()');

it.each(['redis://h', 'rediss://user:secret@h:1/2', 'REDIS:x'])(
  'takes the URL of a store as it is: %s [SESS-391]',
  (url) => {
    expect(check(url)).toBe(url);
  },
);

it.each([
  undefined,
  7,
  '',
  'secret',
  'redis:',
  'rediss:',
  'redi://secret',
  'xredis://secret',
  'redisx:secret',
  'redis:a\nsecret',
])('refuses %j by the schemes alone, and shows nothing of it [SESS-391]', (url) => {
  expect(() => check(url)).toThrow(
    expect.objectContaining({
      name: 'UserError',
      message: 'Store.open() takes a URL that begins with redis: or rediss:.',
    }),
  );
});
