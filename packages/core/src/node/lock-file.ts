import { randomUUID } from 'node:crypto';
import { link, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';

import { SessionBusyError } from '../sessions/errors.ts';

/** A lock of another host, or of a process of which the system does not tell when it began, is broken after this time. */
const ABANDONED_MS = 60_000;
const LONGEST_WAIT_MS = 50;

interface Owner {
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  /** When the process began, where the system tells: its id may be given to another one. */
  readonly start: string | undefined;
}

/**
 * Runs `work` while no other process, and nobody else in this one, holds the lock: a file that is made only if there is none.
 * The lock of a process that died is broken. `stillOwn` says whether it is still ours, right before something is written.
 *
 * @throws SessionBusyError after `timeoutMs`; `work` did not run then
 */
export async function withLock<R>(
  path: string,
  timeoutMs: number,
  sessionId: string,
  work: (stillOwn: () => Promise<void>) => Promise<R>,
): Promise<R> {
  const owner = await newOwner();
  const busy = (): SessionBusyError =>
    new SessionBusyError(
      `The file of this session was locked by another writer for more than ${timeoutMs} ms; nothing was written. Try again.`,
      { sessionId },
    );
  const start = performance.now();
  for (let wait = 1; !(await take(path, owner)); wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    if (await isAbandoned(path)) {
      await breakLock(path);
      continue;
    }
    const left = timeoutMs - (performance.now() - start);
    if (left <= 0) throw busy();
    await new Promise<void>((resolve) => void setTimeout(resolve, Math.min(left, wait * (0.5 + Math.random()))));
  }
  try {
    return await work(async () => {
      if ((await readOwner(path))?.token !== owner.token) throw busy();
    });
  } finally {
    if ((await readOwner(path))?.token === owner.token) await unlink(path).catch(ignoreMissing);
  }
}

/** A lock is never seen without its owner: it is written beside its place and then put there, which fails if one is there. */
async function take(path: string, owner: Owner): Promise<boolean> {
  const draft = `${path}.${owner.token}`;
  try {
    await writeFile(draft, JSON.stringify(owner), { flag: 'wx', mode: 0o600 });
    await link(draft, path);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return false;
  } finally {
    // Whatever failed is what the caller hears.
    await unlink(draft).catch(() => undefined);
  }
}

async function isAbandoned(path: string): Promise<boolean> {
  const owner = await readOwner(path);
  const life = owner === undefined ? 'unknown' : await lifeOf(owner);
  if (life !== 'unknown') return life === 'dead';
  const age = await ageOf(path);
  return age !== undefined && age > ABANDONED_MS;
}

/** One process at a time breaks locks, and looks once more: the lock may be a new one by now. */
async function breakLock(path: string): Promise<void> {
  const breaking = `${path}.break`;
  if (!(await take(breaking, await newOwner()))) {
    // Whoever broke locks here may have died as well. It holds this for an instant only.
    if (await isAbandoned(breaking)) await unlink(breaking).catch(ignoreMissing);
    else await new Promise<void>((resolve) => void setTimeout(resolve, 1 + 5 * Math.random()));
    return;
  }
  try {
    if (await isAbandoned(path)) await unlink(path).catch(ignoreMissing);
  } finally {
    await unlink(breaking).catch(ignoreMissing);
  }
}

async function newOwner(): Promise<Owner> {
  ownStart ??= startOf(process.pid);
  return { token: randomUUID(), pid: process.pid, host: hostname(), start: await ownStart };
}
let ownStart: Promise<string | undefined> | undefined;

/** As far as can be told from here: of processes of another host, nothing. One that is stopped for long lives, and writes later. */
async function lifeOf({ host, pid, start }: Owner): Promise<'alive' | 'dead' | 'unknown'> {
  if (host !== hostname()) return 'unknown';
  if (!isAlive(pid)) return 'dead';
  const now = await startOf(pid);
  if (start === undefined || now === undefined) return 'unknown';
  return start === now ? 'alive' : 'dead';
}

/** Of Linux: the 22nd field, after the name, which may hold anything. */
async function startOf(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Of another user, and alive.
    return codeOf(error) === 'EPERM';
  }
}

async function readOwner(path: string): Promise<Owner | undefined> {
  try {
    const owner = JSON.parse(await readFile(path, 'utf8')) as Partial<Owner> | null;
    const { token, pid, host, start } = owner ?? {};
    return typeof token === 'string' && typeof pid === 'number' && typeof host === 'string'
      ? { token, pid, host, start }
      : undefined;
  } catch {
    return undefined;
  }
}

async function ageOf(path: string): Promise<number | undefined> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch {
    return undefined;
  }
}

export function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}

function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}
