import { SessionError } from './errors.ts';

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
