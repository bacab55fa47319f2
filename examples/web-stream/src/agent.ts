import { setTimeout as wait } from 'node:timers/promises';
import { Agent, tool } from '@agents/core';
import { OfflineModel } from '@agents/core/testing';
import { z } from 'zod';

const trackOrder = tool({
  name: 'track_order',
  description: 'Finds out where an order is.',
  parameters: z.object({ orderId: z.string().describe('The number of the order, such as 1042') }),
  // Long enough to press Stop, or to reload the page. A stopped run ends the wait.
  execute: async ({ orderId }, ctx) => {
    await wait(3000, undefined, { signal: ctx.signal });
    return { orderId, status: 'shipped', carrier: 'DHL', arrives: 'on Friday' };
  },
});

/** The agent of the page: on the real service with a key, else on the offline model, which picks tools by your words. */
export function deskAgent(): Agent {
  return new Agent({
    name: 'Desk',
    instructions: 'You answer questions about orders of a small shop. Say first what you do, then track the order.',
    tools: [trackOrder],
    model: process.env['OPENAI_API_KEY'] ? undefined : new OfflineModel({ notice: false }),
  });
}
