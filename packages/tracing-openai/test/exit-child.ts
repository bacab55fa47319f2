// Makes a trace, says so, and ends with a code of its own: `node exit-child.ts <endpoint>`.
import { Agent, run } from '@agents/core';
import { ScriptedModel } from '@agents/core/testing';
import { enableOpenAITracing } from '../src/index.ts';

enableOpenAITracing({ apiKey: 'k', endpoint: process.argv[2] });
await run(new Agent({ name: 'A', model: new ScriptedModel(['hi']) }), 'hi');
process.exitCode = 7;
