import { kinds } from '../base/options.ts';
import type { Check } from '../base/options.ts';
import { SessionError } from './errors.ts';

/** The longest time that a timer takes; longer ones would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Of an option that bounds calls. */
export const boundMs: Check = (value) =>
  kinds.integer(1)(value) === undefined && Number(value) <= LONGEST_MS
    ? undefined
    : `an integer of at least 1 and at most ${LONGEST_MS}`;

/** The store gave no answer in time: a change has an unknown outcome then; a read is tried again by whoever wants it. */
export class OutOfTime extends SessionError {
  constructor(sessionId: string | undefined, ms: number) {
    super(`The store did not answer within ${ms} ms (option 'operationTimeoutMs').`, { sessionId });
  }
}

/** @throws OutOfTime after `ms`; `undefined`: never. What was called goes on. */
export async function bounded<R>(
  ms: number | undefined,
  sessionId: string | undefined,
  work: () => R | Promise<R>,
): Promise<R> {
  if (ms === undefined) return await work();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new OutOfTime(sessionId, ms)), ms);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}
