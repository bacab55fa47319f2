import { MongoBulkWriteError, MongoError } from 'mongodb';
import type { MongoClient } from 'mongodb';

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
/**
 * The server gave up waiting, or went away, and may have written before: interrupted, shut down, stepped down, out of time;
 * or a router lost the server behind it.
 */
const INTERRUPTED = new Set([6, 50, 89, 91, 189, 262, 9001, 11_600, 11_601, 11_602]);

/** Errors of changes that may have been made. */
const inDoubt = new WeakSet<object>();

/** Sends the command that makes a change count: where it fails, the change may have been made. */
export async function commit<R>({ client }: { readonly client: MongoClient }, send: () => Promise<R>): Promise<R> {
  try {
    return await send();
  } catch (error) {
    if (mayHaveHappened(error, client.options?.retryWrites ?? true)) inDoubt.add(error as object);
    throw error;
  }
}

/** What belongs to a change that was made: whatever it fails with, the change may count. */
export async function afterCommit<R>(work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (typeof error === 'object' && error !== null) inDoubt.add(error);
    throw error;
  }
}

/** Whether the change that failed with this error may have been made. */
export function isInDoubt(error: unknown): boolean {
  return typeof error === 'object' && error !== null && inDoubt.has(error);
}

/** Whether a command that failed with this error may have been carried out. `repeats`: the driver may have sent it twice. */
function mayHaveHappened(error: unknown, repeats: boolean): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { name, code, result } = error as { name?: unknown; code?: unknown; result?: unknown };
  if (error instanceof MongoBulkWriteError) {
    // The driver wraps what became of the connection, whose name is gone then.
    if ((error.errorResponse as unknown) instanceof Error) return mayHaveHappened(error.errorResponse, repeats);
    if (error.matchedCount > 0) return true;
  }
  if (typeof name === 'string' && (IN_FLIGHT.has(name) || (repeats && AT_REPETITION.has(name)))) return true;
  // Written, but perhaps not on enough members.
  if (name === 'MongoWriteConcernError' || hasWriteConcernError(result)) return true;
  if (typeof code === 'number' && INTERRUPTED.has(code)) return true;
  // Of two tries the driver gives the error of the second one, unless that one says that it wrote nothing.
  return repeats && hasLabel(error, 'RetryableWriteError') && !hasLabel(error, 'NoWritesPerformed');
}

function hasLabel(error: object, label: string): boolean {
  return error instanceof MongoError && error.hasErrorLabel(label);
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
