// What importing @agents/core costs, on the build: no library is loaded, few and small files, a small root.
import { registerHooks } from 'node:module';
import { existsSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { root } from './bootstrap.mjs';

const budget = { modules: 6, kib: 400, values: 75 };

const core = join(root, 'packages/core');
if (!existsSync(join(core, 'dist/index.js'))) {
  console.error('@agents/core is not built: pnpm build');
  process.exit(1);
}
const loaded = [];
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) loaded.push(fileURLToPath(url));
    return next(url, context);
  },
});
const before = new Set(process.moduleLoadList);
const values = Object.keys(await import(pathToFileURL(join(core, 'dist/index.js')).href)).length;
const kib = loaded.reduce((sum, file) => sum + statSync(file).size, 0) / 1024;
const strangers = loaded.map((file) => relative(core, file)).filter((file) => !file.startsWith('dist'));
const builtins = process.moduleLoadList
  .filter((name) => !before.has(name) && name.startsWith('NativeModule ') && !name.includes('internal/'))
  .map((name) => name.slice('NativeModule '.length));

const problems = [];
if (strangers.length > 0)
  problems.push(`importing the root of @agents/core loads ${strangers.join(', ')}; it may load no library`);
if (loaded.length > budget.modules)
  problems.push(`the root of @agents/core loads ${loaded.length} modules, at most ${budget.modules}`);
if (kib > budget.kib) problems.push(`the root of @agents/core loads ${kib.toFixed(0)} KiB, at most ${budget.kib}`);
if (values > budget.values)
  problems.push(`the root of @agents/core exports ${values} values, at most ${budget.values}`);
console.log(
  `@agents/core: ${loaded.length} modules, ${kib.toFixed(0)} KiB, ${values} values${builtins.length > 0 ? `, Node's ${builtins.join(', ')}` : ''}`,
);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
