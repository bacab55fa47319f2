// Makes changes of a session whose files may not grow any more, as on a full disk, and says what became of each.
//   full.ts <dir>
import { readdirSync } from 'node:fs';

import { FileSession } from '../../src/node/index.ts';

const [dir = ''] = process.argv.slice(2);
const session = new FileSession<{ n: string }>('s', { dir });
const { items: before, version } = await session.readHistory();
const large = [{ n: 'small' }, { n: 'x'.repeat(100_000) }];
const changes = {
  append: () => session.addItems(large),
  operation: () =>
    session.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: large } }),
  appendIfVersion: () => session.appendIfVersion(version, large),
  replace: () => session.replaceHistory(large),
};
for (const [name, change] of Object.entries(changes)) {
  const error = await change().then(
    () => 'stored',
    (reason: { code?: string }) => reason.code,
  );
  const after = await session.readHistory();
  const isSame = JSON.stringify(after) === JSON.stringify({ items: before, version });
  console.log(`${name} ${error} ${isSame ? 'as before' : 'changed'} ${readdirSync(dir).length}`);
}
await session.addItems([{ n: 'fits' }]);
console.log((await session.getItems()).length);
