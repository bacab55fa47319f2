import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

import { FileSession } from '../src/node/index.ts';

const script = fileURLToPath(new URL('file-crash/append.ts', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'file-crash-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Starts a writer and kills it some time after its first acknowledged batch; gives the last number it said. */
async function killedWriter(id: string, first: number, afterMs: number): Promise<number> {
  const writer = spawn(process.execPath, [script, dir, id, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  let killing = false;
  await new Promise<void>((resolve, reject) => {
    writer.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (killing) return;
      killing = true;
      setTimeout(() => writer.kill('SIGKILL'), afterMs);
    });
    writer.on('error', reject).on('close', () => resolve());
  });
  return Number(said.split('\n').at(-2) ?? first - 1);
}

it(
  'a writer that is killed at any moment leaves all of a batch or nothing, and the next one goes on [SESS-322, SESS-189, SESS-006]',
  { timeout: 120_000 },
  async () => {
    let acknowledged = -1;
    for (let round = 0; round < 12; round++)
      acknowledged = await killedWriter('s', acknowledged + 1, 3 * round + Math.random() * 3);
    const session = new FileSession<{ n: string }>('s', { dir });
    const items = (await session.getItems()).map(({ n }) => n);
    // Every acknowledged batch once, in order; behind them at most the one that was under way.
    const batches = items.length / 3;
    expect([acknowledged + 1, acknowledged + 2]).toContain(batches);
    expect(items).toEqual(Array.from({ length: batches }, (_, batch) => [1, 2, 3].map((n) => `${batch}/${n}`)).flat());
    // The lock of the last one is broken, the batch that was under way is settled by its operation, and nothing stays behind.
    await session.applyHistoryTransaction({
      operationId: String(acknowledged + 1),
      transaction: { type: 'append_items', items: [1, 2, 3].map((n) => ({ n: `${acknowledged + 1}/${n}` })) },
    });
    expect(await session.getItems()).toHaveLength(3 * (acknowledged + 2));
    await session.clearSession();
    expect(readdirSync(dir).filter((name) => !/\.lock\.[0-9a-f-]{36}$/.test(name))).toEqual([]);
  },
);

it(
  'two processes write beside each other without a lost or split batch [SESS-322, SESS-006]',
  { timeout: 120_000 },
  async () => {
    const session = new FileSession<{ n: string }>('both', { dir });
    const writer = spawn(process.execPath, [script, dir, 'both', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    writer.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    const lines = () => said.split('\n').length - 1;
    let own = 0;
    while (lines() < 8) await session.addItems([1, 2, 3].map((n) => ({ n: `own ${own}/${n}` }))).then(() => own++);
    writer.kill('SIGKILL');
    await new Promise((resolve) => writer.on('close', resolve));
    const items = (await session.getItems()).map(({ n }) => n);
    for (let at = 0; at < items.length; at += 3) {
      const batch = items[at]!.split('/')[0]!;
      expect(items.slice(at, at + 3)).toEqual([1, 2, 3].map((n) => `${batch}/${n}`));
    }
    const numbers = (of: string[]) =>
      of.filter((_, index) => index % 3 === 0).map((n) => Number(n.split('/')[0]!.split(' ').at(-1)));
    const [mine, theirs] = [items.filter((n) => n.startsWith('own')), items.filter((n) => !n.startsWith('own'))];
    expect(numbers(theirs)).toEqual(Array.from({ length: theirs.length / 3 }, (_, index) => index));
    expect(theirs.length / 3).toBeGreaterThanOrEqual(lines());
    expect(numbers(mine)).toEqual(Array.from({ length: own }, (_, index) => index));
  },
);

it.skipIf(process.platform === 'win32')(
  'a file that cannot grow is an error of the system, with nothing stored and nothing left behind',
  { timeout: 60_000 },
  async () => {
    const folder = join(dir, 'full');
    await new FileSession<{ n: string }>('s', { dir: folder }).addItems([{ n: '1' }, { n: '2' }]);
    const program = fileURLToPath(new URL('file-crash/full.ts', import.meta.url));
    // In blocks of 512 bytes or of a kilobyte. Without the signal a write fails as on a full disk.
    const shell = `trap '' XFSZ; ulimit -f 32; exec "$0" "$1" "$2"`;
    const { stdout, stderr } = spawnSync('sh', ['-c', shell, process.execPath, program, folder], { encoding: 'utf8' });
    expect(stderr).toBe('');
    const told = ['append', 'operation', 'appendIfVersion', 'replace'].map((name) => `${name} EFBIG as before 1`);
    expect(stdout.trim().split('\n')).toEqual([...told, '3']);
  },
);
