import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

import { afterEach, beforeEach, expect, it } from 'vitest';

import { CuttingProxy } from './index.ts';
import type { Cut } from './index.ts';

/** Answers each chunk with the same in capitals, and keeps what it got. */
let received = '';
const server = createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    received += String(chunk);
    socket.write(String(chunk).toUpperCase());
  });
});
let proxy: CuttingProxy;

beforeEach(async () => {
  received = '';
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await CuttingProxy.start((server.address() as AddressInfo).port);
});
afterEach(async () => {
  await proxy.close();
  await new Promise((resolve) => server.close(resolve));
});

/** However it ended. */
const closed = (socket: Socket): Promise<void> => new Promise((resolve) => void socket.on('close', () => resolve()));

/** What the client got until its connection ended. */
async function talk(...send: readonly string[]): Promise<string> {
  const socket: Socket = connect(proxy.port, '127.0.0.1');
  let got = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => (got += String(chunk)));
  for (const text of send) socket.write(text);
  await closed(socket);
  return got;
}

it.each<[Cut, string, string]>([
  ['before', '', ''],
  ['middle', 'abcd', ''],
  ['sent', 'abcdefgh', ''],
  ['reply', 'abcdefgh', ''],
  ['answer', 'abcdefgh', 'ABCD'],
])('cuts %s', async (cut, atServer, atClient) => {
  const done = proxy.cutNext(cut, { matching: (request) => request.includes('abc') });
  expect(await talk('abcdefgh')).toBe(atClient);
  await done;
  await expect.poll(() => received).toBe(atServer);
});

it('lets everything else pass, and new connections after a cut', async () => {
  void proxy.cutNext('before', { matching: (request) => request.includes('x') });
  const socket = connect(proxy.port, '127.0.0.1');
  socket.write('hello');
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(String(answer)).toBe('HELLO');
  socket.on('error', () => {});
  proxy.cutAll();
  await closed(socket);
  proxy.refuse(true);
  expect(await talk('refused')).toBe('');
  expect(received).toBe('hello');
});

it('swallows what is sent when it is silent', async () => {
  proxy.silence(true);
  const cut = proxy.cutNext('before', { matching: (request) => request.includes('bye') });
  const [got] = await Promise.all([talk('hello', 'bye'), cut]);
  expect([got, received]).toEqual(['', '']);
});
