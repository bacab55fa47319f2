import { SessionSchemaError } from '@agents/core/session';
import type { SessionInfo } from '@agents/core/session';
import type { Cluster, Redis } from 'ioredis';

import type { SessionKeys } from './keys.ts';
import { answersOf } from './read.ts';

/** What is told of a session; `undefined`: there is none. */
export async function infoOf(
  client: Redis | Cluster,
  keys: SessionKeys,
  withCount: boolean,
): Promise<SessionInfo | undefined> {
  const answers = await client
    .pipeline()
    .hmget(keys.session, 'session_id', 'created_at', 'updated_at', '_meta')
    .pttl(keys.session)
    .llen(keys.messages)
    .exec();
  const [[id, created, updated, meta], ttl, length] = answersOf(answers, keys) as [
    (string | null)[],
    number | string,
    number | string,
  ];
  if ((id ?? null) === null && Number(length) === 0) return undefined;
  const metadata = metadataText(meta ?? '');
  const [createdAt, updatedAt] = [dateOf(created), dateOf(updated)];
  return {
    sessionId: keys.sessionId,
    ...(createdAt && { createdAt }),
    ...(updatedAt && { updatedAt }),
    ...(Number(ttl) > 0 && { expiresAt: new Date(Date.now() + Number(ttl)) }),
    ...(withCount && { itemCount: Number(length) }),
    ...(metadata && { metadata }),
  };
}

/** For lists: one of its keys is of another type. @throws any other error: what is left out has to be none */
export function notOurs(error: unknown): undefined {
  if (!(error instanceof SessionSchemaError)) throw error;
}

/** The field `_meta`; empty: there is none. */
export async function metadataOf(client: Redis | Cluster, keys: SessionKeys): Promise<string> {
  const [text] = answersOf(await client.pipeline().hget(keys.session, '_meta').exec(), keys) as [string | null];
  return text ?? '';
}

/** What is no JSON object is none of ours. */
export function metadataText(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Seconds since 1970, as text; what is none is no time. */
export function dateOf(seconds: string | null | undefined): Date | undefined {
  return seconds && /^\d{1,12}(\.\d+)?$/.test(seconds) ? new Date(Number(seconds) * 1000) : undefined;
}
