import { Agent, run, setTraceProcessors, setTracingDisabled, tool } from '@agents/core';
import type { Span, Trace } from '@agents/core';
import { ScriptedModel, toolCall } from '@agents/core/testing';
import { BatchTraceProcessor } from '@agents/core/tracing';
import type { TraceExporter } from '@agents/core/tracing';
import { OpenAITraceExporter } from '@agents/tracing-openai';
import { msPerRunOfEach } from './clock.ts';
import { agentOptions, toolOptions } from './peers/options.ts';
import { answer, question, toolArguments, toolName } from './task.ts';
import { TraceReceiver } from './trace-receiver.ts';

export interface BatchTimes {
  /** µs for the traces of a run: `JSON.stringify` and `fetch` of the same records in batches of the same size. */
  readonly bare: number;
  /** Through the batch processor and an exporter that does just that. */
  readonly batch: number;
  /** Through the batch processor and the exporter to OpenAI, with all that makes records fit. */
  readonly openai: number;
  /** The share of the records made that the receiver got. */
  readonly exported: number;
}

/** As many runs as one flush passes on. */
const RUNS = 20;
const BATCH = 128;

/** CPU times of the export of finished traces, flush included; the receiver is in a thread of its own. */
export async function batchTimes(ms: number): Promise<BatchTimes> {
  // What was measured before in this process may have switched it off.
  setTracingDisabled(false);
  const items = await finishedItems();
  const records = items.map((item) => item.toJSON());
  const receiver = await TraceReceiver.start('records');
  const { url } = receiver;
  let made = 0;
  const byHand = async (): Promise<void> => {
    for (let start = 0; start < records.length; start += BATCH) await post(url, records.slice(start, start + BATCH));
    made += records.length;
  };
  const through = (exporter: TraceExporter): (() => Promise<void>) => {
    const processor = new BatchTraceProcessor(exporter, { maxBatchSize: BATCH });
    return async () => {
      for (const item of items)
        if (item.type === 'trace') processor.onTraceStart(item);
        else processor.onSpanEnd(item);
      made += items.length;
      await processor.forceFlush();
    };
  };
  const plain = through({
    export: (batch) =>
      post(
        url,
        batch.map((item) => item.toJSON()),
      ),
  });
  const fit = through(new OpenAITraceExporter({ apiKey: 'none', endpoint: url, sanitize: true }));
  const [bare = Number.NaN, batch = Number.NaN, openai = Number.NaN] = await msPerRunOfEach([byHand, plain, fit], ms);
  const got = await receiver.stop();
  const us = (perFlush: number): number => (perFlush * 1000) / RUNS;
  return { bare: us(bare), batch: us(batch), openai: us(openai), exported: got / made };
}

/** Traces and spans of runs with one tool call, in the order in which a batch processor gets them. */
async function finishedItems(): Promise<readonly (Trace | Span)[]> {
  const items: (Trace | Span)[] = [];
  setTraceProcessors([{ onTraceStart: (trace) => void items.push(trace), onSpanEnd: (span) => void items.push(span) }]);
  const agent = new Agent({ ...agentOptions, tools: [tool(toolOptions)] });
  for (let index = 0; index < RUNS; index += 1) {
    const model = new ScriptedModel([toolCall(toolName, toolArguments), answer], { trace: true });
    const { finalOutput } = await run(agent, question, { model });
    if (finalOutput !== answer) throw new Error(`A run gave ${finalOutput}.`);
  }
  setTraceProcessors([]);
  return items;
}

async function post(url: string, data: readonly unknown[]): Promise<void> {
  const headers = { authorization: 'Bearer none', 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ data }) });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`The receiver answered with ${response.status}.`);
}
