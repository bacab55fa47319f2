import { afterEach, describe, expect, it } from 'vitest';
import { Agent, defineModel, runStreamed, UserError } from '../index.ts';
import type { ResponseStreamEvent, RunStreamEvent } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, idle, namesOf, readAll, rejection, unhandledDuring } from '../../test/run-kit.ts';

// The text view of a stream, and streams whose reader is slow.

afterEach(() => resetDefaults());

const words = (...texts: string[]): ScriptedModel => new ScriptedModel(texts, { chunk: 'word' });

async function textOf(stream: ReadableStream<string>): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of stream) texts.push(text);
  return texts;
}

describe('toTextStream', () => {
  it('gives the text deltas of all turns and agents, and ends with the run [RUN-1411]', async () => {
    const b = new Agent({ name: 'B', model: words('and the other') });
    const a = new Agent({
      name: 'A',
      model: new ScriptedModel(
        [
          { output: [toolCall('t')] },
          {
            output: [
              {
                id: 'm1',
                type: 'message',
                role: 'assistant',
                status: 'completed',
                content: [{ type: 'output_text', text: 'one moment ', annotations: [] }],
              },
              toolCall('transfer_to_b'),
            ],
          },
        ],
        { chunk: 'word' },
      ),
      tools: [effectTool('t', [])],
      handoffs: [b],
    });
    const stream = runStreamed(a, 'go');
    const texts = await textOf(stream.toTextStream());
    expect(texts.join('')).toBe('one moment and the other');
    expect(texts.length).toBeGreaterThan(3);
    expect([stream.status, stream.finalOutput]).toEqual(['completed', 'and the other']);
    await stream.completed;
  });

  it('fails with the error of the run [RUN-1411]', async () => {
    const failure = new Error('down');
    const agent = new Agent({ name: 'A', model: new ScriptedModel([{ error: failure }]) });
    const unhandled = await unhandledDuring(async () => {
      const stream = runStreamed(agent, 'go');
      expect(await rejection(textOf(stream.toTextStream()))).toBe(failure);
      expect(stream.status).toBe('failed');
    });
    expect(unhandled).toEqual([]);
  });

  it('reads the same queue: each event goes to one reader, and there is one at a time [RUN-1407]', async () => {
    const stream = runStreamed(new Agent({ name: 'A', model: words('one two three') }), 'go');
    const seen: RunStreamEvent[] = [];
    let second: unknown;
    for await (const event of stream) {
      seen.push(event);
      if (event.type !== 'raw_response_event' || event.data.type !== 'response.output_text.delta') continue;
      second = await rejection(stream.toTextStream().getReader().read());
      break;
    }
    expect(second).toBeInstanceOf(UserError);
    expect((second as Error).message).toMatch(/being read/);
    expect((await textOf(stream.toTextStream())).join('')).toBe(' two three');
    expect(namesOf(seen)).not.toContain('message_output_created');
  });

  it('takes the place of a loop: that one is refused while it reads [RUN-1407]', async () => {
    const stream = runStreamed(new Agent({ name: 'A', model: words('one two') }), 'go');
    const reader = stream.toTextStream().getReader();
    expect((await reader.read()).value).toBe('one');
    expect(await rejection(readAll(stream))).toBeInstanceOf(UserError);
    expect((await reader.read()).value).toBe(' two');
    expect((await reader.read()).done).toBe(true);
  });

  it('cancels the run when it is cancelled, or left [RUN-1408]', async () => {
    const agent = (): Agent =>
      new Agent({
        name: 'A',
        model: new ScriptedModel([{ output: 'one two three', delayMs: 0, chunk: 'word' }]),
      });
    const cancelled = runStreamed(agent(), 'go');
    const texts = cancelled.toTextStream().getReader();
    await texts.read();
    await texts.cancel();
    expect([cancelled.isComplete, cancelled.status]).toEqual([true, 'cancelled']);
    expect(await readAll(cancelled)).toEqual([]);
    expect(await rejection(cancelled.completed)).toMatchObject({ name: 'AbortError' });
    const left = runStreamed(agent(), 'go');
    for await (const _ of left.toTextStream()) break;
    expect(left.status).toBe('cancelled');
    await rejection(left.completed);
    const waiting = runStreamed(
      new Agent({ name: 'A', model: new ScriptedModel([{ output: 'x', delayMs: 60_000 }]) }),
      'go',
    );
    const reader = waiting.toTextStream().getReader();
    const read = reader.read();
    await idle();
    await reader.cancel();
    expect(await read).toEqual({ done: true, value: undefined });
    expect(waiting.status).toBe('cancelled');
    await rejection(waiting.completed);
  });

  it('reads nothing ahead: the run waits at the end of a turn until the next text is asked for [RUN-1402, 1411]', async () => {
    const model = new ScriptedModel(
      [
        {
          output: [
            {
              id: 'm1',
              type: 'message',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: 'one', annotations: [] }],
            },
            toolCall('t'),
          ],
        },
        'two',
      ],
      { chunk: 'word' },
    );
    const stream = runStreamed(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'go');
    const reader = stream.toTextStream().getReader();
    expect((await reader.read()).value).toBe('one');
    await idle(10);
    expect(model.calls).toHaveLength(1);
    expect((await reader.read()).value).toBe('two');
    expect((await reader.read()).done).toBe(true);
  });
});

describe('eventBufferLimit', () => {
  /** A model that says how many of its events were taken. */
  function counted(count: number): { agent: Agent; taken: () => number } {
    const source = new ScriptedModel([Array.from({ length: count }, (_, i) => `w${i}`).join(' ')], { chunk: 'word' });
    let taken = 0;
    const model = defineModel({
      async *streamResponse(request): AsyncGenerator<ResponseStreamEvent> {
        for await (const event of source.streamResponse(request)) {
          taken += 1;
          yield event;
        }
      },
    });
    return { agent: new Agent({ name: 'A', model }), taken: () => taken };
  }

  it('holds the model back while more events wait for the reader, and lets it go on as they are read [RUN-1410]', async () => {
    const { agent, taken } = counted(50);
    const stream = runStreamed(agent, 'go', { eventBufferLimit: 3 });
    const reader = stream[Symbol.asyncIterator]();
    let read = 0;
    let most = 0;
    const inTheMiddle = new Set<number>();
    for (let next = await reader.next(); next.done !== true; next = await reader.next()) {
      read += 1;
      await idle(1);
      // The first event is none of the model's; those that wait, and the one that goes over the limit.
      most = Math.max(most, taken() - (read - 1));
      if (read > 10 && read < 40) inTheMiddle.add(taken() - (read - 1));
    }
    expect(taken()).toBeGreaterThan(50);
    expect(most).toBeLessThanOrEqual(4);
    expect([...inTheMiddle]).toEqual([4]);
    expect(stream.status).toBe('completed');
  });

  it('is not applied without a reader, and ends when the reader lets go or the run is cancelled [RUN-1410]', async () => {
    const alone = counted(50);
    const unread = runStreamed(alone.agent, 'go', { eventBufferLimit: 2 });
    await unread.completed;
    expect(alone.taken()).toBeGreaterThan(50);
    expect(namesOf(await readAll(unread))).toContain('message_output_created');

    const left = counted(50);
    const stream = runStreamed(left.agent, 'go', { eventBufferLimit: 2 });
    for await (const _ of stream) {
      await idle(5);
      expect(left.taken()).toBeLessThan(5);
      break;
    }
    expect((await stream.completed).status).toBe('completed');

    const cut = counted(50);
    const cancelled = runStreamed(cut.agent, 'go', { eventBufferLimit: 2 });
    for await (const _ of cancelled) {
      await idle(5);
      cancelled.cancel();
    }
    expect(await rejection(cancelled.completed)).toMatchObject({ name: 'AbortError' });
    expect(cut.taken()).toBeLessThan(10);
  });

  it('without it the model is never held back [RUN-1401, 1410]', async () => {
    const { agent, taken } = counted(50);
    const stream = runStreamed(agent, 'go');
    for await (const _ of stream) {
      await idle(10);
      expect(taken()).toBeGreaterThan(50);
      break;
    }
    await stream.completed;
  });
});
