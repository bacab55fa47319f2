// The code of the READMEs and guides, copied as it stands into an empty project with the packed packages. Each ```ts block is a
// file: it type-checks, with the compiler options that the README of core names, and runs. What it prints are its
// `// → …` comments, one a line; a ```console block behind it shows commands and what they print instead, a ```mermaid
// block all that it prints.
// A hidden comment before a block says what is special: `<!-- check: types -->` (does not run), `<!-- check: goes on -->`
// (a part of the file of the block before), `<!-- check: desk.ts -->` (its name). Needs the build.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './bootstrap.mjs';
import { EmptyProject } from './empty-project.mjs';

const readmes = globSync(['README.md', 'packages/*/README.md', 'docs/**/*.md'], { cwd: root })
  .filter((path) => !path.startsWith('docs/spec/'))
  .toSorted();
const published = globSync('packages/*/package.json', { cwd: root })
  .filter((path) => JSON.parse(readFileSync(join(root, path), 'utf8')).private !== true)
  .map((path) => join(root, dirname(path)));

/** The files of a README's code, and what each must print. */
function filesOf(readme) {
  const text = readFileSync(join(root, readme), 'utf8');
  const files = [];
  for (const [, mark, language, code] of text.matchAll(
    /(?:^<!-- check: (.+) -->\n+)?^```(ts|console|mermaid)\n([^]*?)^```$/gm,
  )) {
    const last = files.at(-1);
    if (language === 'console') last.commands = code;
    else if (language === 'mermaid') last.drawing = code;
    else if (mark === 'goes on') last.code += code;
    else {
      const name = mark?.endsWith('.ts') ? mark : `block-${files.length + 1}.ts`;
      // A folder for each file: what its programs keep is its own.
      files.push({
        readme,
        folder: readme.replace(/(?:\/?README)?\.md$/, '') || '.',
        name,
        code,
        runs: mark !== 'types',
        commands: undefined,
        drawing: undefined,
      });
    }
  }
  return files;
}

function compare(file, command, expected, output) {
  if (output.trimEnd() === expected.trimEnd()) return;
  throw new Error(`${file.readme} says of "${command}":\n${expected}\nbut it prints:\n${output}`);
}

function check(project, file) {
  const folder = join(project.path, file.folder);
  if (file.commands !== undefined) {
    // What a terminal shows: `$ command`, then its output.
    for (const part of file.commands.split(/^\$ /m).filter(Boolean)) {
      const [command, ...lines] = part.split('\n');
      compare(file, command, lines.join('\n'), project.run('sh', ['-c', `${command} 2>&1`], folder));
    }
  } else if (file.runs) {
    const output = project.run('node', [file.name], folder);
    if (file.drawing !== undefined) compare(file, `node ${file.name}`, file.drawing, output);
    const lines = [...file.code.matchAll(/\/\/ → (.*)$/gm)].map(([, line]) => line);
    if (lines.length > 0) compare(file, `node ${file.name}`, lines.join('\n'), output);
  }
}

const project = new EmptyProject();
try {
  for (const folder of published) {
    project.install(folder);
    project.linkNeeds(folder);
  }
  project.link('zod', join(root, 'examples/support-desk'));
  project.link('@types/node', root);
  writeFileSync(join(project.path, 'package.json'), '{ "type": "module" }');

  const files = readmes.flatMap(filesOf);
  for (const { folder, name, code } of files) {
    mkdirSync(join(project.path, folder), { recursive: true });
    writeFileSync(join(project.path, folder, name), code);
  }
  const core = readFileSync(join(root, 'packages/core/README.md'), 'utf8');
  const [, tsconfig] = /^```json\n([^]*?)^```$/m.exec(core);
  writeFileSync(join(project.path, 'tsconfig.json'), tsconfig);
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  project.compile(tsc, ['--noEmit', '--preserveSymlinks']);
  for (const file of files) check(project, file);
  console.log(`${files.length} programs of ${readmes.length} READMEs and guides`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  project.remove();
}
