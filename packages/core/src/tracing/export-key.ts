import { UserError } from '../base/errors.ts';
import { kindOf, kinds } from '../base/options.ts';
import { runtime } from './runtime.ts';

/**
 * Sets a key that exporters may use for traces without their own; `undefined`: none. Nothing is sent because of it. An
 * export that is under way keeps the key that it began with.
 *
 * @throws UserError for anything but a text that is not empty
 * @example setTraceExportKey(await secrets.read('openai-traces'));
 */
export function setTraceExportKey(key: string | undefined): void {
  if (key !== undefined && kinds.nonEmptyString(key) !== undefined)
    throw new UserError(`setTraceExportKey() takes a string that is not empty, or undefined, not ${kindOf(key)}.`);
  // A function, since whoever prints the settings of the process should not print the key.
  runtime().exportKey = key === undefined ? undefined : () => key;
}

/** The key of `setTraceExportKey` or `setOpenAIDefaults`. */
export function getTraceExportKey(): string | undefined {
  return runtime().exportKey?.();
}
