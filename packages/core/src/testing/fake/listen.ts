import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Answer } from './types.ts';

export type Handler = (request: {
  method: string;
  url: URL;
  headers: Record<string, string>;
  text: string;
  signal: AbortSignal;
}) => Promise<Answer>;
export interface FakeServer extends AsyncDisposable {
  readonly baseURL: string;
  close(): Promise<void>;
}

/** The fake service as a server of this machine. Node-like runtimes. */
export async function listen(handle: Handler, port: number): Promise<FakeServer> {
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    answer(request, response, handle).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const close = (): Promise<void> => {
    if (!server.listening) return Promise.resolve();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, handle: Handler): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  const {
    status,
    headers: sent,
    body,
  } = await handle({
    method: request.method ?? 'GET',
    url,
    headers,
    text: Buffer.concat(chunks).toString('utf8'),
    signal: gone.signal,
  });
  response.writeHead(status, sent);
  for await (const chunk of typeof body === 'string' ? [body] : body) {
    if (gone.signal.aborted) return;
    if (chunk instanceof Error) {
      // A reset and not an end: what came so far is flushed first.
      await new Promise((resolve) => setImmediate(resolve));
      response.socket?.resetAndDestroy();
      return;
    }
    response.write(chunk);
  }
  response.end();
}
