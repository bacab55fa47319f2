import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { OpenAIProvider } from '@agents/core/openai';
import { FakeOpenAI, text, toolCall } from '@agents/core/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openDesk } from './desk.ts';

type Sent = { readonly id: number; readonly event: string; readonly data: Record<string, unknown> };

async function ask(url: string, message = 'Where is order 7?'): Promise<string> {
  const response = await fetch(`${url}runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  });
  expect(response.status).toBe(201);
  return `${url}runs/${((await response.json()) as { id: string }).id}`;
}

function parse(stream: string): Sent[] {
  return [...stream.matchAll(/^id: (\d+)\nevent: (\w+)\ndata: (.*)\n\n/gm)].map(([, id, event, data]) => ({
    id: Number(id),
    event: event!,
    data: JSON.parse(data!) as Record<string, unknown>,
  }));
}

const read = async (address: string, headers: Record<string, string> = {}): Promise<Sent[]> =>
  parse(await (await fetch(address, { headers })).text());

test('events come as JSON, in order, and an end', async () => {
  const desk = await openDesk([[text('One moment.'), toolCall('track_order', { orderId: '7' })], 'It is on its way.']);
  desk.answer('shipped');
  const run = await ask(desk.url);
  const sent = await read(`${run}/events`);
  expect(sent.map(({ id }) => id)).toEqual(sent.map((_, index) => index + 1));
  expect(sent.map(({ data }) => data['name'] ?? (data['data'] as { delta?: string })?.delta ?? data)).toEqual([
    { type: 'agent_updated_stream_event', new_agent: { name: 'Desk' } },
    'One',
    ' moment.',
    'message_output_created',
    'tool_called',
    'tool_output',
    'It',
    ' is',
    ' on',
    ' its',
    ' way.',
    'message_output_created',
    { status: 'completed' },
  ]);
  expect(sent.at(-1)?.event).toBe('end');
});

test('what the service says of instructions and tools stays on the server', async () => {
  const fake = new FakeOpenAI({ steps: ['It is on its way.'] });
  await using service = await fake.listen();
  const provider = new OpenAIProvider({ apiKey: 'sk-secret', baseURL: service.baseURL });
  const desk = await openDesk(await provider.getModel('gpt-5'));
  const sent = JSON.stringify(await read(`${await ask(desk.url)}/events`));
  expect(JSON.stringify(fake.requests)).toContain('The secret of the shop.');
  expect(sent).toContain('on its way');
  expect(sent).not.toContain('secret');
  expect(sent).not.toContain('track_order');
});

test('a reader goes on after the last event it has; the header wins over the address; after the end nothing comes', async () => {
  const desk = await openDesk(['It is on its way.']);
  const run = await ask(desk.url);
  const all = await read(`${run}/events`);
  const last = all.length;
  expect(await read(`${run}/events?lastEventId=3`)).toEqual(all.slice(3));
  expect(await read(`${run}/events?lastEventId=3`, { 'last-event-id': '5' })).toEqual(all.slice(5));
  for (const odd of ['-1', 'x', '1.5', '']) expect(await read(`${run}/events?lastEventId=${odd}`)).toEqual(all);
  const after = await fetch(`${run}/events`, { headers: { 'last-event-id': String(last) } });
  expect(after.status).toBe(204);
});

test('two readers get the same; cancelling ends run, tool and both readers', async () => {
  const desk = await openDesk([toolCall('track_order', { orderId: '7' })]);
  const run = await ask(desk.url);
  const readers = [read(`${run}/events`), read(`${run}/events`)];
  await vi.waitFor(() => expect(desk.calls).toEqual(['7']));
  expect((await fetch(`${run}/cancel`, { method: 'POST' })).status).toBe(204);
  const [one, other] = await Promise.all(readers);
  expect(one).toEqual(other);
  expect(one?.at(-1)).toMatchObject({ event: 'end', data: { status: 'cancelled' } });
  expect(desk.calls).toEqual(['7', '7 ended']);
});

test('a run that fails says that it did, and not why', async () => {
  const error = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const desk = await openDesk([new Error('password of the database: hunter2')]);
  const sent = await read(`${await ask(desk.url)}/events`);
  expect(sent.at(-1)).toMatchObject({ event: 'end', data: { status: 'failed' } });
  expect(JSON.stringify(sent)).not.toContain('hunter2');
  expect(error).toHaveBeenCalledOnce();
  error.mockRestore();
});

test('what is no message starts no run', async () => {
  const { url } = await openDesk([]);
  const post = async (body: string, type: string, path = 'runs'): Promise<number> =>
    (await fetch(url + path, { method: 'POST', headers: { 'content-type': type }, body })).status;
  expect(await post('{"message":"Hi"}', 'text/plain')).toBe(415);
  for (const body of ['', '{', '{}', '{"message":""}', '{"message":7}', 'null'])
    expect(await post(body, 'application/json')).toBe(400);
  expect(await post('', 'text/plain', 'runs/unknown/cancel')).toBe(404);
  expect((await fetch(`${url}runs/unknown/events`)).status).toBe(404);
  expect((await fetch(`${url}page/../server.ts`)).status).toBe(404);
});

test('the program serves its page, with a policy, and says where and without which key', async () => {
  const args = ['--conditions=source', join(import.meta.dirname, '../src/main.ts'), '--port', '0'];
  const child = spawn(process.execPath, args, { env: { ...process.env, OPENAI_API_KEY: '' } });
  onTestFinished(() => void child.kill());
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
  while (!said.includes('http')) await once(child.stdout, 'data');
  expect(said).toMatch(/^Without OPENAI_API_KEY: .*\n/);
  const url = /http:\S+/.exec(said)![0];
  const page = await fetch(url);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
  expect(await page.text()).toContain('<script type="module" src="page.js">');
  expect((await fetch(`${url}/page.js`)).headers.get('content-type')).toBe('text/javascript; charset=utf-8');
});
