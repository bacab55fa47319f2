import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { checkLayers, importsOf, layers } from './layers.mjs';

const roots = [];
afterEach(() => roots.splice(0).forEach((root) => rmSync(root, { recursive: true, force: true })));

/** Plants files in an empty repository and gives what the rule says about them. */
function plant(files) {
  const root = mkdtempSync(join(tmpdir(), 'layers-'));
  roots.push(root);
  const all = { 'packages/core/package.json': '{ "exports": { ".": "./x.js", "./session": "./y.js" } }', ...files };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return checkLayers(root);
}
const core = (files) =>
  plant(Object.fromEntries(Object.entries(files).map(([name, text]) => [`packages/core/src/${name}`, text])));

test('a run-time import points down', () => {
  expect(
    core({
      'run/loop.ts': `import { id } from '../base/ids.ts';\nexport const a = id;`,
      'base/ids.ts': 'export const id = 1;',
    }),
  ).toEqual([]);
});

test('a back arrow fails, in every form that loads code', () => {
  const forms = [
    `import { a } from '../run/loop.ts';`,
    `import '../run/loop.ts';`,
    `import { type A } from '../run/loop.ts';`,
    `export * from '../run/loop.ts';`,
    `export { a } from '../run/loop.ts';`,
  ];
  for (const form of forms) {
    expect(core({ 'agent/tool.ts': `// first line\n${form}`, 'run/loop.ts': '' }), form).toEqual([
      'packages/core/src/agent/tool.ts:2: a static import points up: agent/ (layer 4) to run/loop.ts (layer 7)',
    ]);
  }
  expect(core({ 'agent/tool.ts': `export const a = () => import('../run/loop.ts');`, 'run/loop.ts': '' })).toEqual([
    'packages/core/src/agent/tool.ts:1: a dynamic import points up: agent/ (layer 4) to run/loop.ts (layer 7)',
  ]);
});

test('a sideways arrow between folders of one layer fails', () => {
  expect(core({ 'sessions/memory.ts': `import '../models/retry.ts';`, 'models/retry.ts': '' })).toEqual([
    'packages/core/src/sessions/memory.ts:1: a static import points sideways: sessions/ (layer 5) to models/retry.ts (layer 5)',
  ]);
});

test('a cycle of run-time imports fails, inside one folder too', () => {
  expect(
    core({
      'run/a.ts': `import './b.ts';`,
      'run/b.ts': `export * from './c.ts';`,
      'run/c.ts': `export const a = () => import('./a.ts');`,
    }),
  ).toEqual([
    'packages/core/src/run/a.ts: imports itself in a circle: packages/core/src/run/a.ts > packages/core/src/run/b.ts > packages/core/src/run/c.ts > packages/core/src/run/a.ts',
  ]);
});

test('import type and export type are free, up and in a circle', () => {
  expect(
    core({
      'agent/tool.ts': `import type { A } from '../run/loop.ts';\nexport type { B } from '../run/loop.ts';\nexport type C = A;\nexport type D = import('../run/loop.ts').E;`,
      'run/loop.ts': `import { C } from '../agent/tool.ts';`,
    }),
  ).toEqual([]);
});

test('a default import named "type" is code', () => {
  expect(importsOf('a.ts', `import type from './type.ts';`)).toMatchObject([{ kind: 'static' }]);
});

test('the allowed upward edge makes no circle', () => {
  expect(
    core({
      'models/default.ts': `export const a = () => import('../openai/index.ts');`,
      'openai/index.ts': `import '../models/default.ts';`,
    }),
  ).toEqual([]);
});

test('the default provider alone may reach up to openai, and only dynamically', () => {
  expect(
    core({ 'models/default.ts': `export const a = () => import('../openai/index.ts');`, 'openai/index.ts': '' }),
  ).toEqual([]);
  expect(core({ 'models/default.ts': `import '../openai/index.ts';`, 'openai/index.ts': '' })).toHaveLength(1);
  expect(
    core({ 'models/default.ts': `export const a = () => import('../testing/index.ts');`, 'testing/index.ts': '' }),
  ).toHaveLength(1);
});

test('a file outside of the table fails; tests may import anything', () => {
  expect(core({ 'utils/x.ts': '' })).toEqual([
    'packages/core/src/utils/x.ts: not in the table of layers (scripts/layers.mjs)',
  ]);
  expect(core({ 'base/ids.test.ts': `import '../run/loop.ts';`, 'run/loop.ts': '' })).toEqual([]);
});

test('libraries are loaded where the table says', () => {
  expect(
    core({ 'run/a.ts': `import 'openai';\nimport 'zod/v4';\nimport 'node:fs';\nimport type { B } from 'openai';` }),
  ).toEqual([
    expect.stringContaining('a.ts:1: imports openai at run time'),
    expect.stringContaining('a.ts:2: imports zod/v4 at run time'),
    expect.stringContaining('a.ts:3: imports node:fs at run time'),
  ]);
  expect(
    core({
      'openai/index.ts': `import 'openai';`,
      'node/index.ts': `import 'node:fs';`,
      'tracing/a.ts': `export const b = () => import('node:async_hooks');`,
    }),
  ).toEqual([]);
});

test('other packages import the entries of core, and no other adapter', () => {
  const adapter = (text) => plant({ 'packages/session-x/src/index.ts': text });
  expect(adapter(`import '@agents/core';\nimport '@agents/core/session';`)).toEqual([]);
  expect(adapter(`import '../../core/src/index.ts';`)).toEqual([expect.stringContaining('outside of its package')]);
  expect(adapter(`import type { A } from '@agents/core/src/base/ids.ts';`)).toEqual([
    expect.stringContaining('no entry of @agents/core'),
  ]);
  expect(adapter(`import '@agents/session-y';`)).toEqual([expect.stringContaining('no other package of ours')]);
});

test('the table has every folder once', () => {
  expect(new Set(layers.flat()).size).toBe(layers.flat().length);
});
