/** The connection broke, or nobody waited any longer, with a command under way. */
const IN_FLIGHT = new Set([
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoOperationTimeoutError',
  'MongoClientClosedError',
  'MongoPoolClearedError',
  'PoolClearedOnNetworkError',
]);
/** Nobody was there for the repetition of a command that the driver had sent before. */
const AT_REPETITION = new Set([
  'MongoServerSelectionError',
  'MongoTopologyClosedError',
  'MongoUnexpectedServerResponseError',
]);
/** The server gave up waiting, or went away, and may have written before: interrupted, shut down, stepped down, out of time. */
const INTERRUPTED = new Set([50, 91, 189, 262, 11_600, 11_602]);

/** Whether a command that failed with this error may have been carried out. `repeats`: the driver may have sent it twice. */
export function mayHaveHappened(error: unknown, repeats: boolean): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { name, code, result } = error as { name?: unknown; code?: unknown; result?: unknown };
  if (typeof name === 'string' && (IN_FLIGHT.has(name) || (repeats && AT_REPETITION.has(name)))) return true;
  // Written, but perhaps not on enough members.
  if (name === 'MongoWriteConcernError' || hasWriteConcernError(result)) return true;
  return typeof code === 'number' && INTERRUPTED.has(code);
}

function hasWriteConcernError(result: unknown): boolean {
  return (
    typeof result === 'object' && result !== null && 'writeConcernError' in result && Boolean(result.writeConcernError)
  );
}

/** Whether a document with the same unique key is there. */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 11_000;
}
