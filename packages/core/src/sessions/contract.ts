/// <reference lib="esnext.disposable" />
import type { MaybePromise } from '../agent/tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { Usage } from '../models/model.ts';
import type { RunContext } from '../state/context.ts';

// ---- the contract: four methods and an id

/** Where a conversation is kept. Any object with these members is a session; items are opaque JSON objects. */
export interface Session<T extends object = AgentInputItem> {
  /** 1–1024 UTF-16 units. `undefined` only while a service has not given one yet: then `getSessionId` asks for it. */
  readonly sessionId: string | undefined;
  readonly sessionSettings?: SessionSettings | undefined;
  /** The newest `limit` items, oldest first, as fresh objects. Default `sessionSettings.limit`, else all; `<= 0`: none. */
  getItems(limit?: number): Promise<T[]>;
  /** One atomic batch, in order. */
  addItems(items: readonly T[]): Promise<void>;
  /** Removes and returns the newest item. */
  popItem(): Promise<T | undefined>;
  clearSession(): Promise<void>;
  getSessionId?(): Promise<string>;
}
export interface SessionSettings {
  /** Items read per run; `null`: all. */ limit?: number | null;
}
/** Shapes what the model sees; only new items are stored. Gets copies. Default: history, then new items. */
export type SessionInputCallback = (
  history: AgentInputItem[],
  newItems: AgentInputItem[],
) => MaybePromise<readonly AgentInputItem[]>;

// ---- capabilities: optional, each detected by itself

/** One atomic change that can be repeated: same id and transaction changes nothing. @throws UserError `session_operation_mismatch`, `session_suffix_mismatch` */
export interface TransactionalSession<T extends object = AgentInputItem> extends Session<T> {
  applyHistoryTransaction(operation: HistoryOperation<T>, ctx?: RunContext): Promise<void>;
}
export interface HistoryOperation<T extends object = AgentInputItem> {
  readonly operationId: string;
  readonly transaction: HistoryTransaction<T>;
  /** Digest of the plain items, set by wrappers that change bytes; backends compare it instead of their own. */
  readonly [contentDigest]?: string | undefined;
}
export type HistoryTransaction<T extends object = AgentInputItem> =
  | { readonly type: 'append_items'; readonly items: readonly T[] }
  | { readonly type: 'replace_suffix'; readonly expectedSuffix: readonly T[]; readonly replacement: readonly T[] };
export const contentDigest: unique symbol = Symbol.for('agents.contentDigest') as never;

/** Versions are opaque and compare for equality only. @throws SessionVersionConflictError */
export interface VersionedSession<T extends object = AgentInputItem> extends Session<T> {
  readHistory(limit?: number, ctx?: RunContext): Promise<{ items: T[]; version: string }>;
  /** Resolves to the new version. */
  appendIfVersion(
    version: string,
    items: readonly T[],
    options?: { operationId?: string },
    ctx?: RunContext,
  ): Promise<string>;
  replaceHistory(
    items: readonly T[],
    options?: { ifVersion?: string; operationId?: string },
    ctx?: RunContext,
  ): Promise<string>;
}

/** Gets the run's context with each call of a run (tenants, per-user keys). */
export interface ContextAwareSession<C = unknown, T extends object = AgentInputItem> extends Session<T> {
  readonly acceptsRunContext: true;
  getItems(limit?: number, ctx?: RunContext<C>): Promise<T[]>;
  addItems(items: readonly T[], ctx?: RunContext<C>): Promise<void>;
  popItem(ctx?: RunContext<C>): Promise<T | undefined>;
  clearSession(ctx?: RunContext<C>): Promise<void>;
}

/** For stores that change items (server ids): how to compare, send and store them. */
export interface ItemPolicySession<T extends object = AgentInputItem> extends Session<T> {
  normalizeForComparison?(item: T): T;
  prepareHistoryItemForModelInput?(item: T): T;
  prepareItemsForPersistence?(items: readonly T[]): T[];
  readonly preserveReasoningItemIds?: boolean | undefined;
}

/** @internal Goes on with an append of a service that is not atomic: a symbol, for it is between our own loop and our own session. */
export const partialAppend: unique symbol = Symbol.for('agents.partialAppend');

/** @internal */
export interface PartialAppendSession {
  /** Whether the rest of these items, whose first part is stored, was added now; `false`: nothing is known of such an append. */
  [partialAppend](items: readonly AgentInputItem[]): Promise<boolean>;
}

/** @internal Of sessions whose reads leave out what they cannot read: whether they hold such items, which others may read. */
export const hidesItems: unique symbol = Symbol.for('agents.hidesItems');

/** @internal */
export interface HidingSession {
  [hidesItems]?(ctx: RunContext | undefined): Promise<boolean>;
}

/** Called after each turn that was written; shortens what is stored. */
export interface CompactionAwareSession<T extends object = AgentInputItem> extends Session<T> {
  runCompaction(options?: CompactionOptions, ctx?: RunContext): Promise<{ usage?: Usage } | undefined>;
  /** Called instead while tool outputs of the turn are not yet answered; the next call has `force`. */
  deferCompaction?(responseId: string, options?: { store?: boolean }, ctx?: RunContext): Promise<void>;
  readonly deferredResponseId?: string | undefined;
  /** @internal Counts changes that were made through this object, its own compactions left out. */
  readonly [compactionGeneration]?: number;
}
export interface CompactionOptions {
  responseId?: string;
  mode?: 'auto' | 'previous_response_id' | 'input';
  store?: boolean;
  force?: boolean;
  /** @internal */
  readonly [compactionEvidence]?: CompactionEvidence;
}

/** @internal On the options of a compaction that the loop asks for; wrappers pass it on (SESS-123). */
export const compactionEvidence: unique symbol = Symbol.for('agents.compaction');
/** @internal */
export const compactionGeneration: unique symbol = Symbol.for('agents.compactionGeneration');

/** @internal What the model of the run has seen, and what nobody else may have changed since. */
export interface CompactionEvidence {
  readonly itemDigests: readonly string[];
  readonly reasoningItemIdPolicy: 'preserve' | 'omit' | null;
  readonly generation: number | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface SessionCapabilities<T extends object = AgentInputItem> {
  transactions: TransactionalSession<T>;
  versions: VersionedSession<T>;
  runContext: ContextAwareSession<unknown, T>;
  compaction: CompactionAwareSession<T>;
  itemPolicy: ItemPolicySession<T>;
}
/** Never throws, whatever it is given. */
export function supports<K extends keyof SessionCapabilities>(
  session: unknown,
  capability: K,
): session is SessionCapabilities[K] {
  if ((typeof session !== 'object' && typeof session !== 'function') || session === null) return false;
  try {
    const candidate = session as Record<string, unknown>;
    return (
      FOUR.every((name) => typeof candidate[name] === 'function') &&
      Object.hasOwn(CAPABILITIES, capability) &&
      CAPABILITIES[capability](candidate)
    );
  } catch {
    // Proxies and getters may throw whatever they like.
    return false;
  }
}

const FOUR = ['getItems', 'addItems', 'popItem', 'clearSession'] as const;
const has = (session: Record<string, unknown>, ...names: readonly string[]): boolean =>
  names.every((name) => typeof session[name] === 'function');
const CAPABILITIES: { readonly [K in keyof SessionCapabilities]: (session: Record<string, unknown>) => boolean } = {
  transactions: (session) => has(session, 'applyHistoryTransaction'),
  versions: (session) => has(session, 'readHistory', 'appendIfVersion', 'replaceHistory'),
  runContext: (session) => session['acceptsRunContext'] === true,
  compaction: (session) => has(session, 'runCompaction'),
  itemPolicy: (session) =>
    has(session, 'normalizeForComparison') ||
    has(session, 'prepareHistoryItemForModelInput') ||
    has(session, 'prepareItemsForPersistence') ||
    session['preserveReasoningItemIds'] === true,
};

/** What every backend of ours is. `close` is final and a no-op for a client that was handed in. */
export interface ManagedSession<T extends object = AgentInputItem>
  extends TransactionalSession<T>, VersionedSession<T>, AsyncDisposable {
  readonly sessionId: string;
  readonly closed: boolean;
  getSessionId(): Promise<string>;
  /** Whether the store answers; rejects only when closed. */
  ping(): Promise<boolean>;
  close(): Promise<void>;
}
/** Options of every backend of ours. */
export interface SessionOptions {
  sessionSettings?: SessionSettings | undefined;
  /** Bounds every call; a mutation that ran out has an unknown outcome. Default 30 000. */
  operationTimeoutMs?: number | undefined;
  /** What reads do with records that cannot be decoded. Default `skip`, with one warning. */
  corruptItems?: 'skip' | 'throw' | undefined;
  onCorruptItem?: ((info: { sessionId: string; position: number; reason: string }) => void) | undefined;
}
