import { randomBytes } from 'node:crypto';

/** Operations that a session remembers: at least 64 others may come after one. */
export const REMEMBERED = 65;

/** What a session remembers of an operation: its change, and the version that it led to. */
export interface KnownOperation {
  readonly digest: string;
  readonly version: string;
}

/**
 * The text of the field `_ops` is `[["id","digest","version"],…]`, oldest first. It is searched and cut as text, here as in
 * the scripts: reading it as JSON would cost more than the rest of an append. Within a JSON text `["` and `"],["` stand at
 * the ends of entries alone, for quotes inside of an id are escaped.
 */
export function entryHead(operationId: string): string {
  return `[${JSON.stringify(operationId)},`;
}

export function findOperation(operations: string, operationId: string): KnownOperation | undefined {
  const head = entryHead(operationId);
  const at = operations.indexOf(head);
  const found = at === -1 ? null : /^"([^"]*)","([^"]*)"/.exec(operations.slice(at + head.length));
  return found ? { digest: found[1] ?? '', version: found[2] ?? '' } : undefined;
}

/** The text with one entry more, and without the oldest ones that are too many. */
export function addOperation(operations: string, operationId: string, { digest, version }: KnownOperation): string {
  const entry = `${entryHead(operationId)}"${digest}","${version}"]`;
  const entries = operations.startsWith('[[') ? operations.slice(1, -1).split(/(?<="\]),(?=\[")/) : [];
  return `[${[...entries.slice(1 - REMEMBERED), entry].join(',')}]`;
}

/** For changes without one of the caller: a client may send them twice all the same. */
export function newOperationId(): string {
  return randomBytes(12).toString('base64url');
}

/** Enough of it to tell changes apart. */
export function shortDigest(digest: string | undefined): string {
  return digest?.slice(0, 32) ?? '';
}
