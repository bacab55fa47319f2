import { answersLater } from './at-once.ts';
import { isPlainObject, pythonNumber, quote, quoteAscii, sortedKeys } from './json.ts';

/** Levels that every encoder here writes; deeper values (and cycles, which have no end) are refused. */
export const MAX_JSON_DEPTH = 500;

/** A value that JSON can't hold, or not losslessly. The message has the place and the kind, never the value. */
export class JsonEncodeError extends Error {
  /** `content[0].text`; empty for the value itself. */
  readonly path: string;
  readonly problem: string;

  constructor(path: readonly (string | number)[], problem: string) {
    const text = pathText(path);
    super(text === '' ? `The value ${problem}.` : `${text} ${problem}.`);
    this.name = 'JsonEncodeError';
    this.path = text;
    this.problem = problem;
  }
}

interface Format {
  readonly comma: string;
  readonly colon: string;
  readonly quote: (text: string) => string;
  readonly sort: boolean;
  /** Refuse what does not come back the same; else be as forgiving as JSON.stringify. */
  readonly strict: boolean;
}

const UTF8: (text: string) => string = JSON.stringify;

/** The text that `canonicalJson` takes as it is: canonical JSON made elsewhere (from source text, with its numbers). */
export class CanonicalText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * JSON of a stored item as Python writes it, members in their order (SESS §4). Strict: only plain objects, arrays,
 * strings, finite numbers, booleans and null; `toJSON` is called; `undefined` members are dropped.
 *
 * @throws JsonEncodeError
 */
export function encodeJson(value: unknown, options: { style?: 'compact' | 'spaced'; ascii?: boolean } = {}): string {
  const { style = 'compact', ascii = true } = options;
  return encode(value, { ...SEPARATORS[style], quote: ascii ? quoteAscii : UTF8, sort: false, strict: true });
}

/**
 * Whether `encodeJson` would write this value as an object; no text is made.
 *
 * @throws JsonEncodeError where it would
 */
export function isJsonObject(value: unknown): boolean {
  return encode(value, NO_TEXT).startsWith('{');
}

/**
 * The text under item digests: Python's default JSON with sorted keys (STATE §12.9). Numbers are those of JavaScript, so
 * a `1.0` that Python kept as a float has another digest there.
 *
 * @throws JsonEncodeError when it is nested deeper than 500 levels
 */
export function pythonJson(value: unknown): string {
  return encode(value, DIGEST);
}

/**
 * The text under canonical identities (STATE §5.3): compact, sorted keys, non-ASCII as it is. Numbers are those of
 * JavaScript; put text of `canonicalizeJsonText` into it as `CanonicalText` where the digits of the source count.
 *
 * @returns `undefined` when there is none: a lone surrogate, or nested deeper than 500 levels
 */
export function canonicalJson(value: unknown): string | undefined {
  try {
    const text = encode(value, IDENTITY);
    return /\p{Surrogate}/u.test(text) ? undefined : text;
  } catch (error) {
    if (error instanceof JsonEncodeError) return undefined;
    throw error;
  }
}

const SEPARATORS = { compact: { comma: ',', colon: ':' }, spaced: { comma: ', ', colon: ': ' } } as const;
const DIGEST: Format = { ...SEPARATORS.spaced, quote: quoteAscii, sort: true, strict: false };
const NO_TEXT: Format = { comma: '', colon: '', quote: () => '', sort: false, strict: true };
const IDENTITY: Format = { ...SEPARATORS.compact, quote, sort: true, strict: false };

function encode(value: unknown, format: Format): string {
  const path: (string | number)[] = [];
  return write(value, '', path, format) ?? 'null';
}

/** `undefined` for what is left out of objects. */
function write(value: unknown, key: string | number, path: (string | number)[], format: Format): string | undefined {
  switch (typeof value) {
    case 'string':
      return format.quote(value);
    case 'number':
      if (format.strict && !Number.isFinite(value)) throw new JsonEncodeError(path, 'is not a finite number');
      return pythonNumber(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (path.length >= MAX_JSON_DEPTH)
        throw new JsonEncodeError(path, `is nested deeper than ${MAX_JSON_DEPTH} levels`);
      return Array.isArray(value) ? writeArray(value, path, format) : writeObject(value, key, path, format);
    case 'undefined':
      return undefined;
    case 'bigint':
      if (format.strict) throw new JsonEncodeError(path, 'is a bigint');
      return String(value);
    case 'function':
    case 'symbol':
      if (format.strict) throw new JsonEncodeError(path, `is a ${typeof value}`);
      return undefined;
  }
}

function writeArray(values: readonly unknown[], path: (string | number)[], format: Format): string {
  let text = '';
  // By index: holes count as undefined.
  for (let index = 0; index < values.length; index++) {
    path.push(index);
    let element = write(values[index], index, path, format);
    if (element === undefined) {
      if (format.strict) throw new JsonEncodeError(path, 'is undefined');
      element = 'null';
    }
    path.pop();
    text = index === 0 ? element : text + format.comma + element;
  }
  return `[${text}]`;
}

function writeObject(
  value: object,
  key: string | number,
  path: (string | number)[],
  format: Format,
): string | undefined {
  if (value instanceof CanonicalText) return value.text;
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON(String(key));
    if (answersLater(json)) throw new JsonEncodeError(path, 'has a toJSON that gives a promise');
    // What toJSON gives is taken as it is; its own toJSON is not called again.
    return isPlainObject(json) && !Array.isArray(json)
      ? writeMembers(json, path, format)
      : write(json, key, path, format);
  }
  if (format.strict && !isPlainObject(value)) throw new JsonEncodeError(path, 'is no plain object');
  return writeMembers(value, path, format);
}

function writeMembers(value: object, path: (string | number)[], format: Format): string {
  let text = '';
  const keys = Object.keys(value);
  for (const key of format.sort ? sortedKeys(keys) : keys) {
    path.push(key);
    const member = write((value as Record<string, unknown>)[key], key, path, format);
    path.pop();
    if (member === undefined) continue;
    text += `${text === '' ? '' : format.comma}${format.quote(key)}${format.colon}${member}`;
  }
  return `{${text}}`;
}

function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const step of path.slice(0, 20)) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return path.length > 20 ? `${text}…` : text;
}
