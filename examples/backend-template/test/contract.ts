// node --test test/contract.ts
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';

import { decodeItem } from '@agents/core/session';
import { sessionContract, sessionStoreContract } from '@agents/core/testing';
import type { SessionFixture, SessionStoreFixture } from '@agents/core/testing';

import type { Document } from '../src/database.ts';
import { ConnectionLost } from '../src/history.ts';
import { Database, TemplateSession, TemplateSessionStore } from '../src/index.ts';

/** A database whose next change fails: before it is made, or after it, when its answer is lost. */
class BreakableDatabase extends Database {
  next: 'before' | 'after' | undefined;

  override async update(key: string, change: (document: Document | undefined) => Document | undefined): Promise<void> {
    const when = this.next;
    this.next = undefined;
    if (when === 'before') throw new Error('The database refused.');
    await super.update(key, change);
    if (when === 'after') throw new ConnectionLost('The answer was lost.');
  }
}

void describe('sessions', () => {
  /** A new, empty store for each case. What a fixture leaves out, cases skip and say so. */
  const make = (): SessionFixture => {
    const database = new BreakableDatabase();
    return {
      open: (id, options) => new TemplateSession<object>(id, { database, ...options }),
      addCorrupt: async (id, record) =>
        await database.update(id, (document) => ({
          operations: {},
          createdAt: 0,
          updatedAt: 0,
          ...document,
          version: randomUUID(),
          texts: [...(document?.texts ?? []), record],
        })),
      readCorrupt: async (id) => (await database.get(id))?.texts.filter((text) => decodeItem(text) === undefined) ?? [],
      failNext(when) {
        database.next = when;
      },
    };
  };
  for (const contractCase of sessionContract(make)) void it(contractCase.title, async (t) => await contractCase.run(t));
});

void describe('stores', () => {
  const make = (): SessionStoreFixture => {
    const database = new Database();
    return {
      open: () => new TemplateSessionStore({ database }),
      age: async (id, ms) =>
        await database.update(
          id,
          (document) =>
            document && { ...document, createdAt: document.createdAt - ms, updatedAt: document.updatedAt - ms },
        ),
    };
  };
  for (const contractCase of sessionStoreContract(make))
    void it(contractCase.title, async (t) => await contractCase.run(t));
});
