import type { JsonSchema } from '../../agent/tool.ts';
import { fillObject, propertiesOf, resolve } from './fill.ts';
import { jsonObject } from './situation.ts';
import type { Story } from './situation.ts';

type Schema = Readonly<Record<string, unknown>>;

/** JSON text that fits the schema: members from results and request, the rest as empty as the schema allows. */
export function fillOutput(schema: JsonSchema, story: Story, answer: string): string {
  const known = [...story.calls]
    .toReversed()
    .flatMap((call) => [jsonObject(call.output ?? ''), call.args])
    .filter((object) => object !== undefined);
  const filled = fillObject(schema, {
    text: story.calls.length > 0 ? '' : story.request,
    known,
    freeText: false,
  }).value;
  return JSON.stringify(complete(schema, schema, filled, answer));
}

function complete(of: Schema, root: Schema, value: unknown, answer: string): unknown {
  const { schema, nullable } = resolve(of, root);
  if (schema['const'] !== undefined) return schema['const'];
  if (Array.isArray(schema['enum'])) return value ?? schema['enum'][0];
  switch (schema['type']) {
    case 'object':
      return completeObject(schema, root, value, answer);
    case 'array':
      return completeArray(schema, root, value, answer);
    case 'string':
      return value ?? schema['default'] ?? (nullable ? null : formatted(schema, answer));
    case 'integer':
    case 'number':
      return value ?? schema['default'] ?? (nullable ? null : smallest(schema));
    case 'boolean':
      return value ?? schema['default'] ?? false;
    default:
      return value ?? null;
  }
}

function completeObject(schema: Schema, root: Schema, value: unknown, answer: string): Record<string, unknown> {
  const given = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const required = new Set((schema['required'] as string[] | undefined) ?? []);
  const members = Object.entries(propertiesOf(schema)).filter(
    ([name]) => required.has(name) || given[name] !== undefined,
  );
  return Object.fromEntries(members.map(([name, of]) => [name, complete(of, root, given[name], answer)]));
}

function completeArray(schema: Schema, root: Schema, value: unknown, answer: string): unknown[] {
  const list = Array.isArray(value) ? [...(value as unknown[])] : [];
  const least = typeof schema['minItems'] === 'number' ? schema['minItems'] : 0;
  while (list.length < least)
    list.push(complete((schema['items'] as Schema | undefined) ?? {}, root, undefined, answer));
  return list;
}

function formatted(schema: Schema, answer: string): string {
  const examples: Readonly<Record<string, string>> = {
    date: '1970-01-01',
    'date-time': '1970-01-01T00:00:00Z',
    time: '00:00:00Z',
    email: 'nobody@example.com',
    uri: 'https://example.com',
    uuid: '00000000-0000-4000-8000-000000000000',
  };
  const text = examples[String(schema['format'])] ?? answer;
  return typeof schema['maxLength'] === 'number' ? text.slice(0, schema['maxLength']) : text;
}

function smallest(schema: Schema): number {
  const least =
    schema['minimum'] ?? (typeof schema['exclusiveMinimum'] === 'number' ? schema['exclusiveMinimum'] + 1 : undefined);
  if (typeof least === 'number') return Math.max(least, 0);
  return typeof schema['maximum'] === 'number' ? Math.min(schema['maximum'], 0) : 0;
}
