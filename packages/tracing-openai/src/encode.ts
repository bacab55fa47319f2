import { getLogger } from '@agents/core';
import { wireRecord } from '@agents/core/tracing';
import type { Span, Trace } from '@agents/core/tracing';
import { cleanJson, needsCleaning } from './clean-json.ts';
import { cutFields, sanitized } from './sanitize.ts';
import type { WireRecord } from './sanitize.ts';
import { byteLength } from './truncate.ts';

/** A record on its way: its JSON, and itself, in case that it has to become smaller. */
export interface Encoded {
  readonly record: WireRecord;
  readonly text: string;
}

export interface EncodeSettings {
  readonly sanitize: boolean;
  readonly maxFieldBytes: number;
}

/** Makes records of the items of one export, and JSON of those. */
export class Encoder {
  readonly #settings: EncodeSettings;
  #warned = false;

  constructor(settings: EncodeSettings) {
    this.#settings = settings;
  }

  /** `undefined` for an item that has no record. */
  encode(item: Trace | Span): Encoded | undefined {
    const { sanitize, maxFieldBytes } = this.#settings;
    const raw = recordOf(item);
    if (raw === undefined) return undefined;
    const encoded = this.#toText(sanitize ? this.#sanitized(raw) : raw);
    // A text is at most three bytes per unit: what is shorter has no field that is too long.
    if (!sanitize || encoded.text.length * 3 <= maxFieldBytes) return encoded;
    const cut = cutFields(encoded.record, maxFieldBytes);
    return cut === encoded.record ? encoded : this.#toText(cut);
  }

  /** A record that was too large, with its fields cut much shorter; `undefined` when there is nothing to cut. */
  shrink({ record, text }: Encoded): Encoded | undefined {
    const smaller = this.#toText(cutFields(record, Math.max(1, Math.floor(this.#settings.maxFieldBytes / 10))));
    return smaller.text.length < text.length ? smaller : undefined;
  }

  #sanitized(record: WireRecord): WireRecord {
    try {
      return sanitized(record);
    } catch {
      // Data with getters that throw.
      this.#warn();
      return sanitized(cleanJson(record) as WireRecord);
    }
  }

  #toText(record: WireRecord): Encoded {
    if (!needsCleaning(record, this.#settings.sanitize)) {
      try {
        const text = JSON.stringify(record);
        // Half of a pair is written as an escape, which few texts hold otherwise.
        if (!text.includes(String.raw`\ud`)) return { record, text };
        const whole = JSON.stringify(cleanJson(record));
        if (whole === text) return { record, text };
      } catch {
        // A `toJSON` that throws.
      }
    }
    this.#warn();
    const clean = cleanJson(record) as WireRecord;
    return { record: clean, text: JSON.stringify(clean) };
  }

  #warn(): void {
    if (this.#warned) return;
    this.#warned = true;
    getLogger('tracing').warn('Traces or spans hold values that JSON cannot say; those are left out of the export.');
  }
}

function recordOf(item: Trace | Span): WireRecord | undefined {
  try {
    return wireRecord(item);
  } catch {
    getLogger('tracing').warn('A trace or span of another maker has no record; it is not exported.');
    return undefined;
  }
}

/** The body of a request. */
export function bodyOf(batch: readonly Encoded[]): string {
  return `{"data":[${batch.map(({ text }) => text).join(',')}]}`;
}

/** Whether a body is above the limit; counts bytes only where that can be. */
export function isAbove(body: string, maxBytes: number): boolean {
  return body.length * 3 > maxBytes && byteLength(body) > maxBytes;
}
