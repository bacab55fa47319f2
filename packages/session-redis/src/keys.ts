import { randomBytes } from 'node:crypto';

import { UserError } from '@agents/core';

export interface KeyNaming {
  readonly prefix: string;
  /** The `keyPrefix` of the client, which it puts before every key by itself. */
  readonly clientPrefix: string;
  readonly hashTag: 'auto' | 'none' | 'session';
  readonly cluster: boolean;
}

/** Of one session; without the client's prefix. */
export interface SessionKeys {
  /** Whose they are. */
  readonly sessionId: string;
  /** Hash with the dates and what we remember. */
  readonly session: string;
  /** List of the items. */
  readonly messages: string;
  /** Python's, which only its id helper writes. */
  readonly counter: string;
}

/** Stands where the id of a session does in the key of a store's index. */
export const INDEX_ID = '__index';

/** An id that ended so would name another session's key. */
const RESERVED = [':messages', ':counter', ':ops'];

/** @throws UserError `session_id_invalid` */
export function keysOf(sessionId: string, naming: KeyNaming): SessionKeys {
  const ending = RESERVED.find((one) => sessionId.endsWith(one));
  if (ending !== undefined) throw invalid(`must not end in '${ending}': that is a key of another session`);
  const tagged = isTagged(naming);
  if (!tagged && sessionId === INDEX_ID) throw invalid(`must not be '${INDEX_ID}': that is the key of a store's index`);
  if (tagged && sessionId.startsWith('}'))
    throw invalid("must not begin with '}' where keys have hash tags: the tag would be empty");
  const session = `${naming.prefix}:${tagged ? `{${sessionId}}` : sessionId}`;
  const keys = { sessionId, session, messages: `${session}:messages`, counter: `${session}:counter` };
  if (tagged && hashTagOf(naming.clientPrefix + session) === undefined)
    throw new UserError(
      "Option 'keyPrefix' has an empty hash tag ('{}'), behind which a tag of the session counts for nothing.",
    );
  return keys;
}

/** For a list beside a session that nobody else knows; it ends as no session's key may. */
export function besideKey({ session }: SessionKeys): string {
  return `${session}:${randomBytes(12).toString('base64url')}:ops`;
}

/** Whether the id stands in braces. */
export function isTagged({ prefix, clientPrefix, hashTag, cluster }: KeyNaming): boolean {
  if (hashTag !== 'auto') return hashTag === 'session';
  return cluster && hashTagOf(clientPrefix + prefix) === undefined;
}

/** The part of a key that decides on its slot: between the first `{` and the next `}`, when that is not empty. */
function hashTagOf(key: string): string | undefined {
  const from = key.indexOf('{');
  const to = key.indexOf('}', from + 1);
  return from === -1 || to <= from + 1 ? undefined : key.slice(from + 1, to);
}

function invalid(problem: string): UserError {
  return new UserError(`A session id ${problem}.`, { code: 'session_id_invalid' });
}
