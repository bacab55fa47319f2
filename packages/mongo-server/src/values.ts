import { Binary, Decimal128, Double, Int32, Long, ObjectId, Timestamp } from 'mongodb';

/** A document as it is stored: numbers are Int32, Long and Double. Never changed in place. */
export type Doc = Record<string, unknown>;

/** A document and the same with numbers of JavaScript, which queries look at. */
export interface Stored {
  readonly doc: Doc;
  readonly plain: Doc;
}

export function stored(doc: Doc): Stored {
  return { doc, plain: plainOf(doc) as Doc };
}

export function isDoc(value: unknown): value is Doc {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Numbers as JavaScript has them; what no number can hold stays a bigint. */
export function plainOf(value: unknown): unknown {
  if (value instanceof Int32 || value instanceof Double) return value.valueOf();
  if (value instanceof Long) return Number.isSafeInteger(value.toNumber()) ? value.toNumber() : value.toBigInt();
  if (Array.isArray(value)) return value.map(plainOf);
  if (isDoc(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plainOf(one)]));
  return value;
}

/** Gives the numbers of a result their types again: those of equal numbers in one of the sources at the same place, else the widest there. */
export function typedOf(value: unknown, sources: readonly unknown[]): unknown {
  if (typeof value === 'bigint') return Long.fromBigInt(value);
  if (typeof value === 'number') return typedNumber(value, sources);
  const at = (key: string | number): unknown[] =>
    sources
      .map((source) =>
        Array.isArray(source) || isDoc(source) ? (source as Record<string | number, unknown>)[key] : undefined,
      )
      .filter((one) => one !== undefined);
  if (Array.isArray(value)) return value.map((one, index) => typedOf(one, at(index)));
  if (isDoc(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, typedOf(one, at(key))]));
  return value;
}

function typedNumber(value: number, sources: readonly unknown[]): unknown {
  const numbers = sources.filter((one) => one instanceof Int32 || one instanceof Long || one instanceof Double);
  const same = numbers.find((one) => plainOf(one) === value);
  if (same) return same;
  if (!Number.isInteger(value) || numbers.some((one) => one instanceof Double)) return new Double(value);
  const fits = value >= -(2 ** 31) && value < 2 ** 31;
  return fits && !numbers.some((one) => one instanceof Long) ? new Int32(value) : Long.fromNumber(value);
}

/** A text that is equal for equal values, whatever the type of their numbers. */
export function keyOf(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  if (value instanceof ObjectId) return `oid:${value.toHexString()}`;
  if (value instanceof Date) return `date:${value.getTime()}`;
  if (value instanceof Binary) return `bin:${value.toString('hex')}`;
  if (value instanceof Int32 || value instanceof Double || value instanceof Long) return keyOf(plainOf(value));
  if (value instanceof Decimal128) return `decimal:${value.toString()}`;
  if (value instanceof Timestamp) return `timestamp:${value.toBigInt()}`;
  if (typeof value === 'bigint') return `number:${value}`;
  if (Array.isArray(value)) return `[${value.map(keyOf).join(',')}]`;
  if (isDoc(value))
    return `{${Object.entries(value)
      .map(([key, one]) => `${JSON.stringify(key)}:${keyOf(one)}`)
      .join(',')}}`;
  return `${typeof value}:${JSON.stringify(value)}`;
}

/** The value at `a.b.c`; arrays are not looked into. */
export function valueAt(doc: unknown, path: string): unknown {
  let value = doc;
  for (const key of path.split('.')) value = isDoc(value) || Array.isArray(value) ? (value as Doc)[key] : undefined;
  return value;
}

export function int(value: number): Int32 {
  return new Int32(value);
}
