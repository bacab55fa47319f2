/**
 * Key of everything internal on objects that users hold (agents, tools, states, contexts, items, errors). Registered, so
 * two installed copies of the package understand each other; the version changes when what stands behind it does.
 */
export const internal: unique symbol = Symbol.for('@agents/core/internal/1');

/** A class, also one with a protected constructor. */
interface Class {
  readonly prototype: object;
}

/**
 * Makes `instanceof` work over package copies: an object is an instance when the class of that name, of whichever copy,
 * is in its prototype chain. Call it in a static block: `static { brand(this, 'Agent'); }`.
 *
 * A brand belongs to one class: subclasses without a brand of their own (those of users) keep the plain meaning of
 * `instanceof`.
 */
export function brand(target: Class, name: string): void {
  const mark = Symbol.for(`@agents/core/brand/${name}`);
  Object.defineProperty(target.prototype, mark, { value: true });
  Object.defineProperty(target, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      // The static method is inherited, so `this` may be a subclass.
      if (this === target) return typeof value === 'object' && value !== null && mark in value;
      return Function.prototype[Symbol.hasInstance].call(this as () => void, value);
    },
  });
}
