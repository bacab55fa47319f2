import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import * as zm from 'zod/mini';
import { UserError } from '../base/errors.ts';
import { jsonSchema, toJsonSchema } from './schema.ts';
import type { SchemaWithJson } from './schema.ts';
import { tool } from './tool.ts';

const wanted = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'number' } },
  required: ['city'],
};

describe('JSON Schema of a Standard Schema', () => {
  test.each<[string, SchemaWithJson<unknown, unknown>]>([
    ['zod', z.object({ city: z.string(), days: z.number().optional() })],
    ['zod mini', zm.toJSONSchema(zm.object({ city: zm.string(), days: zm.optional(zm.number()) })) as never],
    ['ArkType', type({ city: 'string', 'days?': 'number' })],
    ['Valibot', toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number()) }))],
    ['jsonSchema()', jsonSchema(wanted)],
  ])('is taken from %s, without $schema [TOOL-S1] [TOOL-S2]', (_, schema) => {
    expect(toJsonSchema(schema)).toEqual(wanted);
  });

  test('is that of the input side [TOOL-S2]', () => {
    const schema = z.object({
      n: z.coerce.number(),
      p: z.string().transform((text) => text.length),
      d: z.string().default('x'),
    });
    expect(toJsonSchema(schema)).toEqual({
      type: 'object',
      properties: { n: { type: 'number' }, p: { type: 'string' }, d: { type: 'string', default: 'x' } },
      required: ['n', 'p'],
    });
  });

  test.each<[string, SchemaWithJson<unknown, unknown>, string]>([
    ['zod date', z.object({ d: z.date() }), 'd'],
    ['zod bigint in an array', z.object({ a: z.object({ b: z.array(z.bigint()) }) }), 'a.b[]'],
    ['zod map in a union', z.object({ u: z.union([z.string(), z.map(z.string(), z.string())]) }), 'u.anyOf[1]'],
    ['zod custom, optional', z.object({ c: z.custom(() => true).optional() }), 'c'],
    ['zod set beside any', z.object({ a: z.any(), s: z.set(z.string()) }), 's'],
    ['ArkType date', type({ d: { e: 'Date[]' } }), 'd.e[]'],
    ['ArkType bigint', type({ d: 'bigint' }), 'd'],
    ['Valibot date', toStandardJsonSchema(v.object({ d: v.optional(v.date()) })), 'd'],
  ])('refuses a type without JSON form and tells where it is: %s [TOOL-S3] [TOOL-S25]', (_, schema, path) => {
    expect(() => toJsonSchema(schema)).toThrow(`toJsonSchema: ${path} has a type without JSON form`);
  });

  test('refuses schemas that only validate, with the remedy [TOOL-A26]', () => {
    const remedy = /gives no JSON Schema\. Use zod 4\.2 .*toJSONSchema.*toStandardJsonSchema.*jsonSchema\(/;
    expect(() => toJsonSchema(zm.object({ a: zm.string() }) as never)).toThrow(remedy);
    expect(() => toJsonSchema(v.object({ a: v.string() }) as never)).toThrow(remedy);
    const { '~standard': standard } = z.object({ a: z.string() });
    for (const json of [undefined, {}, { input: {} }, 'x'])
      expect(() => toJsonSchema({ '~standard': { ...standard, jsonSchema: json } } as never)).toThrow(remedy);
    expect(() => toJsonSchema({ type: 'object' } as never)).toThrow('takes a Standard Schema');
  });

  test('refuses what a library gives in place of a JSON Schema, and says whose it is [TOOL-S1]', () => {
    const { '~standard': standard } = z.object({ a: z.string() });
    for (const given of [undefined, null, 'x', 7, [], true]) {
      const schema = { '~standard': { ...standard, jsonSchema: { input: () => given, output: () => given } } };
      const refused = /: zod gave .+ for the JSON Schema of the schema, not an object\./;
      expect(() => toJsonSchema(schema as never)).toThrow(UserError);
      expect(() => toJsonSchema(schema as never)).toThrow(refused);
      expect(() => tool({ name: 't', parameters: schema as never, execute: () => '' })).toThrow(refused);
    }
  });

  test('has the definition at its root when a library writes it as a reference', () => {
    const node = type.module({ node: { value: 'number', 'next?': 'node' } }).node;
    expect(toJsonSchema(node)).toMatchObject({
      type: 'object',
      properties: { value: { type: 'number' } },
      required: ['value'],
    });
  });
});

describe('jsonSchema()', () => {
  const validate = (schema: SchemaWithJson<unknown, unknown>, value: unknown): unknown =>
    schema['~standard'].validate(value);

  test('checks nothing without `validate`, and gives what it returns [TOOL-S1]', () => {
    expect(validate(jsonSchema(wanted), 7)).toEqual({ value: 7 });
    expect(validate(jsonSchema(wanted, { validate: Number }), '7')).toEqual({ value: 7 });
  });

  test('turns what `validate` throws into issues, with the paths that are there [TOOL-S1]', () => {
    const mini = zm.object({ city: zm.string() });
    expect(
      validate(jsonSchema(zm.toJSONSchema(mini), { validate: (x) => zm.parse(mini, x) }), { city: 1 }),
    ).toMatchObject({ issues: [{ path: ['city'] }] });
    const thrower = (): never => {
      throw new Error('no');
    };
    expect(validate(jsonSchema(wanted, { validate: thrower }), {})).toEqual({ issues: [{ message: 'no' }] });
  });

  test('copies the document [TOOL-F2]', () => {
    const source = { type: 'object', properties: { a: { type: 'string' } } };
    const schema = jsonSchema(source);
    source.properties.a.type = 'number';
    expect(toJsonSchema(schema)).toEqual({ type: 'object', properties: { a: { type: 'string' } } });
  });

  test('refuses what is no schema and unknown options', () => {
    expect(() => jsonSchema(null as never)).toThrow('not null');
    expect(() => jsonSchema([] as never)).toThrow('not an array');
    expect(() => jsonSchema({ type: () => {} })).toThrow('cannot hold a function');
    expect(() => jsonSchema({}, { validator: () => {} } as never)).toThrow(/'validator'.*'validate'/);
    expect(() => jsonSchema({}, { validate: true } as never)).toThrow('takes a function');
  });
});
