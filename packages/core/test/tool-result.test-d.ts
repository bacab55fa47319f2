// What `outputSchema` says of a tool's value, to its body and to whoever calls it.
/* oxlint-disable no-new, vitest/expect-expect -- the compiler asserts */
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, test } from 'vitest';
import * as z from 'zod';
import { Agent } from '../src/agent/agent.ts';
import { invokeFunctionTool } from '../src/agent/invoke-function-tool.ts';
import { jsonSchema } from '../src/agent/schema.ts';
import { tool, toolFor } from '../src/agent/tool.ts';
import type { FunctionTool } from '../src/agent/tool.ts';
import type { ToolContext } from '../src/state/context.ts';

type Eq<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function yes<_T extends true>(): void;
type ResultOf<T> = T extends FunctionTool<never, never, infer R> ? R : never;

interface My {
  user: string;
}
const Stock = z.object({ left: z.string().transform(Number).pipe(z.number()), shelf: z.string().default('A1') });
const Choice = z.object({
  found: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('lamp'), watts: z.number() }),
    z.object({ kind: z.literal('none') }),
  ]),
});

describe('a tool that declares what it returns', () => {
  test('gives what its schema makes of the value', async () => {
    const made = tool({ name: 'stock', outputSchema: Stock, execute: () => ({ left: '4' }) });
    yes<Eq<ResultOf<typeof made>, { left: number; shelf: string }>>();
    const value = await invokeFunctionTool(made, {});
    yes<Eq<typeof value, { left: number; shelf: string }>>();
    const later = tool({ name: 'stock', execute: async () => ({ left: '4' }), outputSchema: Stock });
    yes<Eq<ResultOf<typeof later>, { left: number; shelf: string }>>();
    const mine = toolFor<My>()({
      name: 'stock',
      parameters: z.object({ id: z.string() }),
      outputSchema: Stock,
      execute: ({ id }, ctx) => ({ left: id + ctx.context.user }),
    });
    yes<Eq<typeof mine, FunctionTool<My, { id: string }, { left: number; shelf: string }>>>();
    new Agent<My>({ name: 'Desk', tools: [mine] });
  });

  test('takes from its body what the schema takes', () => {
    // @ts-expect-error `left` is a text before the schema
    tool({ name: 'stock', outputSchema: Stock, execute: () => ({ left: 4 }) });
    // @ts-expect-error `left` is missing
    tool({ name: 'stock', outputSchema: Stock, execute: () => ({}) });
    // @ts-expect-error a text is no object
    tool({ name: 'stock', outputSchema: Stock, execute: () => 'sold out' });
    // @ts-expect-error of a promise too
    tool({ name: 'stock', outputSchema: Stock, execute: async () => ({ left: 4 }) });
    toolFor<My>()({
      name: 'stock',
      outputSchema: Stock,
      // @ts-expect-error with a context too
      execute: (_args, ctx) => ({ left: ctx.context.user.length }),
    });
  });

  test('needs no `as const` for literals, whichever comes first', () => {
    tool({ name: 'find', outputSchema: Choice, execute: () => ({ found: { kind: 'lamp', watts: 7 } }) });
    tool({ name: 'find', execute: () => ({ found: { kind: 'none' } }), outputSchema: Choice });
    tool({
      name: 'find',
      parameters: z.object({ id: z.string() }),
      outputSchema: Choice,
      execute: async ({ id }, ctx: ToolContext<My>) => {
        if (id === ctx.context.user) return { found: { kind: 'none' } };
        return { found: { kind: 'lamp', watts: id.length } };
      },
    });
    // @ts-expect-error a kind is a text
    tool({ name: 'find', outputSchema: Choice, execute: () => ({ found: { kind: 1 } }) });
  });

  test('may use any library; a JSON Schema says nothing of types', () => {
    const valibot = tool({
      name: 'n',
      outputSchema: toStandardJsonSchema(v.object({ n: v.number() })),
      execute: () => ({ n: 1 }),
    });
    yes<Eq<ResultOf<typeof valibot>, { n: number }>>();
    const ark = tool({ name: 'n', outputSchema: type({ n: 'number' }), execute: () => ({ n: 1 }) });
    yes<Eq<ResultOf<typeof ark>, { n: number }>>();
    const written = tool({
      name: 'n',
      outputSchema: jsonSchema<{ n: number }>({ type: 'object' }),
      execute: (): unknown => JSON.parse('{"n":1}'),
    });
    yes<Eq<ResultOf<typeof written>, { n: number }>>();
    const bare = tool({ name: 'n', outputSchema: { type: 'object', properties: {} }, execute: () => ({ n: 1 }) });
    yes<Eq<ResultOf<typeof bare>, { n: number }>>();
    const parsed = tool({ name: 'n', outputSchema: z.object({ n: z.number() }), execute: () => JSON.parse('{"n":1}') });
    yes<Eq<ResultOf<typeof parsed>, { n: number }>>();
    const at = z.date().transform((date) => date.toISOString());
    const dated = tool({
      name: 'at',
      outputSchema: z.object({ at: at.pipe(z.iso.datetime()), pair: z.tuple([z.string(), z.number()]), any: z.any() }),
      execute: () => ({ at: new Date(), pair: ['a', 1], any: new Map() }),
    });
    yes<Eq<ResultOf<typeof dated>['at'], string>>();
    const plain = tool({ name: 'n', execute: () => 1 });
    yes<Eq<ResultOf<typeof plain>, number>>();
    // @ts-expect-error this schema only validates
    tool({ name: 'n', outputSchema: v.object({ n: v.number() }), execute: () => ({ n: 1 }) });
  });

  test('has another value as a copy with another schema', () => {
    const made = tool({ name: 'stock', outputSchema: Stock, execute: () => ({ left: '4' }) });
    const named = made.copyWith({ name: 'other' });
    yes<Eq<ResultOf<typeof named>, { left: number; shelf: string }>>();
    const copy = made.copyWith({ outputSchema: z.object({ left: z.string() }) });
    yes<Eq<ResultOf<typeof copy>, { left: string }>>();
  });
});
