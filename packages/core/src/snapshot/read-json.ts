import { UserError } from '../base/errors.ts';
import { checkDepth, overLimit, visibleCause } from './json.ts';

/** `path` is made of the format's own names and of positions, never of what the payload holds. */
export function malformed(path: string, expected: string): UserError {
  return new UserError(`The run state is malformed: ${path} must be ${expected}.`, { code: 'state_malformed' });
}

/**
 * @throws UserError `json_too_large`, `json_parse`
 */
export function parseText(text: string, maxBytes: number): unknown {
  if (utf8Length(text, maxBytes) > maxBytes) throw overLimit(maxBytes);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new UserError(
      'The text is not valid JSON. Pass what toString() of a RunState gave, unchanged and complete.',
      { code: 'json_parse', ...visibleCause(error) },
    );
  }
  checkDepth(parsed);
  return parsed;
}

/** Counts bytes only where the number of characters does not decide. */
function utf8Length(text: string, limit: number): number {
  if (text.length > limit || text.length * 3 <= limit) return text.length;
  return new TextEncoder().encode(text).length;
}

/** Equal as JSON; the order of members means nothing. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && equalArrays(a, b);
  return !Array.isArray(b) && equalObjects(a as Record<string, unknown>, b as Record<string, unknown>);
}

// Without closures: those of a function are allocated at each of its calls, and a state's items are compared one by one.

function equalArrays(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!equalJson(a[i], b[i])) return false;
  return true;
}

function equalObjects(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  let more = 0;
  // What `b` inherits under a name equals nothing that JSON can hold.
  for (const key in a) {
    if (!equalJson(a[key], b[key])) return false;
    more++;
  }
  for (const _ in b) more--;
  return more === 0;
}
