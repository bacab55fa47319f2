import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import type { Check } from '../base/options.ts';
import { boundMs } from './bounded.ts';

const checks: Readonly<Record<string, Check>> = {
  name: kinds.nonEmptyString,
  // Looked at as the options of the backend's own class.
  options: kinds.any,
  encoding: kinds.object,
  timeoutMs: boundMs,
};

/**
 * What a backend gives to `StoredSession` or `StoredSessionStore`, which is `where`.
 *
 * @throws UserError that names what is wrong, before anything is made
 */
export function checkSetup(setup: unknown, where: string, members: readonly string[]): void {
  if (setup === undefined)
    throw new UserError(`${where} needs a set-up: an object with the 'name' of your class, as { name: 'MySession' }.`);
  const known = Object.fromEntries(members.map((member) => [member, checks[member] ?? kinds.any]));
  checkOptions(setup, known, `the set-up of ${where}`);
  const { name, encoding } = setup as { name?: unknown; encoding?: object };
  if (name === undefined)
    throw new UserError(`The set-up of ${where} needs a 'name', that of your class, for its messages.`);
  checkOptions(
    encoding,
    { style: kinds.oneOf('compact', 'spaced'), ascii: kinds.boolean },
    `'encoding' of the set-up of ${where}`,
  );
}

/** @throws UserError for what makes no backend */
export function checkOpen(open: unknown, name: string): void {
  if (typeof open !== 'function')
    throw new UserError(
      `${name} gives StoredSession no 'open', a function that makes the HistoryBackend of a session id, but ${kindOf(open)}.`,
    );
}

/** @throws UserError for what lacks a method, or has something else in its place */
export function checkBackend(
  backend: unknown,
  what: string,
  methods: readonly string[],
  optional: readonly string[],
): void {
  if (typeof backend !== 'object' || backend === null)
    throw new UserError(`The ${what} must be an object with ${listed(methods)}, not ${kindOf(backend)}.`);
  const members = backend as Readonly<Record<string, unknown>>;
  if (typeof members['then'] === 'function')
    throw new UserError(
      `The ${what} must be there at once, not a promise of it: connect before, or with the first call.`,
    );
  const missing = methods.filter((method) => members[method] === undefined);
  if (missing.length > 0) throw new UserError(`The ${what} lacks ${listed(missing)}.`);
  for (const method of [...methods, ...optional]) {
    const member = members[method];
    if (member !== undefined && typeof member !== 'function')
      throw new UserError(`'${method}' of the ${what} must be a function, not ${kindOf(member)}.`);
  }
}

function listed(names: readonly string[]): string {
  return names.map((name) => `${name}()`).join(', ');
}
