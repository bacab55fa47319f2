// The rule of imports. In packages/core/src run-time imports point down the table below, folders of one layer do not
// import each other, and nothing imports in a circle; `import type` is free, a dynamic `import()` is a run-time import.
// Packages other than core reach core, like everyone, through the entries of its package.json.
//
//   node scripts/layers.mjs [root]      prints what breaks the rule, exit code 1
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

/** The house, from the roof to the ground: a folder ends in `/`, a file does not. docs/architecture.md tells what lives where. */
export const layers = [
  ['index.ts', 'session.ts', 'tracing.ts', 'tools.ts', 'durable.ts', 'extensions/', 'openai/', 'testing/', 'node/'],
  ['durable/'],
  ['run/'],
  ['snapshot/'],
  ['sessions/', 'models/'],
  ['agent/'],
  ['state/'],
  ['tracing/'],
  ['items/'],
  ['base/'],
];

/** Edges that the table forbids and that are wanted all the same, each with its reason. */
export const exceptions = [
  {
    from: 'models/',
    to: 'openai/index.ts',
    kind: 'dynamic',
    why: 'the default provider loads the OpenAI models when a run first needs them',
  },
  {
    from: 'extensions/inspect-request.ts',
    to: 'openai/request.ts',
    kind: 'dynamic',
    why: 'what would be sent is told by what sends it; the file loads no library',
  },
];

/** Run-time imports of libraries by core: name (a trailing `:` or `/` matches the rest) and who may have them. */
export const libraries = [
  {
    name: 'node:',
    in: ['node/', 'testing/'],
    kinds: ['static'],
    why: 'core runs on Bun, Deno and workerd; guard a dynamic import or use process.getBuiltinModule',
  },
  {
    name: 'openai',
    in: ['openai/', 'testing/'],
    kinds: ['dynamic'],
    why: 'only @agents/core/openai loads the openai library, and FakeOpenAI.client() of /testing, which is that client',
  },
  {
    name: 'openai',
    in: ['openai/'],
    kinds: ['static'],
    why: 'only @agents/core/openai loads the openai library; elsewhere import its types',
  },
  {
    name: 'zod',
    in: [],
    kinds: ['static', 'dynamic'],
    why: 'core reads any Standard Schema and loads no schema library',
  },
  {
    name: '@agents/',
    in: [],
    kinds: ['static', 'dynamic'],
    why: 'core knows no adapter, and itself by relative paths',
  },
];

const isTest = (file) => /\.(test|test-d|bench)\.[cm]?ts$/.test(file);

/** The imports of one source text: specifier, `static`, `dynamic` or `type`, and line. */
export function importsOf(file, text) {
  const { module, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const line = (offset) => text.slice(0, offset).split('\n').length;
  const found = [];
  for (const { start, moduleRequest } of module.staticImports) {
    // `import { type A } from 'x'` still loads x (verbatimModuleSyntax): only `import type` is free.
    const kind = /^import\s+type\b(?!\s*(,|from\b))/.test(text.slice(start)) ? 'type' : 'static';
    found.push({ to: moduleRequest.value, kind, line: line(start) });
  }
  for (const { start, entries } of module.staticExports) {
    const from = entries.find((entry) => entry.moduleRequest)?.moduleRequest;
    if (from)
      found.push({
        to: from.value,
        kind: /^export\s+type\b/.test(text.slice(start)) ? 'type' : 'static',
        line: line(start),
      });
  }
  for (const { start, moduleRequest } of module.dynamicImports) {
    const literal = /^(['"`])([^'"`$]*)\1$/.exec(text.slice(moduleRequest.start, moduleRequest.end));
    if (literal) found.push({ to: literal[2], kind: 'dynamic', line: line(start) });
  }
  return found;
}

const matches = (file, place) => (place.endsWith('/') ? file.startsWith(place) : file === place);

function placeOf(file) {
  for (const [index, places] of layers.entries()) {
    const name = places.find((place) => matches(file, place));
    if (name) return { name, level: layers.length - 1 - index };
  }
  return undefined;
}

const isOf = (specifier, name) =>
  /[:/]$/.test(name) ? specifier.startsWith(name) : specifier === name || specifier.startsWith(`${name}/`);

const isException = (from, kind, target) =>
  exceptions.some((edge) => matches(from, edge.from) && matches(target, edge.to) && kind === edge.kind);

/** What one import of core does wrong, or undefined. */
function fault(from, { to, kind }, target) {
  if (kind === 'type') return undefined;
  if (!target) {
    const library = libraries.find((rule) => isOf(to, rule.name) && rule.kinds.includes(kind));
    if (!library || library.in.some((place) => matches(from, place))) return undefined;
    return `imports ${to} at run time; ${library.why}`;
  }
  const [here, there] = [placeOf(from), placeOf(target)];
  if (!here || !there || here.name === there.name || here.level > there.level) return undefined;
  if (exceptions.some((edge) => matches(from, edge.from) && matches(target, edge.to) && kind === edge.kind))
    return undefined;
  const arrow = here.level === there.level ? 'sideways' : 'up';
  return `a ${kind} import points ${arrow}: ${here.name} (layer ${here.level}) to ${target} (layer ${there.level})`;
}

/** Cycles of a graph (Map of file to files), each as the list of its files. */
export function cyclesOf(graph) {
  const done = new Set();
  const cycles = [];
  const walk = (file, path) => {
    const at = path.indexOf(file);
    if (at >= 0) cycles.push(path.slice(at));
    if (at >= 0 || done.has(file)) return;
    for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) walk(file, []);
  return cycles;
}

/** The folder of a package that a file of the repository belongs to. */
const packageOf = (root, file) => {
  const [top, name] = relative(root, file).split(/[\\/]/);
  return top === 'packages' || top === 'examples' ? join(root, top, name) : join(root, top);
};

/** Everything that breaks the rule under `root`, one line each. */
export function checkLayers(root) {
  const problems = [];
  const core = join(root, 'packages/core');
  const entries = existsSync(join(core, 'package.json'))
    ? Object.keys(JSON.parse(readFileSync(join(core, 'package.json'), 'utf8')).exports).map((entry) =>
        join('@agents/core', entry),
      )
    : [];
  const graph = new Map();
  const files = globSync('{packages/*,examples/*,bench}/{src,test}/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.d.ts'))
    .sort();
  for (const name of files) {
    const file = join(root, name);
    const home = packageOf(root, file);
    const inCore = home === core;
    const source = relative(join(home, 'src'), file);
    const production = !source.startsWith('..') && !isTest(file);
    if (inCore && production && !placeOf(source))
      problems.push(`${name}: not in the table of layers (scripts/layers.mjs)`);
    const targets = [];
    for (const found of importsOf(file, readFileSync(file, 'utf8'))) {
      const target = found.to.startsWith('.') ? resolve(dirname(file), found.to) : undefined;
      const say = (text) => problems.push(`${name}:${found.line}: ${text}`);
      if (target && relative(home, target).startsWith('..')) say(`imports ${found.to}, outside of its package`);
      else if (inCore && production) {
        const text = fault(source, found, target && relative(join(home, 'src'), target));
        if (text) say(text);
      } else if (!inCore && isOf(found.to, '@agents/core') && !entries.includes(found.to))
        say(`imports ${found.to}, which is no entry of @agents/core`);
      else if (
        !inCore &&
        production &&
        name.startsWith('packages/') &&
        found.to.startsWith('@agents/') &&
        !isOf(found.to, '@agents/core')
      )
        say(`imports ${found.to}; a package needs core and its own library, and no other package of ours`);
      const counts = target && production && found.kind !== 'type';
      if (counts && !(inCore && isException(source, found.kind, relative(join(home, 'src'), target))))
        targets.push(relative(root, target));
    }
    graph.set(name, targets);
  }
  for (const cycle of cyclesOf(graph))
    problems.push(`${cycle[0]}: imports itself in a circle: ${[...cycle, cycle[0]].join(' > ')}`);
  return problems;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = checkLayers(resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..')));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
