import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { UserError } from '../base/errors.ts';
import { idle, unhandledDuring } from '../../test/run-kit.ts';
import { jsonSchema } from './schema.ts';
import type { AnySchema } from './schema.ts';
import { validateNow } from './validate.ts';

const later = async (): Promise<never> => {
  await idle(1);
  throw new Error('later');
};
const atOnceLater = async (): Promise<never> => await Promise.reject(new Error('later'));

describe('a schema that validates asynchronously', () => {
  const node: z.ZodType = z.lazy(() => z.object({ a: z.number().refine(later), more: z.array(node).optional() }));
  // No `async` function: found when it answers.
  const plainly = (): Promise<boolean> => Promise.reject(new Error('later'));
  const schemas: [name: string, make: () => unknown, value?: object][] = [
    ['a refinement', () => z.object({ a: z.number().refine(atOnceLater) })],
    ['a refinement of zod mini', () => mini.object({ a: mini.number().check(mini.refine(atOnceLater)) })],
    [
      'several refinements',
      () => z.object({ a: z.number().refine(later).refine(atOnceLater), b: z.unknown().refine(later) }),
    ],
    ['a check', () => z.object({ a: z.number() }).check(later)],
    ['superRefine', () => z.object({ a: z.number() }).superRefine(atOnceLater)],
    ['a custom type', () => z.object({ a: z.custom(later) })],
    ['a transform', () => z.object({ a: z.number().transform(atOnceLater) })],
    ['a preprocessing', () => z.object({ a: z.preprocess(atOnceLater, z.number()) })],
    ['a member of a union', () => z.object({ a: z.union([z.string(), z.number().refine(later)]) })],
    ['an optional member', () => z.object({ a: z.number().refine(later).optional().default(1) })],
    ['a lazy part', () => z.object({ a: z.lazy(() => z.number().refine(later)) })],
    ['a part of itself', () => node, { a: 1, more: [{ a: 2 }] }],
    ['a refinement by a plain function', () => z.object({ a: z.number().refine(plainly) })],
    ['a superRefine by a plain function', () => z.object({ a: z.number() }).superRefine(plainly as never)],
    ['a function', () => jsonSchema({ type: 'object' }, { validate: atOnceLater })],
    [
      'a Standard Schema',
      () => ({
        '~standard': {
          version: 1,
          vendor: 'x',
          validate: atOnceLater,
          jsonSchema: { input: () => ({}), output: () => ({}) },
        },
      }),
    ],
  ];

  it.each(schemas)(
    'is refused, and its failure does not reach the process: %s [TOOL-F17, TOOL-O10]',
    async (_, make, value = { a: 1 }) => {
      const seen = await unhandledDuring(() => {
        const schema = make() as AnySchema;
        for (let round = 0; round < 2; round += 1) {
          let error: unknown;
          try {
            validateNow(schema, value, 'here');
          } catch (thrown) {
            error = thrown;
          }
          expect(error).toBeInstanceOf(UserError);
          expect((error as Error).message).toContain('here: the schema validates asynchronously');
        }
      });
      expect(seen).toEqual([]);
    },
  );
});

describe('code of the user in a schema', () => {
  it('that answers at once is run once, and its outcome is that of zod [TOOL-F17, TOOL-O10]', () => {
    let runs = 0;
    const schema = z.object({
      a: z
        .number()
        .refine((value) => (runs += 1) > 0 && value > 0, 'positive')
        .transform((value) => value * 2),
      b: z.string().default(() => 'x'),
    });
    expect(validateNow(schema, { a: 2 }, 'here')).toEqual({ ok: true, value: { a: 4, b: 'x' } });
    expect(runs).toBe(1);
    const wrong = validateNow(schema, { a: -1 }, 'here');
    expect(wrong.ok ? [] : wrong.issues.map(({ path }) => path)).toEqual([['a']]);
    const kind = validateNow(schema, { a: 'x' }, 'here');
    expect(kind.ok ? [] : kind.issues.map(({ path }) => path)).toEqual([['a']]);
  });

  it('that throws is a failure of the value [TOOL-F17, TOOL-O10]', () => {
    const thrown = new Error('boom');
    const schema = z.object({
      a: z.number().transform((): number => {
        throw thrown;
      }),
    });
    expect(validateNow(schema, { a: 1 }, 'here')).toMatchObject({ ok: false, cause: thrown });
  });

  it('that gives no issues gives a value, however it says so; one that gives issues gives none, however few [TOOL-F15]', () => {
    const giving = (result: object) => ({
      '~standard': {
        version: 1,
        vendor: 'x',
        validate: () => result,
        jsonSchema: { input: () => ({}), output: () => ({}) },
      },
    });
    const read = (result: object) => validateNow(giving(result) as unknown as AnySchema, {}, 'here');
    expect(read({ value: 1, issues: null })).toEqual({ ok: true, value: 1 });
    expect(read({ value: 1, issues: [] })).toMatchObject({ ok: false, issues: [{}] });
    expect(read({ value: 1, issues: 'wrong' })).toMatchObject({ ok: false, issues: [{}] });
  });
});
