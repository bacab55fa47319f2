import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { record } from './api.mjs';
import { readSurface } from './surface.mjs';

let folder;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'surface-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function surface(files) {
  const exports = { '.': { types: './dist/index.d.ts' }, './more': { types: './dist/more.d.ts' } };
  for (const [name, text] of Object.entries({ 'package.json': JSON.stringify({ name: 'p', exports }), ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return readSurface(folder);
}

const built = {
  'dist/index.d.ts': `import { t as Agent, n as Options, a as run$1 } from './chunk-abc.js';
/** Says hello. */
export declare function hello(name: string): void;
export { Agent, type Options, run$1 as run };`,
  'dist/more.d.ts': `import { t as Agent, n as Options } from './chunk-abc.js';
export { Agent, Options };`,
  'dist/chunk-abc.d.ts': `import { Thing } from 'library';
declare class Agent {
  /** Its name. */
  name: string; // for people
}
interface Agent { thing: Thing }
/* not listed, but referred to */
interface Options { a: Hidden }
type Hidden = string;
declare function run$1(): void;
export { Agent as t, Options as n, run$1 as a };`,
};

test('names are followed through chunks and told apart as values and types', () => {
  expect(surface(built).entries).toEqual({
    p: { values: ['Agent', 'hello', 'run (run$1)'], types: ['Options'] },
    'p/more': { values: ['Agent'], types: ['Options'] },
  });
});

test('declarations are sorted, without comments, and do not depend on the names of chunks', () => {
  const before = record(surface(built));
  expect(surface(built).declarations).toEqual([
    'class Agent {\n  name: string;\n}',
    'interface Agent { thing: Thing }',
    'type Hidden = string;',
    'interface Options { a: Hidden }',
    'function hello(name: string): void;',
    'function run$1(): void;',
  ]);
  rmSync(join(folder, 'dist'), { recursive: true });
  const renamed = Object.entries(built).map(([name, text]) => [
    name.replace('abc', 'xyz'),
    text.replaceAll('abc', 'xyz'),
  ]);
  expect(record(surface(Object.fromEntries(renamed)))).toBe(before);
});

test('a changed signature changes the record', () => {
  const before = record(surface(built));
  expect(
    record(
      surface({ ...built, 'dist/chunk-abc.d.ts': built['dist/chunk-abc.d.ts'].replace('a: Hidden', 'a?: Hidden') }),
    ),
  ).not.toBe(before);
});

test('a package that is not built says so', () => {
  expect(() => surface({})).toThrow('p is not built: pnpm build');
});
