import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnySchema } from './schema.ts';
import { answersLater } from '../base/at-once.ts';
import { AgentsError, UserError } from '../base/errors.ts';
import { thrownIssues } from './schema.ts';
import { neverWaits, runPatiently } from './zod.ts';

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  /** `cause` is what a validator threw; it may quote the value. */
  | { readonly ok: false; readonly issues: readonly StandardSchemaV1.Issue[]; readonly cause?: unknown };

const invalid: readonly StandardSchemaV1.Issue[] = [{ message: 'Invalid value' }];

/** Runs a schema over a value, at once. @throws UserError when the schema validates asynchronously */
export function validateNow(schema: AnySchema, value: unknown, where: string): Validation {
  try {
    const result = runPatiently(schema, value) ?? schema['~standard'].validate(value);
    if (!answersLater(result)) return verdict(result);
    // A value that throws while it is read; zod then tries it again as one that waits.
    if (neverWaits(schema)) return { ok: false, issues: invalid };
  } catch (error) {
    if (error instanceof AgentsError) throw error;
    return { ok: false, issues: thrownIssues(error), cause: error };
  }
  throw new UserError(
    `${where}: the schema validates asynchronously. Schemas must validate at once; do the waiting in the code that uses the value.`,
  );
}

/** As the standard reads results: there is a value unless there are issues, however many. */
function verdict(result: StandardSchemaV1.Result<unknown>): Validation {
  if (!result.issues) return { ok: true, value: result.value };
  const { issues } = result;
  return { ok: false, issues: Array.isArray(issues) && issues.length > 0 ? issues : invalid };
}
