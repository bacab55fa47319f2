import { UserError } from '../base/errors.ts';
import type { Check } from '../base/options.ts';

/** Any object with the four methods is a session; a method that is missing is better told of now than in the middle of a run. */
export const sessionShape: Check = (value) => {
  const missing = ['getItems', 'addItems', 'popItem', 'clearSession'].find(
    (method) => typeof (value as Record<string, unknown> | null | undefined)?.[method] !== 'function',
  );
  return missing && `a session (an object with getItems, addItems, popItem and clearSession; ${missing} is missing)`;
};

/**
 * @param what the argument, for the message: `The session of EncryptedSession`
 * @throws UserError for what is no session
 */
export function checkSession(value: unknown, what: string): void {
  const expected = sessionShape(value);
  if (expected !== undefined) throw new UserError(`${what} must be ${expected}.`);
}
