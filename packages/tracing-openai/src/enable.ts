import { checkOptions, kinds } from '@agents/core/session';
import { addTraceProcessor, BatchTraceProcessor } from '@agents/core/tracing';
import type { BatchOptions, FlushOptions } from '@agents/core/tracing';
import { OpenAITraceExporter } from './exporter.ts';
import { exporterChecks } from './options.ts';
import type { OpenAITraceExporterOptions } from './options.ts';

const batchNames = {
  maxQueueSize: kinds.any,
  maxBatchSize: kinds.any,
  scheduleDelayMs: kinds.any,
  exportTriggerRatio: kinds.any,
  exportTimeoutMs: kinds.any,
  filter: kinds.any,
  waitUntil: kinds.any,
} as const satisfies Record<keyof BatchOptions, unknown>;

class OpenAIProcessor extends BatchTraceProcessor {
  isShutDown = false;

  override async shutdown(options?: FlushOptions): Promise<void> {
    this.isShutDown = true;
    await super.shutdown(options);
  }
}

let enabled: OpenAIProcessor | undefined;

/**
 * Sends all traces that start from now on to the OpenAI dashboard, in batches. Adds one processor; later calls return it,
 * whatever their options, until `shutdownTracing()`.
 *
 * @param options of the exporter and of its queue
 * @throws UserError for unknown options and wrong kinds
 * @example
 * enableOpenAITracing();
 * await run(agent, 'Hello');
 * await flushTraces(); // where the process may be frozen or killed
 */
export function enableOpenAITracing(options: OpenAITraceExporterOptions & BatchOptions = {}): BatchTraceProcessor {
  checkOptions(options, { ...exporterChecks, ...batchNames }, 'enableOpenAITracing()');
  if (enabled === undefined || enabled.isShutDown) {
    const ofBatch = ([name]: [string, unknown]): boolean => Object.hasOwn(batchNames, name);
    const all = Object.entries(options);
    const exporter = new OpenAITraceExporter(Object.fromEntries(all.filter((entry) => !ofBatch(entry))));
    enabled = new OpenAIProcessor(exporter, Object.fromEntries(all.filter(ofBatch)));
  }
  // One that is there already stays as it is.
  addTraceProcessor(enabled);
  return enabled;
}
