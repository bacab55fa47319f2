// Kills itself with SIGKILL right before or right after a statement runs.
// die.ts <path> <session id> <statement> before|after
import { DatabaseSync } from 'node:sqlite';

import { SQLiteSession } from '../../src/index.ts';

const [path = '', sessionId = '', statement = '', when = ''] = process.argv.slice(2);
const database = new DatabaseSync(path);
const die = (): void => void process.kill(process.pid, 'SIGKILL');
let armed = false;
const session = new SQLiteSession<object>(sessionId, {
  database: {
    exec: (sql) => database.exec(sql),
    prepare(sql) {
      const prepared = database.prepare(sql);
      const run = (...values: string[]): unknown => {
        const hit = armed && sql.startsWith(statement);
        if (hit && when === 'before') die();
        const result = prepared.run(...values);
        if (hit && when === 'after') die();
        return result;
      };
      return {
        run,
        get: (...values: string[]) => prepared.get(...values),
        all: (...values: string[]) => prepared.all(...values),
      };
    },
  },
});
await session.getItems();
armed = true;
await session.addItems([
  { role: 'user', content: 'a' },
  { role: 'user', content: 'b' },
  { role: 'user', content: 'c' },
]);
