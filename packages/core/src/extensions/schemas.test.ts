import { expect, it } from 'vitest';
import { z } from 'zod';
import { UserError } from '../index.ts';
import { ensureStrictJsonSchema, toJsonSchema } from './index.ts';

it('gives authors of adapters the schema of a Standard Schema, and its strict form [TOOL-S2, S6]', () => {
  const json = toJsonSchema(z.object({ id: z.string().describe('Order'), note: z.string().optional() }));
  const properties = { id: { type: 'string', description: 'Order' }, note: { type: 'string' } };
  expect(json).toMatchObject({ type: 'object', properties, required: ['id'] });
  expect(json).not.toHaveProperty('$schema');
  expect(ensureStrictJsonSchema(json)).toEqual({
    type: 'object',
    properties,
    required: ['id', 'note'],
    additionalProperties: false,
  });
  expect(json['required']).toEqual(['id']);
  expect(Object.isFrozen(json)).toBe(false);
});

it('refuses objects without declared members when asked to, also behind a reference [TOOL-S15]', () => {
  const open = { type: 'object' };
  const schema = { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: open } };
  expect(ensureStrictJsonSchema(schema)).toMatchObject({
    $defs: { A: { properties: {}, additionalProperties: false } },
  });
  expect(() => ensureStrictJsonSchema(schema, { rejectOpenObjects: true })).toThrow(UserError);
  expect(() => ensureStrictJsonSchema(schema, { rejectOpenObjects: true })).toThrow('A');
  expect(() => ensureStrictJsonSchema(schema, { rejectOpenObject: true } as never)).toThrow(
    "Did you mean 'rejectOpenObjects'?",
  );
});
