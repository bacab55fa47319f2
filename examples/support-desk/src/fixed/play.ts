import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Orders } from '../orders.ts';
import { DeskFolder } from '../folder.ts';

/** What one of the two processes, or the check after them, found wrong. */
class OutcomeError extends Error {}

/**
 * One process asks for a refund and ends at the approval; another one reads the run from its file, approves and ends it.
 * Then the orders are checked: refunded, and once.
 *
 * @throws OutcomeError
 */
export async function playFixedConversation(): Promise<void> {
  const folder = new DeskFolder(mkdtempSync(join(tmpdir(), 'support-desk-')));
  try {
    await runProcess('pause.ts', folder.path);
    await runProcess('finish.ts', folder.path);
    checkOutcome(folder);
  } finally {
    rmSync(folder.path, { recursive: true, force: true });
  }
}

async function runProcess(file: string, folder: string): Promise<void> {
  const child = spawn(process.execPath, [...process.execArgv, join(import.meta.dirname, file), folder], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (...end) => resolve(end));
  });
  if (code !== 0) throw new OutcomeError(`The process of ${file} ended with ${signal ?? `exit code ${code}`}.`);
}

function checkOutcome(folder: DeskFolder): void {
  const orders = new Orders(folder.orders);
  const order = orders.find('1042');
  const times = orders.countRefunds('1042');
  orders.close();
  if (order.status !== 'refunded' || times !== 1) {
    throw new OutcomeError(`Order 1042 should be refunded once; it is ${order.status}, with ${times} refunds.`);
  }
  process.stdout.write(
    `\nIn the orders file: order 1042 is refunded, once, ${order.refunded.toFixed(2)} of ${order.total.toFixed(2)}.\n`,
  );
}
