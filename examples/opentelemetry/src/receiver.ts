import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly links: readonly { readonly spanId: string }[];
}

/** In the place of Jaeger, Tempo or a service: takes OTLP/JSON and shows what it got. */
export class Receiver {
  readonly #spans: Span[] = [];
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(String(Buffer.concat(chunks))) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      for (const { scopeSpans } of body.resourceSpans) for (const { spans } of scopeSpans) this.#spans.push(...spans);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  /** How many traces the spans of runs belong to. */
  get traces(): number {
    return new Set(this.#ofRuns().map(({ traceId }) => traceId)).size;
  }

  /** Spans under their parents, in order of their start; `↩` where one says which span it goes on from. */
  tree(): string {
    const spans = this.#ofRuns().toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
    const ids = new Map(spans.map((span) => [span.spanId, span]));
    const lines: string[] = [];
    const add = (parent: string | undefined, depth: number): void => {
      for (const span of spans) {
        if ((ids.has(span.parentSpanId ?? '') ? span.parentSpanId : undefined) !== parent) continue;
        const links = span.links.map((link) => ` ↩ ${ids.get(link.spanId)?.name}`).join('');
        lines.push('  '.repeat(depth) + span.name + links);
        add(span.spanId, depth + 1);
      }
    };
    add(undefined, 0);
    return lines.join('\n');
  }

  /** Without what the processes do beside their runs: connecting, for one. */
  #ofRuns(): Span[] {
    const inRuns = new Set(
      this.#spans.filter(({ name }) => name.startsWith('invoke_workflow')).map(({ traceId }) => traceId),
    );
    return this.#spans.filter(({ traceId }) => inRuns.has(traceId));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
