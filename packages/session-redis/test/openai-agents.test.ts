import { checkWithOpenAIAgents } from '@agents/testkit/openai-agents';
import type { TheirItem } from '@agents/testkit/openai-agents';
import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

it('is the session of a runner of @openai/agents over three turns with a tool, its changes of history too [SESS#75, SESS-393]', async () => {
  const keyPrefix = freshPrefix();
  const open = () => new RedisSession<TheirItem>('s', { client: redis, keyPrefix });
  await expect(checkWithOpenAIAgents(open)).resolves.toBeUndefined();
});
