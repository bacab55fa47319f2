import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnySchema } from './schema.ts';
import { className } from '../base/logger.ts';
import { AgentsError, UserError } from '../base/errors.ts';
import { isThenable, thrownIssues } from './schema.ts';

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  /** `cause` is what a validator threw; it may quote the value. */
  | { readonly ok: false; readonly issues: readonly StandardSchemaV1.Issue[]; readonly cause?: unknown };

/** Runs a schema over a value, at once. @throws UserError when the schema validates asynchronously */
export function validateNow(schema: AnySchema, value: unknown, where: string): Validation {
  try {
    const result = schema['~standard'].validate(value);
    if (!isThenable(result)) return verdict(result);
    // Its outcome is of no use to anyone.
    result.then(undefined, () => {});
    throwSyncFailure(schema, value);
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

/**
 * zod answers with a promise also when a transform throws at once, which a bad value can cause; its `safeParse` tells the
 * two apart. Other libraries, and documents of `z.toJSONSchema`, have no such method.
 */
function throwSyncFailure(schema: AnySchema, value: unknown): void {
  if (schema['~standard'].vendor !== 'zod' || !('safeParse' in schema) || typeof schema.safeParse !== 'function')
    return;
  try {
    schema.safeParse(value);
  } catch (error) {
    if (className(error) !== '$ZodAsyncError') throw error;
  }
}
