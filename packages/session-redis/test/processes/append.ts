// Waits for a line on its input, then appends batches until it has made all of them or is killed; says each that was
// acknowledged.
// append.ts <url> <key prefix> <session id> <writer> <batches> <items per batch> [multi]
import { writeSync } from 'node:fs';
import { once } from 'node:events';

import { RedisSession } from '../../src/index.ts';

const [url = '', keyPrefix = '', id = '', writer = '', batches = '', size = '', scripting] = process.argv.slice(2);
// Not through the stream: a line that the parent has was acknowledged before the process died.
const say = (line: string): void => void writeSync(1, `${line}\n`);
const options = { keyPrefix, scripting: scripting === 'multi' ? 'multi' : 'lua' } as const;
await using session = new RedisSession<object>(id, { url, ...options });
await session.getItems(1);
say('ready');
await once(process.stdin, 'data');
process.stdin.destroy();
for (let batch = 0; batch < Number(batches); batch++) {
  await session.addItems(
    Array.from({ length: Number(size) }, (_, index) => ({ role: 'user', content: `${writer}/${batch}/${index}` })),
  );
  say(String(batch));
}
