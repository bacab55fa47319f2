// Uses sessions and leaves them: the process has to end by itself. Says how many connections it has then, when it closed them.
// linger.ts <url> <key prefix> close|leave
import { RedisSession } from '../../src/index.ts';

const [url = '', keyPrefix = '', how = ''] = process.argv.slice(2);
for (const scripting of ['lua', 'multi'] as const) {
  const session = new RedisSession<object>('s', { url, keyPrefix: `${keyPrefix}:${scripting}`, scripting });
  await session.addItems([{ role: 'user', content: how }]);
  await session.getItems();
  if (how === 'close') await session[Symbol.asyncDispose]();
}
const open = process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;
console.log(how === 'close' ? open : 'left');
