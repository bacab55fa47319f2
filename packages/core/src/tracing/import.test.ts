import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it('does nothing while it is imported: no timer, listener, random id, variable or network [TRACE-P1, T17]', async () => {
  vi.resetModules();
  const before = Object.getOwnPropertySymbols(globalThis).length;
  const used: string[] = [];
  const spy =
    (name: string): (() => never) =>
    () => {
      used.push(name);
      throw new Error(`${name} at import`);
    };
  const { process } = globalThis;
  const env = new Proxy(process.env, {
    get: (target, key) => (String(key).startsWith('OPENAI') ? spy('env')() : Reflect.get(target, key)),
  });
  vi.spyOn(process, 'env', 'get').mockReturnValue(env);
  vi.spyOn(process, 'on').mockImplementation(spy('process.on'));
  vi.spyOn(crypto, 'getRandomValues').mockImplementation(spy('random'));
  vi.spyOn(crypto, 'randomUUID').mockImplementation(spy('random'));
  vi.stubGlobal('fetch', spy('fetch'));
  const timer = vi.spyOn(globalThis, 'setInterval').mockImplementation(spy('setInterval'));
  const tracing = await import('../tracing.ts');
  timer.mockRestore();
  expect(Object.keys(tracing)).toContain('withTrace');
  expect([used, Object.getOwnPropertySymbols(globalThis).length]).toEqual([[], before]);
});
