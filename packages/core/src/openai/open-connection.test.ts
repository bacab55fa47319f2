import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { Agent, runStreamed } from '../index.ts';
import { OpenAIResponsesModel } from './index.ts';

const end = {
  type: 'response.completed',
  sequence_number: 0,
  response: {
    id: 'r',
    status: 'completed',
    output: [
      {
        type: 'message',
        role: 'assistant',
        id: 'm',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Hi.' }],
      },
    ],
  },
};

test.each(['silent', 'pinging'])(
  'a service that does not end its answer (%s) holds no connection for long after the run [MODEL-543]',
  async (kind) => {
    let timer: ReturnType<typeof setInterval> | undefined;
    let close: (() => void) | undefined;
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`event: response.completed\ndata: ${JSON.stringify(end)}\n\n`);
      if (kind === 'pinging') timer = setInterval(() => response.write(': ping\n\n'), 50);
      response.on('close', () => close?.());
    }).listen(0, '127.0.0.1');
    onTestFinished(() => {
      clearInterval(timer);
      server.close();
    });
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const client = new OpenAI({ apiKey: 'key', maxRetries: 0, baseURL: `http://127.0.0.1:${port}/v1` });
    const agent = new Agent({ name: 'Desk', model: new OpenAIResponsesModel('gpt-5.6-luna', { client }) });
    expect((await runStreamed(agent, 'go').completed).finalOutput).toBe('Hi.');
    await closed;
  },
  20_000,
);
