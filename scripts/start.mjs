// `npm start`: brings up the workspace and runs the support desk of examples/support-desk on the built packages.
import { main, runProgram } from './bootstrap.mjs';

await main(() => runProgram('examples/support-desk/src/main.ts', process.argv.slice(2)));
