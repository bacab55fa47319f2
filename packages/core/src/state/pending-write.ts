import type { AgentInputItem } from '../items/items.ts';

/** A batch that is, or may be, missing in the session: `pending_session_write` of the JSON (STATE §11.2). */
export interface PendingWrite {
  readonly sessionId: string;
  /** Exactly as they are stored. */
  readonly items: readonly AgentInputItem[];
  /** Raw digests of the tail before the append; `null`: the append never began. */
  before: readonly string[] | null;
  readonly persistedCount: number;
  readonly responseId: string | null;
  readonly store: boolean | null;
  readonly hasLocalToolOutputs: boolean;
  acknowledged: boolean;
  /** First item's position in the run and the turn (0: the run's input), for the operation id (SESS-101). Absent where the run's key was lost. */
  readonly position?: { readonly turn: number; readonly firstItemIndex: number } | undefined;
  /** Output guardrails withhold it: nothing was offered to the session yet (STATE-322). */
  readonly held?: HeldWrite | undefined;
  /** With a session that compacts: what it may rely on, also when a later process settles the write (STATE-329). */
  readonly exchange?: ModelExchange | undefined;
}

/** What the model saw and said in the run's latest request that succeeded. */
export interface ModelExchange {
  /** Normalized digests (STATE §12.9), input before output. */
  readonly itemDigests: readonly string[];
  readonly reasoningItemIdPolicy: 'preserve' | 'omit' | null;
}

/** What a held batch says of itself. */
export interface HeldWrite {
  /** With which its items were converted; `null`: they keep their ids. */
  readonly policy: 'preserve' | 'omit' | null;
  /** Turn of the response whose items are the last ones, and where they start. */
  readonly turn: number;
  readonly start: number;
}
