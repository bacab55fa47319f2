import { MissingCredentialsError, ModelStreamTruncatedError, RunAbortedError } from '@agents/core';

/** A file of the desk that cannot be used; the message says which, why and what to do. */
export class DeskFileError extends Error {}

/** An error as a person needs it: what happened and what to do. */
export function explain(error: unknown): string {
  const chain = [...causes(error)];
  for (const one of chain) {
    const known = explainOne(one, chain.at(-1));
    if (known !== undefined) return known;
  }
  return messageOf(error);
}

function explainOne(error: unknown, root: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof DeskFileError || error instanceof MissingCredentialsError) return error.message;
  if (error instanceof RunAbortedError) return 'Stopped.';
  if (error instanceof ModelStreamTruncatedError || isCut(error)) {
    return 'The answer of the model broke off before its end.';
  }
  const { code, errcode, status } = error as { code?: unknown; errcode?: unknown; status?: unknown };
  if (code === 'ERR_SQLITE_ERROR') return explainSQLite(Number(errcode), error.message);
  if (typeof status === 'number') return explainStatus(status, error.message);
  // The client of `openai` says nothing more in its own message.
  if (error.constructor.name.startsWith('APIConnection')) return unreachable(messageOf(root));
  return undefined;
}

/** What `fetch` of Node throws when the connection goes away while a body is read. */
function isCut(error: Error): boolean {
  return error instanceof TypeError && error.message === 'terminated';
}

function unreachable(why: string): string {
  const where = process.env['OPENAI_BASE_URL'] || 'https://api.openai.com/v1';
  return `No connection to ${where} (${why}). Is the network up, and OPENAI_BASE_URL right?`;
}

function explainStatus(status: number, message: string): string {
  if (status === 401 || status === 403) return `The service refuses the key (${status}). Check OPENAI_API_KEY.`;
  if (status === 429) return `The service takes no more requests now: ${message}`;
  if (status >= 500) return `The service failed (${status}). Try again in a moment.`;
  return `The service refused the request: ${message}`;
}

/** By the primary result code: https://www.sqlite.org/rescode.html */
function explainSQLite(errcode: number, message: string): string {
  switch (errcode & 0xff) {
    case 5:
    case 6:
      return 'The file is locked by another program; nothing was changed. Try again when it is done.';
    case 8:
      return 'The file may only be read, so nothing was changed. Check its permissions.';
    case 11:
    case 26:
      return 'The file is damaged, or no SQLite database; it was left as it is. Put a copy in its place, or move it away to begin anew.';
    case 13:
      return 'The disk is full; nothing was changed.';
    case 14:
      return 'The file cannot be opened. Check that its folder exists and may be written.';
    default:
      return `SQLite: ${message}`;
  }
}

/** The error and what caused it, outermost first. */
function* causes(error: unknown): Generator<unknown> {
  const seen = new Set<unknown>();
  for (let one = error; one !== undefined && one !== null && !seen.has(one); one = (one as { cause?: unknown }).cause) {
    seen.add(one);
    yield one;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
