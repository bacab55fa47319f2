import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, tool } from '@agents/core';
import type { Model } from '@agents/core';
import { ScriptedModel } from '@agents/core/testing';
import type { ModelStep } from '@agents/core/testing';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { createDeskServer } from '../src/server.ts';

/** The page on a port of its own, with a tool that waits until the test lets it go on. */
export async function openDesk(steps: readonly ModelStep[] | Model) {
  const gate = Promise.withResolvers<string>();
  const calls: string[] = [];
  const track = tool({
    name: 'track_order',
    parameters: z.object({ orderId: z.string() }),
    execute: async ({ orderId }, ctx) => {
      calls.push(orderId);
      ctx.signal.addEventListener('abort', () => gate.reject(new Error('stopped')));
      return gate.promise.finally(() => calls.push(`${orderId} ended`));
    },
  });
  const model = 'getResponse' in steps ? steps : new ScriptedModel(steps, { chunk: 'word' });
  const agent = new Agent({ name: 'Desk', instructions: 'The secret of the shop.', tools: [track], model });
  const server = createDeskServer(agent);
  const streams: string[] = [];
  server.prependListener('request', ({ url = '', headers }: IncomingMessage) => {
    const after = /events\?lastEventId=(.*)/.exec(url)?.[1];
    const header = headers['last-event-id'];
    if (after !== undefined) streams.push(header === undefined ? `address ${after}` : `header ${String(header)}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    /** After which event each stream was asked for, and by what. */
    streams,
    /** What the tool did so far. */
    calls,
    /** Lets the tool end. */
    answer: gate.resolve,
    /** Cuts every connection; the server goes on. */
    cut: () => server.closeAllConnections(),
  };
}
