// Loaded before the desk: kills the process for good at the n-th point at which it touches something that lasts.
import fs, { writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync, StatementSync } from 'node:sqlite';

let left = Number(process.env['CRASH_AT'] ?? '0');

function point(): void {
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** A point before the call and one behind it. */
function around(owner: object, ...names: readonly string[]): void {
  const methods = owner as Record<string, Method>;
  for (const name of names) {
    const method = methods[name];
    if (method === undefined) throw new Error(`There is no ${name}.`);
    methods[name] = function (...args) {
      point();
      const result = Reflect.apply(method, this, args);
      point();
      return result;
    };
  }
}

if (left > 0) {
  around(DatabaseSync.prototype, 'exec');
  around(StatementSync.prototype, 'run');
  around(fs, 'writeFileSync', 'renameSync', 'rmSync');
  syncBuiltinESMExports();
  // What was said is said, also when the process ends in the next moment.
  process.stdout.write = (chunk: string | Uint8Array): boolean => {
    point();
    writeSync(1, chunk as string);
    point();
    return true;
  };
}
