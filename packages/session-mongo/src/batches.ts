import { SessionItemError } from '@agents/core/session';
import { BSON } from 'mongodb';

/** Of a document, in MongoDB. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;
/** Beside the items: ids, numbers, dates, the operation; and room to spare. A session id has at most 1024 units. */
const OTHER_BYTES = 8 * 1024;
/** A history that is written anew is split, so that the newest items can be read without the others. */
const CHUNK_ITEMS = 100;
const CHUNK_BYTES = 256 * 1024;

/** @throws SessionItemError for a batch that no document can hold, before anything is sent */
export function checkSize(texts: readonly string[], sessionId: string): void {
  // Texts are ASCII: as many bytes as units, and at most 16 for the type, the index and the length of each.
  if (texts.reduce((sum, text) => sum + text.length + 16, OTHER_BYTES) <= MAX_DOCUMENT_BYTES) return;
  const bytes = BSON.calculateObjectSize({ message_data: texts }) + OTHER_BYTES;
  if (bytes <= MAX_DOCUMENT_BYTES) return;
  const index = texts.reduce((largest, text, at) => (text.length > (texts[largest]?.length ?? 0) ? at : largest), 0);
  throw tooLarge(bytes, index, sessionId);
}

function tooLarge(bytes: number, index: number, sessionId: string): SessionItemError {
  return new SessionItemError(
    `The batch has ${bytes} bytes; MongoDB holds at most ${MAX_DOCUMENT_BYTES} in a document, and a batch is one. Its largest item is ${index}. Nothing was stored. Shorten it, or keep it elsewhere and its address in the item.`,
    { sessionId, index, path: '', code: 'session_item_too_large' },
  );
}

/** For a history that is split: no item may be too large for a document of its own. @throws SessionItemError */
export function checkSizes(texts: readonly string[], sessionId: string): void {
  for (const [index, text] of texts.entries())
    if (text.length + OTHER_BYTES > MAX_DOCUMENT_BYTES) throw tooLarge(text.length + OTHER_BYTES, index, sessionId);
}

export function chunksOf(entries: readonly unknown[]): unknown[][] {
  const chunks: unknown[][] = [];
  let chunk: unknown[] = [];
  let bytes = 0;
  for (const entry of entries) {
    // What is no text was put there by others, and is carried along.
    const size = typeof entry === 'string' ? entry.length : BSON.calculateObjectSize({ entry });
    if (chunk.length > 0 && (chunk.length >= CHUNK_ITEMS || bytes + size > CHUNK_BYTES)) {
      chunks.push(chunk);
      chunk = [];
      bytes = 0;
    }
    chunk.push(entry);
    bytes += size;
  }
  if (chunk.length > 0) chunks.push(chunk);
  return chunks;
}
