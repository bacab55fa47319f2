// Appends batches of three until it is killed; says the number of each that was acknowledged.
//   node append.ts <dir> <id> <first>
import { writeSync } from 'node:fs';

import { FileSession } from '../../src/node/index.ts';
import { SessionVersionConflictError } from '../../src/session.ts';

const [dir = '', id = '', first = '0'] = process.argv.slice(2);
const session = new FileSession<{ n: string }>(id, { dir });
for (let batch = Number(first); ; batch++) {
  const items = [1, 2, 3].map((n) => ({ n: `${batch}/${n}` }));
  await session.applyHistoryTransaction({ operationId: String(batch), transaction: { type: 'append_items', items } });
  // Replaced now and then, which writes all of the file anew.
  if (batch % 7 === 6) await rewrite();
  writeSync(1, `${batch}\n`);
}

/** Unless somebody else writes meanwhile. */
async function rewrite(): Promise<void> {
  const { items, version } = await session.readHistory();
  try {
    await session.replaceHistory(items, { ifVersion: version });
  } catch (error) {
    if (!(error instanceof SessionVersionConflictError)) throw error;
  }
}
