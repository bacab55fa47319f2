import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { MaybePromise } from './tool.ts';

/** What a call gives: what an `outputSchema` `S` makes of the value; without one, what `execute` returned. */
export type ToolValue<S, R> = S extends StandardSchemaV1<unknown, infer Out> ? Out : R;

/** Nothing, or what tsc says about an `execute` whose value `S` cannot take. */
export type FitsOutput<S, R> =
  S extends StandardSchemaV1<infer In, unknown>
    ? [R] extends [Loose<In>]
      ? unknown
      : { readonly execute: (...args: never) => MaybePromise<Loose<In>> }
    : unknown;

/**
 * A type without its literals: tsc takes `{ kind: 'lamp' }`, returned by a function, for `{ kind: string }` before it knows
 * what the schema wants. Which text it is, the schema says when the tool runs.
 */
type Loose<T> = 0 extends 1 & T
  ? T
  : T extends string
    ? string
    : T extends number
      ? number
      : T extends boolean
        ? boolean
        : T extends (...args: never) => unknown
          ? T
          : T extends readonly unknown[]
            ? readonly Loose<T[number]>[]
            : T extends object
              ? { readonly [K in keyof T]: Loose<T[K]> }
              : T;
