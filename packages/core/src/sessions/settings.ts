import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import type { Session, SessionSettings } from './contract.ts';

/** @throws UserError for unknown members and limits that are no whole numbers. */
export function checkSessionSettings(settings: SessionSettings | undefined, where: string): void {
  checkOptions(settings, { limit: kinds.any }, where);
  if (settings?.limit !== undefined && settings.limit !== null) checkLimit(settings.limit, where);
}

/**
 * Items to read: the argument, else the settings (later ones first), else all. `undefined`: all; never negative.
 */
export function resolveLimit(
  limit: number | undefined,
  ...settings: readonly (SessionSettings | undefined)[]
): number | undefined {
  const given: number | null | undefined = limit ?? settings.find((one) => one?.limit !== undefined)?.limit;
  if (given === undefined || given === null) return undefined;
  checkLimit(given, 'getItems()');
  return Math.max(0, given);
}

function checkLimit(limit: unknown, where: string): void {
  if (Number.isSafeInteger(limit)) return;
  throw new UserError(
    `The limit of ${where} must be a whole number, not ${typeof limit === 'number' ? String(limit) : kindOf(limit)}.`,
  );
}

/** @throws UserError `session_id_invalid`. */
export function checkSessionId(sessionId: unknown): asserts sessionId is string {
  let problem: string | undefined;
  if (typeof sessionId !== 'string') problem = `must be a string, not ${kindOf(sessionId)}`;
  else if (sessionId.trim() === '') problem = 'must not be blank';
  else if (sessionId.length > 1024) problem = `has ${sessionId.length} UTF-16 units, at most 1024 are allowed`;
  else if (sessionId.includes('\0')) problem = 'must not contain NUL';
  else if (/\p{Surrogate}/u.test(sessionId)) problem = 'must not contain lone surrogates';
  if (problem !== undefined) throw new UserError(`A session id ${problem}.`, { code: 'session_id_invalid' });
}

/** Of a table, a collection, an index (SESS-158). @throws UserError `session_name_invalid`. */
export function checkStoreName(name: unknown, what: string): asserts name is string {
  if (typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) return;
  const given = typeof name === 'string' ? `'${name.slice(0, 80)}'` : kindOf(name);
  throw new UserError(
    `${given} is no ${what} name: letters, digits and underscores, at most 63, beginning with a letter or an underscore.`,
    { code: 'session_name_invalid' },
  );
}

/** The id as far as it is known without asking; an id that cannot be had degrades what needs it, nothing else. */
export function knownSessionId(session: Session): string | undefined {
  try {
    const id: unknown = session.sessionId;
    return typeof id === 'string' && id !== '' ? id : undefined;
  } catch {
    return undefined;
  }
}

/** The id, asked for if need be. Never rejects. */
export async function readSessionId(session: Session): Promise<string | undefined> {
  const known = knownSessionId(session);
  if (known !== undefined) return known;
  try {
    const id: unknown = await session.getSessionId?.();
    return typeof id === 'string' && id !== '' ? id : undefined;
  } catch {
    return undefined;
  }
}
