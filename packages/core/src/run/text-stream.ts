import type { RunStreamEvent } from './events.ts';

/**
 * The text deltas among the events, as the reader of the stream asks for them: nothing is read ahead.
 * @param cancel ends the run; the stream was cancelled
 */
export function textStream(events: AsyncIterableIterator<RunStreamEvent>, cancel: () => void): ReadableStream<string> {
  return new ReadableStream<string>(
    {
      async pull(controller) {
        const text = await nextText(events);
        if (text === undefined) controller.close();
        else controller.enqueue(text);
      },
      async cancel() {
        cancel();
        await events.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** `undefined`: there is none any more. */
async function nextText(events: AsyncIterableIterator<RunStreamEvent>): Promise<string | undefined> {
  for (;;) {
    const { done, value } = await events.next();
    if (done === true) return undefined;
    if (value.type === 'raw_response_event' && value.data.type === 'response.output_text.delta')
      return value.data.delta;
  }
}
