/** Answered to the client as a server would. */
export class CommandError extends Error {
  readonly code: number;
  readonly codeName: string;
  readonly labels: readonly string[];
  /** More members of the answer. */
  readonly details: Record<string, unknown>;

  constructor(
    code: number,
    codeName: string,
    message: string,
    labels: readonly string[] = [],
    details: Record<string, unknown> = {},
  ) {
    super(message);
    this.code = code;
    this.codeName = codeName;
    this.labels = labels;
    this.details = details;
  }
}

export function authenticationFailed(): CommandError {
  return new CommandError(18, 'AuthenticationFailed', 'Authentication failed.');
}

export function writeConflict(): CommandError {
  return new CommandError(
    112,
    'WriteConflict',
    'Caused by :: WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.',
    ['TransientTransactionError'],
  );
}
