import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const source = new URL('../src/', import.meta.url).href;

/** Runs in a process of its own: the loader of the tests looks at clocks and files all the time. */
const program = (entry: string): string => `
  const seen = [];
  const watch = (owner, name, what) => {
    const original = owner[name];
    owner[name] = function (...args) {
      if (new Error().stack.split('\\n')[2]?.includes(${JSON.stringify(source)})) seen.push(what ?? name);
      return Reflect.apply(original, this, args);
    };
  };
  watch(Date, 'now', 'clock');
  watch(performance, 'now', 'clock');
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'fetch']) watch(globalThis, name);
  for (const name of ['randomUUID', 'getRandomValues']) watch(crypto, name);
  for (const name of ['readFileSync', 'readFile', 'existsSync', 'statSync', 'openSync'])
    watch(process.getBuiltinModule('node:fs'), name);
  process.env = new Proxy(process.env, {
    get(target, key) {
      if (new Error().stack.split('\\n')[2]?.includes(${JSON.stringify(source)})) seen.push('env ' + String(key));
      return Reflect.get(target, key);
    },
  });
  const entry = await import(${JSON.stringify(source)} + ${JSON.stringify(entry)});
  const atImport = [...seen];
  entry.getDefaultModel?.();
  console.log(JSON.stringify([Object.keys(entry).length > 0, atImport, seen]));`;

test.each([
  'index.ts',
  'session.ts',
  'tracing.ts',
  'extensions/index.ts',
  'node/index.ts',
  'openai/index.ts',
  'testing/index.ts',
])('importing %s reads no file, no variable and no clock [TOOL-Z5]', async (entry) => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program(entry)]);
  const [loaded, atImport, later] = JSON.parse(stdout) as [boolean, string[], string[]];
  // The watch sees what is looked at: the default model asks for its variable when it is asked for.
  const asked = entry === 'index.ts' ? ['env OPENAI_DEFAULT_MODEL'] : [];
  expect([loaded, atImport, later]).toEqual([true, [], asked]);
});
