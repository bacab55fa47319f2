import { streamEventToJSON } from '@agents/core';
import type { RunResultStreaming, RunStreamEvent } from '@agents/core';

/** One event as the page gets it. */
export interface LoggedEvent {
  /** 1, 2, 3, … within a run. */
  readonly id: number;
  readonly event: 'run' | 'end';
  /** JSON text. */
  readonly data: string;
}

/**
 * A run and all events that the page gets of it. It goes on whether somebody reads or not, so a reader that was away
 * gets what it missed.
 */
export class LoggedRun {
  readonly #stream: RunResultStreaming;
  readonly #log: LoggedEvent[] = [];
  #isOver = false;
  #news = Promise.withResolvers<void>();
  /** Settles when the last event is logged; never rejects. */
  readonly ended: Promise<void>;

  constructor(stream: RunResultStreaming) {
    this.#stream = stream;
    this.ended = this.#follow();
  }

  /** What was logged after the event `lastId` (0: all), then what comes, until the run is over. */
  async *read(lastId: number): AsyncGenerator<LoggedEvent> {
    for (let next = lastId; ; next++) {
      while (next >= this.#log.length && !this.#isOver) await this.#news.promise;
      const event = this.#log[next];
      if (event === undefined) return;
      yield event;
    }
  }

  /** Whether nothing comes after the event `lastId`. */
  isOverAt(lastId: number): boolean {
    return this.#isOver && lastId >= this.#log.length;
  }

  cancel(): void {
    this.#stream.cancel();
  }

  async #follow(): Promise<void> {
    try {
      for await (const event of this.#stream) if (isForPage(event)) this.#add('run', streamEventToJSON(event));
    } catch (error) {
      // What went wrong is for the operator; the page is told that it did.
      console.error(error);
    }
    this.#add('end', { status: this.#stream.status });
    this.#isOver = true;
  }

  #add(event: LoggedEvent['event'], data: object): void {
    this.#log.push({ id: this.#log.length + 1, event, data: JSON.stringify(data) });
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }
}

/** Only what the page shows: raw events of the service hold more than anybody there needs. */
function isForPage(event: RunStreamEvent): boolean {
  switch (event.type) {
    case 'agent_updated_stream_event':
      return true;
    case 'raw_response_event':
      return event.data.type === 'response.output_text.delta';
    case 'run_item_stream_event':
      return event.name === 'tool_called' || event.name === 'tool_output' || event.name === 'message_output_created';
    default:
      return false;
  }
}
