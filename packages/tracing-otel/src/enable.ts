import { addTraceProcessor } from '@agents/core/tracing';
import type { OTelTraceOptions } from './options.ts';
import { OTelTraceProcessor } from './processor.ts';

let enabled: OTelTraceProcessor | undefined;

/**
 * Makes OpenTelemetry spans and metrics of all runs from now on. Adds one processor; later calls return it, whatever their
 * options, until `shutdownTracing()`.
 *
 * @throws UserError for unknown options and wrong kinds
 * @example
 * enableOTelTracing(); // where the SDK is set up, or before
 */
export function enableOTelTracing(options: OTelTraceOptions = {}): OTelTraceProcessor {
  if (enabled !== undefined && !enabled.isShutDown) return enabled;
  const processor = new OTelTraceProcessor(options);
  addTraceProcessor(processor);
  enabled = processor;
  return processor;
}
