import { env } from 'node:process';
import { Agent, handoff, tool } from '@agents/core';
import { ScriptedModel } from '@agents/core/testing';
import type { ModelStep } from '@agents/core/testing';
import { Pool } from 'pg';
import * as z from 'zod';

export const database = new Pool({ connectionString: env['DATABASE_URL'] });

/** Made by `main.ts`: nothing of it is a user's. */
const table = env['ORDERS_TABLE'] ?? 'orders';

const findOrder = tool({
  name: 'find_order',
  description: 'Finds an order by its number.',
  parameters: z.object({ id: z.number() }),
  execute: async ({ id }) => (await database.query(`SELECT id, status FROM ${table} WHERE id = $1`, [id])).rows[0],
});

const refundOrder = tool({
  name: 'refund_order',
  description: 'Pays an order back.',
  parameters: z.object({ id: z.number() }),
  needsApproval: true,
  execute: async ({ id }) => {
    await database.query(`UPDATE ${table} SET status = 'refunded' WHERE id = $1`, [id]);
    return 'refunded';
  },
});

/** Triage finds the order and hands over; Refunds pays, if a person agrees. Models are scripted: no key, no network. */
export function desk(steps: { triage?: readonly ModelStep[]; refunds: readonly ModelStep[] }): Agent {
  const model = (script: readonly ModelStep[]): ScriptedModel => new ScriptedModel(script, { trace: true });
  const refunds = new Agent({ name: 'Refunds', model: model(steps.refunds), tools: [refundOrder] });
  return new Agent({
    name: 'Triage',
    model: model(steps.triage ?? []),
    tools: [findOrder],
    handoffs: [handoff(refunds)],
  });
}
