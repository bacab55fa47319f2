import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { MongoClient } from 'mongodb';

import { MongoDBSession } from '../../src/index.ts';
import { commandOn, quick } from '../mongo.ts';
import type { Rig } from './rig.ts';

export const operations = ['append', 'replace', 'pop', 'clear', 'appendIfVersion'] as const;
export type Operation = (typeof operations)[number];
/** Before it is sent; sent, and the connection ends; carried out, and the answer is lost; half of it sent; the server dies; the client dies. */
export const faults = ['before', 'sent', 'reply', 'middle', 'restart', 'killed'] as const;
export type Fault = (typeof faults)[number];
export type Outcome = 'ok' | 'refused' | 'unknown, done' | 'unknown, absent';

type Item = { readonly role: 'user'; readonly content: string };
const user = (content: string): Item => ({ role: 'user', content });
const first = [user('1'), user('2'), user('3')];
const added = [user('4'), user('5')];

/** What the history is after the operation. */
const after: Readonly<Record<Operation, readonly Item[]>> = {
  append: [...first, ...added],
  appendIfVersion: [...first, ...added],
  replace: added,
  pop: first.slice(0, -1),
  clear: [],
};

/** Under the id, where the operation has one. */
export async function perform(
  session: MongoDBSession<Item>,
  operation: Operation,
  id: string,
  version: string,
): Promise<void> {
  if (operation === 'append')
    await session.applyHistoryTransaction({ operationId: id, transaction: { type: 'append_items', items: added } });
  else if (operation === 'appendIfVersion') await session.appendIfVersion(version, added, { operationId: id });
  else if (operation === 'replace') await session.replaceHistory(added, { operationId: id });
  else if (operation === 'pop') await session.popItem();
  else await session.clearSession();
}

/** The request by which the operation counts. */
const commit: Readonly<Record<Operation, (request: Buffer) => boolean>> = {
  append: commandOn('insert', 'agent_messages'),
  appendIfVersion: commandOn('insert', 'agent_messages'),
  replace: (request) => commandOn('update', 'agent_sessions')(request) && request.includes('_operations\0'),
  pop: commandOn('findAndModify', 'agent_messages'),
  clear: (request) => commandOn('findAndModify', 'agent_sessions')(request) && request.includes('$unset\0'),
};

let sessions = 0;

/**
 * One operation that meets one fault. Afterwards the history is what was acknowledged, and for an unknown outcome the
 * operation as a whole or nothing of it; repeating its id leaves it there once.
 */
export async function runCell(rig: Rig, operation: Operation, fault: Fault, reset: boolean): Promise<Outcome> {
  const id = `cell-${process.pid}-${Date.now()}-${++sessions}`;
  const seen = new MongoDBSession<Item>(id, { client: rig.direct });
  await seen.addItems(first.slice(0, 1));
  await seen.addItems(first.slice(1));
  const { version } = await seen.readHistory();
  const error =
    fault === 'killed'
      ? await killed(rig, operation, id, version, reset)
      : await broken(rig, operation, fault, id, version, reset);
  rig.proxy.disarm();
  const session = new MongoDBSession<Item>(id, { client: rig.direct });
  const items = await session.getItems();
  const isDone = isEqual(items, after[operation]);
  const told = `${operation}, ${fault}: ${items.length} items, ${String(error)}`;
  assert.ok(isDone || isEqual(items, first), told);
  if (error === undefined) assert.ok(isDone, told);
  const isUnknown = (error as { code?: unknown } | undefined)?.code === 'session_outcome_unknown';
  if (error !== undefined && !isUnknown) assert.ok(!isDone, told);
  const hasId = operation !== 'pop' && operation !== 'clear';
  if (hasId) await perform(session, operation, `op-${id}`, version);
  if (hasId) assert.deepEqual(await session.getItems(), after[operation]);
  if (error === undefined) return 'ok';
  if (!isUnknown) return 'refused';
  return isDone ? 'unknown, done' : 'unknown, absent';
}

function isEqual(items: readonly Item[], expected: readonly Item[]): boolean {
  return items.length === expected.length && items.every(({ content }, index) => content === expected[index]?.content);
}

/** What the operation rejected with; `undefined`: it resolved. */
async function broken(
  rig: Rig,
  operation: Operation,
  fault: Exclude<Fault, 'killed'>,
  id: string,
  version: string,
  reset: boolean,
): Promise<unknown> {
  let restarted: Promise<void> | undefined;
  const matching = commit[operation];
  if (fault !== 'restart') void rig.proxy.cutNext(fault, { matching, reset });
  else if (reset) {
    // While the request is on its way.
    const restart = (request: Buffer): boolean => {
      if (restarted === undefined && matching(request)) restarted = rig.restart();
      return false;
    };
    void rig.proxy.cutNext('before', { matching: restart });
  } else {
    // After it was carried out, before anybody heard of it.
    void rig.proxy.cutNext('reply', { matching }).then(() => (restarted ??= rig.restart()));
  }
  // A client that met the end of its server is not used again.
  const client = fault === 'restart' ? new MongoClient(rig.url, quick) : rig.client;
  const error = await perform(new MongoDBSession<Item>(id, { client }), operation, `op-${id}`, version).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await restarted;
  if (fault === 'restart') await client.close();
  return error;
}

/** A process of its own does it and dies when its request arrives. Nobody hears how it ended: the outcome is unknown. */
async function killed(rig: Rig, operation: Operation, id: string, version: string, early: boolean): Promise<unknown> {
  const worker = fileURLToPath(new URL('worker.ts', import.meta.url));
  const child = spawn(
    process.execPath,
    ['--conditions=source', '--no-warnings', worker, rig.url, operation, id, version],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const matching = (request: Buffer): boolean => {
    if (!commit[operation](request)) return false;
    child.kill('SIGKILL');
    // Early: the request dies with its process.
    return early;
  };
  void rig.proxy.cutNext('before', { matching });
  const code = await new Promise((resolve) => child.once('exit', (exit, signal) => resolve(signal ?? exit)));
  assert.equal(code, 'SIGKILL');
  // What it sent may still be on its way.
  await rig.direct.db('admin').command({ ping: 1 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { code: 'session_outcome_unknown' };
}
