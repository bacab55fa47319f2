import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { json } from 'node:stream/consumers';
import { runStreamed } from '@agents/core';
import type { Agent } from '@agents/core';
import { z } from 'zod';
import { LoggedRun } from './logged-run.ts';
import type { LoggedEvent } from './logged-run.ts';

/** How long a run that is over can still be read. */
const KEPT_MS = 10 * 60_000;

const Message = z.object({ message: z.string().min(1).max(10_000) });

const files: Readonly<Record<string, { readonly name: string; readonly type: string }>> = {
  '/': { name: 'index.html', type: 'text/html' },
  '/page.js': { name: 'page.js', type: 'text/javascript' },
  '/page.css': { name: 'page.css', type: 'text/css' },
};

/**
 * The page, and the runs of its messages:
 * `POST /runs` starts one, `GET /runs/<id>/events` streams it, `POST /runs/<id>/cancel` stops it.
 */
export function createDeskServer(agent: Agent): Server {
  const runs = new Map<string, LoggedRun>();

  async function startRun(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A form of another site cannot send this type.
    if (request.headers['content-type'] !== 'application/json') return end(response, 415);
    const body = Message.safeParse(await json(request).catch(() => undefined));
    if (!body.success) return end(response, 400);
    const run = new LoggedRun(runStreamed(agent, body.data.message));
    // Whoever knows the id may read and stop the run.
    const id = randomUUID();
    runs.set(id, run);
    void run.ended.then(() => setTimeout(() => runs.delete(id), KEPT_MS).unref());
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id }));
  }

  async function streamEvents(run: LoggedRun, lastId: number, response: ServerResponse): Promise<void> {
    // The answer that tells an EventSource not to come again.
    if (run.isOverAt(lastId)) return end(response, 204);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    // A reader that goes away ends this, and nothing else.
    await pipeline(Readable.from(wire(run.read(lastId))), response).catch(() => undefined);
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://page');
    const file = files[url.pathname];
    if (request.method === 'GET' && file !== undefined) return sendFile(file, response);
    if (request.method === 'POST' && url.pathname === '/runs') return startRun(request, response);
    const [, id = '', action] = /^\/runs\/([^/]+)\/(events|cancel)$/.exec(url.pathname) ?? [];
    const run = runs.get(id);
    if (run === undefined) return end(response, 404);
    if (request.method === 'GET' && action === 'events') return streamEvents(run, lastEventId(request, url), response);
    if (request.method !== 'POST' || action !== 'cancel') return end(response, 405);
    run.cancel();
    return end(response, 204);
  }

  return createServer((request, response) => {
    route(request, response).catch((error: unknown) => {
      console.error(error);
      end(response, 500);
    });
  });
}

/** The header is of an EventSource that reconnects, and newer than the address, which is of a page that was reloaded. */
function lastEventId(request: IncomingMessage, url: URL): number {
  const id = Number(request.headers['last-event-id'] ?? url.searchParams.get('lastEventId'));
  return Number.isSafeInteger(id) && id > 0 ? id : 0;
}

/** Server-sent events; JSON has no line breaks, so one line of data is enough. */
async function* wire(events: AsyncIterable<LoggedEvent>): AsyncGenerator<string> {
  yield 'retry: 500\n\n';
  for await (const { id, event, data } of events) yield `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}

function sendFile({ name, type }: { name: string; type: string }, response: ServerResponse): void {
  response
    .writeHead(200, {
      'content-type': `${type}; charset=utf-8`,
      // Nothing but the page's own files: should text of a model ever become markup, it runs nothing and loads nothing.
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
    })
    .end(readFileSync(join(import.meta.dirname, 'page', name)));
}

function end(response: ServerResponse, status: number): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status).end();
}
