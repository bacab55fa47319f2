import { startProcess } from '@agents/testkit';
import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

const script = new URL('processes/append.ts', import.meta.url);

async function contents(keyPrefix: string): Promise<string[]> {
  const session = new RedisSession<{ content: string }>('s', { client: redis, keyPrefix });
  return (await session.getItems()).map((item) => item.content);
}

/** Every batch whole, contiguous and in order; gives its names. */
function batchesOf(items: readonly string[], size: number): string[] {
  expect(items.length % size).toBe(0);
  const names: string[] = [];
  for (let at = 0; at < items.length; at += size) {
    const name = items[at]!.replace(/\/\d+$/, '');
    expect(items.slice(at, at + size)).toEqual(Array.from({ length: size }, (_, index) => `${name}/${index}`));
    names.push(name);
  }
  return names;
}

it('two processes append 100 batches each, one by scripts and one by MULTI: none is lost or split [F6, SESS-006, 221, 222]', async () => {
  const prefix = freshPrefix();
  const children = [
    startProcess(script, redisUrl(), prefix, 's', 'a', 100, 3),
    startProcess(script, redisUrl(), prefix, 's', 'b', 100, 3, 'multi'),
  ];
  await Promise.all(children.map((child) => child.line(1)));
  for (const child of children) child.process.stdin.write('go\n');
  expect(await Promise.all(children.map((child) => child.ended))).toEqual([0, 0]);
  const batches = batchesOf(await contents(prefix), 3);
  expect(batches).toHaveLength(200);
  // In the order of each writer.
  for (const name of ['a', 'b'])
    expect(batches.filter((batch) => batch.startsWith(name))).toEqual(
      Array.from({ length: 100 }, (_, index) => `${name}/${index}`),
    );
});

it('what a process appended before it was killed is there, and at most one whole batch more [SESS#12, SESS-006]', async () => {
  const prefix = freshPrefix();
  const children = ['lua', 'multi'].map((scripting) =>
    startProcess(script, redisUrl(), `${prefix}:${scripting}`, 's', 'w', 100_000, 3, scripting),
  );
  for (const [index, child] of children.entries()) {
    await child.line(1);
    child.process.stdin.write('go\n');
    // While it is at it.
    await child.line(20 + index);
    child.process.kill('SIGKILL');
    expect(await child.ended).toBe('SIGKILL');
    const acknowledged = child.lines().length - 1;
    const batches = batchesOf(await contents(`${prefix}:${index === 0 ? 'lua' : 'multi'}`), 3);
    expect([acknowledged, acknowledged + 1]).toContain(batches.length);
  }
});
