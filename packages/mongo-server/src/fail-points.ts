import { CommandError } from './errors.ts';
import { int, plainOf } from './values.ts';
import type { Doc } from './values.ts';

/** Which commands fail, and how. */
interface FailCommand {
  readonly failCommands: readonly string[];
  /** Before it does anything. */
  readonly errorCode?: number;
  /** Beside what it does. */
  readonly writeConcernError?: { readonly code: number; readonly errmsg: string };
  readonly errorLabels?: readonly string[];
  /** `database.collection`. Default: any. */
  readonly namespace?: string;
}

/** `failCommand` of MongoDB's `configureFailPoint`: commands that fail as a test wants it. */
export class FailPoints {
  #current: FailCommand | undefined;
  /** How often it still fails. */
  #left = 0;

  /** @throws CommandError */
  configure(body: Doc): Doc {
    const { configureFailPoint, mode, data } = plainOf(body) as Doc;
    if (configureFailPoint !== 'failCommand')
      throw new CommandError(9, 'FailedToParse', 'Only failCommand is known here');
    this.#left = mode === 'alwaysOn' ? Infinity : mode === 'off' ? 0 : Number((mode as Doc)['times']);
    this.#current = data as FailCommand | undefined;
    return { ok: 1 };
  }

  /** What the answer has beside. @throws CommandError */
  check(command: string, namespace: string): Doc {
    const point = this.#current;
    if (point === undefined || this.#left <= 0 || !point.failCommands.includes(command)) return {};
    if (point.namespace !== undefined && point.namespace !== namespace) return {};
    this.#left--;
    const { writeConcernError } = point;
    if (writeConcernError !== undefined)
      return { writeConcernError: { ...writeConcernError, code: int(writeConcernError.code) } };
    throw new CommandError(
      point.errorCode ?? 0,
      'FailPoint',
      'Failing command via failCommand failpoint',
      point.errorLabels,
    );
  }
}
