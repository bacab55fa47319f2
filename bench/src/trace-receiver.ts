import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Counts what is posted to it, in a thread of its own: what that takes is not measured. */
export class TraceReceiver {
  readonly url: string;
  readonly #worker: Worker;

  private constructor(worker: Worker, port: number) {
    this.#worker = worker;
    this.url = `http://127.0.0.1:${port}/v1/traces/ingest`;
  }

  /** @param kind what comes: spans in OTLP/JSON, or records of traces and spans */
  static async start(kind: keyof typeof COUNT): Promise<TraceReceiver> {
    const worker = new Worker(`const countOf = ${COUNT[kind]};${SERVER}`, { eval: true });
    const [port] = (await once(worker, 'message')) as [number];
    return new TraceReceiver(worker, port);
  }

  /** How many spans, or records, it got. */
  async stop(): Promise<number> {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage('count');
    const [count] = (await once(this.#worker, 'message')) as [number];
    await this.#worker.terminate();
    return count;
  }
}

const COUNT = {
  otlp: `({ resourceSpans }) =>
    resourceSpans.flatMap(({ scopeSpans }) => scopeSpans).reduce((sum, { spans }) => sum + spans.length, 0)`,
  records: '({ data }) => data.length',
} as const;

const SERVER = `
const { createServer } = require('node:http');
const { parentPort } = require('node:worker_threads');
let count = 0;
const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    count += countOf(JSON.parse(Buffer.concat(chunks)));
    response.setHeader('content-type', 'application/json').end('{}');
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
parentPort.on('message', () => parentPort.postMessage(count));
`;
