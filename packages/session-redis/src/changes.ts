import type { Cluster, Redis } from 'ioredis';

import type { Reply } from './connection.ts';
import type { SessionKeys } from './keys.ts';
import { entryHead } from './operations.ts';
import { clearScript, metadataScript, popScript, writeScript } from './scripts.ts';

export interface WriteRequest {
  readonly operationId: string;
  readonly digest: string;
  readonly sessionId: string;
  /** `keep`: upkeep, which changes neither the time of the update nor the end. */
  readonly ttlMs: number | 'keep' | undefined;
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

export interface MetadataRequest {
  readonly sessionId: string;
  /** The field `_meta` as it must be, and as it is to be; empty: none. */
  readonly before: string;
  readonly after: string;
  readonly ttlMs: number | undefined;
}

/** What became of a change: only after `done` and `removed` something is different. */
export type Outcome =
  | { readonly what: 'done'; readonly version: string }
  /** The operation was carried out before. */
  | { readonly what: 'known'; readonly digest: string; readonly version: string }
  /** The list does not end as expected. */
  | { readonly what: 'changed' }
  | { readonly what: 'conflict'; readonly version: string }
  | { readonly what: 'removed'; readonly existed: boolean; readonly items: number }
  /** Not removed, for it was updated since. */
  | { readonly what: 'kept' }
  | { readonly what: 'type'; readonly expected: string; readonly actual: string };

/** The changes of a session, each atomic, and the first two harmless when they are sent twice. */
export interface Changes {
  write(client: Redis | Cluster, keys: SessionKeys, request: WriteRequest): Promise<Outcome>;
  pop(client: Redis | Cluster, keys: SessionKeys, request: PopRequest): Promise<Outcome>;
  /** @param idleSince milliseconds since 1970: only what was not updated since then */
  clear(client: Redis | Cluster, keys: SessionKeys, idleSince?: number): Promise<Outcome>;
  setMetadata(client: Redis | Cluster, keys: SessionKeys, request: MetadataRequest): Promise<Outcome>;
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
  async clear(client, keys, idleSince) {
    return outcomeOf(await clearScript.run(client, listOf(keys), [String(idleSince ?? '')]));
  },
  async setMetadata(client, keys, { sessionId, before, after, ttlMs }) {
    const args = [before, after, sessionId, String(ttlMs ?? '')];
    return outcomeOf(await metadataScript.run(client, listOf(keys), args));
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
    case 'removed':
      return { what, existed: first === '1', items: Number(second) };
    case 'kept':
      return { what };
    case 'type':
      return { what, expected: first, actual: second };
    default:
      return { what: 'changed' };
  }
}
