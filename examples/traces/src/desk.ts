// The team whose runs are traced: triage looks orders up and hands over to refunds. What the models say is written down, so
// that it runs without a key; leave the models out, and agents ask OpenAI.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, tool } from '@agents/core';
import { ScriptedModel, toolCall } from '@agents/core/testing';
import type { ModelStep } from '@agents/core/testing';
import { z } from 'zod';

export function desk(): Agent {
  const lookup = tool({
    name: 'lookup_order',
    description: 'Finds an order by its number.',
    parameters: z.object({ order: z.string() }),
    execute: ({ order }) => {
      if (order !== '7') throw new Error('no such order');
      return 'Order 7: 120 €, delivered, broken.';
    },
  });
  const refund = tool({
    name: 'refund_order',
    description: 'Pays an order back.',
    parameters: z.object({ order: z.string() }),
    execute: async ({ order }) => {
      await sleep(60); // the bank takes its time
      return `120 € for order ${order} are on their way.`;
    },
  });
  const refunds = new Agent({
    name: 'Refunds',
    instructions: 'Refund orders.',
    tools: [refund],
    model: scripted(toolCall('refund_order', { order: '7' }), 'The 120 € are on their way.'),
  });
  return new Agent({
    name: 'Triage',
    instructions: 'Find the order, then hand over.',
    tools: [lookup],
    handoffs: [refunds],
    model: scripted(
      toolCall('lookup_order', { order: 'seven' }),
      toolCall('lookup_order', { order: '7' }),
      toolCall('transfer_to_refunds'),
    ),
  });
}

/** `trace: true`: it makes spans as the models of a service do. */
function scripted(...steps: ModelStep[]): ScriptedModel {
  return new ScriptedModel(steps, {
    trace: true,
    usage: { requests: 1, inputTokens: 120, outputTokens: 15, totalTokens: 135 },
  });
}
