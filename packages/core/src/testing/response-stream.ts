import type { ResponseStreamEvent } from '../items/wire.ts';

type Event = Readonly<Record<string, unknown>> & { readonly type: string };
type Item = Readonly<Record<string, unknown>>;

const ends: ReadonlySet<string> = new Set([
  'response.completed',
  'response.failed',
  'response.incomplete',
  'error',
  'response.error',
]);

/**
 * Checks order, indexes and the terminal event of a stream.
 * @throws Error that names the first violation
 * @example
 * ```ts
 * const events = [];
 * for await (const event of model.streamResponse(request)) events.push(event);
 * assertResponseStream(events);
 * ```
 */
export function assertResponseStream(events: Iterable<ResponseStreamEvent>): void {
  const grammar = new Grammar();
  for (const event of events) grammar.take(event as unknown as Event);
  grammar.end();
}

/** One output item while it streams. */
interface Slot {
  readonly type: unknown;
  readonly id: unknown;
  done: Item | undefined;
  readonly open: Map<string, string>;
  readonly closed: Map<string, string>;
}

class Grammar {
  #count = 0;
  #sequence = -1;
  #ended: string | undefined;
  readonly #slots = new Map<number, Slot>();
  readonly #ids = new Set<unknown>();
  readonly #objects = new Set<object>();

  take(event: Event): void {
    const { type } = event;
    this.#check(this.#ended === undefined, event, `comes after ${this.#ended}`);
    this.#check(
      this.#count > 0 || type === 'response.created' || ends.has(type),
      event,
      'is the first event, which must be response.created',
    );
    this.#check(this.#count === 0 || type !== 'response.created', event, 'comes twice');
    this.#checkSequence(event);
    this.#count += 1;
    if (type === 'response.output_item.added') this.#added(event);
    else if (type === 'response.output_item.done') this.#done(event);
    else if (typeof event['output_index'] === 'number') this.#content(event);
    if (ends.has(type)) this.#terminal(event);
  }

  end(): void {
    if (this.#ended === undefined)
      throw new Error(`The stream ended after ${this.#count} events without a terminal event.`);
  }

  #checkSequence(event: Event): void {
    const number = event['sequence_number'];
    this.#check(
      typeof number === 'number' && number > this.#sequence,
      event,
      `has sequence_number ${String(number)} after ${this.#sequence}`,
    );
    this.#sequence = number as number;
  }

  #added(event: Event): void {
    const index = event['output_index'] as number;
    const item = event['item'] as Item;
    this.#check(!this.#slots.has(index), event, `adds output_index ${index} again`);
    this.#check(index === this.#slots.size, event, `adds output_index ${index} where ${this.#slots.size} is next`);
    this.#check(
      item['id'] === undefined || !this.#ids.has(item['id']),
      event,
      `adds the item id ${String(item['id'])} again`,
    );
    this.#check(!this.#objects.has(item), event, 'shares its item with another event');
    this.#ids.add(item['id']);
    this.#objects.add(item);
    this.#slots.set(index, {
      type: item['type'],
      id: item['id'] ?? item['call_id'],
      done: undefined,
      open: new Map(),
      closed: new Map(),
    });
  }

  #done(event: Event): void {
    const slot = this.#slot(event);
    const item = event['item'] as Item;
    this.#check(item['type'] === slot.type, event, `ends a ${String(slot.type)} as ${String(item['type'])}`);
    this.#check((item['id'] ?? item['call_id']) === slot.id, event, 'changes the id of its item');
    this.#check(!this.#objects.has(item), event, 'shares its item with another event');
    this.#objects.add(item);
    const open = [...slot.open.keys()][0];
    this.#check(open === undefined, event, `comes before the done event of ${open}`);
    this.#checkTexts(event, slot, item);
    slot.done = item;
  }

  /** Deltas add up to what their done event says, and that to what the item says. */
  #content(event: Event): void {
    const slot = this.#slot(event);
    this.#check(
      event['item_id'] === undefined || event['item_id'] === slot.id,
      event,
      `has item_id ${String(event['item_id'])}, its item ${String(slot.id)}`,
    );
    const match = /^response\.(.*)\.(delta|done)$/u.exec(event.type);
    if (match === null || event.type.startsWith('response.content_part') || event.type.includes('_part.')) return;
    const part = event['content_index'] ?? event['summary_index'];
    const key = `${match[1]}:${typeof part === 'number' ? part : 0}`;
    this.#check(!slot.closed.has(key), event, `comes after the done event of ${key}`);
    if (match[2] === 'delta') {
      slot.open.set(key, (slot.open.get(key) ?? '') + String(event['delta']));
      return;
    }
    const text = ['text', 'refusal', 'arguments', 'input', 'diff', 'code']
      .map((name) => event[name])
      .find((value) => typeof value === 'string');
    this.#check(text === undefined || text === (slot.open.get(key) ?? ''), event, 'says another text than its deltas');
    slot.open.delete(key);
    slot.closed.set(key, text ?? '');
  }

  #checkTexts(event: Event, slot: Slot, item: Item): void {
    const content = (item['content'] ?? []) as Item[];
    for (const [key, text] of slot.closed) {
      const [kind, index] = key.split(':') as [string, string];
      const part = content[Number(index)];
      const said =
        kind === 'function_call_arguments'
          ? item['arguments']
          : kind === 'output_text'
            ? part?.['text']
            : kind === 'refusal'
              ? part?.['refusal']
              : text;
      this.#check(said === text, event, `says another text than ${kind}.done`);
    }
  }

  #terminal(event: Event): void {
    this.#ended = event.type;
    if (event.type !== 'response.completed') return;
    const output = (event['response'] as { output?: readonly Item[] } | undefined)?.output;
    this.#check(Array.isArray(output), event, 'has no output array');
    const open = [...this.#slots].find(([, slot]) => slot.done === undefined);
    this.#check(open === undefined, event, `comes while output_index ${open?.[0]} is not done`);
    if (output === undefined || output.length === 0) return;
    this.#check(
      output.length === this.#slots.size,
      event,
      `has ${output.length} items, the stream had ${this.#slots.size}`,
    );
    for (const [index, item] of output.entries()) {
      const slot = this.#slots.get(index);
      this.#check(
        item['type'] === slot?.type && (item['id'] ?? item['call_id']) === slot?.id,
        event,
        `has another item at index ${index} than the stream`,
      );
      this.#check(!this.#objects.has(item), event, `shares item ${index} with another event`);
    }
  }

  #slot(event: Event): Slot {
    const index = event['output_index'] as number;
    const slot = this.#slots.get(index);
    this.#check(slot !== undefined, event, `is about output_index ${index}, which was not added`);
    this.#check(slot?.done === undefined, event, `is about output_index ${index}, which is done`);
    return slot as Slot;
  }

  #check(ok: boolean, event: Event, problem: string): void {
    if (!ok) throw new Error(`Event ${this.#count} (${event.type}) ${problem}.`);
  }
}
