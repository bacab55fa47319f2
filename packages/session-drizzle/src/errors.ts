/** What a driver's error means. Each function looks at one error of a chain of causes. */
export interface ErrorKinds {
  /** The server answered: what was asked for was not done. */
  readonly isAnswer: (error: ErrorLike) => boolean;
  /** No connection was made, or the driver did not take the request. */
  readonly wasNeverSent: (error: ErrorLike) => boolean;
  /** The transaction lost against another one, and can be run again. */
  readonly isConflict: (error: ErrorLike) => boolean;
  /** A table or column is not there. */
  readonly isMissing: (error: ErrorLike) => boolean;
}

export interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly errcode?: unknown;
  readonly sqlState?: unknown;
  readonly severity?: unknown;
  readonly syscall?: unknown;
}

/** An error and what it was caused by, outermost first: drizzle wraps what drivers throw. */
export function causes(error: unknown): readonly ErrorLike[] {
  const chain: ErrorLike[] = [];
  let next = error;
  while (typeof next === 'object' && next !== null && chain.length < 10 && !chain.includes(next)) {
    chain.push(next);
    next = (next as { cause?: unknown }).cause;
  }
  return chain;
}

const CONNECTING = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT']);

/** Of Node, that does not trust the server's certificate. (`ERR_SSL_…` may come later: the server does not trust ours.) */
const UNTRUSTED = /^(?!ERR_SSL_).*CERT|^UNABLE_TO_|^(CRL_HAS_EXPIRED|CRL_NOT_YET_VALID|INVALID_CA|HOSTNAME_MISMATCH)$/;

/** Errors of the system, and of TLS, while a connection is made. */
export function failedToConnect({ code, syscall }: ErrorLike): boolean {
  return syscall === 'connect' || (typeof code === 'string' && (CONNECTING.has(code) || UNTRUSTED.test(code)));
}

/**
 * The driver's own error: drizzle wraps it in one whose text has the statement with all its values, and items are nothing
 * for logs.
 */
export function driverError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // mysql2 and PGlite keep the statement with its values: there for who asks, not for who prints the error.
  for (const name of ['sql', 'query', 'params'])
    if (Object.hasOwn(error, name)) Object.defineProperty(error, name, { enumerable: false });
  if (!(error.cause instanceof Error)) return error;
  const kind = (error.constructor as unknown as { readonly [mark: symbol]: unknown })[Symbol.for('drizzle:entityKind')];
  const isWrapper = kind === 'DrizzleError' || ('query' in error && 'params' in error);
  return isWrapper ? driverError(error.cause) : error;
}
