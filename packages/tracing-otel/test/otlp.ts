import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Of OTLP/JSON what is used here. */
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly links: readonly { traceId: string; spanId: string; attributes: readonly OtlpAttribute[] }[];
  readonly events: readonly { name: string; attributes: readonly OtlpAttribute[] }[];
  readonly status: { readonly code: number; readonly message?: string };
}
interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}
interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly OtlpValue[] };
}
interface Body {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[] }[];
}

/** A receiver of OTLP over HTTP. */
export class OtlpReceiver {
  readonly spans: OtlpSpan[] = [];
  readonly requests: { readonly path: string; readonly headers: Readonly<Record<string, unknown>> }[] = [];
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      this.requests.push({ path: request.url ?? '', headers: request.headers });
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Body;
      for (const { scopeSpans } of body.resourceSpans) for (const { spans } of scopeSpans) this.spans.push(...spans);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

export interface GoldenSpan {
  readonly name: string;
  readonly kind: string;
  readonly status?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links?: readonly string[];
  readonly events?: readonly unknown[];
  readonly children?: readonly GoldenSpan[];
}

const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const CODES = ['UNSET', 'OK', 'ERROR'];
/** Differ from run to run, or between the two forms of a run. */
const UNSETTLED: ReadonlySet<string> = new Set([
  'agents.trace_id',
  'agents.span_id',
  'gen_ai.response.time_to_first_chunk',
  'gen_ai.request.stream',
  'agents.task.streamed',
  'agents.stream.abandoned',
  'server.port',
]);

/** What was received as trees, without ids and times. */
export function goldenTrees(spans: readonly OtlpSpan[]): GoldenSpan[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const ordered = spans.toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
  const under = (parent: string | undefined): GoldenSpan[] =>
    ordered
      .filter(({ parentSpanId }) =>
        parent === undefined ? parentSpanId === undefined || !byId.has(parentSpanId) : parentSpanId === parent,
      )
      .map((span) => {
        const children = under(span.spanId);
        return {
          name: span.name,
          kind: KINDS[span.kind] ?? String(span.kind),
          ...(span.status.code !== 0 && { status: `${CODES[span.status.code]} ${span.status.message ?? ''}`.trim() }),
          attributes: attributesOf(span.attributes),
          ...(span.links.length > 0 && {
            links: span.links.map(
              (link) => `${String(attributesOf(link.attributes)['agents.link.kind'])}: ${byId.get(link.spanId)?.name}`,
            ),
          }),
          ...(span.events.length > 0 && {
            events: span.events.map((event) => ({ name: event.name, attributes: attributesOf(event.attributes) })),
          }),
          ...(children.length > 0 && { children }),
        };
      });
  return under(undefined);
}

export function attributesOf(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  const entries = attributes
    .filter(({ key }) => !UNSETTLED.has(key))
    .map(({ key, value }) => [key, valueOf(value)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function valueOf({ stringValue, intValue, doubleValue, boolValue, arrayValue }: OtlpValue): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(valueOf);
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue);
}
