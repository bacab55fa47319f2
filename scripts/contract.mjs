// Which names of the API contract (scripts/contract.json: entry → values and types) the built packages do not export yet.
//
//   node scripts/contract.mjs        (pnpm contract, after pnpm build)
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bootstrap.mjs';
import { readSurface } from './surface.mjs';

const contract = JSON.parse(readFileSync(join(root, 'scripts/contract.json'), 'utf8'));
const built = {};
for (const manifest of globSync('packages/*/package.json', { cwd: root })) {
  const folder = join(root, manifest, '..');
  if (existsSync(join(folder, 'dist'))) Object.assign(built, readSurface(folder).entries);
}

let missing = 0;
let total = 0;
for (const [entry, names] of Object.entries(contract)) {
  const have = built[entry];
  const lacks = (kind) => names[kind].filter((name) => !have?.[kind].includes(name));
  const [values, types] = [lacks('values'), lacks('types')];
  const count = names.values.length + names.types.length;
  total += count;
  missing += values.length + types.length;
  const state = have ? `${count - values.length - types.length} of ${count}` : `not there (${count} names)`;
  console.log(`${entry}: ${state}`);
  if (have && values.length > 0) console.log(`  values missing: ${values.join(', ')}`);
  if (have && types.length > 0) console.log(`  types missing: ${types.join(', ')}`);
  const extra =
    have &&
    ['values', 'types']
      .flatMap((kind) => have[kind])
      .filter((name) => ![...names.values, ...names.types].includes(name));
  if (extra?.length > 0) console.log(`  not in the contract: ${extra.join(', ')}`);
}
console.log(`${total - missing} of ${total} names are exported`);
