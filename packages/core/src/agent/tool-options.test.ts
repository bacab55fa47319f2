import { toStandardJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { UserError } from '../base/errors.ts';
import { Agent } from './agent.ts';
import { invokeFunctionTool } from './invoke-function-tool.ts';
import { outputSchema } from './output.ts';
import { tool } from './tool.ts';

describe('the list of callers', () => {
  test.each([
    [[], ': it is empty; `isEnabled: false` hides a tool from everybody.'],
    [['direct', 'direct'], ': it names one twice.'],
    [['model'], ': it holds something else.'],
    ['direct', ', not a string.'],
    [null, ', not null.'],
  ])('is refused as %j, with the words that are taken and what is wrong [TOOL-F7]', (allowedCallers, problem) => {
    const words = ` must be a list of 'direct', 'programmatic' or both${problem}`;
    const made = tool({ name: 'find', execute: () => '' });
    for (const make of [
      () => tool({ name: 'find', allowedCallers: allowedCallers as never, execute: () => '' }),
      () => made.copyWith({ allowedCallers: allowedCallers as never }),
    ]) {
      expect(make).toThrow(UserError);
      expect(make).toThrow(/^Option 'allowedCallers' of tool find/);
      expect(make).toThrow(words);
    }
  });
});

describe('a schema of the result', () => {
  test('is no tool of an agent, which returns a text [TOOL-F8]', () => {
    const made = new Agent({ name: 'Stock' }).asTool({ toolName: 'stock' });
    expect(() => made.copyWith({ outputSchema: z.object({ n: z.number() }) })).toThrow(
      'tool stock: a tool made by `asTool` returns a text and takes no `outputSchema`. Give the agent an `outputType`.',
    );
  });

  test('may have optional members that a default fills, as Valibot declares them [TOOL-F8]', async () => {
    const entries = { shelf: v.optional(v.string(), 'A1'), note: v.nullish(v.string(), null) };
    const made = tool({
      name: 'stock',
      outputSchema: toStandardJsonSchema(v.object({ place: v.object(entries) })),
      execute: () => ({ place: {} }),
    });
    expect(made.outputJsonSchema).toMatchObject({ properties: { place: { required: ['shelf', 'note'] } } });
    expect(await invokeFunctionTool(made, {})).toEqual({ place: { shelf: 'A1', note: null } });
    const optional = toStandardJsonSchema(v.object({ place: v.object({ ...entries, row: v.optional(v.string()) }) }));
    expect(() => made.copyWith({ outputSchema: optional })).toThrow(/outputSchema: place\.row is optional/);
  });

  test('is not what `outputSchema()` makes for agents; the error tells the way [TOOL-F8]', () => {
    const make = (schema: unknown) => () =>
      tool({ name: 'stock', outputSchema: schema as z.ZodType, execute: () => ({}) });
    expect(make(outputSchema(z.object({ n: z.number() })))).toThrow(
      'tool stock: outputSchema: takes the schema itself, not what `outputSchema()` makes of it, which is for agents.',
    );
  });
});

describe('a JSON Schema that holds a schema of a library', () => {
  const held =
    'is a schema of a library, and a JSON Schema holds none. Make all of it with the library, as by z.object().';

  test.each([
    ['as a map of members', { n: z.number() }],
    ['in its properties', { type: 'object', properties: { n: z.number() } }],
    ['further down', { type: 'object', properties: { list: { type: 'array', items: { anyOf: [z.number()] } } } }],
  ])('is refused, %s, with its place and the way [TOOL-F8]', (_, schema) => {
    const place = /: `(n|0)` /;
    for (const make of [
      () => tool({ name: 'stock', outputSchema: schema, execute: () => ({}) }),
      () => tool({ name: 'stock', parameters: schema, execute: () => '' }),
    ]) {
      expect(make).toThrow(UserError);
      expect(make).toThrow(place);
      expect(make).toThrow(held);
    }
  });

  test('may be put together of documents that the library made', () => {
    const properties = { n: z.toJSONSchema(z.number()) };
    const made = tool({ name: 'stock', outputSchema: { type: 'object', properties }, execute: () => ({ n: 1 }) });
    expect(made.outputJsonSchema).toMatchObject({ properties: { n: { type: 'number' } } });
    const not = tool({ name: 'stock', outputSchema: { type: 'object', not: properties.n }, execute: () => ({}) });
    expect(not.outputJsonSchema).toMatchObject({ not: { type: 'number' } });
  });
});
