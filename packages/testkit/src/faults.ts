import type { ManagedSession } from '@agents/core/session';

import type { CuttingProxy } from './proxy.ts';

/** What becomes of a change whose way to the server and back breaks. */
export const faultKinds = ['before', 'sent', 'reply', 'middle', 'restart', 'killed'] as const;
export type FaultKind = (typeof faultKinds)[number];
export const faultOperations = ['append', 'replace', 'pop', 'clear', 'appendIfVersion'] as const;
export type FaultOperation = (typeof faultOperations)[number];

/**
 * - `ok`: acknowledged, and stored;
 * - `refused`: failed with another error, and nothing is stored;
 * - `committed`, `absent`: the outcome was unknown, and the whole change is stored, or nothing of it.
 */
export type FaultOutcome = 'ok' | 'refused' | 'committed' | 'absent';

type Item = { readonly n: string };

/** A store behind a proxy. */
export interface FaultSubject {
  readonly proxy: Pick<CuttingProxy, 'cutNext' | 'stopNext'>;
  /** Whether the change is made by this request. Where it takes several: the last one, in some rounds one before it. */
  isWrite(request: Buffer, operation: FaultOperation, round: number): boolean;
  /** How often the driver sends a change whose connection broke: each try is cut. Default 1. */
  readonly tries?: number;
  /** A session by way of the proxy; the caller closes it. */
  open(sessionId: string): ManagedSession<Item>;
  /** A session that nothing is between. */
  direct(sessionId: string): ManagedSession<Item>;
  /** Ends the server as a crash does; resolves when it takes connections again. */
  restart(): Promise<void>;
  /** Starts a process that opens the session by way of the proxy, reads it, and makes the change; and one that says when it is ready. */
  process(sessionId: string, operation: FaultOperation): { kill(): void; readonly ended: Promise<unknown> };
  /** Resolves when the server is done with what it got from connections that are gone. Default: it is when it answers others. */
  settled?(sessionId: string): Promise<void>;
}

/** What a session holds before its change. */
export const faultStart: readonly Item[] = [{ n: '1' }, { n: '2' }, { n: '3' }];
const BATCH: readonly Item[] = [{ n: 'a' }, { n: 'b' }];

/** What it holds after it. */
export const faultResult: Readonly<Record<FaultOperation, readonly Item[]>> = {
  append: [...faultStart, ...BATCH],
  appendIfVersion: [...faultStart, ...BATCH],
  replace: BATCH,
  pop: faultStart.slice(0, -1),
  clear: [],
};

/** One change of a session that holds three items. */
export async function makeChange(
  session: ManagedSession<Item>,
  operation: FaultOperation,
  version: string,
): Promise<unknown> {
  const operationId = 'the-change';
  switch (operation) {
    case 'append':
      return await session.applyHistoryTransaction({
        operationId,
        transaction: { type: 'append_items', items: BATCH },
      });
    case 'appendIfVersion':
      return await session.appendIfVersion(version, BATCH, { operationId });
    case 'replace':
      return await session.replaceHistory(BATCH, { operationId });
    case 'pop':
      return await session.popItem();
    case 'clear':
      return await session.clearSession();
  }
}

/**
 * Lets a change meet a fault and checks what is left: exactly what was acknowledged and, where the outcome is unknown, the
 * whole change or none of it; repeating its operation id settles it.
 *
 * @param round alternates the ways in which a fault can come
 * @throws Error that says what is wrong
 */
export async function meetFault(
  subject: FaultSubject,
  operation: FaultOperation,
  fault: FaultKind,
  round: number,
): Promise<FaultOutcome> {
  const sessionId = `${operation}-${fault}-${round}-${Math.random().toString(36).slice(2)}`;
  const direct = subject.direct(sessionId);
  await direct.addItems(faultStart);
  const { version } = await direct.readHistory(0);
  const told =
    fault === 'killed'
      ? await kill(subject, sessionId, operation, round)
      : await fail(subject, sessionId, operation, fault, round, version);

  await persistently(async () => await subject.settled?.(sessionId));
  const items = await persistently(() => direct.getItems());
  const isAfter = same(items, faultResult[operation]);
  if (!isAfter && !same(items, faultStart))
    throw new Error(`${operation}, ${fault}: a part of the change is stored: ${JSON.stringify(items)}`);
  if (told === 'ok' && !isAfter) throw new Error(`${operation}, ${fault}: acknowledged, and not stored`);
  if (told === 'refused' && isAfter) throw new Error(`${operation}, ${fault}: refused, and stored all the same`);
  if (operation !== 'pop' && operation !== 'clear') {
    const again = subject.open(sessionId);
    await persistently(() => makeChange(again, operation, version));
    const settled = await again.getItems();
    await again.close();
    if (!same(settled, faultResult[operation]))
      throw new Error(`${operation}, ${fault}: not settled by its id: ${JSON.stringify(settled)}`);
  }
  await direct.clearSession();
  await direct.close();
  return told === 'unknown' ? (isAfter ? 'committed' : 'absent') : told;
}

async function fail(
  subject: FaultSubject,
  sessionId: string,
  operation: FaultOperation,
  fault: Exclude<FaultKind, 'killed'>,
  round: number,
  version: string,
): Promise<'ok' | 'refused' | 'unknown'> {
  const session = subject.open(sessionId);
  await persistently(() => session.readHistory(1));
  const matching = (request: Buffer): boolean => subject.isWrite(request, operation, round);
  // In the midst of the request, and of the answer.
  const cut = fault === 'middle' && round % 4 > 1 ? 'answer' : fault;
  const broken =
    cut === 'restart'
      ? restarted(subject, matching, round)
      : Promise.all(
          Array.from({ length: subject.tries ?? 1 }, () =>
            subject.proxy.cutNext(cut, { matching, reset: round % 2 === 1 }),
          ),
        );
  const told = await makeChange(session, operation, version).then(
    () => 'ok' as const,
    (error: { code?: string }) => (error.code === 'session_outcome_unknown' ? 'unknown' : 'refused'),
  );
  await broken;
  await session.close();
  return told;
}

/** The server dies: before it gets the change, in about the moment in which it makes it, or when it made it and nobody heard. */
async function restarted(subject: FaultSubject, matching: (request: Buffer) => boolean, round: number): Promise<void> {
  const arrived = (): Promise<void> =>
    new Promise((resolve) => {
      const act = (forward: () => void): void => {
        if (round % 4 !== 0) forward();
        if (round % 4 === 2) setTimeout(resolve, round % 5);
        else resolve();
      };
      subject.proxy.stopNext(act, { matching });
    });
  await (round % 4 === 3 ? subject.proxy.cutNext('reply', { matching }) : arrived());
  await subject.restart();
}

/** The client dies when its change arrives, which is taken or not. */
async function kill(
  subject: FaultSubject,
  sessionId: string,
  operation: FaultOperation,
  round: number,
): Promise<'unknown'> {
  const child = subject.process(sessionId, operation);
  const met = new Promise<void>((resolve) =>
    subject.proxy.stopNext(
      (forward) => {
        if (round % 2 === 0) forward();
        child.kill();
        resolve();
      },
      { matching: (request) => subject.isWrite(request, operation, round) },
    ),
  );
  const early = child.ended.then(() => {
    throw new Error(`${operation}, killed: the process ended before its change arrived`);
  });
  await Promise.race([met, early]);
  early.catch(() => {});
  await child.ended;
  return 'unknown';
}

/** Until the server is there again. */
async function persistently<R>(work: () => Promise<R>): Promise<R> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const same = (items: readonly Item[], expected: readonly Item[]): boolean =>
  JSON.stringify(items) === JSON.stringify(expected);

/** Meets every fault so many times; gives the lines of a table of what came of it. @throws Error for the first thing that is wrong */
export async function* faultTable(
  name: string,
  subject: FaultSubject,
  rounds: number,
  operations: readonly FaultOperation[] = faultOperations,
): AsyncGenerator<string> {
  yield `${name}, ${rounds} times each: ok / refused / unknown but committed / unknown and absent`;
  yield ['', ...faultKinds].map((cell) => cell.padEnd(20)).join('');
  for (const operation of operations) {
    const row: string[] = [operation];
    for (const fault of faultKinds) {
      const counts = { ok: 0, refused: 0, committed: 0, absent: 0 };
      for (let round = 0; round < rounds; round++) counts[await meetFault(subject, operation, fault, round)]++;
      row.push(Object.values(counts).join(' / '));
    }
    yield row.map((cell) => cell.padEnd(20)).join('');
  }
}
