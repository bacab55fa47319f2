import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UserError } from '../base/errors.ts';
import { ensureStrictJsonSchema } from './strict-schema.ts';

const object = (properties: object, rest: object = {}): object => ({ type: 'object', properties, ...rest });
const closed = (properties: Record<string, unknown>): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const strict = (schema: object): unknown => ensureStrictJsonSchema(schema as never);
const str = { type: 'string' };

describe('strict form', () => {
  test('closes every object and requires all members, in order, and leaves the source alone [TOOL-S6] [TOOL-F2]', () => {
    const source = object({ b: str, a: object({ c: str }) }, { required: ['a'], $defs: { D: object({ x: str }) } });
    const before = structuredClone(source);
    expect(strict(source)).toEqual({ ...closed({ b: str, a: closed({ c: str }) }), $defs: { D: closed({ x: str }) } });
    expect(source).toEqual(before);
  });

  test('makes the empty schema an empty object [TOOL-S6]', () => {
    expect(strict({})).toEqual(closed({}));
  });

  test('goes into items, prefixItems, anyOf, oneOf and allOf [TOOL-S6] [TOOL-S24]', () => {
    const inner = object({ x: str });
    expect(
      strict(
        object({
          l: { type: 'array', items: inner },
          t: { type: 'array', prefixItems: [inner, str], items: false },
          u: { anyOf: [inner, str] },
          m: { allOf: [inner, object({ y: str })] },
        }),
      ),
    ).toEqual(
      closed({
        l: { type: 'array', items: closed({ x: str }) },
        t: { type: 'array', prefixItems: [closed({ x: str }), str], items: false },
        u: { anyOf: [closed({ x: str }), str] },
        m: { allOf: [closed({ x: str }), closed({ y: str })] },
      }),
    );
  });

  test('takes members that are called like keywords for what they are', () => {
    const properties = { $ref: str, allOf: str, items: str, $id: str };
    expect(strict(object(properties))).toEqual(closed(properties));
  });

  test.each([
    ['true', object({ m: object({}, { additionalProperties: true }) })],
    ['{}', object({ m: object({}, { additionalProperties: {} }) })],
    ['a schema', object({ m: { type: 'object', additionalProperties: str } })],
    ['a schema and no type', object({ m: { additionalProperties: str } })],
    ['patterns', object({ m: { type: 'object', patternProperties: { '^x': str } } })],
  ])('refuses additional members (%s) and tells the rule and the path [TOOL-S7]', (_, schema) => {
    expect(() => strict(schema)).toThrow(UserError);
    expect(() => strict(schema)).toThrow(/: m: .*additionalProperties/);
  });

  test('takes a schema without type but with properties for an object [TOOL-S7]', () => {
    expect(strict({ properties: { a: { properties: { b: str } } } })).toEqual(closed({ a: closed({ b: str }) }));
  });

  test('appends oneOf to anyOf [TOOL-S8]', () => {
    expect(strict(object({ u: { anyOf: [str], oneOf: [{ type: 'null' }] } }))).toEqual(
      closed({ u: { anyOf: [str, { type: 'null' }] } }),
    );
  });

  test('merges a single allOf into its parent and closes it [TOOL-S9] [TOOL-S29]', () => {
    expect(strict(object({ m: { description: 'd', allOf: [object({ x: str }, { description: 'inner' })] } }))).toEqual(
      closed({ m: { description: 'd', ...closed({ x: str }) } }),
    );
    expect(strict(object({ m: { type: 'object', allOf: [object({ x: str })] } }))).toEqual(
      closed({ m: closed({ x: str }) }),
    );
  });

  test('keeps an allOf of several entries, each of them strict [TOOL-S9]', () => {
    const both = [object({ x: str }), object({ y: { allOf: [object({ z: str })] } })];
    expect(strict(object({ m: { allOf: both } }))).toEqual(
      closed({ m: { allOf: [closed({ x: str }), closed({ y: closed({ z: str }) })] } }),
    );
  });

  test.each([
    ['another type', { type: 'string', allOf: [{ type: 'number' }] }],
    [
      'a closed parent without properties',
      { type: 'object', additionalProperties: false, allOf: [object({ x: str })] },
    ],
  ])('refuses a single allOf that contradicts its parent: %s [TOOL-S9]', (_, schema) => {
    expect(() => strict(object({ m: schema }))).toThrow(/m: .*singleton allOf/);
  });

  test('refuses chains of single allOf that return to themselves [TOOL-S9]', () => {
    expect(() =>
      strict(object({ a: { $ref: '#/$defs/A' } }, { $defs: { A: { allOf: [{ $ref: '#/$defs/A' }] } } })),
    ).toThrow(/circular/);
    expect(() => strict({ allOf: [{ $ref: '#' }] })).toThrow(/circular/);
    expect(() =>
      strict(object({ a: { $ref: '#/$defs/A' } }, { $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/A' } } })),
    ).toThrow(/circular/);
  });

  test('drops only defaults that are null [TOOL-S10]', () => {
    expect(strict(object({ a: { type: 'string', default: null }, b: { type: 'string', default: 'x' } }))).toEqual(
      closed({ a: str, b: { type: 'string', default: 'x' } }),
    );
  });

  test('inlines a reference with annotations, which win, along chains, and keeps a bare one [TOOL-S11] [TOOL-S28]', () => {
    const $defs = { P: { type: 'string', description: 'old' }, Q: { $ref: '#/$defs/P', title: 'q' } };
    expect(
      strict(
        object(
          {
            p: { $ref: '#/$defs/P', description: 'pp' },
            q: { $ref: '#/$defs/Q', default: 'x' },
            bare: { $ref: '#/$defs/P' },
          },
          { $defs },
        ),
      ),
    ).toEqual({
      ...closed({
        p: { type: 'string', description: 'pp' },
        q: { type: 'string', title: 'q', description: 'old', default: 'x' },
        bare: { $ref: '#/$defs/P' },
      }),
      $defs: { P: $defs.P, Q: { type: 'string', description: 'old', title: 'q' } },
    });
  });

  test('refuses a reference with siblings that say what is valid [TOOL-S11]', () => {
    expect(() => strict(object({ p: { $ref: '#/$defs/P', minLength: 3 } }, { $defs: { P: str } }))).toThrow(
      /p: .*incompatible sibling `minLength`/,
    );
  });

  test('keeps references to recursive definitions and drops their annotations [TOOL-S11]', () => {
    const $defs = { N: object({ next: { $ref: '#/$defs/N', description: 'more' } }) };
    expect(
      strict(object({ n: { $ref: '#/$defs/N', description: 'list' }, self: { $ref: '#', title: 'me' } }, { $defs })),
    ).toEqual({
      ...closed({ n: { $ref: '#/$defs/N' }, self: { $ref: '#' } }),
      $defs: { N: closed({ next: { $ref: '#/$defs/N' } }) },
    });
  });

  test('inlines definitions that only lead to recursive ones, and stays linear in long chains of them [TOOL-S11] [TOOL-S16]', () => {
    const loop = object({ again: { $ref: '#/$defs/Loop', title: 'l' } });
    const $defs = {
      Loop: loop,
      Way: object({ to: { $ref: '#/$defs/Loop', title: 'w' } }),
      Pair: object({ a: { $ref: '#/$defs/Riap' } }),
      Riap: object({ b: { $ref: '#/$defs/Pair', title: 'p' } }),
    };
    expect(
      strict(
        object({ way: { $ref: '#/$defs/Way', title: 'x' }, pair: { $ref: '#/$defs/Riap', title: 'y' } }, { $defs }),
      ),
    ).toMatchObject({
      properties: { way: { title: 'x', properties: { to: { $ref: '#/$defs/Loop' } } }, pair: { $ref: '#/$defs/Riap' } },
    });
    const chain = Object.fromEntries(
      Array.from({ length: 3000 }, (_, index) => [`D${index}`, object({ a: { $ref: `#/$defs/D${index + 1}` } })]),
    );
    const closing = { ...chain, D3000: object({ a: { $ref: '#/$defs/D0', title: 't' } }) };
    expect(strict(object({ x: { $ref: '#/$defs/D0', title: 'x' } }, { $defs: closing }))).toMatchObject({
      properties: { x: { $ref: '#/$defs/D0' } },
    });
  });

  test('follows pointers with escapes, percent-decoded first [TOOL-S12]', () => {
    const $defs = { 'a/b~c d': str };
    expect(strict(object({ x: { $ref: '#/$defs/a~1b~0c%20d', title: 't' } }, { $defs }))).toEqual({
      ...closed({ x: { ...str, title: 't' } }),
      $defs,
    });
  });

  test('makes definitions strict wherever they stand', () => {
    expect(strict(object({ x: { $ref: '#/components/X' } }, { components: { X: object({ a: str }) } }))).toEqual({
      ...closed({ x: { $ref: '#/components/X' } }),
      components: { X: closed({ a: str }) },
    });
  });

  test.each([
    ['another document', object({ x: { $ref: 'https://example.org/s' } }), /not local/],
    ['an anchor', object({ x: { $ref: '#anchor' } }), /not local/],
    ['nothing', object({ x: { $ref: '#/$defs/Missing' } }), /#\/\$defs\/Missing points to nothing/],
    ['a prototype member', object({ x: { $ref: '#/constructor' } }), /points to nothing/],
    ['broken percent', object({ x: { $ref: '#/$defs/%zz' } }), /points to nothing/],
    [
      'a place that is rewritten',
      object({ u: { oneOf: [object({ a: str })] }, x: { $ref: '#/properties/u/oneOf/0' } }),
      /rewritten/,
    ],
    ['a nested $id', object({ x: { $id: 'y', type: 'string' }, z: { $ref: '#/properties/x' } }), /\$id/],
  ])('refuses references to %s [TOOL-S12]', (_, schema, message) => {
    expect(() => strict(schema)).toThrow(message);
  });

  test('has an object that is no choice and cannot be null at its root [TOOL-S13]', () => {
    expect(() => strict({ anyOf: [object({}), object({})] })).toThrow(/root of a strict schema/);
    expect(() => strict({ oneOf: [object({})] })).toThrow(/root of a strict schema/);
    expect(() => strict({ type: ['object', 'null'], properties: {} })).toThrow(/root of a strict schema/);
    expect(strict({ type: ['object'], properties: { a: str } })).toEqual(closed({ a: str }));
  });

  test('takes the root from where it points, recursive or not', () => {
    const $defs = { N: object({ next: { $ref: '#/$defs/N' } }) };
    expect(strict({ $ref: '#/$defs/N', $defs })).toEqual({
      ...closed({ next: { $ref: '#/$defs/N' } }),
      $defs: { N: closed({ next: { $ref: '#/$defs/N' } }) },
    });
  });

  test('closes nested objects that may be null [TOOL-S14] [TOOL-S32]', () => {
    expect(strict(object({ x: { type: ['object', 'null'], properties: { a: str } } }))).toEqual(
      closed({ x: { ...closed({ a: str }), type: ['object', 'null'] } }),
    );
  });

  test('refuses objects that declare nothing when asked to, behind references too [TOOL-S15]', () => {
    const reject = (schema: object): unknown => ensureStrictJsonSchema(schema as never, { rejectOpenObjects: true });
    expect(() => reject(object({ x: { type: 'object' } }))).toThrow(/: x: .*additionalProperties/);
    expect(() => reject(object({ x: { $ref: '#/$defs/X' } }, { $defs: { X: { type: 'object' } } }))).toThrow(UserError);
    expect(reject(object({ x: { type: 'object', additionalProperties: false } }))).toEqual(closed({ x: closed({}) }));
  });

  test('stops at depth 100 and at 100 000 nodes, also of what references multiply [TOOL-S16]', () => {
    const nested = (depth: number): object => (depth === 0 ? str : { type: 'array', items: nested(depth - 1) });
    expect(strict(object({ x: nested(99) }))).toBeDefined();
    expect(() => strict(object({ x: nested(100) }))).toThrow(/too deeply nested/);
    const cyclic: Record<string, unknown> = object({}) as never;
    cyclic['properties'] = { self: cyclic };
    expect(() => strict(cyclic)).toThrow(/too deeply nested/);
    const wide = Object.fromEntries(Array.from({ length: 100_001 }, (_, index) => [`p${index}`, str]));
    expect(() => strict(object(wide))).toThrow(/too large/);
    // Each level doubles what the one before inlines.
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [
        `D${index}`,
        index === 0
          ? str
          : object({
              a: { $ref: `#/$defs/D${index - 1}`, title: 'a' },
              b: { $ref: `#/$defs/D${index - 1}`, title: 'b' },
            }),
      ]),
    );
    expect(() => strict(object({ x: { $ref: '#/$defs/D39', title: 'x' } }, { $defs: doubling }))).toThrow(/too large/);
    const wideEnough = Object.fromEntries(Array.from({ length: 99_000 }, (_, index) => [`p${index}`, str]));
    expect(strict(object(wideEnough))).toMatchObject({ type: 'object' });
  });

  test('compares like JSON: 1 is not true, the order of keys does not count [TOOL-S17]', () => {
    expect(() => strict(object({ x: { minimum: 1, allOf: [{ minimum: true }] } }))).toThrow(/singleton allOf/);
    expect(strict(object({ x: { const: { a: 1, b: 2 }, allOf: [{ const: { b: 2, a: 1 } }] } }))).toEqual(
      closed({ x: { const: { a: 1, b: 2 } } }),
    );
  });

  test('is its own strict form, for any tree of objects, arrays and choices', () => {
    const { schema } = fc.letrec<{ schema: object }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<object>(str, { type: 'null' }, { enum: [1, 'a'] }),
        fc
          .dictionary(fc.string({ maxLength: 4 }), tie('schema'), { maxKeys: 3 })
          .map((properties) => object(properties)),
        tie('schema').map((items) => ({ type: 'array', items })),
        fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((oneOf) => ({ oneOf })),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(fc.string({ maxLength: 4 }), schema, { maxKeys: 3 }), (properties) => {
        const once = strict(object(properties)) as object;
        expect(strict(once)).toEqual(once);
        const open = JSON.stringify(once).match(/"type":"object"/g)?.length ?? 0;
        expect(JSON.stringify(once).match(/"additionalProperties":false/g)?.length ?? 0).toBe(open);
      }),
      { numRuns: 200 },
    );
  });
});
