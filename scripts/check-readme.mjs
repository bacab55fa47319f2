// The README's example, copied as it stands into an empty project with the packed packages: it type-checks, and each
// of its two runs prints what the README says. Needs the build.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bootstrap.mjs';
import { EmptyProject } from './empty-project.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** The only code block of a language. */
function block(language) {
  const found = [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map((match) => match[1]);
  if (found.length !== 1) throw new Error(`README.md should have one block of ${language}, it has ${found.length}`);
  return found[0];
}

const project = new EmptyProject();
try {
  for (const name of ['core', 'session-sqlite']) {
    project.install(join(root, 'packages', name));
    project.linkNeeds(join(root, 'packages', name));
  }
  project.link('zod', join(root, 'examples/support-desk'));
  project.link('@types/node', root);
  writeFileSync(join(project.path, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(project.path, 'desk.ts'), block('ts'));
  const options = '--module nodenext --target es2023 --strict --noEmit --types node --preserveSymlinks desk.ts';
  project.run('node', [join(root, 'node_modules/typescript/bin/tsc'), ...options.split(' ')]);

  // What a terminal shows: `$ command`, then its output.
  for (const part of block('console').split(/^\$ /m).filter(Boolean)) {
    const [command, ...lines] = part.trimEnd().split('\n');
    const output = project.run('sh', ['-c', `${command} 2>&1`]).trimEnd();
    if (output !== lines.join('\n'))
      throw new Error(`README.md says of "${command}":\n${lines.join('\n')}\nbut it prints:\n${output}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  project.remove();
}
