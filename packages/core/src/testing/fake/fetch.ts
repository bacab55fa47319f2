import type { Answer } from './types.ts';

/** A request of `fetch` as text. */
export async function readRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<{
  method: string;
  url: URL;
  headers: Record<string, string>;
  text: string;
  signal: AbortSignal | undefined;
}> {
  // Requests of other realms and strings alike.
  const request = new Request(input, init);
  return {
    method: request.method,
    url: new URL(request.url),
    headers: Object.fromEntries(request.headers),
    text: await request.text(),
    signal: init?.signal ?? request.signal,
  };
}

/** What `fetch` gives for an answer. An abort breaks the body off, as of a real connection. */
export function toResponse(answer: Answer, signal: AbortSignal | undefined): Response {
  const { status, headers, body } = answer;
  if (typeof body === 'string') return new Response(status === 204 ? null : body, { status, headers });
  const chunks = body[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true });
    },
    async pull(controller) {
      const chunk = await chunks.next();
      if (signal?.aborted) return;
      if (chunk.done === true) controller.close();
      else if (typeof chunk.value === 'string') controller.enqueue(encoder.encode(chunk.value));
      else controller.error(chunk.value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
  return new Response(stream, { status, headers });
}
