import { describe, expect, test } from 'vitest';
import * as v from 'valibot';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import * as z from 'zod';
import { UserError } from '../base/errors.ts';
import { invokeFunctionTool } from './invoke-function-tool.ts';
import { jsonSchema } from './schema.ts';
import { tool } from './tool.ts';

const returns = (outputSchema: unknown, ...[value]: unknown[]) =>
  tool({ name: 'find', outputSchema: outputSchema as z.ZodType, execute: () => value });

describe('a tool that declares what it returns', () => {
  test('has the output side of its schema in strict form, behind a root reference too [TOOL-F8]', () => {
    const schema = z.object({
      at: z.string().transform(Number).pipe(z.number()),
      tags: z.array(z.string()).default([]),
    });
    expect(returns(schema).outputJsonSchema).toEqual({
      type: 'object',
      properties: {
        at: { type: 'number' },
        tags: expect.objectContaining({ type: 'array', items: { type: 'string' } }),
      },
      required: ['at', 'tags'],
      additionalProperties: false,
    });
    const pointing = {
      $ref: '#/$defs/place',
      $defs: { place: { type: 'object', properties: { x: { type: 'number' } } } },
    };
    expect(returns(pointing).outputJsonSchema).toMatchObject({
      type: 'object',
      required: ['x'],
      additionalProperties: false,
    });
    const valibot = toStandardJsonSchema(v.object({ n: v.number() }));
    expect(returns(valibot).outputJsonSchema).toMatchObject({ properties: { n: { type: 'number' } }, required: ['n'] });
    expect(tool({ name: 'plain', execute: () => '' }).outputJsonSchema).toBeUndefined();
  });

  test.each([
    ['a text', z.string(), /tool find: outputSchema: must be an object at the root/],
    ['a choice of objects', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), /object at the root/],
    ['nothing', {}, /object at the root/],
    [
      'an open object',
      z.object({ m: z.record(z.string(), z.number()) }),
      /tool find: outputSchema: m: .*additionalProperties/,
    ],
    ['an optional member', z.object({ a: z.object({ b: z.string().optional() }) }), /a\.b is optional.*nullable/],
    ['no schema', 'object', /not a string/],
    [
      'a schema that only validates',
      { '~standard': { version: 1, vendor: 'x', validate: () => ({ value: 1 }) } },
      /jsonSchema\(/,
    ],
  ])('is refused when it declares %s [TOOL-F8]', (_, schema, message) => {
    expect(() => returns(schema)).toThrow(UserError);
    expect(() => returns(schema)).toThrow(message);
    expect(() => tool({ name: 'find', execute: () => '' }).copyWith({ outputSchema: schema as z.ZodType })).toThrow(
      message,
    );
  });

  test('takes a copy: what is done to the document later changes nothing', () => {
    const document = { type: 'object', properties: { a: { type: 'string' } } };
    const made = returns(document);
    document.properties.a.type = 'number';
    expect(made.outputJsonSchema).toMatchObject({ properties: { a: { type: 'string' } } });
    expect(made.copyWith({}).outputJsonSchema).toEqual(made.outputJsonSchema);
    expect(Object.isFrozen(made.outputJsonSchema)).toBe(true);
  });

  test('gives what its schema makes of the value, or an error without the value [TOOL-R9]', async () => {
    const schema = z.object({ n: z.coerce.number() });
    expect(await invokeFunctionTool(returns(schema, { n: '4', secret: 's3cret' }), {})).toEqual({ n: 4 });
    for (const value of [{ n: 's3cret' }, 's3cret', undefined]) {
      const failing = invokeFunctionTool(returns(schema, value), {});
      await expect(failing).rejects.toThrow(/^tool find: what it returned does not match its `outputSchema`: /u);
      await expect(failing).rejects.not.toThrow(/s3cret/);
    }
  });

  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const deep = (levels: number): object => {
    let value = {};
    for (let level = 0; level < levels; level += 1) value = { value };
    return value;
  };
  test.each([
    ['a cycle', cycle],
    ['a bigint', { big: 1n }],
    ['NaN', { list: [Number.NaN] }],
    ['Infinity', { n: Number.NEGATIVE_INFINITY }],
    ['a date', new Date(0)],
    ['a Map', new Map([[1, 2]])],
    ['a Set below', { set: new Set([1]) }],
    ['a promise below', { later: Promise.resolve(1) }],
    ['an error below', { error: new Error('s3cret') }],
    ['bytes', new Uint8Array(3)],
    ['bytes below', { bytes: new Uint8Array(3) }],
    ['what turns itself into a text', { toJSON: () => 's3cret' }],
    ['what turns itself into a list', { toJSON: () => ['{'] }],
    ['what turns itself into nothing', { toJSON: () => undefined }],
    [
      'a toJSON that throws',
      {
        toJSON: () => {
          throw new Error('s3cret');
        },
      },
    ],
    [
      'a getter that throws',
      {
        get n() {
          throw new Error('s3cret');
        },
      },
    ],
    ['a text in an object', Object('s3cret')],
    ['a depth that nothing can write', deep(100_000)],
    ['a text', 's3cret'],
    ['a number', 4_111_111_111],
    ['a list', [1]],
    ['nothing', undefined],
    ['null', null],
    ['a function', () => 1],
  ])('whose value is %s fails with the remedy, and nothing of the value [TOOL-R9]', async (_, value) => {
    const open = { type: 'object', properties: {} };
    for (const schema of [open, jsonSchema(open)]) {
      const failing = invokeFunctionTool(returns(schema, value), {});
      await expect(failing).rejects.toThrow(/^tool find: what it returned must be an object with a JSON form/);
      await expect(failing).rejects.toBeInstanceOf(UserError);
      await expect(failing).rejects.not.toThrow(/s3cret|4111111111/);
    }
  });

  test('whose value has a JSON form gives it, whatever its prototype, and may leave members out [TOOL-R9]', async () => {
    class Place {
      readonly at = new Date(0);
      readonly unknown = undefined;
    }
    for (const value of [
      { a: 1 },
      Object.assign(Object.create(null) as object, { a: 1 }),
      new Place(),
      Object.freeze({ text: '\ud800' }),
      JSON.parse('{"__proto__":{"a":1}}') as object,
    ])
      expect(await invokeFunctionTool(returns({ type: 'object', properties: {} }, value), {})).toBe(value);
  });

  test('whose value throws while it is checked does not fit; nothing of what it threw is told [TOOL-R9]', async () => {
    const refuses = (): never => {
      throw new Error('s3cret');
    };
    let reads = 0;
    const values = [
      Object.defineProperty({}, 'n', { get: refuses, enumerable: true }),
      // It throws when it is looked at for the message.
      Object.defineProperty({}, 'n', { get: () => (reads++ === 0 ? 'x' : refuses()), enumerable: true }),
      new Proxy({ n: 'x' }, { getOwnPropertyDescriptor: refuses }),
    ];
    for (const value of values) {
      const failing = invokeFunctionTool(returns(z.object({ n: z.number() }), value), {});
      await expect(failing).rejects.toThrow(
        'tool find: what it returned does not match its `outputSchema`: (root): invalid value.',
      );
    }
  });

  test.each([
    ['no list of issues', () => ({ issues: 's3cret' })],
    ['an empty list', () => ({ issues: [] })],
    ['an issue that is null', () => ({ issues: [null] })],
    ['a path that is none', () => ({ issues: [{ message: 's3cret', path: 5 }] })],
    ['a path of nulls', () => ({ issues: [{ message: 's3cret', path: [null] }] })],
    ['nothing', () => undefined],
    [
      'an exception without a text',
      () => {
        throw Object.create(null);
      },
    ],
    [
      'an exception with issues that are none',
      () => {
        throw Object.assign(new Error('s3cret'), { issues: [{ path: [null] }] });
      },
    ],
  ])('whose strange validator gives %s does not fit [TOOL-R9]', async (_, validate) => {
    const json = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const schema = {
      '~standard': { version: 1, vendor: 'x', validate, jsonSchema: { input: () => json, output: () => json } },
    };
    const failing = invokeFunctionTool(returns(schema, { n: 1 }), {});
    await expect(failing).rejects.toThrow(
      'tool find: what it returned does not match its `outputSchema`: (root): invalid value.',
    );
  });
});

describe('who may call a tool', () => {
  test('is the model alone unless it says otherwise; the list is its own [TOOL-F7]', () => {
    const callers: ('direct' | 'programmatic')[] = ['direct', 'programmatic'];
    const made = tool({ name: 'find', allowedCallers: callers, execute: () => '' });
    callers.pop();
    expect(made.allowedCallers).toEqual(['direct', 'programmatic']);
    expect(made.copyWith({}).allowedCallers).toEqual(['direct', 'programmatic']);
    expect(made.copyWith({ allowedCallers: ['direct'] }).allowedCallers).toEqual(['direct']);
    expect(tool({ name: 'plain', execute: () => '' }).allowedCallers).toEqual(['direct']);
    expect(() => (made.allowedCallers as string[]).push('x')).toThrow(TypeError);
  });

  test.each([[[]], [['direct', 'direct']], [['model']], ['direct'], [null]])(
    'is refused as %j, with the words that are taken [TOOL-F7]',
    (allowedCallers) => {
      const make = () => tool({ name: 'find', allowedCallers: allowedCallers as never, execute: () => '' });
      expect(make).toThrow(UserError);
      expect(make).toThrow(/'allowedCallers' of tool find.*'direct', 'programmatic' or both/);
    },
  );
});
