// The trace of a run on the OpenAI dashboard. Two runs of one conversation are one trace, and their group finds them again.
import { run, withTrace } from '@agents/core';
import { FakeOpenAI } from '@agents/core/testing';
import { shutdownTracing } from '@agents/core/tracing';
import { enableOpenAITracing } from '@agents/tracing-openai';
import { desk } from './desk.ts';

export async function main(runForm = run) {
  // Without a key: a fake of the ingest, which refuses what the real one refuses.
  const fake = process.env['OPENAI_API_KEY'] ? undefined : new FakeOpenAI();
  const processor = enableOpenAITracing(fake && { apiKey: 'none', fetch: fake.fetch });

  const traceId = await withTrace(
    'Refund desk',
    async (trace) => {
      const first = await runForm(desk(), 'Order seven arrived broken.');
      await runForm(desk(), [...first.toInputList(), { role: 'user', content: 'And once more?' }]);
      return trace.traceId;
    },
    { groupId: 'thread-981', metadata: { tenant: 'acme', attempt: 1 } },
  );

  // Where a process ends by itself it does this on its own; here we want to know.
  await shutdownTracing({ timeoutMs: 10_000 });
  return { traceId, stats: processor.stats, records: fake?.traces };
}

if (import.meta.main) {
  const { traceId, stats, records } = await main();
  console.log(`${traceId}: ${stats.exported} records sent, ${stats.failed} failed.`);
  console.log(
    records === undefined ? 'See https://platform.openai.com/traces' : 'They went to a fake; set OPENAI_API_KEY.',
  );
}
