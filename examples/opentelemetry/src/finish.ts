// The second process: somebody has agreed.
import { readFile } from 'node:fs/promises';
import { argv } from 'node:process';
import { flushTraces, run, RunState } from '@agents/core';
import { enableOTelTracing } from '@agents/tracing-otel';
import { database, desk } from './desk.ts';

enableOTelTracing();
const agent = desk({ refunds: ['Order 7 is paid back.'] });
const state = await RunState.fromString(agent, await readFile(argv[2] ?? 'state.json', 'utf8'));
for (const item of state.interruptions) state.approve(item);
const { finalOutput } = await run(agent, state);
console.log(finalOutput);
await flushTraces();
await database.end();
