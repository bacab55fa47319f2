// Checks a package as users get it: packs it, lets publint and attw judge the tarball, then imports every entry and
// compiles against its declarations in a folder that holds the tarball and what it declares to need, and nothing else:
// no Node types, no newer lib, skipLibCheck off, on the newest and the oldest supported TypeScript. Errors in declarations of
// others (drivers that want Node's types) are theirs; ours have to be right without them.
//
//   node ../../scripts/check-pack.mjs      (in the folder of a package, after the build)
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bootstrap.mjs';
import { EmptyProject } from './empty-project.mjs';

const folder = process.cwd();
const { name, exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const project = new EmptyProject();

function check(what, command, args) {
  try {
    project.run(command, args);
  } catch (error) {
    console.error(`${name}: ${what}\n${error.message}`);
    process.exitCode = 1;
  }
}

function checkDeclarations(compiler) {
  const tsc = join(root, 'node_modules', compiler, 'bin/tsc');
  try {
    project.compile(tsc);
  } catch (error) {
    console.error(`${name}: its declarations with ${compiler}\n${error.message}`);
    process.exitCode = 1;
  }
}

try {
  const tarball = project.install(folder);
  project.linkNeeds(folder);
  check('publint', 'publint', [tarball, '--strict']);
  check('attw', 'attw', [tarball, '--profile', 'esm-only', '--no-emoji', '--no-color']);

  const entries = Object.keys(exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => join(name, entry));
  for (const entry of entries)
    check(`import ${entry}`, 'node', ['--input-type=module', '--eval', `await import(${JSON.stringify(entry)})`]);
  writeFileSync(join(project.path, 'package.json'), '{ "type": "module" }');
  const imports = entries.map((entry, i) => `import * as entry${i} from '${entry}';\nvoid entry${i};\n`);
  writeFileSync(join(project.path, 'index.ts'), imports.join(''));
  writeFileSync(
    join(project.path, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        target: 'es2023',
        lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
        module: 'nodenext',
        types: [],
        preserveSymlinks: true,
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        noEmit: true,
      },
      files: ['index.ts'],
    }),
  );
  for (const compiler of ['typescript', 'typescript-5.9']) checkDeclarations(compiler);
} finally {
  project.remove();
}
