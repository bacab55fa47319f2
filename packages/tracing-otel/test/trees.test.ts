import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Agent, flushTraces, handoff, tool, withSpan } from '@agents/core';
import type { InputGuardrail, OutputGuardrail, run } from '@agents/core';
import { bothForms, resetDefaults, toolCall } from '@agents/core/testing';
import { setTraceProcessors } from '@agents/core/tracing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { OTelTraceProcessor } from '../src/index.ts';
import type { OTelTraceOptions } from '../src/index.ts';
import { followContexts, gate, scripted } from './kit.ts';
import { goldenTrees, OtlpReceiver } from './otlp.ts';

// The trees of TRACE 5.1 as a receiver gets them, both forms of a run compared with the same file: names, kinds, parents,
// links, attributes, status, events. Ids and times are left out.

let receiver: OtlpReceiver;
let tracers: BasicTracerProvider;
let restore: () => void;

beforeAll(async () => {
  receiver = await new OtlpReceiver().start();
  tracers = new BasicTracerProvider({
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: receiver.url }))],
  });
  restore = followContexts();
});
afterAll(async () => {
  restore();
  await tracers.shutdown();
  await receiver.close();
});
beforeEach(() => {
  resetDefaults();
  receiver.spans.length = 0;
});
afterEach(() => resetDefaults());

const lookup = (id: string, callId: string): ReturnType<typeof toolCall> => toolCall('lookup', { id }, { callId });
const lookupTool = tool({
  name: 'lookup',
  description: 'Finds an order.',
  parameters: z.object({ id: z.string() }),
  execute: ({ id }) => withSpan({ type: 'custom', name: 'rank', data: { rows: 3 } }, () => ({ id, status: 'paid' })),
});
const refundTool = tool({
  name: 'refund',
  parameters: z.object({ id: z.string() }),
  needsApproval: true,
  execute: () => 'refunded',
});
const check = (name: string, trips: boolean): InputGuardrail & OutputGuardrail => ({
  name,
  execute: () => ({ outputInfo: {}, tripwireTriggered: trips }),
});
const groupId = 'thread-981';
const options = { groupId, workflowName: 'Refund desk' };

type Go = typeof run;
const trees: Record<string, (go: Go) => Promise<unknown>> = {
  'plain run': (go) =>
    go(
      new Agent({
        name: 'A',
        instructions: 'Be kind.',
        model: scripted('Hello.'),
        modelSettings: { temperature: 0.2, maxTokens: 100 },
        inputGuardrails: [check('no_pii', false)],
        outputGuardrails: [check('polite', false)],
      }),
      'Hi',
      options,
    ),
  'tool calls': (go) =>
    go(
      new Agent({
        name: 'A',
        model: scripted([lookup('7', 'call_1'), lookup('8', 'call_2')], 'Both are paid.'),
        tools: [lookupTool],
      }),
      'Where are orders 7 and 8?',
      options,
    ),
  handoff: (go) => {
    const b = new Agent({ name: 'B', model: scripted('Done.') });
    const a = new Agent({
      name: 'A',
      model: scripted([toolCall('transfer_to_b', {}, { callId: 'call_1' })]),
      handoffs: [handoff(b)],
    });
    return go(a, 'Refund 7', options);
  },
  'agent as tool': (go) => {
    const expert = new Agent({
      name: 'Expert',
      model: scripted([lookup('7', 'call_2')], 'Paid.'),
      tools: [lookupTool],
    });
    const a = new Agent({
      name: 'A',
      model: scripted([toolCall('ask_expert', { input: 'Order 7?' }, { callId: 'call_1' })], 'It is paid.'),
      tools: [expert.asTool({ toolName: 'ask_expert', toolDescription: 'Asks.' })],
    });
    return go(a, 'Order 7?', options);
  },
  'interruption and resume': async (go) => {
    const a = new Agent({
      name: 'A',
      model: scripted([toolCall('refund', { id: '7' }, { callId: 'call_1' })], 'Refunded.'),
      tools: [refundTool],
    });
    const state = (await go(a, 'Refund 7', options)).toState();
    for (const item of state.interruptions) state.approve(item);
    return await go(a, state, options);
  },
  'guardrail trip': (go) => {
    // The model is under way when the guardrail trips, and never answers.
    const called = gate();
    const model = scripted(() => {
      called.open();
      return new Promise(() => {});
    });
    const guardrail: InputGuardrail = {
      name: 'no_pii',
      execute: () => called.opened.then(() => ({ outputInfo: {}, tripwireTriggered: true })),
    };
    return go(new Agent({ name: 'A', model, inputGuardrails: [guardrail] }), 'Hi', options).catch(() => {});
  },
};

const DETAILED: ReadonlySet<string> = new Set(['plain run', 'tool calls', 'agent as tool']);

async function exported(go: Go, tree: (go: Go) => Promise<unknown>, own: OTelTraceOptions): Promise<string> {
  setTraceProcessors([new OTelTraceProcessor({ tracerProvider: tracers, metrics: false, ...own })]);
  await tree(go);
  await flushTraces();
  return `${JSON.stringify(goldenTrees(receiver.spans), undefined, 2)}\n`;
}

bothForms((runForm, form) => {
  describe(`what a receiver gets (${form})`, () => {
    it.each(Object.entries(trees))('of the tree "%s" [TRACE-O1, O2, O3, O8]', async (name, tree) => {
      await expect(await exported(runForm, tree, {})).toMatchFileSnapshot(`golden/${name.replaceAll(' ', '-')}.golden`);
    });

    it.each(Object.entries(trees).filter(([name]) => DETAILED.has(name)))(
      'with tasks, turns and content, of the tree "%s" [TRACE-O27, O29, O30]',
      async (name, tree) => {
        const json = await exported(runForm, tree, { taskAndTurnSpans: true, captureContent: true });
        await expect(json).toMatchFileSnapshot(`golden/${name.replaceAll(' ', '-')}-with-content.golden`);
      },
    );
  });
});
