import { hash } from 'node:crypto';

import { contentDigest } from '@agents/core/session';
import type { HistoryOperation, HistoryTransaction } from '@agents/core/session';

/** What an operation id stands for: the id, and a digest that tells changes apart. */
export interface Operation {
  readonly id: string;
  readonly digest: string;
}

type ChangeType = HistoryTransaction<object>['type'] | 'replace_history';

/**
 * The type and the digests of the plain items (SESS-036); wrappers that change bytes hand theirs down.
 *
 * @param texts of the transaction's items as they are stored, for each of its lists
 */
export function operationOf<T extends object>(
  operation: HistoryOperation<T>,
  ...texts: readonly (readonly string[])[]
): Operation {
  const { operationId, transaction } = operation;
  return { id: operationId, digest: operation[contentDigest] ?? changeDigest(transaction.type, texts) };
}

/** For a write that may go without an id: it then applies each time. */
export function operationWith(
  id: string | undefined,
  type: ChangeType,
  texts: readonly string[],
): Operation | undefined {
  return id === undefined ? undefined : { id, digest: changeDigest(type, [texts]) };
}

function changeDigest(type: ChangeType, texts: readonly (readonly string[])[]): string {
  return sha256(JSON.stringify([type, ...texts.map(digests)]));
}

/** Whether two JSON texts hold the same item; the order of members does not count. */
export function sameItem(a: string, b: string): boolean {
  return a === b || canonical(JSON.parse(a)) === canonical(JSON.parse(b));
}

/** Members that an SDK adds for itself; the same call has the same digest with and without them. */
const SDK_ONLY: ReadonlySet<string> = new Set(['_agents_tool_description', '_agents_tool_title', 'created_by']);

function digests(texts: readonly string[]): string[] {
  return texts.map((text) => {
    const plain = JSON.parse(text) as object;
    return sha256(members(Object.entries(plain).filter(([key]) => !SDK_ONLY.has(key))));
  });
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return typeof value === 'object' && value !== null ? members(Object.entries(value)) : JSON.stringify(value);
}

function members(entries: [string, unknown][]): string {
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${canonical(value)}`).join(',')}}`;
}

function sha256(text: string): string {
  return hash('sha256', text);
}
