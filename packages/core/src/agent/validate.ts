import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Standard } from './schema.ts';
import { AgentsError, UserError } from '../base/errors.ts';
import { isThenable, thrownIssues } from './schema.ts';

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  /** `cause` is what a validator threw; it may quote the value. */
  | { readonly ok: false; readonly issues: readonly StandardSchemaV1.Issue[]; readonly cause?: unknown };

/** Runs a schema over a value, at once. @throws UserError when the schema validates asynchronously */
export function validateNow(standard: Standard, value: unknown, where: string): Validation {
  let result: StandardSchemaV1.Result<unknown> | PromiseLike<unknown>;
  try {
    result = standard.validate(value);
  } catch (error) {
    if (error instanceof AgentsError) throw error;
    return { ok: false, issues: thrownIssues(error), cause: error };
  }
  if (isThenable(result)) {
    // Its outcome is of no use to anyone.
    result.then(undefined, () => {});
    throw new UserError(
      `${where}: the schema validates asynchronously. Schemas must validate at once; do the waiting in the code that uses the value.`,
    );
  }
  return result.issues === undefined ? { ok: true, value: result.value } : { ok: false, issues: result.issues };
}
