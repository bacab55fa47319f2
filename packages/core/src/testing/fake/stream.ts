import type { ResponseStreamEvent } from '../../items/wire.ts';
import { nextTask, delay } from '../wait.ts';
import { socketError } from './faults.ts';
import type { RequestFaults } from './faults.ts';

/** Server-sent events, broken where a fault says so. Other work of the process runs between them. */
export async function* sse(
  events: Iterable<ResponseStreamEvent>,
  { breaking, slowMs }: RequestFaults,
): AsyncGenerator<string | Error> {
  const limit =
    breaking !== undefined && 'afterEvents' in breaking
      ? (breaking.afterEvents ?? 1)
      : isStreamFault(breaking)
        ? 1
        : Infinity;
  let count = 0;
  for (const event of events) {
    if (count >= limit) {
      yield* brokenEnd(breaking, count);
      return;
    }
    await (slowMs > 0 ? delay(slowMs) : nextTask());
    yield frame(event.type, event);
    count += 1;
  }
  if (Number.isFinite(limit)) yield* brokenEnd(breaking, count);
}

function isStreamFault(fault: RequestFaults['breaking']): boolean {
  return fault !== undefined && ['cut', 'truncate', 'malformed', 'errorEvent'].includes(fault.kind);
}

function* brokenEnd(fault: RequestFaults['breaking'], sequence: number): Generator<string | Error> {
  if (fault?.kind === 'cut') yield socketError('terminated', 'UND_ERR_SOCKET');
  if (fault?.kind === 'malformed')
    yield 'event: response.output_text.delta\ndata: {"type":"response.output_text.de\n\n';
  if (fault?.kind === 'errorEvent') {
    const error = { code: fault.code, message: `The service reports ${fault.code}.`, param: null };
    yield frame(
      'error',
      fault.shape === 'nested'
        ? { type: 'error', sequence_number: sequence, error: { type: 'server_error', ...error } }
        : { type: 'error', sequence_number: sequence, ...error },
    );
  }
}

/** A plain answer, broken in the same ways. */
export async function* brokenBody(text: string, { breaking }: RequestFaults): AsyncGenerator<string | Error> {
  yield text.slice(0, breaking?.kind === 'malformed' ? 6 : Math.ceil(text.length / 2));
  if (breaking?.kind === 'cut') yield socketError('terminated', 'UND_ERR_SOCKET');
}

function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
