import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnySchema } from './schema.ts';
import { answersLater } from '../base/at-once.ts';
import { AgentsError, UserError } from '../base/errors.ts';
import { thrownIssues } from './schema.ts';
import { runPatiently } from './zod.ts';

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  /** `cause` is what a validator threw; it may quote the value. */
  | { readonly ok: false; readonly issues: readonly StandardSchemaV1.Issue[]; readonly cause?: unknown };

/** Runs a schema over a value, at once. @throws UserError when the schema validates asynchronously */
export function validateNow(schema: AnySchema, value: unknown, where: string): Validation {
  try {
    const result = runPatiently(schema, value) ?? schema['~standard'].validate(value);
    if (!answersLater(result)) return verdict(result);
  } catch (error) {
    if (error instanceof AgentsError) throw error;
    return { ok: false, issues: thrownIssues(error), cause: error };
  }
  throw new UserError(
    `${where}: the schema validates asynchronously. Schemas must validate at once; do the waiting in the code that uses the value.`,
  );
}

function verdict(result: StandardSchemaV1.Result<unknown>): Validation {
  return result.issues === undefined ? { ok: true, value: result.value } : { ok: false, issues: result.issues };
}
