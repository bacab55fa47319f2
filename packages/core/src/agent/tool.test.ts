import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { afterEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import * as zm from 'zod/mini';
import { UserError } from '../base/errors.ts';
import { configureLogging } from '../base/logger.ts';
import { jsonSchema } from './schema.ts';
import type { ParsedArguments } from './arguments.ts';
import { toolInternals } from './tool-internals.ts';
import { tool } from './tool.ts';
import type { FunctionTool } from './tool.ts';

const args = (parameters: unknown, options: object = {}): FunctionTool<unknown, unknown> =>
  tool<{ type: string }>({
    name: 'find',
    parameters: parameters as { type: string },
    execute: (given) => given,
    ...options,
  });
const parse = (made: FunctionTool<never>, json: string): ParsedArguments => toolInternals(made).parse(json);
const valueOf = (parameters: unknown, json: string, options?: object): unknown => {
  const parsed = parse(args(parameters, options), json);
  return parsed.ok ? parsed.value : parsed.issues;
};
const issuesOf = (parameters: unknown, given: unknown): string => {
  const parsed = parse(args(parameters), JSON.stringify(given));
  return parsed.ok ? 'fits' : parsed.issues;
};
const codeOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError) return error.code;
    throw error;
  }
  return 'none';
};
const empty = { type: 'object', properties: {}, required: [], additionalProperties: false };

afterEach(() => configureLogging({ dontLogToolData: true }));

describe('definition of a tool', () => {
  test('takes its name from `name` or from the function, and refuses others [TOOL-F1]', () => {
    expect(tool({ execute: function book_table() {} }).name).toBe('book_table');
    expect(tool({ name: 'a-B_9', execute: () => {} }).name).toBe('a-B_9');
    const unnamed = (
      () => () =>
        1
    )();
    expect(() => tool({ execute: unnamed })).toThrow(/the name '' .*`name`/);
    expect(() => tool({ execute: () => 1 })).toThrow(/the name ''/);
    expect(() => tool({ name: 'book a table', execute: () => 1 })).toThrow(/'book a table' .*`name`/);
    expect(() => tool({ name: 'x'.repeat(65), execute: () => 1 })).toThrow(UserError);
  });

  test('has an empty strict object without parameters, a new one per tool [TOOL-F3]', () => {
    const [a, b, c] = [tool({ name: 'a', execute: () => 1 }), args({}), args({}, { strict: false })];
    expect([a.paramsJsonSchema, b.paramsJsonSchema, c.paramsJsonSchema]).toEqual([empty, empty, empty]);
    expect(a.paramsJsonSchema).not.toBe(b.paramsJsonSchema);
  });

  test('does not share or change the schema it was given [TOOL-F2] [TOOL-F46]', () => {
    const shared = {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'object', properties: {} } },
      required: ['a'],
    };
    const before = structuredClone(shared);
    const [one, two] = [args(shared), args(shared)];
    expect(shared).toEqual(before);
    expect(one.paramsJsonSchema).toEqual(two.paramsJsonSchema);
    shared.properties.a.type = 'number';
    expect(one.paramsJsonSchema).toMatchObject({ properties: { a: { type: 'string' } } });
  });

  test('is frozen, its schema too, and gives the same schema each time [TOOL-F10] [TOOL-S19]', () => {
    const made = args(z.object({ a: z.object({ b: z.string() }) }));
    expect(Object.isFrozen(made)).toBe(true);
    expect(made.paramsJsonSchema).toBe(made.paramsJsonSchema);
    expect(() => {
      (made.paramsJsonSchema as { properties: { a: { properties: object } } }).properties.a.properties = {};
    }).toThrow(TypeError);
  });

  test('has its defaults', () => {
    expect(tool({ name: 'x', execute: () => 1 })).toMatchObject({
      type: 'function',
      qualifiedName: 'x',
      title: undefined,
      description: '',
      strictJsonSchema: true,
      needsApproval: false,
      origin: { type: 'function' },
      providerData: undefined,
    });
  });

  test.each<[string, object, RegExp]>([
    ['an unknown option', { inputSchema: {} }, /'inputSchema' of tool x/],
    ['an option that is not built', { deferLoading: true }, /'deferLoading' of tool x/],
    ['no execute', { execute: undefined }, /tool x: .*`execute`/],
    ['execute of another kind', { execute: 1 }, /'execute' of tool x/],
    ['description of another kind', { description: 1 }, /'description' of tool x/],
    ['strict of another kind', { strict: 'yes' }, /'strict' of tool x/],
    ['isEnabled of another kind', { isEnabled: 'yes' }, /'isEnabled' of tool x/],
    ['failureErrorFunction of another kind', { failureErrorFunction: 'sorry' }, /'failureErrorFunction' of tool x/],
    ['providerData of another kind', { providerData: 'x' }, /'providerData' of tool x/],
    ['parameters of another kind', { parameters: 7 }, /tool x: `parameters`/],
    ['an instance as parameters', { parameters: new Map() }, /tool x: `parameters`/],
  ])('refuses %s and names tool and option', (_, options, message) => {
    expect(() => tool({ name: 'x', execute: () => 1, ...options })).toThrow(UserError);
    expect(() => tool({ name: 'x', execute: () => 1, ...options })).toThrow(message);
  });

  test('refuses policies that are neither boolean nor function [STATE-101]', () => {
    for (const needsApproval of ['yes', 1, null])
      expect(codeOf(() => args(undefined, { needsApproval }))).toBe('needs_approval_type');
  });

  test('refuses anything that `tool` has not made', () => {
    expect(() => toolInternals({ type: 'function', name: 'x' } as never)).toThrow(/made by `tool\(\)`/);
  });

  test('keeps a copy of providerData', () => {
    const providerData = { a: { b: 1 } };
    const made = args(undefined, { providerData });
    providerData.a.b = 2;
    expect(made.providerData).toEqual({ a: { b: 1 } });
  });
});

describe('copyWith', () => {
  const source = tool({
    name: 'find',
    description: 'd',
    parameters: z.object({ q: z.string().optional() }),
    needsApproval: true,
    execute: ({ q }) => q,
  });

  test('gives a copy with other options and leaves the source [TOOL-F5]', () => {
    const copy = source.copyWith({ name: 'search', description: undefined, needsApproval: false });
    expect([copy.name, copy.description, copy.needsApproval, copy.qualifiedName]).toEqual([
      'search',
      'd',
      false,
      'search',
    ]);
    expect([source.name, source.needsApproval]).toEqual(['find', true]);
    expect(copy.paramsJsonSchema).toEqual(source.paramsJsonSchema);
  });

  test('copies what the tool is, not what became of the objects it was made of [TOOL-F2] [TOOL-F5]', () => {
    const document = { type: 'object', properties: { a: { type: 'string' } } };
    const providerData = { a: 1 };
    const inputGuardrails = [{ name: 'g', execute: () => ({ behavior: { type: 'allow' as const } }) }];
    const made = tool({ name: 'find', parameters: document, providerData, inputGuardrails, execute: () => '' });
    document.properties.a.type = 'number';
    providerData.a = 2;
    inputGuardrails.pop();
    const copy = made.copyWith({ strict: false });
    expect(copy.paramsJsonSchema).toEqual({ type: 'object', properties: { a: { type: 'string' } } });
    expect(copy.providerData).toEqual({ a: 1 });
    expect(toolInternals(copy as never).inputGuardrails).toHaveLength(1);
  });

  test('shows the new name in errors [TOOL-F5]', () => {
    const parsed = parse(source.copyWith({ name: 'search' }), '[');
    expect(parsed.ok ? '' : parsed.error.message).toBe('Invalid JSON input for tool search');
  });

  test('can leave strict mode', () => {
    expect(source.copyWith({ strict: false }).paramsJsonSchema).toEqual({
      type: 'object',
      properties: { q: { type: 'string' } },
    });
  });

  test('takes no parameters and no body', () => {
    for (const key of ['parameters', 'execute'])
      expect(() => source.copyWith({ [key]: () => 1 })).toThrow(`'${key}' of tool find: copyWith`);
    expect(() => source.copyWith({ name: 'a b' })).toThrow(UserError);
  });
});

describe('parameters on the wire', () => {
  const nullable = (schema: object, rest: object = {}): object => ({ anyOf: [schema, { type: 'null' }], ...rest });

  test('optional members are required and nullable, with their annotations outside [TOOL-S5] [TOOL-S20]', () => {
    expect(
      args(z.object({ a: z.string().describe('x').optional(), n: z.number().default(3), k: z.string().nullish() }))
        .paramsJsonSchema,
    ).toEqual({
      type: 'object',
      properties: {
        a: nullable({ type: 'string' }, { description: 'x' }),
        n: nullable({ type: 'number' }, { default: 3 }),
        k: { type: ['string', 'null'] },
      },
      required: ['a', 'n', 'k'],
      additionalProperties: false,
    });
  });

  test('lowering goes everywhere; what is nullable already stays [TOOL-S5] [TOOL-S22]', () => {
    const { paramsJsonSchema } = args(
      z.object({
        list: z.array(z.object({ a: z.string().optional() })),
        u: z.discriminatedUnion('k', [
          z.object({ k: z.literal('a'), x: z.string().optional() }),
          z.object({ k: z.literal('b') }),
        ]),
        any: z.unknown().optional(),
        nil: z.null().optional(),
        either: z.union([z.string(), z.null()]).optional(),
      }),
    );
    const part = { type: 'object', additionalProperties: false };
    expect(paramsJsonSchema).toMatchObject({
      properties: {
        list: { items: { ...part, properties: { a: nullable({ type: 'string' }) }, required: ['a'] } },
        u: { anyOf: [{ ...part, properties: { x: nullable({ type: 'string' }) }, required: ['k', 'x'] }, part] },
        any: {},
        nil: { type: 'null' },
        either: { type: ['string', 'null'] },
      },
    });
  });

  test('hand-written JSON Schema is not lowered: optional members become required [TOOL-S5]', () => {
    const raw = { type: 'object', properties: { a: { type: 'string' } } };
    const wanted = { ...raw, required: ['a'], additionalProperties: false };
    expect(args(raw).paramsJsonSchema).toEqual(wanted);
    expect(args(jsonSchema(raw)).paramsJsonSchema).toEqual(wanted);
  });

  test('the root is an object, strict or not [TOOL-S4]', () => {
    for (const parameters of [
      z.array(z.string()),
      z.string(),
      z.union([z.object({}), z.object({ a: z.string() })]),
      { type: 'array' },
      { anyOf: [] },
    ])
      for (const strict of [true, false])
        expect(() => args(parameters, { strict })).toThrow(/tool find: `parameters` must be an object/);
  });

  test('without strict the schema is sent as it is [TOOL-S18] [TOOL-S27]', () => {
    expect(args(z.looseObject({ r: z.record(z.string(), z.number()).optional() }), { strict: false })).toMatchObject({
      strictJsonSchema: false,
      paramsJsonSchema: { properties: { r: { additionalProperties: { type: 'number' } } }, additionalProperties: {} },
    });
    const raw = { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: true };
    expect(args(raw, { strict: false }).paramsJsonSchema).toEqual(raw);
    expect(() => args(z.looseObject({}))).toThrow(/additionalProperties/);
  });

  test('what strict mode cannot say is told with tool, path and remedy [TOOL-S21]', () => {
    expect(() => args(z.object({ m: z.record(z.string(), z.number()) }))).toThrow(
      /^tool find: m: .*additionalProperties.*`strict: false`/,
    );
    expect(() => args(z.object({ d: z.date() }))).toThrow(/^tool find: d /);
    expect(() => args(zm.object({ a: zm.string() }))).toThrow(/^tool find: .*gives no JSON Schema/);
  });

  test('recursive types give a finite schema and read deep values [TOOL-S23]', () => {
    const Node = z.object({
      v: z.number(),
      get next() {
        return Node.optional();
      },
    });
    const made = args(z.object({ n: Node }));
    expect(JSON.stringify(made.paramsJsonSchema).length).toBeLessThan(400);
    expect(valueOf(z.object({ n: Node }), '{"n":{"v":1,"next":{"v":2,"next":{"v":3,"next":null}}}}')).toEqual({
      n: { v: 1, next: { v: 2, next: { v: 3 } } },
    });
    expect(valueOf(Node, '{"v":1,"next":{"v":2,"next":null}}')).toEqual({ v: 1, next: { v: 2 } });
  });
});

describe('reading arguments', () => {
  const city = z.object({ city: z.string(), days: z.number().default(3) });

  test.each<[string, unknown]>([
    ['zod', city],
    ['zod mini', zm.toJSONSchema(zm.object({ city: zm.string(), days: zm.prefault(zm.number(), 3) }))],
    ['ArkType', type({ city: 'string', days: 'number = 3' })],
    ['Valibot', toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number(), 3) }))],
  ])('gives what the schema gives: %s [TOOL-F16] [TOOL-F18]', (_, schema) => {
    expect(valueOf(schema, '{"city":"Kyiv","days":null}')).toEqual({ city: 'Kyiv', days: 3 });
    expect(valueOf(schema, '{"city":"Kyiv"}')).toEqual({ city: 'Kyiv', days: 3 });
    expect(valueOf(schema, '{"city":5}')).toBe('city: expected string');
  });

  test('the empty text is {}, blank text is no JSON [TOOL-F12] [TOOL-F39]', () => {
    expect(valueOf(z.object({ a: z.string().default('x') }), '')).toEqual({ a: 'x' });
    expect(valueOf(z.object({ a: z.string() }), '')).toBe('a: expected string');
    expect(parse(args(undefined), '  ').ok).toBe(false);
  });

  test.each(['{"n":', '{"n": NaN}', '{"n":1e999}', `{"n":1${'0'.repeat(309)}}`, '{"a":[{"n":-1E+999}]}'])(
    'no JSON: %.12s [TOOL-F13] [TOOL-F40]',
    (json) => {
      const parsed = parse(args({ type: 'object' }), json);
      expect(parsed).toMatchObject({
        ok: false,
        error: { name: 'ModelBehaviorError', message: 'Invalid JSON input for tool find' },
        issues: '',
      });
      expect(parsed.ok || parsed.error.cause).toBeUndefined();
    },
  );

  test('large exponents and long numbers that are finite are JSON', () => {
    expect(valueOf({ type: 'object' }, '{"n":1e200,"s":"1e999","m":1.5e-999}')).toEqual({ n: 1e200, s: '1e999', m: 0 });
  });

  test.each(['[]', '"x"', '7', 'null', 'true'])('no object: %s [TOOL-F14]', (json) => {
    const parsed = parse(args(undefined), json);
    expect(parsed.ok || parsed.error.message).toBe('Invalid arguments for tool find: an object was expected');
  });

  test('payload, paths and cause appear only when tool data may be logged [TOOL-F13] [TOOL-F15]', () => {
    const silent = parse(args(city), '{"city":5}');
    expect(silent.ok || silent.error.message).toBe('Invalid arguments for tool find');
    configureLogging({ dontLogToolData: false });
    const broken = parse(args(city), '{"secret');
    expect(broken.ok || broken.error.message).toBe('Invalid JSON input for tool find: {"secret');
    expect(broken.ok || broken.error.cause).toBeInstanceOf(SyntaxError);
    const wrong = parse(args(city), '{"city":5}');
    expect(wrong.ok || wrong.error.message).toBe('Invalid arguments for tool find: city: expected string');
  });

  test('nulls for optional members are dropped at every depth; nullable ones stay [TOOL-F16] [TOOL-S30] [TOOL-S31]', () => {
    const schema = z.object({
      a: z.string().optional(),
      keep: z.string().nullable(),
      both: z.string().nullish(),
      x: z.union([z.string(), z.number()]).optional(),
      list: z.array(z.object({ b: z.string().optional(), c: z.string().nullable() })),
      pair: z.tuple([z.object({ d: z.string().optional() }), z.string().nullable()]),
    });
    const given = {
      a: null,
      keep: null,
      both: null,
      x: null,
      list: [
        { b: null, c: null },
        { b: 'b', c: null },
      ],
      pair: [{ d: null }, null],
    };
    expect(valueOf(schema, JSON.stringify(given))).toEqual({
      keep: null,
      both: null,
      list: [{ c: null }, { b: 'b', c: null }],
      pair: [{}, null],
    });
  });

  test('in a union the branch that fits decides which nulls are dropped [TOOL-F16]', () => {
    const schema = z.object({
      u: z.union([
        z.object({ k: z.literal('optional'), x: z.string().optional() }),
        z.object({ k: z.literal('nullable'), x: z.string().nullable() }),
        z.array(z.object({ y: z.string().optional() })),
      ]),
    });
    expect(valueOf(schema, '{"u":{"k":"optional","x":null}}')).toEqual({ u: { k: 'optional' } });
    expect(valueOf(schema, '{"u":{"k":"nullable","x":null}}')).toEqual({ u: { k: 'nullable', x: null } });
    expect(valueOf(schema, '{"u":[{"y":null},{"y":"z"}]}')).toEqual({ u: [{}, { y: 'z' }] });
    expect(valueOf(schema, '{"u":{"k":"optional","x":null,"extra":1}}')).toEqual({ u: { k: 'optional' } });
    const byMembers = z.object({
      u: z.union([
        z.object({ a: z.string(), x: z.string().optional() }),
        z.object({ a: z.string(), b: z.string(), x: z.string().nullable() }),
      ]),
    });
    expect(valueOf(byMembers, '{"u":{"a":"a","b":"b","x":null}}')).toEqual({ u: { a: 'a', b: 'b', x: null } });
  });

  test('without strict mode nothing is dropped [TOOL-F16]', () => {
    expect(valueOf(z.object({ a: z.string().optional() }), '{"a":null}', { strict: false })).toBe('a: expected string');
  });

  test('coercions and transforms are honoured [TOOL-S26]', () => {
    expect(valueOf(z.object({ n: z.coerce.number() }), '{"n":"4"}')).toEqual({ n: 4 });
  });

  test('unknown members are removed, or refused by strict objects [TOOL-F47]', () => {
    expect(valueOf(z.object({ a: z.string() }), '{"a":"x","b":1}')).toEqual({ a: 'x' });
    expect(valueOf(z.strictObject({ a: z.string() }), '{"a":"x","b":1}')).toBe('(root): unexpected member');
  });

  test('a bare JSON Schema is not checked; without parameters there are none [TOOL-F49]', () => {
    expect(valueOf({ type: 'object', properties: { a: { type: 'string' } } }, '{"a":5,"b":null}')).toEqual({
      a: 5,
      b: null,
    });
    expect(valueOf(undefined, '{"a":5}')).toEqual({});
  });

  test('`__proto__` is data [TOOL-F48]', () => {
    const value = valueOf({ type: 'object' }, '{"__proto__":{"polluted":true}}') as object;
    expect(Object.hasOwn(value, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(
      args({ type: 'object', properties: JSON.parse('{"__proto__":{"type":"string"}}') as object }).paramsJsonSchema,
    ).toMatchObject({ required: ['__proto__'] });
  });

  test('async validation is a mistake of the programmer [TOOL-F17]', () => {
    const refined = z.object({ a: z.string().refine(async () => true) });
    expect(() => parse(args(refined), '{"a":"x"}')).toThrow(UserError);
    expect(() => parse(args(jsonSchema({ type: 'object' }, { validate: async () => 1 })), '{}')).toThrow(
      /tool find: .*asynchronously/,
    );
  });
});

describe('what the model reads of arguments that do not fit [TOOL-F19]', () => {
  test.each<[string, unknown, unknown, string]>([
    ['another kind', z.object({ a: z.string() }), { a: 1 }, 'a: expected string'],
    ['a missing member', z.object({ a: z.object({ b: z.boolean() }) }), { a: {} }, 'a.b: expected boolean'],
    [
      'an element',
      z.object({ l: z.array(z.object({ n: z.number() })) }),
      { l: [{ n: 1 }, { n: 'x' }] },
      'l[1].n: expected number',
    ],
    ['a tuple', z.object({ t: z.tuple([z.string(), z.number()]) }), { t: ['a', 'b'] }, 't[1]: expected number'],
    ['a union', z.object({ u: z.union([z.string(), z.number()]) }), { u: true }, 'u: expected string or number'],
    ['an enum', z.object({ e: z.enum(['red', 'blue']) }), { e: 'secret' }, 'e: invalid value'],
    ['a literal of another kind', z.object({ e: z.literal(7) }), { e: 'secret' }, 'e: expected number'],
    ['a rule', z.object({ a: z.string().min(9, 'secret rule') }), { a: 'short' }, 'a: invalid value'],
    ['a fraction', z.object({ i: z.int() }), { i: 1.5 }, 'i: expected integer'],
    ['null', z.object({ a: z.string() }), { a: null }, 'a: expected string'],
    [
      'a rule of the whole',
      z.object({ a: z.string() }).refine(() => false, 'secret'),
      { a: 'x' },
      '(root): invalid value',
    ],
    [
      'an unknown member',
      z.object({ o: z.strictObject({ a: z.string() }) }),
      { o: { a: 'x', secret: 1 } },
      'o: unexpected member',
    ],
    [
      'an unknown member, ArkType',
      type({ o: { a: 'string', '+': 'reject' } }),
      { o: { a: 'x', secret: 1 } },
      'o: unexpected member',
    ],
    [
      'an unknown member, Valibot',
      toStandardJsonSchema(v.object({ o: v.strictObject({ a: v.string() }) })),
      { o: { a: 'x', secret: 1 } },
      'o: unexpected member',
    ],
    [
      'two issues',
      z.object({ a: z.string(), b: z.number() }),
      { a: 1, b: 'x' },
      'a: expected string; b: expected number',
    ],
    [
      'a thrown validator',
      jsonSchema(
        { type: 'object', properties: { a: { type: 'string' } } },
        { validate: (x) => z.object({ a: z.string() }).parse(x) },
      ),
      { a: 1 },
      'a: expected string',
    ],
  ])('%s', (_, schema, given, wanted) => {
    expect(issuesOf(schema, given)).toBe(wanted);
  });

  test('five issues at most', () => {
    const shape = Object.fromEntries('abcdefg'.split('').map((name) => [name, z.string()]));
    expect(issuesOf(z.object(shape), {}).split('; ')).toHaveLength(5);
  });

  test('names that the model chose are values, they are not shown', () => {
    const made = args(z.object({ r: z.record(z.string(), z.number()) }), { strict: false });
    const parsed = parse(made, '{"r":{"secret":"x"}}');
    expect(parsed.ok || parsed.issues).toBe('r.*: expected number');
  });

  test('a validator that throws is answered like one that complains', () => {
    const thrower = z.object({
      a: z.string().transform(() => {
        throw new Error('secret');
      }),
    });
    expect(issuesOf(thrower, { a: 'x' })).toBe('(root): invalid value');
    expect(
      issuesOf(
        jsonSchema(
          { type: 'object' },
          {
            validate: () => {
              throw new Error('secret');
            },
          },
        ),
        {},
      ),
    ).toBe('(root): invalid value');
  });
});
