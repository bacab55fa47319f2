import { itemDigest, toInputItem, withoutReasoningId } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { Usage } from '../models/model.ts';
import type { RunContext } from '../state/context.ts';
import type { ModelExchange, PendingWrite } from '../state/pending-write.ts';
import type { SessionStep } from './calls.ts';
import { compactionEvidence, compactionGeneration, supports } from './contract.ts';
import type { CompactionAwareSession, CompactionEvidence, CompactionOptions } from './contract.ts';

export interface CompactionArgs {
  readonly session: CompactionAwareSession;
  readonly context: RunContext;
  readonly reasoningItemIdPolicy: 'preserve' | 'omit' | undefined;
  /** Aborted with the run: what the session asks of a service then ends early. */
  readonly signal: AbortSignal | undefined;
  readonly countUsage: (usage: Usage) => void;
}

/**
 * Tells a session that compacts its history what the run wrote, and what the model saw of it (SESS §3.8). It compacts only
 * what the model of this run has seen, and nothing where somebody else wrote meanwhile.
 */
export class CompactionHook {
  readonly #args: CompactionArgs;
  #exchange: ModelExchange | undefined;
  /** The session's count of changes after the run's own last one; `undefined` where it counts none. */
  #generation: number | undefined;

  /** Before the run reads the history. */
  constructor(args: CompactionArgs) {
    this.#args = args;
    this.rejoin();
  }

  /** Of the latest request that succeeded; what a request that is under way may fail with empties it. */
  get exchange(): ModelExchange | undefined {
    return this.#exchange;
  }

  asked(): void {
    this.#exchange = undefined;
  }

  answered(input: readonly AgentInputItem[], output: readonly object[]): void {
    const { session, reasoningItemIdPolicy: policy } = this.#args;
    const policied: unknown = session;
    const normalize = supports(policied, 'itemPolicy') ? policied.normalizeForComparison?.bind(policied) : undefined;
    this.#exchange = new LazyExchange([...input, ...(output as AgentInputItem[])], policy ?? null, normalize);
  }

  /** The run itself changed the history once. */
  appended(): void {
    if (this.#generation !== undefined) this.#generation += 1;
  }

  /** What is there now is what the run goes on from. */
  rejoin(): void {
    this.#generation = this.#args.session[compactionGeneration];
  }

  /**
   * After a batch was stored. Input has no response and is left alone; while outputs are not answered yet, the session is only
   * told.
   *
   * @returns whether the session may have changed its history
   */
  async stored(
    { responseId, store: given, hasLocalToolOutputs, exchange }: PendingWrite,
    step: SessionStep,
  ): Promise<boolean> {
    const { session, context, countUsage } = this.#args;
    if (responseId === null) return false;
    const store = given === null ? {} : { store: given };
    if (hasLocalToolOutputs) {
      await session.deferCompaction?.(responseId, store, context);
      return false;
    }
    const force = session.deferredResponseId === undefined ? {} : { force: true };
    const evidence: CompactionEvidence = {
      itemDigests: exchange?.itemDigests ?? [],
      reasoningItemIdPolicy: exchange?.reasoningItemIdPolicy ?? null,
      generation: this.#generation,
      signal: this.#args.signal,
    };
    const options: CompactionOptions = { responseId, ...store, ...force, [compactionEvidence]: evidence };
    const compacted = await step({ kind: 'session', operation: 'compact' }, () =>
      session.runCompaction(options, context),
    );
    if (compacted?.usage) countUsage(compacted.usage);
    return true;
  }
}

/** How an item is known in an exchange: as the model got it, without what only the store knows (SESS-104, 123). */
export function exchangeDigest(
  item: AgentInputItem,
  policy: ModelExchange['reasoningItemIdPolicy'],
  normalize: ((item: AgentInputItem) => AgentInputItem) | undefined,
): string {
  const seen = policy === 'omit' ? withoutReasoningId(toInputItem(item)) : toInputItem(item);
  return itemDigest(normalize ? normalize(seen) : seen, 'normalized');
}

/** Digests are made when somebody asks: most turns compact nothing, and are never written down. */
class LazyExchange implements ModelExchange {
  readonly reasoningItemIdPolicy: ModelExchange['reasoningItemIdPolicy'];
  readonly #items: readonly AgentInputItem[];
  readonly #normalize: ((item: AgentInputItem) => AgentInputItem) | undefined;
  #digests: readonly string[] | undefined;

  constructor(
    items: readonly AgentInputItem[],
    policy: ModelExchange['reasoningItemIdPolicy'],
    normalize: ((item: AgentInputItem) => AgentInputItem) | undefined,
  ) {
    this.#items = items;
    this.reasoningItemIdPolicy = policy;
    this.#normalize = normalize;
  }

  get itemDigests(): readonly string[] {
    return (this.#digests ??= this.#items.map((item) =>
      exchangeDigest(item, this.reasoningItemIdPolicy, this.#normalize),
    ));
  }
}
