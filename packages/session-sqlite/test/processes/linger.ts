// Uses sessions, of a file and of memory, and runs with them, and neither closes nor exits: whatever keeps the process
// alive then is ours.
// linger.ts <path>
import { DatabaseSync } from 'node:sqlite';

import { Agent, MemorySession, run, runStreamed, setTracingDisabled } from '@agents/core';
import { ScriptedModel } from '@agents/core/testing';

import { SQLiteSession } from '../../src/index.ts';

const [path = ''] = process.argv.slice(2);
setTracingDisabled(true);
const agent = new Agent({ name: 'A', model: new ScriptedModel(['1', '2', '3', '4']) });
for (const session of [new SQLiteSession('s', path), new MemorySession('s')]) {
  await session.addItems([{ role: 'user', content: 'a' }]);
  await run(agent, 'go', { session });
  for await (const _ of runStreamed(agent, 'go', { session }));
  await session.popItem();
}
// A call that waits for a lock, and gives up.
const lock = new DatabaseSync(path);
lock.exec('BEGIN IMMEDIATE');
const waiting = new SQLiteSession<object>('s', { path, busyTimeoutMs: 30 });
await waiting.addItems([{ role: 'user', content: 'b' }]).catch((error: Error) => console.log(error.name));
