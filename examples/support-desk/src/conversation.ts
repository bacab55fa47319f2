import type { RunState } from '@agents/core';
import { decide } from './approval.ts';
import { unfinishedRun } from './desk.ts';
import type { Desk } from './desk.ts';
import { explain } from './explain.ts';
import { takeTurn } from './turn.ts';
import type { Terminal } from './terminal.ts';
import { dim } from './text.ts';

/**
 * A conversation until the person leaves. Between two inputs nothing of a run is held in memory: one that waits or failed
 * is read from its file, so leaving and coming back is the same as staying.
 */
export async function converse(desk: Desk, terminal: Terminal): Promise<void> {
  await greet(desk, terminal);
  // Nothing that failed is tried again unless the person says so: what fails each time would go round for ever.
  let failed = false;
  for (;;) {
    const input = await nextInput(desk, terminal, failed);
    if (input === undefined) break;
    if (input === '') continue;
    try {
      await terminal.work((signal) => takeTurn(desk, input, (text) => terminal.write(text), signal));
      failed = false;
    } catch (error) {
      failed = true;
      terminal.write(`\n${explain(error)}\n`);
    }
    terminal.write('\n');
  }
  terminal.write(dim('Your conversation is kept; npm start goes on with it.\n'));
}

/** What the person says, or the unfinished run with what they decided; `undefined` when they left. */
async function nextInput(desk: Desk, terminal: Terminal, failed: boolean): Promise<string | RunState | undefined> {
  const unfinished = await readUnfinished(desk, terminal);
  if (unfinished === undefined) return terminal.ask('You: ');
  if (failed || unfinished.interruptions.length === 0) {
    const line = await terminal.ask(
      'The last request is not finished. Enter tries again, drop gives it up, or say something else: ',
    );
    if (line === 'drop') desk.folder.dropRun();
    if (line !== '') return line === 'drop' ? '' : line;
  }
  return (await decide(unfinished, terminal)) ? unfinished : undefined;
}

async function readUnfinished(desk: Desk, terminal: Terminal): Promise<RunState | undefined> {
  try {
    return await unfinishedRun(desk);
  } catch (error) {
    terminal.write(
      `The unfinished run cannot be read: ${explain(error)}\nIt is now in ${desk.folder.setRunAside()}.\n`,
    );
    return undefined;
  }
}

async function greet({ orders, session }: Desk, terminal: Terminal): Promise<void> {
  const count = (await session.getItems()).filter((item) => 'role' in item && item.role === 'user').length;
  const [first] = orders.all();
  if (count > 0) terminal.write(`Welcome back: this conversation has ${count} of your messages.\n`);
  else {
    const known = orders.all().map((order) => `${order.orderId} ${order.item}`);
    terminal.write(`Orders: ${known.join(', ')}. Try "Where is order ${first?.orderId}?" or "Refund order 1042".\n`);
  }
  terminal.write(dim('exit or Ctrl-D leaves, Ctrl-C stops the desk while it works.\n'));
}
