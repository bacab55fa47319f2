/**
 * The text that the model sees of a tool's value: strings as they are, nothing for `undefined`, JSON for objects and
 * arrays. Never throws.
 *
 * @internal
 */
export function toolOutputText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value;
    case 'undefined':
      return '';
    case 'object':
      return value === null ? 'null' : jsonText(value);
    case 'function':
    case 'symbol':
      return withoutForm;
    default:
      return String(value);
  }
}

const withoutForm = '[value without a JSON form]';

/** What `JSON.stringify` makes of an array of bytes is useless to a model, and long. */
const describeBytes = (bytes: Uint8Array): string => `[byte array (${bytes.byteLength} bytes)]`;

function jsonText(value: object): string {
  if (value instanceof Uint8Array) return describeBytes(value);
  try {
    return JSON.stringify(value, bytesAndBigints) ?? withoutForm;
  } catch {
    // A cycle, or a `toJSON` or getter that throws.
    return withoutForm;
  }
}

function bytesAndBigints(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return describeBytes(value);
  // A Buffer has turned itself into `{ type: 'Buffer', data }` by its own `toJSON`.
  const original = typeof this === 'object' && this !== null ? (this as Record<string, unknown>)[key] : undefined;
  return original instanceof Uint8Array ? describeBytes(original) : value;
}
