import { Agent, configureLogging, run, setTraceProcessors, setTracingDisabled, tool } from '@agents/core';
import { ScriptedModel, toolCall } from '@agents/core/testing';
import { BatchTraceProcessor } from '@agents/core/tracing';
import { OpenAITraceExporter } from '@agents/tracing-openai';
import { setImmediate } from 'node:timers/promises';
import { cpuMs } from './clock.ts';
import { agentOptions, toolOptions } from './peers/options.ts';
import { answer, question, toolArguments, toolName } from './task.ts';
import { TraceReceiver } from './trace-receiver.ts';

/** The trace itself is one, too: task, agent, two turns, two model calls and a function are under it. */
const ITEMS_PER_RUN = 8;
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:9/v1/traces/ingest';
const ROUNDS = 3;

/**
 * Time of runs with so many spans in all whose receiver cannot be reached, of the time of the same runs with one that can.
 * The event loop has a turn after each run, so the exporter gets to work as it does beside models that take their time.
 */
export async function outageTime(spans: number): Promise<number> {
  // What was measured before in this process may have switched it off.
  setTracingDisabled(false);
  // What is lost is told each time.
  configureLogging({ level: 'silent' });
  const receiver = await TraceReceiver.start('records');
  const runs = Math.ceil(spans / (ITEMS_PER_RUN - 1));
  const [reached, lost]: [number[], number[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    reached.push(await timeOf(runs, receiver.url));
    lost.push(await timeOf(runs, NOWHERE));
  }
  await receiver.stop();
  const sum = (times: readonly number[]): number => times.slice(1).reduce((total, time) => total + time, 0);
  return sum(lost) / sum(reached);
}

async function timeOf(runs: number, endpoint: string): Promise<number> {
  const processor = new BatchTraceProcessor(new OpenAITraceExporter({ apiKey: 'none', endpoint }));
  setTraceProcessors([processor]);
  const agent = new Agent({ ...agentOptions, tools: [tool(toolOptions)] });
  const start = cpuMs();
  for (let index = 0; index < runs; index += 1) {
    const model = new ScriptedModel([toolCall(toolName, toolArguments), answer], { trace: true });
    const { finalOutput } = await run(agent, question, { model });
    if (finalOutput !== answer) throw new Error(`A run gave ${finalOutput}.`);
    await setImmediate();
  }
  const time = cpuMs() - start;
  const { queued, exported, dropped, failed } = processor.stats;
  if (queued + exported + dropped + failed !== runs * ITEMS_PER_RUN)
    throw new Error('Spans are missing in the counts.');
  setTraceProcessors([]);
  await processor.shutdown({ timeoutMs: 0 });
  return time;
}
