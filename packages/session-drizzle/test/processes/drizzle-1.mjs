// `node --import`: whoever asks for drizzle-orm gets the other release that is supported.
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    const [, rest] = /^drizzle-orm(\/.*)?$/.exec(specifier) ?? [];
    if (!/^drizzle-orm(\/|$)/.test(specifier)) return next(specifier, context);
    return next(`drizzle-orm-1${rest ?? ''}`, { ...context, parentURL: import.meta.url });
  },
});
