// Waits for a line on its input, then appends batches to a session of each file until it has made all of them or is
// killed; says each that was acknowledged.
// append.ts <path,path,…> <session id> <writer> <batches> <items per batch>
import { writeSync } from 'node:fs';
import { once } from 'node:events';

import { SQLiteSession } from '../../src/index.ts';

const [paths = '', sessionId = '', writer = '', batches = '', size = ''] = process.argv.slice(2);
// Not through the stream: a line that the parent has was acknowledged before the process died.
const say = (line: string): void => void writeSync(1, `${line}\n`);
say('ready');
await once(process.stdin, 'data');
process.stdin.destroy();
for (const path of paths.split(',')) {
  await using session = new SQLiteSession<object>(sessionId, path);
  for (let batch = 0; batch < Number(batches); batch++) {
    await session.addItems(
      Array.from({ length: Number(size) }, (_, index) => ({ role: 'user', content: `${writer}/${batch}/${index}` })),
    );
    say(String(batch));
  }
}
