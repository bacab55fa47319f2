import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { checkWithOpenAIAgents } from '@agents/testkit/openai-agents';
import type { TheirItem } from '@agents/testkit/openai-agents';
import { afterAll, expect, it } from 'vitest';

import { SQLiteSession } from '../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-openai-agents-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('is the session of a runner of @openai/agents over three turns with a tool, its changes of history too [SESS#75, SESS-393]', async () => {
  const open = () => new SQLiteSession<TheirItem>('s', join(folder, 'theirs.db'));
  await expect(checkWithOpenAIAgents(open)).resolves.toBeUndefined();
});
