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

  test('whose value has no JSON form fails with the remedy, checked or not [TOOL-R9]', async () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    for (const value of [cycle, { big: 1n }, 'text', [1], undefined, null])
      await expect(invokeFunctionTool(returns({ type: 'object', properties: {} }, value), {})).rejects.toThrow(
        /tool find: what it returned must be an object with a JSON form/,
      );
    expect(await invokeFunctionTool(returns(jsonSchema({ type: 'object', properties: {} }), { a: 1 }), {})).toEqual({
      a: 1,
    });
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
