import type { AgentInputItem } from '../../items/items.ts';
import type { StateRecord } from '../../state/record.ts';
import { convertedItem, dedupeInput, inputToList } from '../../items/convert.ts';

/**
 * The list that the model sees: the record's input, then its items. An item is converted once, when the list first
 * reaches it; a turn costs what is new in it and one slice of pointers. Repeated items are looked for when the list is
 * made, and not again until history is rewritten.
 */
export class ModelInput {
  #list: AgentInputItem[] | undefined;
  #taken = 0;

  /** A new array each time, of objects that nobody changes. */
  next(record: StateRecord): AgentInputItem[] {
    const isNew = this.#list === undefined;
    let list = (this.#list ??= inputToList(record.input));
    const items = record.generatedItems;
    for (; this.#taken < items.length; this.#taken += 1) {
      const item = items[this.#taken];
      const converted = item && convertedItem(item, record.reasoningItemIdPolicy);
      if (converted) list.push(converted);
    }
    if (isNew) list = this.#list = [...dedupeInput(list)];
    return list.slice();
  }

  /** The record's input or items are others than before. */
  rewritten(): void {
    this.#list = undefined;
    this.#taken = 0;
  }
}
