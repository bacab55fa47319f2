import { context } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace-3';
import { Agent, tool } from '@agents/core';
import { bothForms, resetDefaults, toolCall } from '@agents/core/testing';
import { setTraceProcessors } from '@agents/core/tracing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import * as z from 'zod';
import { OTelTraceProcessor } from '../src/index.ts';
import { followContexts, scripted, treeOf } from './kit.ts';

// The SDK's version 3 asks for version 1.10 of the API, version 2, which the other tests use, for one before. Spans and
// contexts are the same in both, so it is run with the older one here.

let restore: () => void;
beforeEach(() => {
  resetDefaults();
  restore = followContexts();
});
afterEach(() => {
  restore();
  resetDefaults();
});

bothForms((runForm, form) => {
  it(`spans nest and are exported with version 3 of the SDK (${form}) [TRACE-O3, O4]`, async () => {
    const exporter = new InMemorySpanExporter();
    const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    setTraceProcessors([new OTelTraceProcessor({ tracerProvider, metrics: false })]);
    // As an instrumented library does.
    const library = tracerProvider.getTracer('library');
    const lookup = tool({
      name: 'lookup',
      parameters: z.object({}),
      execute: () => {
        library.startSpan('query', {}, context.active()).end();
        return 'found';
      },
    });
    const model = scripted(toolCall('lookup', {}), 'done');
    await runForm(new Agent({ name: 'Desk', model, tools: [lookup] }), 'hi');
    expect(treeOf(exporter.getFinishedSpans()).split('\n')).toEqual([
      'invoke_workflow Agent workflow',
      '  invoke_agent Desk',
      '    chat scripted',
      '    execute_tool lookup',
      '      query',
      '    chat scripted',
    ]);
  });
});
