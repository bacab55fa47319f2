// Checks a package as users get it: packs it, lets publint and attw judge the tarball, then imports every entry and
// compiles against its declarations in a folder that holds the tarball and what it declares to need, and nothing else:
// no Node types, no newer lib, skipLibCheck off, on the newest and the oldest supported TypeScript.
//
//   node ../../scripts/check-pack.mjs      (in the folder of a package, after the build)
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { environment, root } from './bootstrap.mjs';

const folder = process.cwd();
const { name, exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const temp = mkdtempSync(join(tmpdir(), 'agents-pack-'));

function run(what, command, args, cwd = folder) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env: { ...environment, NO_COLOR: '1' },
    encoding: 'utf8',
  });
  if (status === 0) return stdout;
  console.error(`${name}: ${what}\n${stdout}${stderr}`);
  process.exitCode = 1;
  return undefined;
}

/** What a package cannot do without. */
function needsOf(home) {
  const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(
    readFileSync(join(home, 'package.json'), 'utf8'),
  );
  return Object.keys({ ...dependencies, ...peerDependencies }).filter((one) => !peerDependenciesMeta?.[one]?.optional);
}

/** Puts a package, as `from` sees it, and all that it needs into the folder's node_modules. */
function link(one, from) {
  const place = join(temp, 'node_modules', one);
  if (existsSync(place)) return;
  let at = from;
  while (!existsSync(join(at, 'node_modules', one))) {
    if (at === dirname(at)) throw new Error(`${one}, which ${from} needs, is not installed`);
    at = dirname(at);
  }
  const home = realpathSync(join(at, 'node_modules', one));
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(home, place, 'dir');
  needsOf(home).forEach((next) => link(next, home));
}

try {
  run('pnpm pack', 'pnpm', ['pack', '--pack-destination', temp]);
  const tarball = globSync('*.tgz', { cwd: temp }).map((file) => join(temp, file))[0];
  run('publint', 'publint', [tarball, '--strict']);
  run('attw', 'attw', [tarball, '--profile', 'esm-only', '--no-emoji', '--no-color']);

  const home = join(temp, 'node_modules', name);
  mkdirSync(home, { recursive: true });
  run('unpack', 'tar', ['-xzf', tarball, '-C', home, '--strip-components=1']);
  needsOf(folder).forEach((one) => link(one, folder));

  const entries = Object.keys(exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => join(name, entry));
  for (const entry of entries)
    run(`import ${entry}`, 'node', ['--input-type=module', '--eval', `await import(${JSON.stringify(entry)})`], temp);
  writeFileSync(join(temp, 'package.json'), '{ "type": "module" }');
  const imports = entries.map((entry, i) => `import * as entry${i} from '${entry}';\nvoid entry${i};\n`);
  writeFileSync(join(temp, 'index.ts'), imports.join(''));
  writeFileSync(
    join(temp, 'tsconfig.json'),
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
  for (const compiler of ['typescript', 'typescript-5.9']) {
    const tsc = join(root, 'node_modules', compiler, 'bin/tsc');
    run(`its declarations with ${compiler}`, 'node', [tsc, '-p', temp], temp);
  }
} finally {
  rmSync(temp, { recursive: true, force: true });
}
