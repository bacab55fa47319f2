import { type } from 'arktype';
import { afterEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { configureLogging } from '../base/logger.ts';
import { Agent } from './agent.ts';
import { outputSchema, outputSpanError, parseValue, resolveOutput } from './output.ts';
import type { OutputSchema, OutputType, StructuredOutput } from './output.ts';
import { jsonSchema } from './schema.ts';

const agentOf = (outputType?: unknown) =>
  new Agent<unknown, unknown>({ name: 'Scorer', outputType: outputType as OutputType<unknown> });

function outputOf(outputType: unknown): StructuredOutput {
  const output = resolveOutput(agentOf(outputType));
  if (output.type === 'text') throw new Error('text');
  return output;
}

function failureOf(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('did not fail');
}

afterEach(() => configureLogging({ dontLogModelData: true }));

describe('what the model is asked for', () => {
  test('text without an output type [TOOL-O1]', () => {
    expect(resolveOutput(agentOf())).toEqual({ type: 'text' });
    expect(resolveOutput(agentOf('text'))).toEqual({ type: 'text' });
  });

  test('a strict schema called final_output [TOOL-O2] [TOOL-O6]', () => {
    expect(outputOf(z.object({ stars: z.int().min(1).max(5), note: z.string().optional() })).request).toEqual({
      name: 'final_output',
      strict: true,
      schema: {
        type: 'object',
        properties: {
          stars: { type: 'integer', minimum: 1, maximum: 5 },
          note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        },
        required: ['stars', 'note'],
        additionalProperties: false,
      },
    });
  });

  test('another name and no strictness when told so [TOOL-O2] [TOOL-O5]', () => {
    const schema = z.object({ m: z.record(z.string(), z.number()), a: z.string().optional() });
    expect(outputOf(outputSchema(schema, { strict: false, name: 'score' })).request).toMatchObject({
      name: 'score',
      strict: false,
      schema: {
        properties: { m: { additionalProperties: { type: 'number' } }, a: { type: 'string' } },
        required: ['m'],
      },
    });
  });

  test.each([
    ['array', z.array(z.int()), { type: 'array' }],
    ['string', z.string(), { type: 'string' }],
    [
      'union',
      z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
      { anyOf: [{ type: 'object' }, { type: 'object' }] },
    ],
    ['enum', z.enum(['a', 'b']), { enum: ['a', 'b'] }],
    ['nullable object', jsonSchema({ type: ['object', 'null'], properties: {} }), { type: ['object', 'null'] }],
  ])('a root that is no object stands in `response`: %s [TOOL-O3]', (_, schema, inner) => {
    expect(outputOf(schema).request.schema).toMatchObject({
      type: 'object',
      properties: { response: inner },
      required: ['response'],
      additionalProperties: false,
    });
  });

  test('references go on meaning the same inside `response` [TOOL-O3]', () => {
    const Tree = z.object({
      v: z.number(),
      get kids() {
        return z.array(Tree);
      },
    });
    const { schema } = outputOf(z.array(Tree)).request as unknown as { schema: { $defs: object } };
    expect(schema).toMatchObject({
      properties: { response: { items: { $ref: `#/$defs/${Object.keys(schema.$defs)[0]}` } } },
    });
    const list = jsonSchema({ type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#' }] } });
    expect(outputOf(list).request.schema).toMatchObject({
      properties: { response: { items: { anyOf: [{ type: 'string' }, { $ref: '#/properties/response' }] } } },
    });
  });

  test('what strict mode cannot say is a UserError with path and remedy, at construction of an output schema or at first use [TOOL-O4] [TOOL-O18]', () => {
    const open = z.object({ m: z.record(z.string(), z.number()) });
    const wanted = /m: .*additionalProperties.*outputSchema\(schema, \{ strict: false \}\)/;
    expect(() => outputSchema(open)).toThrow(wanted);
    expect(() => resolveOutput(agentOf(open))).toThrow(UserError);
    expect(() => resolveOutput(agentOf(open))).toThrow(wanted);
    expect(() => resolveOutput(agentOf(open))).toThrow(/^agent Scorer: /);
  });

  test('refuses what is no schema and bad options', () => {
    expect(() => outputSchema({ type: 'object' } as never)).toThrow(/jsonSchema\(\)/);
    expect(() => outputSchema(z.object({}), { name: 'my score' })).toThrow(/'my score'/);
    expect(() => outputSchema(z.object({}), { strct: true } as never)).toThrow(/'strct'.*'strict'/);
  });

  test('is worked out once per agent [TOOL-O4]', () => {
    const agent = agentOf(z.object({ a: z.string() }));
    expect(resolveOutput(agent)).toBe(resolveOutput(agent));
    expect(resolveOutput(agent.clone({ name: 'other' }))).toBe(resolveOutput(agent));
  });
});

describe('text becomes a value', () => {
  test('unwrapped, without the nulls of optional members [TOOL-O15] [TOOL-O17] [TOOL-O6]', () => {
    expect(outputOf(z.array(z.int())).parse('{"response":[1,2]}')).toEqual([1, 2]);
    expect(outputOf(z.object({ a: z.string().optional() })).parse('{"a":null}')).toEqual({});
    expect(
      outputOf(z.object({ a: z.string().default('x'), b: z.string().nullable() })).parse('{"a":null,"b":null}'),
    ).toEqual({ a: 'x', b: null });
    expect(outputOf(z.array(z.object({ a: z.string().optional() }))).parse('{"response":[{"a":null}]}')).toEqual([{}]);
    expect(outputOf(type({ n: 'number' })).parse('{"n":1}')).toEqual({ n: 1 });
  });

  test('as the schema gives it, and no coercion of our own [TOOL-O7]', () => {
    expect(outputOf(z.object({ n: z.coerce.number() })).parse('{"n":"4"}')).toEqual({ n: 4 });
    expect(() => outputOf(z.object({ n: z.number() })).parse('{"n":"4"}')).toThrow('n: expected number');
    expect(outputOf(jsonSchema({ type: 'object' }, { validate: () => 'validated' })).parse('{}')).toBe('validated');
  });

  test.each<[string, unknown, string, string]>([
    ['no JSON', z.object({}), 'x9-secret', 'The final output is no JSON (output type final_output)'],
    [
      'no wrapper',
      z.array(z.int()),
      '{"x9-secret":[1]}',
      "The final output lacks the key 'response' (output type final_output)",
    ],
    [
      'no object around',
      z.array(z.int()),
      '[1]',
      "The final output lacks the key 'response' (output type final_output)",
    ],
    [
      'a violation',
      z.object({ a: z.string(), b: z.int() }),
      '{"a":"x9-secret","b":"x9-secret"}',
      'The final output does not fit: b: expected integer (output type final_output)',
    ],
  ])(
    'fails with a ModelBehaviorError without the payload: %s [TOOL-O7] [TOOL-O8] [TOOL-O16]',
    (_, schema, text, message) => {
      const error = failureOf(() => outputOf(schema).parse(text));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect([error.message, error.cause]).toEqual([message, undefined]);
    },
  );

  test('a validator that throws fails alike [TOOL-O7]', () => {
    const schema = jsonSchema({ type: 'object' }, { validate: (value) => z.object({ a: z.string() }).parse(value) });
    expect(failureOf(() => outputOf(schema).parse('{}'))).toMatchObject({
      name: 'ModelBehaviorError',
      message: expect.stringContaining('(root)'),
    });
  });

  test('the payload appears when model data may be logged [TOOL-O8]', () => {
    configureLogging({ dontLogModelData: false });
    const error = failureOf(() => outputOf(z.object({})).parse('x9'));
    expect(error.message).toBe('The final output is no JSON (output type final_output): x9');
    expect(error.cause).toBeInstanceOf(SyntaxError);
  });

  test('the span tells details only where data may stand [TOOL-O8]', () => {
    const error = new ModelBehaviorError('why');
    expect(outputSpanError(error, (text) => text)).toEqual({
      message: 'Invalid JSON provided',
      data: { details: 'why' },
    });
    expect(outputSpanError(error, undefined)).toEqual({ message: 'Invalid JSON provided', data: {} });
  });

  test('async validation is a UserError [TOOL-O10]', () => {
    expect(() => outputOf(z.object({ a: z.string().refine(async () => true) })).parse('{"a":"x"}')).toThrow(UserError);
  });

  test('an output schema of one’s own is used as it is; foreign errors of it are the model’s fault', () => {
    const own: OutputSchema<Date> = {
      name: 'day',
      strict: false,
      jsonSchema: () => ({ type: 'object', properties: { at: { type: 'string' } } }),
      validateJson: (json) => {
        const { at } = JSON.parse(json) as { at: string };
        if (Number.isNaN(Date.parse(at))) throw new RangeError('x9-secret');
        return new Date(at);
      },
    };
    const output = outputOf(own);
    expect(output.request).toEqual({ name: 'day', strict: false, schema: own.jsonSchema() });
    expect(output.parse('{"at":"2026-01-01"}')).toEqual(new Date('2026-01-01'));
    expect(failureOf(() => output.parse('{"at":"?"}'))).toMatchObject({
      name: 'ModelBehaviorError',
      message: 'The final output does not fit (output type day)',
    });
  });
});

test('values that are there already are checked against a schema [RUN-1206]', () => {
  const schema = z.object({ n: z.coerce.number() });
  expect(parseValue(schema, { n: '4' })).toEqual({ n: 4 });
  expect(parseValue(outputSchema(z.array(z.int())), [1])).toEqual([1]);
  expect(parseValue(z.object({ r: z.record(z.string(), z.string()) }), { r: {} })).toEqual({ r: {} });
  expect(() => parseValue(z.object({ a: z.string() }), { a: 1 })).toThrow(TypeError);
  expect(() => parseValue(z.object({ a: z.string() }), undefined)).toThrow(/\(root\): expected object/);
  expect(() => parseValue({} as never, 1)).toThrow(UserError);
});
