import { countOf, integer } from './layout.ts';
import type { Count, MessageDocument } from './layout.ts';

/** Batches that are remembered: of those behind it nobody can have been popping but who came in the same moment. */
const REMEMBERED = 8;

type PoppedBatch = Pick<MessageDocument, 'seq' | '_popped'>;

/** What the newest batches of a history were like when they were read to be replaced. */
export interface ReplacedHistory {
  readonly generation: Count;
  /** Oldest first. */
  readonly batches: readonly { readonly seq: Count; readonly popped: Count }[];
}

export function replacedHistory(generation: number, batches: readonly PoppedBatch[]): ReplacedHistory {
  const newest = batches.toSorted((a, b) => countOf(a.seq) - countOf(b.seq)).slice(-REMEMBERED);
  return {
    generation: integer(generation),
    batches: newest.map(({ seq, _popped }) => ({ seq: integer(countOf(seq)), popped: integer(countOf(_popped)) })),
  };
}

/**
 * Whether a pop took its item before the history was read to be replaced: it is not in what came into its place, so the pop
 * has it. Otherwise the replacement dealt with the item, and the pop has to take another one.
 *
 * @param claimed the batch before the item was taken from it
 */
export function wentBefore(claimed: PoppedBatch, generation: number, replaced: ReplacedHistory | undefined): boolean {
  if (replaced === undefined || countOf(replaced.generation) !== generation) return false;
  const number = countOf(claimed.seq);
  const [oldest] = replaced.batches;
  const seen = replaced.batches.find(({ seq }) => countOf(seq) === number);
  if (seen !== undefined) return countOf(seen.popped) > countOf(claimed._popped);
  // Emptied and swept away, or inserted later. What is older than all that is remembered may have been there.
  return replaced.batches.length < REMEMBERED || number > countOf(oldest?.seq);
}
