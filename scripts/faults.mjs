// `pnpm faults <name> [rounds]`: how changes of a session fare whose connection, server or client breaks, as a table.
import { existsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { environment, main, prepare, root, StepError } from './bootstrap.mjs';

await main(async () => {
  const [name = '', ...args] = process.argv.slice(2);
  const file = `packages/session-${name}/test/faults/main.ts`;
  if (!existsSync(`${root}/${file}`)) throw new StepError(`Which backend? There is no ${file}.`);
  await prepare();
  const { status } = spawnSync('node', ['--conditions=source', file, ...args], {
    cwd: root,
    env: environment,
    stdio: 'inherit',
  });
  return status ?? 1;
});
