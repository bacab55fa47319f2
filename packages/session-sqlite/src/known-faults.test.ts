import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { Agent, configureLogging, getRunErrorState, MemorySession, run, runStreamed, tool } from '@agents/core';
import type { AgentInputItem, RunState } from '@agents/core';
import type { ManagedSession } from '@agents/core/session';
import { ScriptedModel, toolCall } from '@agents/core/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';

import { SQLiteSession } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-faults-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshPath = (): string => join(folder, `${++files}.db`);
beforeEach(() => configureLogging({ sink: () => undefined }));
afterEach(() => configureLogging({ sink: null }));

const user = (content: string): AgentInputItem => ({ role: 'user', content });
/** Contents, and types of what has none. */
const seen = async (session: ManagedSession): Promise<unknown[]> =>
  (await session.getItems()).map((item) =>
    'role' in item && item.role === 'user' ? item.content : 'type' in item ? item.type : item,
  );

const stores: Record<string, () => ManagedSession> = {
  memory: () => new MemorySession('s'),
  'a file': () => new SQLiteSession('s', freshPath()),
};
const forms = {
  plain: run,
  streamed: (async (agent: never, input: never, options: never) => {
    const stream = runStreamed(agent, input, options);
    for await (const _ of stream);
    return await stream.completed;
  }) as unknown as typeof run,
};
const cases = Object.keys(stores).flatMap((store) => (['plain', 'streamed'] as const).map((form) => ({ store, form })));
const open = (store: string): ManagedSession => (stores[store] as () => ManagedSession)();

describe.each(cases)('a session in $store, with $form runs', ({ store, form }) => {
  it('keeps what another writer put behind a batch whose answer was lost, when the run is tried again [IL-036]', async () => {
    const session = open(store);
    const apply = session.applyHistoryTransaction.bind(session);
    let lost = false;
    const model = new ScriptedModel([toolCall('f', {}, { callId: 'c1' }), 'done']);
    const ran: string[] = [];
    const agent = new Agent({ name: 'A', model, tools: [tool({ name: 'f', execute: () => ran.push('f') })] });
    session.applyHistoryTransaction = async (operation) => {
      await apply(operation);
      if (operation.transaction.type !== 'append_items' || operation.transaction.items.length !== 2 || lost) return;
      lost = true;
      throw new Error('the answer was lost');
    };
    const error: unknown = await forms[form](agent, 'go', { session }).catch((reason: unknown) => reason);
    expect([(error as Error).message, await seen(session)]).toEqual([
      'the answer was lost',
      ['go', 'function_call', 'function_call_output'],
    ]);
    await session.addItems([user('from somebody else')]);
    const result = await forms[form](agent, getRunErrorState(error) as RunState, { session });
    expect([result.finalOutput, ran]).toEqual(['done', ['f']]);
    expect(await seen(session)).toEqual([
      'go',
      'function_call',
      'function_call_output',
      'from somebody else',
      'message',
    ]);
    await session.close();
  });

  it('is not brought back by a run that began before it was cleared: only what that writes later is there, and is of use [IL-049]', async () => {
    const session = open(store);
    await session.addItems([user('old')]);
    let cleared = false;
    const model = new ScriptedModel([
      toolCall('f', {}, { callId: 'c1' }),
      async () => {
        await session.clearSession();
        cleared = true;
        return 'done';
      },
      'again',
    ]);
    const agent = new Agent({ name: 'A', model, tools: [tool({ name: 'f', execute: () => 'ok' })] });
    await forms[form](agent, 'go', { session });
    expect([cleared, await seen(session)]).toEqual([true, ['message']]);
    await forms[form](agent, 'next', { session });
    expect(model.calls[2]?.request.input).toMatchObject([{ type: 'message' }, user('next')]);
    await session.close();
  });
});

describe.each(Object.keys(stores))('a session in %s', (store) => {
  it('is empty after a clear that was called behind an append that had not ended [IL-049]', async () => {
    const session = open(store);
    const added = session.addItems([user('late')]);
    await Promise.all([added, session.clearSession()]);
    expect(await seen(session)).toEqual([]);
    await session.close();
  });

  it('gives 1,000 items of one moment in the order in which they were added, in any window [IL-055]', async () => {
    const session = open(store);
    const names = Array.from({ length: 1_000 }, (_, index) => `item ${index}`);
    await session.addItems(names.map(user));
    expect(await seen(session)).toEqual(names);
    for (const limit of [1, 7, 500, 999]) {
      const items = await session.getItems(limit);
      expect(items.map((item) => ('content' in item ? item.content : undefined))).toEqual(names.slice(-limit));
    }
    for (const name of names.slice(-3).toReversed()) expect(await session.popItem()).toEqual(user(name));
    await session.close();
  });
});

describe('a session in a file', () => {
  it('counts valid items only against a limit [IL-017]', async () => {
    const path = freshPath();
    await using session = new SQLiteSession('s', path);
    await session.addItems(['1', '2', '3'].map(user));
    const database = new DatabaseSync(path);
    for (const text of ['{"role": "user"', 'null'])
      database.prepare(`INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)`).run(text);
    database.close();
    expect(await session.getItems(2)).toEqual([user('2'), user('3')]);
    expect(await session.getItems(5)).toEqual([user('1'), user('2'), user('3')]);
  });

  it('keeps the time at which it was made, however often it is written to, read and popped [IL-020]', async () => {
    const path = freshPath();
    await using session = new SQLiteSession('s', path);
    await session.addItems([user('1')]);
    const database = new DatabaseSync(path);
    database.exec(`UPDATE agent_sessions SET created_at = '2001-02-03 04:05:06'`);
    await session.addItems([user('2')]);
    await session.popItem();
    await session.getItems();
    await session.replaceHistory([user('3')]);
    await run(new Agent({ name: 'A', model: new ScriptedModel(['hi']) }), 'go', { session });
    expect(database.prepare('SELECT created_at FROM agent_sessions').all()).toEqual([
      { created_at: '2001-02-03 04:05:06' },
    ]);
    database.close();
  });
});
