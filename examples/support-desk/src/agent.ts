import { Agent, tool } from '@agents/core';
import { z } from 'zod';
import { explain } from './explain.ts';
import type { Orders } from './orders.ts';

const INSTRUCTIONS = `You serve customers of a small shop. Look an order up before you say anything about it.
When a customer wants money back, call refund_order at once, with what is left of the order unless they name an amount:
a colleague confirms each refund before it happens, so do not ask for confirmation yourself. Answer in one or two
sentences. Amounts are euros.`;

/** The agent of the support desk: one tool that looks, and one that pays money back once a person has approved it. */
export function supportAgent(orders: Orders): Agent {
  const lookUpOrder = tool({
    name: 'look_up_order',
    description: 'Shows an order: customer, item, status, total and what was refunded.',
    parameters: z.object({ orderId: z.string().describe('The number of the order, such as 1042') }),
    execute: ({ orderId }) => orders.find(orderId),
    failureErrorFunction,
  });

  const refundOrder = tool({
    name: 'refund_order',
    description: 'Pays money back for an order.',
    parameters: z.object({
      orderId: z.string().describe('The number of the order, such as 1042'),
      amount: z.number().describe('Euros'),
      reason: z.string().nullable().describe('What the customer is unhappy with, if they said it'),
    }),
    needsApproval: true,
    // The key is the same for each attempt of this call, also in another process: the money is paid once.
    execute: ({ orderId, amount, reason }, ctx) => orders.refund(orderId, amount, reason, ctx.idempotencyKey),
    failureErrorFunction,
  });

  return new Agent({ name: 'Support desk', instructions: INSTRUCTIONS, tools: [lookUpOrder, refundOrder] });
}

/** What the model reads when a tool fails: the reason, which it can pass on to the customer. */
function failureErrorFunction(_ctx: unknown, error: Error): string {
  return `Error: ${explain(error)}`;
}
