// The trace of a run in the terminal: which step took longest, which call failed, what it cost.
import { addTraceProcessor, run } from '@agents/core';
import { ConsoleTraceProcessor, shutdownTracing } from '@agents/core/tracing';
import { desk } from './desk.ts';

export async function main(runForm = run, log?: (text: string) => void) {
  addTraceProcessor(new ConsoleTraceProcessor({ log }));
  const { finalOutput } = await runForm(desk(), 'Order seven arrived broken.', { workflowName: 'Refund desk' });
  await shutdownTracing();
  return finalOutput;
}

if (import.meta.main) console.log(`\n${await main()}`);
