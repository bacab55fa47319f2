import { decodeItem, encodeItem } from '@agents/core/session';

/** What all floors do alike: items become texts as ours do. */
export function textsOf(items: readonly object[]): string[] {
  return items.map((item) => encodeItem(item));
}

/** A record that is no item is left out, as ours leave it out. */
export function itemsOf(texts: readonly string[]): readonly object[] {
  const items: object[] = [];
  for (const text of texts) {
    const item: object | undefined = decodeItem(text);
    if (item !== undefined) items.push(item);
  }
  return items;
}

export function itemsOfNewestFirst(rows: readonly { readonly message_data: string }[]): readonly object[] {
  return itemsOf(rows.map(({ message_data }) => message_data).toReversed());
}
