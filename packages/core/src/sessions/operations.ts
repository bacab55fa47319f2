import { sha256Hex } from '../base/digest.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { itemDigest } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import { contentDigest } from './contract.ts';
import type { HistoryOperation, HistoryTransaction } from './contract.ts';

/** What an operation id stands for. */
export type HistoryChange<T extends object = object> =
  | HistoryTransaction<T>
  | { readonly type: 'replace_history'; readonly items: readonly T[] };

export interface CheckedOperation<T extends object> {
  readonly operationId: string;
  readonly transaction: HistoryTransaction<T>;
  /** Given by a wrapper that changes bytes. */
  readonly digest: string | undefined;
}

/** @throws UserError for blank ids, unknown members and lists that are no arrays; before any effect (SESS-035). */
export function checkOperation<T extends object>(operation: HistoryOperation<T>): CheckedOperation<T> {
  const given: unknown = operation;
  if (typeof given !== 'object' || given === null) throw refuse(`must be an object, not ${kindOf(given)}`);
  onlyMembers(operation, ['operationId', 'transaction'], 'operation');
  const { operationId, transaction } = operation;
  if (typeof operationId !== 'string' || operationId.trim() === '')
    throw refuse("needs an 'operationId' that is not blank");
  const kind: unknown = transaction;
  if (typeof kind !== 'object' || kind === null) throw refuse(`needs a 'transaction', not ${kindOf(kind)}`);
  switch (transaction.type) {
    case 'append_items':
      onlyMembers(transaction, ['type', 'items'], 'transaction');
      checkBatch(transaction.items, "'items' of the transaction");
      break;
    case 'replace_suffix':
      onlyMembers(transaction, ['type', 'expectedSuffix', 'replacement'], 'transaction');
      checkBatch(transaction.expectedSuffix, "'expectedSuffix' of the transaction");
      checkBatch(transaction.replacement, "'replacement' of the transaction");
      break;
    default:
      transaction satisfies never;
      throw refuse("needs a 'transaction' of type 'append_items' or 'replace_suffix'");
  }
  return { operationId, transaction, digest: operation[contentDigest] };
}

export function checkBatch<T>(items: readonly T[], where: string): readonly T[] {
  if (!Array.isArray(items)) throw new UserError(`Items of ${where} must be an array, not ${kindOf(items)}.`);
  return items;
}

/** Options of a versioned write. @throws UserError */
export function checkWriteOptions(options: object | undefined, known: readonly string[], where: string): void {
  checkOptions(options, Object.fromEntries(known.map((key) => [key, kinds.nonEmptyString])), where);
}

/** Tells changes apart: the type and the digests of the plain items (SESS-036). */
export function changeDigest(change: HistoryChange): string {
  const digests = (items: readonly object[]): string[] =>
    items.map((item) => itemDigest(item as AgentInputItem, 'raw'));
  const parts =
    change.type === 'replace_suffix'
      ? [digests(change.expectedSuffix), digests(change.replacement)]
      : [digests(change.items)];
  return sha256Hex(JSON.stringify([change.type, ...parts]));
}

function onlyMembers(value: object, known: readonly string[], what: string): void {
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) throw refuse(`has an unknown member '${extra}' in its ${what}`);
}

function refuse(problem: string): UserError {
  return new UserError(`applyHistoryTransaction() ${problem}.`);
}
