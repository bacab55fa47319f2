// `npm run tarballs -- <folder>`: builds the packages and packs each of them into a folder, to install from there.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, main, prepare, root, step, StepError } from './bootstrap.mjs';

await main(async () => {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new StepError('Into which folder? npm run tarballs -- <folder>');
  // npm runs scripts in the root; the folder is meant from where the person stands.
  const target = resolve(process.env.INIT_CWD ?? '.', folder);
  await prepare();
  await build();
  for (const name of readdirSync(join(root, 'packages'))) {
    if (JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')).private) continue;
    await step(`Packing ${name}`, 'pnpm', ['pack', '--pack-destination', target], {
      cwd: join(root, 'packages', name),
    });
  }
  const files = readdirSync(target).filter((file) => /^agents-.*\.tgz$/.test(file));
  console.log(`In ${target}: ${files.join(', ')}`);
});
