// Routing: an agent finds out what a message is about and hands the conversation over. The agent that takes it answers
// the person itself, and gets their next message too.
import { Agent, run, tool } from '@agents/core';
import { promptWithHandoffInstructions } from '@agents/core/extensions';
import { z } from 'zod';
import { offline } from './example/offline.ts';
import { outcomeOf } from './example/outcome.ts';

const findInvoice = tool({
  name: 'find_invoice',
  description: 'Finds an invoice by its number.',
  parameters: z.object({ invoiceNumber: z.string() }),
  execute: ({ invoiceNumber }) => ({ invoiceNumber, total: 120, due: '1 May', paid: false }),
});

const trackParcel = tool({
  name: 'track_parcel',
  description: 'Finds out where a parcel is.',
  parameters: z.object({ parcelNumber: z.string() }),
  execute: ({ parcelNumber }) => ({ parcelNumber, status: 'at the customs' }),
});

const billing = new Agent({
  name: 'Billing',
  handoffDescription: 'Questions about invoices and payments.',
  instructions: 'You answer questions about invoices. Look them up first.',
  tools: [findInvoice],
  model: offline(),
});

const shipping = new Agent({
  name: 'Shipping',
  handoffDescription: 'Questions about parcels and deliveries.',
  instructions: 'You answer questions about parcels. Track them first.',
  tools: [trackParcel],
  model: offline(),
});

const triage = new Agent({
  name: 'Triage',
  instructions: promptWithHandoffInstructions('Find out what the message is about. Answer nothing yourself.'),
  handoffs: [billing, shipping],
  model: offline(),
});

export async function main(runForm = run) {
  const first = await runForm(triage, 'What is the total of invoice 7?');
  console.log(`${first.lastAgent.name}: ${first.finalOutput}`);

  // The next message goes to whoever spoke last, with what was said so far.
  const message = { role: 'user' as const, content: 'And of invoice 8?' };
  const second = await runForm(first.lastAgent, [...first.toInputList(), message]);
  console.log(`${second.lastAgent.name}: ${second.finalOutput}`);

  return [outcomeOf(first), outcomeOf(second)];
}

if (import.meta.main) await main();
