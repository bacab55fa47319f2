import { isObject, pythonFloat, quote, sortedKeys } from './json.ts';
import type { JsonObject } from '../items/wire.ts';

/** What many arguments are, as models write them: canonical as it stands. */
const ONE_PLAIN_MEMBER = /^\{"[^"\\\p{Cc}]*":(?:"[^"\\\p{Cc}]*"|true|false|null|0|-?[1-9][0-9]*)\}$/u;

/**
 * JSON text as compact canonical JSON (STATE §5.3): sorted keys, the last of equal members, non-ASCII as it is, and
 * numbers as Python prints what the source says: an integer keeps its digits, `1.0` stays a float. Python's bare `NaN`,
 * `Infinity` and `-Infinity` are read too. Lone surrogates stay in the text; see `hasLoneSurrogate`.
 *
 * @returns `undefined` when the text is no JSON, or nested deeper than 500 levels
 */
export function canonicalizeJsonText(text: string): string | undefined {
  if (ONE_PLAIN_MEMBER.test(text)) return text;
  const reader = new Reader(text);
  const canonical = reader.value(0);
  return canonical !== undefined && reader.atEnd() ? canonical : undefined;
}

/**
 * Reads the JSON text of a stored item (SESS-133): any JSON object; the bare tokens that Python may write (`NaN`,
 * `Infinity`, `-Infinity`) become `null`. A member named `__proto__` is data.
 *
 * @returns `undefined` when it is corrupt, or no object
 */
export function decodeJson(text: string): JsonObject | undefined {
  const value = parse(text) ?? parse(withoutBareNumbers(text));
  return isObject(value) ? (value as JsonObject) : undefined;
}

/** `NaN`, `Infinity` and `-Infinity` outside of strings as `null`. */
function withoutBareNumbers(text: string): string {
  let out = '';
  let at = 0;
  while (at < text.length) {
    const quoteAt = text.indexOf('"', at);
    const between = quoteAt === -1 ? text.length : quoteAt;
    const end = quoteAt === -1 ? text.length : endOfString(text, quoteAt);
    out += text.slice(at, between).replace(/\bNaN\b|-?\bInfinity\b/g, 'null') + text.slice(between, end);
    at = end;
  }
  return out;
}

/** Where the string that begins at `start` (its quote) ends, the closing quote included; the text's end without one. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) return at + 1;
    if (unit === 0x5c) at++;
  }
  return text.length;
}

/** Whether a string's inside stands for itself: no escapes, and none of the characters that need one. */
function isBare(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x5c || unit < 0x20) return false;
  }
  return true;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const MAX_DEPTH = 500;
const NUMBER = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const WORD = /true|false|null|NaN|-?Infinity/y;

/** Recursive descent over the text; every method gives canonical text, or `undefined` for what is no JSON. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  atEnd(): boolean {
    this.#skipBlanks();
    return this.#at === this.#text.length;
  }

  value(depth: number): string | undefined {
    this.#skipBlanks();
    switch (this.#text[this.#at]) {
      case '{':
        return depth < MAX_DEPTH ? this.#object(depth + 1) : undefined;
      case '[':
        return depth < MAX_DEPTH ? this.#array(depth + 1) : undefined;
      case '"':
        return this.#string()?.canonical;
      default:
        return this.#take(WORD)?.[0] ?? this.#number();
    }
  }

  #object(depth: number): string | undefined {
    this.#at++;
    if (this.#next('}')) return '{}';
    const first = this.#member(depth);
    if (first === undefined) return undefined;
    // Most objects of arguments have one member; then there is nothing to sort.
    if (this.#next('}')) return `{${first.canonical}}`;
    /** By the key's value, for the order and for repeats: the member's text. */
    const members = new Map([[first.key, first.canonical]]);
    while (this.#next(',')) {
      const member = this.#member(depth);
      if (member === undefined) return undefined;
      members.set(member.key, member.canonical);
    }
    if (!this.#next('}')) return undefined;
    return `{${sortedKeys([...members.keys()])
      .map((key) => members.get(key))
      .join(',')}}`;
  }

  #member(depth: number): { readonly key: string; readonly canonical: string } | undefined {
    this.#skipBlanks();
    const key = this.#string();
    if (key === undefined || !this.#next(':')) return undefined;
    const value = this.value(depth);
    return value === undefined ? undefined : { key: key.value, canonical: `${key.canonical}:${value}` };
  }

  #array(depth: number): string | undefined {
    const elements: string[] = [];
    this.#at++;
    if (this.#next(']')) return '[]';
    do {
      const value = this.value(depth);
      if (value === undefined) return undefined;
      elements.push(value);
    } while (this.#next(','));
    return this.#next(']') ? `[${elements.join(',')}]` : undefined;
  }

  /** The end of a string is searched by hand: a regular expression would need stack for each character. */
  #string(): { readonly value: string; readonly canonical: string } | undefined {
    const text = this.#text;
    const start = this.#at;
    if (text[start] !== '"') return undefined;
    const end = endOfString(text, start);
    const source = text.slice(start, end);
    this.#at = end;
    // Without escapes the source is canonical already.
    if (end - start >= 2 && text[end - 1] === '"' && isBare(text, start + 1, end - 1))
      return { value: text.slice(start + 1, end - 1), canonical: source };
    const value = parse(source);
    return typeof value === 'string' ? { value, canonical: quote(value) } : undefined;
  }

  #number(): string | undefined {
    const [literal, integer, fraction, exponent] = this.#take(NUMBER) ?? [];
    if (literal === undefined) return undefined;
    if (fraction === undefined && exponent === undefined) return integer === '-0' ? '0' : literal;
    return pythonFloat(Number(literal));
  }

  /** Skips blanks; takes the character if it comes next. */
  #next(character: string): boolean {
    this.#skipBlanks();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #skipBlanks(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at++;
    }
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match;
  }
}
