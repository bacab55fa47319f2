/** Node's `util.inspect`, as it hands itself to a custom inspection; missing on some runtimes. */
export type Inspect = (value: unknown, options: object) => string;

/**
 * Says how `console.log` and `util.inspect` of Node, Bun and Deno show instances of a class.
 */
export function defineInspect<T extends object>(
  target: { readonly prototype: T },
  show: (value: T, depth: number, options: object, inspect: Inspect | undefined) => string,
): void {
  Object.defineProperty(target.prototype, Symbol.for('nodejs.util.inspect.custom'), {
    value(this: T, depth: number, options: object = {}, inspect?: Inspect): string {
      return show(this, depth, options, inspect);
    },
    writable: true,
    configurable: true,
  });
}
