import type { JsonSchema } from '../../agent/tool.ts';
import { contentWords, humanName, meanings, wordsOf } from './words.ts';

/** Where values come from: the words of the request, and JSON objects seen before (calls, results), nearest first. */
export interface Sources {
  readonly text: string;
  /** Words that name the tool: text of nothing else is no value. */
  readonly topic?: ReadonlySet<string> | undefined;
  readonly known: readonly Readonly<Record<string, unknown>>[];
  /** Whether a member of any text may get what is left of the request. Default `true`. */
  readonly freeText?: boolean | undefined;
}
type Schema = Readonly<Record<string, unknown>>;
interface Field {
  readonly name: string;
  readonly of: { readonly schema: Schema; readonly nullable: boolean };
}

/** The arguments that the sources give for a schema with an object root, and the required ones that they do not give. */
export function fillObject(
  schema: JsonSchema,
  sources: Sources,
): { value: Record<string, unknown>; missing: string[] } {
  const root = schema as Schema;
  const text = new Text(sources.text);
  const required = new Set(stringsOf(root['required']));
  const value: Record<string, unknown> = {};
  const fields: Field[] = Object.entries(propertiesOf(root)).map(([name, of]) => ({ name, of: resolve(of, root) }));
  // The pickiest first: free text takes what the others left.
  const order = fields.toSorted((a, b) => rank(a.name, a.of.schema) - rank(b.name, b.of.schema));
  for (const { name, of } of order) {
    const found = text.take(name, of.schema);
    if (found !== undefined) value[name] = found;
  }
  const objects = sources.known.filter((object) => !isOther(object, value));
  const known = new Map(order.map(({ name, of }) => [name, fromKnown(name, of.schema, objects)]));
  // What the person said wins over what a tool said; a number that names nothing is first for what nobody knows yet.
  const numbers = order
    .filter(({ name, of }) => value[name] === undefined && required.has(name) && isNumber(of.schema))
    .toSorted((a, b) => Number(known.get(a.name) !== undefined) - Number(known.get(b.name) !== undefined));
  for (const { name, of } of numbers) {
    const found = text.bareNumber(of.schema);
    if (found !== undefined) value[name] = found;
  }
  const freeText = ({ name, of }: Field): boolean =>
    sources.freeText !== false && required.has(name) && !of.nullable && isFreeText(name, of.schema);
  for (const field of order) {
    const { name, of } = field;
    const found =
      value[name] ??
      known.get(name) ??
      (freeText(field) ? text.rest(sources.topic) : undefined) ??
      (of.schema['default'] === undefined && required.has(name) ? nothing(of) : of.schema['default']);
    if (found !== undefined) value[name] = found;
  }
  const given = fields.filter(({ name }) => value[name] !== undefined);
  return {
    value: Object.fromEntries(given.map(({ name }) => [name, value[name]])),
    missing: fields.filter(({ name }) => required.has(name) && value[name] === undefined).map(({ name }) => name),
  };
}

/** What a required member may be when nobody said anything. */
function nothing({ schema, nullable }: Field['of']): unknown {
  if (nullable) return null;
  if (schema['type'] === 'boolean') return false;
  return schema['type'] === 'array' && schema['minItems'] === undefined ? [] : undefined;
}

export function propertiesOf(schema: Schema): Readonly<Record<string, Schema>> {
  return (schema['properties'] as Record<string, Schema> | undefined) ?? {};
}

/** The schema that says something: references followed, `null` taken out of unions. */
export function resolve(schema: Schema, root: Schema): { schema: Schema; nullable: boolean } {
  let nullable = false;
  let found = schema;
  for (let depth = 0; depth < 10; depth++) {
    const ref = found['$ref'];
    const options = (found['anyOf'] ?? found['oneOf']) as Schema[] | undefined;
    if (typeof ref === 'string') {
      found = pointer(ref, root);
    } else if (options !== undefined) {
      const some = options.filter((option) => option['type'] !== 'null');
      nullable ||= some.length < options.length;
      found = some[0] ?? {};
    } else if (Array.isArray(found['type'])) {
      const types = (found['type'] as string[]).filter((type) => type !== 'null');
      nullable ||= types.length < (found['type'] as string[]).length;
      found = { ...found, type: types[0] };
    } else break;
  }
  return { schema: found, nullable };
}

function pointer(ref: string, root: Schema): Schema {
  let at: unknown = root;
  for (const key of ref.replace(/^#\/?/u, '').split('/').filter(Boolean))
    at = (at as Record<string, unknown> | undefined)?.[key];
  return (at as Schema | undefined) ?? {};
}

/** Takes values out of a text; what was taken is not taken again. */
class Text {
  #left: string;

  constructor(text: string) {
    this.#left = text;
  }

  take(name: string, schema: Schema): unknown {
    const given = this.#cut(new RegExp(String.raw`\b${spaced(name)}\s*[:=]\s*("[^"]*"|[^\s,;]+)`, 'iu'));
    if (given !== undefined) return typed(given.replaceAll('"', ''), schema);
    const options = schema['enum'] ?? (schema['const'] === undefined ? undefined : [schema['const']]);
    if (Array.isArray(options)) return options.length === 1 ? options[0] : this.#option(options);
    switch (schema['type']) {
      case 'integer':
      case 'number':
        return this.#number(name, schema);
      case 'boolean':
        return this.#flag(name);
      case 'array':
        return this.#list(name, schema);
      case 'object': {
        const { value, missing } = fillObject(schema, { text: this.#left, known: [] });
        return missing.length === 0 ? value : undefined;
      }
      default:
        return this.#string(name, schema);
    }
  }

  /** What is left, without the words that only led to it. */
  rest(topic: ReadonlySet<string> = new Set()): string | undefined {
    const because = /\b(?:because|since|as|reason is)\b[\s:,]*(.+)$/isu.exec(this.#left)?.[1];
    const clause = /[,;:–—.-]\s*(\S.*)$/su.exec(this.#left.replace(/[\s.!?]+$/u, ''))?.[1];
    const about = /\b(?:about|for|that|saying)\b[\s:,]*(.+)$/isu.exec(this.#left)?.[1];
    const all = this.#left.replace(/^\s*(?:please|can you|could you|i want to|i would like to)\b/iu, '');
    const rest = (because ?? clause ?? about ?? all).replaceAll(/\s+/gu, ' ').replace(/^[\s,;:.–—-]+|[\s.!?]+$/gu, '');
    const says = [...contentWords(rest)].some((word) => !topic.has(word));
    if (!says) return undefined;
    this.#left = '';
    return rest;
  }

  #string(name: string, schema: Schema): string | undefined {
    const words = new Set(wordsOf(name));
    const format = schema['format'];
    if (format === 'email' || words.has('email')) return this.#cut(/[\w.+-]+@[\w-]+\.[\w.-]*\w/u);
    if (format === 'uri' || format === 'url' || words.has('url')) return this.#cut(/https?:\/\/\S*[\w/]/u);
    if (format === 'date' || format === 'date-time' || words.has('date'))
      return this.#cut(/\b\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?\b/u);
    if (isIdentifier(words)) return this.#cut(/#?(?<![\w.$€£])((?:[A-Za-z]+[-_]?)?\d[\w-]*)/u, name);
    if (isLongText(words)) return this.#cut(/["“]([^"”]+)["”]/u);
    return (
      this.#cut(/["“]([^"”]+)["”]/u) ??
      // `set the address of it to 5 Main Street`
      this.#cut(new RegExp(String.raw`\b${spaced(name)}\b[^.,;!?]*?\s(?:to|into)\s([^.,;!?]+)`, 'iu')) ??
      this.#cut(/(?<=\b(?:in|at|for|from|to|near|of|with)\s)(\p{Lu}[\p{L}'-]*(?:\s\p{Lu}[\p{L}'-]*)*)/u)
    );
  }

  #number(name: string, schema: Schema): number | undefined {
    if (isIdentifier(new Set(wordsOf(name)))) {
      const id = this.#cut(/(?<![\w.$€£-])#?(\d+)\b/u, name);
      return id === undefined ? undefined : Number(id);
    }
    const number = `(?<![\\d.,])(${numberPattern(schema, true)})`;
    const near = String.raw`(?:\b${spaced(name)}\b\D{0,12}|[$€£]\s?)`;
    const after = String.raw`(?=\s?(?:${spaced(name)}|[$€£]|eur|usd|dollars|euros))`;
    const found = this.#cut(new RegExp(`${near}${number}`, 'iu')) ?? this.#cut(new RegExp(`${number}${after}`, 'iu'));
    // `1,000` is a thousand, `20,50` twenty and a half.
    return found === undefined ? undefined : Number(found.replaceAll(/,(?=\d{3})/gu, '').replace(',', '.'));
  }

  /** A number that nothing else wanted, and that counts no time. */
  bareNumber(schema: Schema): number | undefined {
    const time = String.raw`\s(?:second|minute|hour|day|week|month|year)s?\b`;
    const found = this.#cut(new RegExp(`(?<![\\w#.:-])(${numberPattern(schema)})(?![\\w:-]|\\.\\d|${time})`, 'iu'));
    return found === undefined ? undefined : Number(found);
  }

  #flag(name: string): boolean | undefined {
    const words = wordsOf(this.#left);
    const at = words.findIndex((word) => wordsOf(name).includes(word));
    if (at < 0) return undefined;
    return !words.slice(Math.max(0, at - 3), at).some((word) => ['no', 'not', 'without', 'never'].includes(word));
  }

  #option(options: readonly unknown[]): unknown {
    const words = new Set(wordsOf(this.#left).flatMap(meanings));
    return options.find(
      (option) =>
        option !== null &&
        wordsOf(typeof option === 'string' ? option : JSON.stringify(option)).every((word) => words.has(word)),
    );
  }

  #list(name: string, schema: Schema): unknown[] | undefined {
    const items = (schema['items'] as Schema | undefined) ?? {};
    const list: unknown[] = [];
    for (let value = this.take(name, items); value !== undefined && list.length < 10; value = this.take(name, items)) {
      list.push(value);
      if (items['type'] === 'boolean' || items['enum'] !== undefined || items['type'] === 'object') break;
    }
    return list.length > 0 ? list : undefined;
  }

  /** The first group of the match (else all of it), taken out; with `near`, the match that follows the name's words. */
  #cut(pattern: RegExp, near?: string): string | undefined {
    const noun =
      near === undefined
        ? undefined
        : wordsOf(near).find((word) => !['id', 'number', 'no', 'code', 'ref'].includes(word));
    const close =
      noun === undefined
        ? null
        : new RegExp(`(?<=\\b${noun}\\w*\\W{1,3}(?:(?:number|id|no)\\W{1,3})?)${pattern.source}`, 'iu').exec(
            this.#left,
          );
    const match = close ?? pattern.exec(this.#left);
    if (match === null) return undefined;
    this.#left = `${this.#left.slice(0, match.index)} ${this.#left.slice(match.index + match[0].length)}`;
    return match[1] ?? match[0];
  }
}

/** Whether an object is about something else than the ids of the request: the total of order 7 says nothing of order 8. */
function isOther(object: Readonly<Record<string, unknown>>, asked: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(asked).some(
    ([name, value]) => isIdentifier(new Set(wordsOf(name))) && object[name] !== undefined && object[name] !== value,
  );
}

/** A value of that name seen before; a word of the same meaning does, `amount` is a `total`. */
function fromKnown(name: string, schema: Schema, known: Sources['known']): unknown {
  const wanted = new Set(wordsOf(name).flatMap(meanings));
  const nameWords = wordsOf(name).length;
  if (isLongText(wanted)) return undefined;
  for (const object of known) {
    const exact = object[name];
    if (fits(exact, schema)) return exact;
    const similar = Object.entries(object).find(
      ([key, value]) => fits(value, schema) && wordsOf(key).filter((word) => wanted.has(word)).length >= nameWords,
    );
    if (similar !== undefined) return similar[1];
  }
  return undefined;
}

function fits(value: unknown, schema: Schema): boolean {
  if (Array.isArray(schema['enum'])) return schema['enum'].includes(value);
  if (schema['type'] === 'integer') return Number.isInteger(value);
  return value !== undefined && value !== null && typeof value === schema['type'];
}

function typed(text: string, schema: Schema): unknown {
  if (isNumber(schema)) return Number.isFinite(Number(text)) ? Number(text) : undefined;
  if (schema['type'] === 'boolean') return /^(?:true|yes|1|on)$/iu.test(text);
  return schema['type'] === 'array' ? text.split(/\s*,\s*/u) : text;
}

/** `written`: as people write amounts, with commas. */
function numberPattern(schema: Schema, written = false): string {
  if (schema['type'] === 'integer') return String.raw`-?\d+(?![\w.]*\d)`;
  return written ? String.raw`-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:[.,]\d+)?` : String.raw`-?\d+(?:\.\d+)?`;
}

function rank(name: string, schema: Schema): number {
  if (schema['enum'] !== undefined || schema['format'] !== undefined) return 0;
  const words = new Set(wordsOf(name));
  if (words.has('amount') || words.has('price')) return 0;
  if (schema['type'] !== 'string') return isIdentifier(words) ? 1 : 2;
  if (isIdentifier(words)) return 1;
  return isLongText(words) ? 4 : 3;
}

function isFreeText(name: string, schema: Schema): boolean {
  if (schema['type'] !== 'string' || schema['enum'] !== undefined || schema['format'] !== undefined) return false;
  const words = new Set(wordsOf(name));
  return !isIdentifier(words) && !words.has('email') && !words.has('date');
}

const isIdentifier = (words: ReadonlySet<string>): boolean =>
  ['id', 'number', 'code', 'ref', 'sku', 'order', 'ticket', 'invoice'].some((word) => words.has(word));
const isLongText = (words: ReadonlySet<string>): boolean =>
  [
    'reason',
    'message',
    'text',
    'note',
    'comment',
    'body',
    'description',
    'query',
    'question',
    'content',
    'detail',
    'subject',
    'title',
  ].some((word) => words.has(word));
const isNumber = (schema: Schema): boolean => schema['type'] === 'number' || schema['type'] === 'integer';
const spaced = (name: string): string =>
  humanName(name)
    .replaceAll(/[^\w ]/gu, '')
    .replaceAll(' ', String.raw`[\s_-]?`);
const stringsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((member) => typeof member === 'string') : [];
