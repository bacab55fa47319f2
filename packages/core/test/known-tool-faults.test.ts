import { describe, expect, it, test } from 'vitest';
import * as z from 'zod';
import { Agent, tool, UserError } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { ScriptedModel, toolCall } from '../src/testing/index.ts';

// Faults that users of other SDKs reported (docs/spec/known-faults.md), by their symptom.

function outputsIn(model: ScriptedModel): unknown[] {
  const input = model.calls.at(-1)?.request.input ?? [];
  return input.flatMap((item) => (item.type === 'function_call_output' ? [item.output] : []));
}

bothForms((run, form) => {
  describe(`known faults of tools (${form})`, () => {
    it('one failing tool drops the outputs of its siblings [IL-133]', async () => {
      const make = (name: string, fails = false) =>
        tool({ name, execute: () => (fails ? Promise.reject(new Error('x')) : name) });
      const model = new ScriptedModel([['a', 'b', 'c'].map((name) => toolCall(name)), 'done']);
      await run(new Agent({ name: 'A', model, tools: [make('a'), make('b', true), make('c')] }), 'hi');
      expect(outputsIn(model)).toEqual(['a', expect.stringMatching(/^An error occurred/), 'c']);
    });

    it('empty arguments are accepted for a tool with required fields [IL-136]', async () => {
      const strict = tool({
        name: 'strict',
        parameters: z.object({ id: z.string() }),
        execute: () => expect.unreachable(),
      });
      const bare = tool({ name: 'bare', execute: (args) => args });
      const model = new ScriptedModel([[toolCall('strict', ''), toolCall('bare', '')], 'done']);
      await run(new Agent({ name: 'A', model, tools: [strict, bare] }), 'hi');
      expect(outputsIn(model)).toEqual([expect.stringMatching(/Invalid arguments: id: expected string$/), '{}']);
    });
  });
});

describe('known faults of schemas', () => {
  const schemaOf = (parameters: Parameters<typeof tool>[0]['parameters']) =>
    tool({ name: 't', parameters: parameters as never, execute: () => 1 }).paramsJsonSchema;

  test('a discriminated union is sent as oneOf, which the API refuses [IL-144]', () => {
    const schema = schemaOf(
      z.object({
        u: z.discriminatedUnion('k', [z.object({ k: z.literal('a') }), z.object({ k: z.literal('b'), n: z.number() })]),
      }),
    );
    expect(JSON.stringify(schema)).not.toContain('oneOf');
    expect(schema).toMatchObject({ properties: { u: { anyOf: [{ type: 'object' }, { type: 'object' }] } } });
  });

  test('a member of a union that has no JSON form is dropped silently [IL-145]', () => {
    expect(() => schemaOf(z.object({ u: z.union([z.string(), z.date()]) }))).toThrow(UserError);
    expect(() => schemaOf(z.object({ u: z.union([z.string(), z.date()]) }))).toThrow(/u/);
    const either = z.union([z.string(), z.preprocess((value) => Number(value), z.number())]);
    const schema = schemaOf(z.object({ u: either })) as { properties: { u: { anyOf: unknown[] } } };
    expect(schema.properties.u.anyOf).toHaveLength(2);
  });

  test('objects without type, or nullable ones, stay open in strict mode [IL-146]', () => {
    const inner = { properties: { a: { type: 'string' } } };
    expect(
      schemaOf({ type: 'object', properties: { bare: inner, nullable: { ...inner, type: ['object', 'null'] } } }),
    ).toMatchObject({
      properties: {
        bare: { additionalProperties: false, required: ['a'] },
        nullable: { additionalProperties: false, required: ['a'], type: ['object', 'null'] },
      },
    });
  });

  test('a JSON Schema is sent as strict although it does not fit [IL-147]', () => {
    const made = tool({
      name: 't',
      parameters: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'object', properties: {} } } },
      execute: () => 1,
    });
    expect(made.strictJsonSchema).toBe(true);
    expect(made.paramsJsonSchema).toEqual({
      type: 'object',
      properties: {
        a: { type: 'string' },
        b: { type: 'object', properties: {}, required: [], additionalProperties: false },
      },
      required: ['a', 'b'],
      additionalProperties: false,
    });
    const open = { type: 'object', properties: {}, additionalProperties: true };
    expect(() => schemaOf(open)).toThrow(/additionalProperties/);
  });
});
