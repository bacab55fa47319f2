import { AgentsError, defineError } from '../base/errors.ts';

export interface SessionErrorDetails {
  sessionId?: string | undefined;
  cause?: unknown;
}

type SessionErrorCode =
  | 'session_error'
  | 'session_closed'
  | 'session_item_invalid'
  | 'session_item_too_large'
  | 'session_version_conflict'
  | 'session_schema'
  | 'session_busy'
  | 'session_outcome_unknown';

/** For backends; driver errors that say enough pass through unchanged. */
export class SessionError extends AgentsError {
  static {
    defineError(this, 'SessionError');
  }

  override readonly code: SessionErrorCode = 'session_error';
  readonly sessionId: string | undefined;

  constructor(message: string, details: SessionErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.sessionId = details.sessionId;
  }
}

/** Used after `close()`. */
export class SessionClosedError extends SessionError {
  static {
    defineError(this, 'SessionClosedError');
  }

  override readonly code = 'session_closed' as const;
}

/** Tables, collections or key types are not the expected ones. */
export class SessionSchemaError extends SessionError {
  static {
    defineError(this, 'SessionSchemaError');
  }

  override readonly code = 'session_schema' as const;
}

/** No lock in time; nothing was written: try again. */
export class SessionBusyError extends SessionError {
  static {
    defineError(this, 'SessionBusyError');
  }

  override readonly code = 'session_busy' as const;
}

/** Nothing was sent. `path` names the member of item `index`. */
export class SessionItemError extends SessionError {
  static {
    defineError(this, 'SessionItemError');
  }

  override readonly code: 'session_item_invalid' | 'session_item_too_large';
  readonly index: number;
  readonly path: string;

  constructor(
    message: string,
    details: SessionErrorDetails & {
      index: number;
      path: string;
      code?: 'session_item_invalid' | 'session_item_too_large';
    },
  ) {
    super(message, details);
    this.code = details.code ?? 'session_item_invalid';
    this.index = details.index;
    this.path = details.path;
  }
}

/** Nothing was written: load again. */
export class SessionVersionConflictError extends SessionError {
  static {
    defineError(this, 'SessionVersionConflictError');
  }

  override readonly code = 'session_version_conflict' as const;
  readonly expected: string;
  readonly actual: string;

  constructor(message: string, details: SessionErrorDetails & { expected: string; actual: string }) {
    super(message, details);
    this.expected = details.expected;
    this.actual = details.actual;
  }
}

/** The change may have been stored: repeat it with the same operation id. */
export class SessionOutcomeUnknownError extends SessionError {
  static {
    defineError(this, 'SessionOutcomeUnknownError');
  }

  override readonly code = 'session_outcome_unknown' as const;
  readonly operation: 'append' | 'replace' | 'pop' | 'clear';
  readonly operationId: string | undefined;

  constructor(
    message: string,
    details: SessionErrorDetails & {
      operation: 'append' | 'replace' | 'pop' | 'clear';
      operationId?: string | undefined;
    },
  ) {
    super(message, details);
    this.operation = details.operation;
    this.operationId = details.operationId;
  }
}
