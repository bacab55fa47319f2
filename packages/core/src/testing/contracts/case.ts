import { getLogger } from '../../base/logger.ts';

/** `run` rejects with what is wrong; it calls `t.skip` with the reason when the subject lacks what the case needs. */
export interface ContractCase {
  readonly id: string;
  readonly title: string;
  run(t?: { skip(reason: string): unknown }): Promise<void>;
}

/** Ends a case that the subject cannot take. */
export class Skipped extends Error {}

/** A case whose body may throw `Skipped`. Runners end a test in `skip` by throwing; without one the reason is logged. */
export function contractCase(id: string, title: string, body: () => Promise<void>): ContractCase {
  return {
    id,
    title: `${id} ${title}`,
    async run(t) {
      try {
        await body();
      } catch (error) {
        if (!(error instanceof Skipped)) throw error;
        if (t === undefined) getLogger('testing').info(`${id} is skipped: ${error.message}`);
        else t.skip(error.message);
      }
    },
  };
}

export function skip(reason: string): never {
  throw new Skipped(reason);
}

/** @throws Error that says what was expected */
export function check(condition: boolean, expected: string): asserts condition {
  if (!condition) throw new Error(`Expected ${expected}.`);
}

/** Equal as JSON, the order of members included. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [JSON.stringify(actual) ?? 'undefined', JSON.stringify(expected) ?? 'undefined'];
  if (got !== wanted) throw new Error(`${what}: expected ${shorten(wanted)}, got ${shorten(got)}.`);
}

/** What it rejected with; a call that resolves is the fault. */
export async function rejection(call: () => Promise<unknown>, what: string): Promise<Record<string, unknown>> {
  try {
    await call();
  } catch (error) {
    return error as Record<string, unknown>;
  }
  throw new Error(`Expected ${what} to reject, but it resolved.`);
}

/** Rejects with an error of this code. */
export async function refuses(
  call: () => Promise<unknown>,
  code: string,
  what: string,
): Promise<Record<string, unknown>> {
  const error = await rejection(call, what);
  if (error['code'] !== code)
    throw new Error(
      `Expected ${what} to reject with code '${code}', got '${String(error['code'])}': ${String(error['message'])}`,
    );
  return error;
}

function shorten(text: string): string {
  return text.length > 600 ? `${text.slice(0, 500)}… (${text.length} characters)` : text;
}
