/** Any object that is no array: what may have members. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Plain in any realm: its prototype is null or an `Object.prototype`. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf');
}

/** Sets an own member, also one that is named `__proto__`. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
  else target[key] = value;
}

/** Python's `repr` of a float; digits are the shortest that read back as the same number, as in JavaScript. */
export function pythonFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '0', exponentText = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

/**
 * A JavaScript number as Python prints it. What the source said is lost here: `1.0` became the integer 1 and `-0.0` is
 * taken for 0. From 1e21 on JavaScript has no digits of integers any more, so these count as floats.
 */
export function pythonNumber(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : pythonFloat(value);
}

const LONE_SURROGATE = /\p{Surrogate}/u;
const SURROGATE_UNIT = /[\ud800-\udfff]/;

export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/** Keys in the order of their Unicode code points, as Python sorts (JavaScript's own order differs beyond U+FFFF). */
export function sortedKeys(keys: string[]): string[] {
  return keys.sort(keys.some((key) => SURROGATE_UNIT.test(key)) ? byCodePoint : undefined);
}

function byCodePoint(a: string, b: string): number {
  const left = Array.from(a);
  const right = Array.from(b);
  for (const [index, character] of left.entries()) {
    const other = right[index];
    if (other === undefined) return 1;
    const difference = (character.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** A string as Python's `json.dumps(…, ensure_ascii=False)` writes it: lone surrogates stay as they are. */
export function quote(text: string): string {
  if (!hasLoneSurrogate(text)) return JSON.stringify(text);
  // JSON.stringify would escape them; what is between them it may do.
  const parts = text.split(/(\p{Surrogate})/u);
  return `"${parts.map((part) => (LONE_SURROGATE.test(part) ? part : JSON.stringify(part).slice(1, -1))).join('')}"`;
}

/** Anything but the printable ASCII that JSON holds as it is. */
const TO_ESCAPE = /[^ !#-[\]-~]/;
const NOT_PRINTABLE_ASCII = /[^ -~]/g;

/** A string as Python's `json.dumps` writes it: every code unit outside U+0020–U+007E escaped. */
export function quoteAscii(text: string): string {
  return TO_ESCAPE.test(text) ? JSON.stringify(text).replace(NOT_PRINTABLE_ASCII, escapeUnit) : `"${text}"`;
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
