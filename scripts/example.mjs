// `npm run example -- <name>`: brings up the workspace and runs an example on the built packages.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { main, root, runProgram, StepError } from './bootstrap.mjs';

const patterns = 'examples/patterns/src';
const programs = new Map([
  ...readdirSync(join(root, patterns))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file.slice(0, -3), `${patterns}/${file}`]),
  ['support-desk', 'examples/support-desk/src/main.ts'],
  ['web-stream', 'examples/web-stream/src/main.ts'],
  ['mongo-sessions', 'examples/mongo-sessions/src/main.ts'],
  ['redis-sessions', 'examples/redis-sessions/src/main.ts'],
  ['drizzle-sessions', 'examples/drizzle-sessions/src/main.ts'],
  ['opentelemetry', 'examples/opentelemetry/src/main.ts'],
  ['trace-console', 'examples/traces/src/trace-console.ts'],
  ['trace-openai', 'examples/traces/src/trace-openai.ts'],
]);

await main(() => {
  const [name = '', ...args] = process.argv.slice(2);
  const file = programs.get(name);
  if (file === undefined)
    throw new StepError(`Which example? npm run example -- <name>, one of: ${[...programs.keys()].join(', ')}`);
  return runProgram(file, args);
});
