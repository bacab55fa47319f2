import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { sessionContract } from '@agents/core/testing';
import { afterAll, describe, expect, it } from 'vitest';

import { SQLiteSession } from './session.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('contract, sessions on a file', () => {
  const path = join(folder, 'contract.db');
  const make = () => ({
    open: (id: string, options?: object) => new SQLiteSession<object>(id, { path, ...options }),
    addCorrupt(id: string, record: string) {
      const database = new DatabaseSync(path);
      database.prepare('INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)').run(id, record);
      database.close();
    },
  });
  for (const contractCase of sessionContract(make)) it(contractCase.title, (t) => contractCase.run(t));
});
