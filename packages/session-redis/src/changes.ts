import type { Cluster, Redis } from 'ioredis';

import { AnswerLost } from './connection.ts';
import type { Answer } from './connection.ts';
import type { SessionKeys } from './keys.ts';
import { entryHead } from './operations.ts';
import { clearScript, metadataScript, popScript, writeScript } from './scripts.ts';

export interface WriteRequest {
  readonly operationId: string;
  readonly digest: string;
  readonly sessionId: string;
  /** `keep`: upkeep, which changes neither the time of the update nor the end. */
  readonly ttlMs: number | 'keep' | undefined;
  /** The version that the history must have. What removes something always names the one that it saw. */
  readonly version: string | undefined;
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
  /** The version that the history must have. */
  readonly version: string;
}

export interface ClearRequest {
  /** The version that the history must have. `undefined`: any will do, for `idleSince` tells. */
  readonly version: string | undefined;
  /** Milliseconds since 1970: only what was not updated since then. */
  readonly idleSince: number | undefined;
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
  /** The history has another version, or does not end as expected. */
  | { readonly what: 'changed'; readonly version: string }
  | { readonly what: 'removed'; readonly items: number }
  /** Nothing was there to remove; any more, if the command was sent again. */
  | { readonly what: 'gone'; readonly sentAgain: boolean }
  /** Not removed, for it was updated since. */
  | { readonly what: 'kept' }
  | { readonly what: 'type'; readonly expected: string; readonly actual: string };

/**
 * The changes of a session, each atomic. Clients send again what was not answered, now or after hours: so a change is known by
 * its id, and one that removes something is made only on the version that its caller saw.
 */
export interface Changes {
  write(client: Redis | Cluster, keys: SessionKeys, request: WriteRequest): Promise<Outcome>;
  pop(client: Redis | Cluster, keys: SessionKeys, request: PopRequest): Promise<Outcome>;
  clear(client: Redis | Cluster, keys: SessionKeys, request: ClearRequest): Promise<Outcome>;
  setMetadata(client: Redis | Cluster, keys: SessionKeys, request: MetadataRequest): Promise<Outcome>;
}

const listOf = ({ session, messages, counter }: SessionKeys): string[] => [session, messages, counter];

export const scriptedChanges: Changes = {
  async write(client, keys, { operationId, digest, sessionId, ttlMs, version, mode, expected, push }) {
    const head = [entryHead(operationId), digest, sessionId, String(ttlMs ?? ''), version ?? '', mode];
    const args = [...head, String(expected.length)];
    return conclusive(await writeScript.run(client, listOf(keys), [...args, ...expected, ...push]));
  },
  async pop(client, keys, { operationId, sessionId, expected, version }) {
    return conclusive(
      await popScript.run(client, listOf(keys), [entryHead(operationId), sessionId, version, expected]),
    );
  },
  async clear(client, keys, { version, idleSince }) {
    return conclusive(await clearScript.run(client, listOf(keys), [version ?? '', String(idleSince ?? '')]));
  },
  async setMetadata(client, keys, { sessionId, before, after, ttlMs }) {
    const args = [before, after, sessionId, String(ttlMs ?? '')];
    // Made twice it is the same, and what others set meanwhile is merged anew.
    return outcomeOf(await metadataScript.run(client, listOf(keys), args));
  },
};

/** @throws AnswerLost when a command that was sent again says that it did nothing: that the first time did is possible */
function conclusive(answer: Answer): Outcome {
  const outcome = outcomeOf(answer);
  const saysSo = outcome.what === 'changed' || outcome.what === 'kept' || outcome.what === 'type';
  if (saysSo && answer.sentAgain) throw new AnswerLost();
  return outcome;
}

function outcomeOf({ reply, sentAgain }: Answer): Outcome {
  const [what, first = '', second = ''] = (reply as readonly Buffer[]).map(String);
  switch (what) {
    case 'done':
      return { what, version: first };
    case 'known':
      return { what, digest: first, version: second };
    case 'removed':
      return { what, items: Number(first) };
    case 'gone':
      return { what, sentAgain };
    case 'kept':
      return { what };
    case 'type':
      return { what, expected: first, actual: second };
    default:
      return { what: 'changed', version: first };
  }
}
