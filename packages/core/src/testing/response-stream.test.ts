import { describe, expect, it } from 'vitest';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { toUsage } from '../base/usage.ts';
import { synthesizeStream } from '../models/synthesize.ts';
import { reasoning, refusal, text, toolCall } from './builders.ts';
import { assertResponseStream } from './response-stream.ts';

function events(): Record<string, unknown>[] {
  const output = [reasoning('Hm.'), text('Hello there'), refusal('No.'), toolCall('f', { a: 1 })];
  return [...synthesizeStream({ output, usage: toUsage(), responseId: 'r' }, { chunk: 3 })] as unknown as Record<
    string,
    unknown
  >[];
}
const check = (list: unknown[]): void => assertResponseStream(list as ResponseStreamEvent[]);
const indexOf = (list: Record<string, unknown>[], type: string): number =>
  list.findIndex((event) => event['type'] === type);

describe('assertResponseStream', () => {
  it('accepts the stream of a response', () => {
    expect(() => check(events())).not.toThrow();
  });

  it.each<[string, (list: Record<string, unknown>[]) => unknown[], RegExp]>([
    ['no terminal event', (list) => list.slice(0, -1), /without a terminal event/u],
    [
      'an event after the end',
      (list) => [...list, { type: 'response.in_progress', sequence_number: 999 }],
      /after response.completed/u,
    ],
    ['another first event', (list) => list.slice(1), /first event/u],
    [
      'a repeated sequence number',
      (list) => list.map((event, index) => (index === 4 ? { ...event, sequence_number: 3 } : event)),
      /sequence_number 3 after 3/u,
    ],
    [
      'a delta for an unknown item',
      (list) => list.filter((_event, index) => index !== indexOf(list, 'response.output_item.added')),
      /not added/u,
    ],
    [
      'a lost delta',
      (list) => list.filter((_event, index) => index !== indexOf(list, 'response.output_text.delta')),
      /another text than its deltas/u,
    ],
    [
      'a lost done event',
      (list) => list.filter((_event, index) => index !== indexOf(list, 'response.output_text.done')),
      /before the done event of output_text/u,
    ],
    [
      'another id in a delta',
      (list) =>
        list.map((event) => (event['type'] === 'response.output_text.delta' ? { ...event, item_id: 'x' } : event)),
      /item_id x/u,
    ],
    [
      'an item that is never done',
      (list) => list.filter((event) => !(event['type'] === 'response.output_item.done' && event['output_index'] === 3)),
      /output_index 3 is not done/u,
    ],
    [
      'another final output',
      (list) =>
        list.map((event) =>
          event['type'] === 'response.completed' ? { ...event, response: { output: [text('x')] } } : event,
        ),
      /has 1 items, the stream had 4/u,
    ],
  ])('names %s', (_name, change, expected) => {
    expect(() => check(change(events()))).toThrow(expected);
  });
});
