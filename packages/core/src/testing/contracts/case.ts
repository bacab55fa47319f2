import { getLogger } from '../../base/logger.ts';

/** `run` rejects with what is wrong; it calls `t.skip` with the reason when the subject lacks what the case needs. */
export interface ContractCase {
  readonly id: string;
  readonly title: string;
  run(t?: { skip(reason: string): unknown }): Promise<void>;
}

/** Ends a case that the subject cannot take. */
export class Skipped extends Error {}

/** What a case found. Everything else that is thrown comes from a call that it made. */
class Finding extends Error {}

/** A case whose body may throw `Skipped`. Runners end a test in `skip` by throwing; without one the reason is logged. */
export function contractCase(id: string, title: string, body: () => Promise<void>): ContractCase {
  return {
    id,
    title: `${id} ${title}`,
    async run(t) {
      try {
        await body();
      } catch (error) {
        if (error instanceof Finding) throw error;
        if (!(error instanceof Skipped))
          throw new Error(`A call that has to succeed failed: ${textOf(error)}`, { cause: error });
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
  if (!condition) throw new Finding(`Expected ${expected}.`);
}

/** Equal as JSON, the order of members included. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [JSON.stringify(actual) ?? 'undefined', JSON.stringify(expected) ?? 'undefined'];
  if (got === wanted) return;
  throw new Finding(`${what}: expected ${shorten(wanted)}, got ${shorten(got)}${firstDifference(actual, expected)}.`);
}

function firstDifference(actual: unknown, expected: unknown): string {
  if (!Array.isArray(actual) || !Array.isArray(expected) || expected.length < 2) return '';
  const at = expected.findIndex((member, index) => JSON.stringify(member) !== JSON.stringify(actual[index]));
  return `, different from ${at === -1 ? expected.length : at} on`;
}

/** What it rejected with; a call that resolves is the fault. */
export async function rejection(call: () => Promise<unknown>, what: string): Promise<Record<string, unknown>> {
  try {
    await call();
  } catch (error) {
    return error as Record<string, unknown>;
  }
  throw new Finding(`Expected ${what} to reject, but it resolved.`);
}

/** Rejects with an error of this code. */
export async function refuses(
  call: () => Promise<unknown>,
  code: string,
  what: string,
): Promise<Record<string, unknown>> {
  const error = await rejection(call, what);
  if (error['code'] !== code)
    throw new Finding(
      `Expected ${what} to reject with code '${code}', got '${String(error['code'])}': ${String(error['message'])}`,
    );
  return error;
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function shorten(text: string): string {
  return text.length > 600 ? `${text.slice(0, 500)}… (${text.length} characters)` : text;
}
