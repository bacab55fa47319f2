import type { Cluster, Redis } from 'ioredis';

import type { Reply } from './connection.ts';
import type { SessionKeys } from './keys.ts';
import { entryHead } from './operations.ts';
import { clearScript, popScript, writeScript } from './scripts.ts';

export interface WriteRequest {
  readonly operationId: string;
  readonly digest: string;
  readonly sessionId: string;
  readonly ttlMs: number | undefined;
  /** The version that the history must have. */
  readonly ifVersion: string | undefined;
  /** `suffix`: removes `expected`; `replace`: everything. */
  readonly mode: 'append' | 'suffix' | 'replace';
  /** What the list must end with, byte for byte. */
  readonly expected: readonly Buffer[];
  readonly push: readonly (string | Buffer)[];
}

export interface PopRequest {
  readonly operationId: string;
  readonly sessionId: string;
  /** The newest element. */
  readonly expected: Buffer;
}

/** What became of a change: only after `done` something is different. */
export type Outcome =
  | { readonly what: 'done'; readonly version: string }
  /** The operation was carried out before. */
  | { readonly what: 'known'; readonly digest: string; readonly version: string }
  /** The list does not end as expected. */
  | { readonly what: 'changed' }
  | { readonly what: 'conflict'; readonly version: string }
  | { readonly what: 'type'; readonly expected: string; readonly actual: string };

/** The three changes of a session, each atomic, and the first two harmless when they are sent twice. */
export interface Changes {
  write(client: Redis | Cluster, keys: SessionKeys, request: WriteRequest): Promise<Outcome>;
  pop(client: Redis | Cluster, keys: SessionKeys, request: PopRequest): Promise<Outcome>;
  clear(client: Redis | Cluster, keys: SessionKeys): Promise<Outcome>;
}

const listOf = ({ session, messages, counter }: SessionKeys): string[] => [session, messages, counter];

export const scriptedChanges: Changes = {
  async write(client, keys, { operationId, digest, sessionId, ttlMs, ifVersion, mode, expected, push }) {
    const head = [entryHead(operationId), digest, sessionId, String(ttlMs ?? ''), ifVersion ?? '', mode];
    const args = [...head, String(expected.length)];
    return outcomeOf(await writeScript.run(client, listOf(keys), [...args, ...expected, ...push]));
  },
  async pop(client, keys, { operationId, sessionId, expected }) {
    return outcomeOf(await popScript.run(client, listOf(keys), [entryHead(operationId), sessionId, expected]));
  },
  async clear(client, keys) {
    return outcomeOf(await clearScript.run(client, listOf(keys), []));
  },
};

function outcomeOf(reply: Reply): Outcome {
  const [what, first = '', second = ''] = (reply as readonly Buffer[]).map(String);
  switch (what) {
    case 'done':
      return { what, version: first };
    case 'known':
      return { what, digest: first, version: second };
    case 'conflict':
      return { what, version: first };
    case 'type':
      return { what, expected: first, actual: second };
    default:
      return { what: 'changed' };
  }
}
