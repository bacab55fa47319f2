// The support desk. At a terminal: a conversation. Without one: a fixed conversation over two processes.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { converse } from './conversation.ts';
import { openDesk } from './desk.ts';
import { explain } from './explain.ts';
import { chooseModel } from './model.ts';
import { playFixedConversation } from './fixed/play.ts';
import { openTerminal } from './terminal.ts';

const HOME = join(import.meta.dirname, '..', '.data');

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      /** Talk even if nobody sits at a terminal: lines come from stdin. */
      talk: { type: 'boolean', default: process.stdin.isTTY },
      /** Where orders, conversations and an unfinished run are kept. */
      data: { type: 'string', default: HOME },
    },
  });
  const model = await chooseModel(process.env, (line) => process.stdout.write(`${line}\n`));
  if (!values.talk) {
    await playFixedConversation();
    return;
  }
  await using desk = await openDesk(values.data, model);
  const terminal = openTerminal(process.stdin, process.stdout);
  try {
    await converse(desk, terminal);
  } finally {
    terminal.close();
  }
}

// A reader that goes away (`npm start | head`) ends the program without a word.
process.stdout.on('error', () => process.exit());

try {
  await main();
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}
