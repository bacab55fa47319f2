import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { decodeItem } from './codec.ts';
import { masterBytes, open, seal, sessionKey } from './fernet.ts';
import type { FernetKey } from './fernet.ts';
import { isEnvelope } from './store-turns.ts';

export interface EncryptionOptions {
  /** The first key writes, all read. High entropy: 32 bytes in base64, or a long random text. No password. */
  encryptionKey: string | readonly [current: string, ...previous: string[]];
  /** Older items are skipped. Default 600 000; `null`: never; a multiple of 1000. */
  ttlMs?: number | null | undefined;
  /** Items stored without encryption. Default `skip`; with `pass` whoever writes the store can write history. */
  plaintext?: 'skip' | 'pass' | undefined;
  /** Items read per `getItems` to find `limit` readable ones; more is a `SessionError`. Default no limit. */
  maxScanItems?: number | undefined;
  /** The clock, in milliseconds. Default `Date.now`. */
  now?: (() => number) | undefined;
}

/**
 * What a stored item is: one that can be read; one that a key of ours made and that is too old, or no item; an envelope that
 * no key of ours made (or one from the future); one that was never encrypted.
 */
export type Seen =
  | { readonly kind: 'item'; readonly item: object }
  | { readonly kind: 'expired' | 'foreign' | 'plain' };

/** Clocks of writers may be this much ahead. */
const CLOCK_SKEW_S = 60;
/** Items that are worked on side by side. */
const SLICE = 64;

/** Puts items into envelopes and takes them out again, with the keys of one session. */
export class Envelopes {
  readonly #masters: readonly Uint8Array<ArrayBuffer>[];
  readonly #options: EncryptionOptions;
  readonly #keys = new Map<string, Promise<readonly FernetKey[]>>();

  /** @throws UserError for wrong options, without a word of the key */
  constructor(options: EncryptionOptions) {
    checkOptions(
      options,
      {
        encryptionKey: kinds.any,
        ttlMs: kinds.nullable(thousands),
        plaintext: kinds.oneOf('skip', 'pass'),
        maxScanItems: kinds.integer(1),
        now: kinds.function,
      },
      'EncryptedSession',
    );
    const given: unknown = (options as EncryptionOptions | undefined)?.encryptionKey;
    const keys: readonly unknown[] = Array.isArray(given) ? given : [given];
    const texts = keys.filter((key): key is string => typeof key === 'string' && key !== '');
    if (texts.length === 0 || texts.length < keys.length)
      throw new UserError(
        `Option 'encryptionKey' of EncryptedSession must be a key that is not empty, or a list of them, not ${kindOf(given)}.`,
      );
    this.#masters = texts.map(masterBytes);
    this.#options = options;
  }

  async wrap(texts: readonly string[], sessionId: string): Promise<object[]> {
    const [key] = await this.#keysOf(sessionId);
    if (key === undefined) return [];
    const now = this.#now();
    return await inSlices(texts, async (text) => ({
      __enc__: 1,
      v: 1,
      kid: 'hkdf-v1',
      payload: await seal(key, text, now),
    }));
  }

  async look(stored: readonly object[], sessionId: string): Promise<Seen[]> {
    const keys = await this.#keysOf(sessionId);
    return await inSlices(stored, async (one) => await this.#lookAt(one, keys));
  }

  async #lookAt(stored: object, keys: readonly FernetKey[]): Promise<Seen> {
    if (!isEnvelope(stored))
      return this.#options.plaintext === 'pass' ? { kind: 'item', item: stored } : { kind: 'plain' };
    const opened = await open(keys, (stored as { payload: unknown }).payload);
    if (opened === undefined) return { kind: 'foreign' };
    const { ttlMs = 600_000 } = this.#options;
    if (ttlMs !== null) {
      const now = Math.floor(this.#now() / 1000);
      if (opened.seconds > now + CLOCK_SKEW_S) return { kind: 'foreign' };
      if (opened.seconds + ttlMs / 1000 < now) return { kind: 'expired' };
    }
    const item = decodeItem<object>(opened.text);
    return item === undefined ? { kind: 'expired' } : { kind: 'item', item };
  }

  /** Keys belong to an id: a salt. */
  async #keysOf(sessionId: string): Promise<readonly FernetKey[]> {
    const known = this.#keys.get(sessionId);
    if (known !== undefined) return await known;
    const keys = Promise.all(this.#masters.map(async (master) => await sessionKey(master, sessionId)));
    this.#keys.set(sessionId, keys);
    return await keys;
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

async function inSlices<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < values.length; at += SLICE)
    results.push(...(await Promise.all(values.slice(at, at + SLICE).map(work))));
  return results;
}

function thousands(value: unknown): string | undefined {
  const isWhole = typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value % 1000 === 0;
  return isWhole ? undefined : 'a positive multiple of 1000';
}
