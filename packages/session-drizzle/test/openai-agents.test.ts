import { checkWithOpenAIAgents } from '@agents/testkit/openai-agents';
import type { TheirItem, TheirSession } from '@agents/testkit/openai-agents';
import { expect, it } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName } from './support/databases.ts';
import { makeTables } from './support/tables.ts';

it.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])(
  '%s is the session of a runner of @openai/agents over three turns with a tool, its changes of history too [SESS#75, SESS-393]',
  async (driver) => {
    const opened = await open(driver);
    await makeTables(opened);
    // With the table of operations, which these databases have, it has history transactions.
    const session = () => new DrizzleSession<TheirItem>('s', { db: opened.db }) as TheirSession;
    await expect(checkWithOpenAIAgents(session)).resolves.toBeUndefined();
    await opened.close();
  },
);
