// Words of requests, tools and parameters, as the offline model compares them.

const STOP = new Set(
  'a an and are as at be by can could do does for from give had has have hi hello hey how i if in is it its just like me my need no not of on or our please should so some tell thanks that the their them then there they this to up us use was we what when where which who why will with would you your'.split(
    ' ',
  ),
);

/** Words that ask to be shown something, in requests and at the front of tool names. */
export const READ_WORDS: ReadonlySet<string> = stems(
  'check describe fetch find get inspect list locate look lookup query read retrieve search see show status tell track view what when where which who',
);

/** Words people use for the same act. Each row is one meaning. */
const SAME: readonly (readonly string[])[] = [
  'refund reimburse return',
  'cancel abort stop revoke',
  'change update edit modify set adjust correct',
  'create add open new make place book schedule',
  'delete remove erase drop',
  'send mail email notify message',
  'ship deliver delivery shipping shipment',
  'order purchase package parcel',
  'price cost total amount',
  'customer client user account',
].map((row) => row.split(' ').map(stem));

/** Requests to change something: no tool that only shows things is what they mean. */
export const ACT_WORDS: ReadonlySet<string> = stems('refund reimburse cancel delete remove update change');

/** `money back`, `7 euros back`, `give me back`; the amount stays. */
const MONEY_BACK =
  /\b(?:money|(?:give|pay|get|transfer|want)(?: (?:me|us|him|her|them))?(?= back\b(?! to\b))|(\d[\d.,]*(?: ?(?:[$€£]|eur|euros?|usd|dollars?|pounds?))?)) back\b/giu;

/** `lookupOrder_by-id` → `lookup`, `order`, `by`, `id`; stems, lower case. */
export function wordsOf(text: string): string[] {
  const parts =
    text
      .replaceAll(MONEY_BACK, '$1 refund')
      .replaceAll(/([a-z\d])([A-Z])/gu, '$1 $2')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return parts.map(stem);
}

/** Words that mean something. */
export function contentWords(text: string): Set<string> {
  return new Set(wordsOf(text).filter((word) => !STOP.has(word)));
}

/** A word and what people say instead. */
export function meanings(word: string): readonly string[] {
  return SAME.find((row) => row.includes(word)) ?? [word];
}

/** `refund_order` → `refund order`. */
export function humanName(name: string): string {
  return name
    .replaceAll(/([a-z\d])([A-Z])/gu, '$1 $2')
    .replaceAll(/[_-]+/gu, ' ')
    .toLowerCase()
    .trim();
}

/** How much of the smaller set is in the other, 0 to 1. */
export function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const smaller = Math.min(a.size, b.size);
  return smaller === 0 ? 0 : [...a].filter((word) => b.has(word)).length / smaller;
}

function stems(words: string): ReadonlySet<string> {
  return new Set(words.split(' ').map(stem));
}

function stem(word: string): string {
  if (/\d/u.test(word) || word.length < 4) return word;
  return word
    .replace(/(?:ies)$/u, 'y')
    .replace(/(?<=[^s])s$/u, '')
    .replace(/(?<=.{3})(?:ing|ed)$/u, '');
}
