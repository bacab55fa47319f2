// `npm start`: brings up the workspace and runs the support desk of examples/support-desk on the built packages.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { build, environment, main, prepare, root } from './bootstrap.mjs';

await main(async () => {
  await prepare();
  await build();
  const child = spawn('node', ['examples/support-desk/src/main.ts', ...process.argv.slice(2)], {
    cwd: root,
    env: environment,
    stdio: 'inherit',
  });
  // Ctrl-C reaches the child by itself (same terminal); this process only waits for how it ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve) =>
    child.on('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal])),
  );
});
