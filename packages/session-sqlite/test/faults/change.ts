// Makes one change after the other, each of a session of its own that holds three items, and says when it begins one and when
// it was acknowledged; `hold`: takes the lock of the first session, says so, and keeps it.
//   change.ts <store> <folder> <operation|hold> <sessions>
import { readFileSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { faultStart, makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';

import { sessionIn } from './subjects.ts';
import type { StoreName } from './subjects.ts';

const [store = '', folder = '', operation = '', count = '1'] = process.argv.slice(2);
// Not through the stream: a line that the parent has was written before the process died.
const say = (line: string): void => void writeSync(1, `${line}\n`);

if (operation === 'hold') await hold();
const sessions = Array.from({ length: Number(count) }, (_, n) => sessionIn(store as StoreName, folder, `s${n}`));
const versions: string[] = [];
for (const session of sessions) {
  await session.addItems(faultStart);
  versions.push((await session.readHistory(0)).version);
}
say('ready');
for (const [n, session] of sessions.entries()) {
  say(`begun ${n} ${versions[n]}`);
  await makeChange(session, operation as FaultOperation, versions[n] ?? '');
  say(`done ${n}`);
}

async function hold(): Promise<never> {
  const release = store === 'file' ? holdFile() : holdDatabase();
  process.on('SIGTERM', () => {
    release();
    process.exit();
  });
  say('held');
  // Not a promise alone: nothing would keep the process alive.
  for (;;) await new Promise((resolve) => setTimeout(resolve, 1000));
}

function holdDatabase(): () => void {
  const database = new DatabaseSync(join(folder, 'sessions.db'));
  database.exec('BEGIN IMMEDIATE');
  return () => database.exec('ROLLBACK');
}

/** As a session of this process would. */
function holdFile(): () => void {
  const path = join(folder, `${Buffer.from('s0').toString('base64url')}.ndjson.lock`);
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  writeFileSync(path, JSON.stringify({ token: 'held', pid: process.pid, host: hostname(), start }), { flag: 'wx' });
  return () => unlinkSync(path);
}
