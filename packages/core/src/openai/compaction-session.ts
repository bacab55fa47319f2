import type { OpenAI } from 'openai';
import { checkSession } from '../agent/session-shape.ts';
import type { MaybePromise } from '../agent/tool.ts';
import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { toUsage } from '../base/usage.ts';
import { toInputItem } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { Usage } from '../models/model.ts';
import { appendItems, forgetAll, popNewest, readItems } from '../sessions/calls.ts';
import { compactionEvidence, compactionGeneration, hidesItems, supports } from '../sessions/contract.ts';
import type {
  CompactionAwareSession,
  CompactionEvidence,
  CompactionOptions,
  HidingSession,
  ItemPolicySession,
  Session,
  SessionSettings,
  TransactionalSession,
  VersionedSession,
} from '../sessions/contract.ts';
import type { RunContext } from '../state/context.ts';
import { checkClient, makeClient, once } from './client.ts';
import type { ClientSource } from './client.ts';
import { OpenAIConversationsSession } from './conversations-session.ts';
import { Changes } from './compaction-changes.ts';
import { checkCompactionModel, compactedItems } from './compaction-output.ts';
import { ALL, replaceAll, replaceSuffix } from './compaction-replace.ts';
import type { Replacement } from './compaction-replace.ts';
import { fromUserMessage, isCandidate, isComplete, seenSuffix } from './compaction-selection.ts';
import type { Selection } from './compaction-selection.ts';
import { defaultApiKey, defaultClient } from './defaults.ts';

/** Candidates that are worth a request. */
const ENOUGH = 10;
const HIDDEN = 'it holds items that cannot be read here, and the session cannot replace a part';
const modes = ['auto', 'previous_response_id', 'input'] as const;
type Mode = (typeof modes)[number];

export interface OpenAICompactionSessionOptions {
  /** Default: that of `setOpenAIDefaults`, else one for the default key and the environment. */
  client?: OpenAI | undefined;
  /** Default `gpt-4.1`. */
  model?: string | undefined;
  /** Default `auto`: by response id when the response is stored, else by input. */
  mode?: Mode | undefined;
  /** Default: at 10 items that are neither user messages nor compactions. */
  shouldCompact?:
    | ((args: {
        candidates: readonly AgentInputItem[];
        items: readonly AgentInputItem[];
        responseId: string | undefined;
      }) => MaybePromise<boolean>)
    | undefined;
}

/** What a call of the service is about. */
interface Call {
  readonly responseId: string | undefined;
  readonly mode: Exclude<Mode, 'auto'>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lets OpenAI compact the history of the wrapped session when it grew: messages of the user stay, one item stands for the
 * rest. A run asks for it after each turn that was answered, and only what the model of the run saw is compacted; what
 * others appended meanwhile stays. Has the capabilities of the wrapped session.
 *
 * @throws UserError for a Conversations session, for models that do not compact, and for options of a wrong kind
 * @example
 * const session = new OpenAICompactionSession(new SQLiteSession('user-42', 'chat.db'));
 * await run(agent, 'Summarize the report.', { session });
 */
export class OpenAICompactionSession implements CompactionAwareSession {
  readonly session: Session;
  /** Of the wrapped session, where it has them. */
  readonly applyHistoryTransaction?: TransactionalSession['applyHistoryTransaction'];
  readonly readHistory?: VersionedSession['readHistory'];
  readonly appendIfVersion?: VersionedSession['appendIfVersion'];
  readonly replaceHistory?: VersionedSession['replaceHistory'];
  readonly normalizeForComparison?: ItemPolicySession['normalizeForComparison'];
  readonly prepareHistoryItemForModelInput?: ItemPolicySession['prepareHistoryItemForModelInput'];
  readonly prepareItemsForPersistence?: ItemPolicySession['prepareItemsForPersistence'];
  readonly #client: ClientSource;
  readonly #model: string;
  readonly #mode: Mode;
  readonly #shouldCompact: OpenAICompactionSessionOptions['shouldCompact'];
  readonly #changes = new Changes();
  #lastCompaction: Promise<unknown> = Promise.resolve();
  #responseId: string | undefined;
  /** The last response that the service did not keep. */
  #unstored: string | undefined;
  #deferred: string | undefined;
  readonly #warned = new Set<string>();

  constructor(session: Session, options: OpenAICompactionSessionOptions = {}) {
    checkOptions(
      options,
      { client: checkClient, model: kinds.any, mode: kinds.oneOf(...modes), shouldCompact: kinds.function },
      'OpenAICompactionSession',
    );
    const { client, model = 'gpt-4.1', mode = 'auto', shouldCompact } = options;
    if (session instanceof OpenAIConversationsSession)
      throw new UserError(
        'OpenAICompactionSession cannot wrap an OpenAIConversationsSession: the service keeps that history itself. Wrap another session.',
      );
    checkCompactionModel(model);
    checkSession(session, 'The session of OpenAICompactionSession');
    this.session = session;
    this.#client = once(() => client ?? defaultClient() ?? makeClient({ apiKey: defaultApiKey() }));
    this.#model = model;
    this.#mode = mode;
    this.#shouldCompact = shouldCompact;
    if (supports(session, 'transactions'))
      this.applyHistoryTransaction = (operation, ctx) => {
        const kept = this.#changes.isReplacing
          ? { ...operation, transaction: this.#changes.kept(operation.transaction) }
          : operation;
        return this.#changes.change(() => session.applyHistoryTransaction(kept, ctx));
      };
    if (supports(session, 'versions')) {
      this.readHistory = (limit, ctx) => session.readHistory(limit, ctx);
      this.appendIfVersion = (version, items, how, ctx) => {
        const kept = this.#changes.kept(items);
        return this.#changes.change(() => session.appendIfVersion(version, kept, how, ctx));
      };
      this.replaceHistory = (items, how, ctx) => {
        const kept = this.#changes.kept(items);
        return this.#changes.change(() => session.replaceHistory(kept, how, ctx));
      };
    }
    if (supports(session, 'itemPolicy')) {
      if (session.normalizeForComparison)
        this.normalizeForComparison = (item) => session.normalizeForComparison?.(item) ?? item;
      if (session.prepareHistoryItemForModelInput)
        this.prepareHistoryItemForModelInput = (item) => session.prepareHistoryItemForModelInput?.(item) ?? item;
      if (session.prepareItemsForPersistence)
        this.prepareItemsForPersistence = (items) => session.prepareItemsForPersistence?.(items) ?? [...items];
    }
  }

  get sessionId(): string | undefined {
    return this.session.sessionId;
  }

  get sessionSettings(): SessionSettings | undefined {
    return this.session.sessionSettings;
  }

  get acceptsRunContext(): true | undefined {
    return supports(this.session, 'runContext') ? true : undefined;
  }

  get preserveReasoningItemIds(): boolean | undefined {
    return supports(this.session, 'itemPolicy') ? this.session.preserveReasoningItemIds : undefined;
  }

  /** Whether the wrapped session was closed. */
  get closed(): boolean {
    return (this.session as { readonly closed?: unknown }).closed === true;
  }

  /** A response whose outputs were not answered yet when it was stored: the next turn compacts. */
  get deferredResponseId(): string | undefined {
    return this.#deferred;
  }

  async getSessionId(): Promise<string> {
    return (await this.session.getSessionId?.()) ?? this.session.sessionId ?? '';
  }

  async getItems(limit?: number, ctx?: RunContext): Promise<AgentInputItem[]> {
    await this.#changes.replaced();
    return await readItems(this.session, limit, ctx);
  }

  async addItems(items: readonly AgentInputItem[], ctx?: RunContext): Promise<void> {
    const kept = this.#changes.kept(items);
    await this.#changes.change(
      () => appendItems(this.session, kept, ctx),
      () => kept.filter(isCandidate).length,
    );
  }

  async popItem(ctx?: RunContext): Promise<AgentInputItem | undefined> {
    // One that fails may have removed something.
    let isGone = true;
    try {
      const item = await this.#changes.change(() => popNewest(this.session, ctx));
      isGone = item !== undefined;
      return item;
    } finally {
      if (isGone) this.#forgetResponses();
    }
  }

  async clearSession(ctx?: RunContext): Promise<void> {
    try {
      await this.#changes.change(() => forgetAll(this.session, ctx));
    } finally {
      this.#forgetResponses();
    }
  }

  /**
   * Compacts the history, if there is enough of it, or with `force`. Two calls at the same time follow one another.
   *
   * @returns what the service charged; `undefined` where nothing was compacted
   * @throws UserError for unknown options, and for `previous_response_id` without a response; errors of the service pass
   */
  async runCompaction(options: CompactionOptions = {}, ctx?: RunContext): Promise<{ usage?: Usage } | undefined> {
    const { [compactionEvidence]: evidence, ...given } = options;
    checkOptions(
      given,
      { responseId: kinds.nonEmptyString, mode: kinds.oneOf(...modes), store: kinds.boolean, force: kinds.boolean },
      'runCompaction()',
    );
    const run = this.#lastCompaction.then(async () => {
      this.#remember(given.responseId, given.store);
      return evidence ? await this.#automatic(given, evidence, ctx) : await this.#manual(given, ctx);
    });
    this.#lastCompaction = run.catch(() => undefined);
    return await run;
  }

  /** Remembers the response if it is time to compact, which the next turn then does. */
  async deferCompaction(responseId: string, options: { store?: boolean } = {}, ctx?: RunContext): Promise<void> {
    checkOptions(options, { store: kinds.boolean }, 'deferCompaction()');
    this.#remember(responseId, options.store);
    if (this.#deferred === undefined && (await this.#isTime(responseId, ctx))) this.#deferred = responseId;
  }

  // ---- the two ways to compact

  /** The whole history, whatever window the wrapped session reads by itself. */
  async #manual(options: CompactionOptions, ctx: RunContext | undefined): Promise<{ usage?: Usage } | undefined> {
    const call = this.#callFor(options);
    await this.#changes.ended();
    const items = await readItems(this.session, ALL, ctx);
    if (items.length === 0) return undefined;
    if (options.force !== true && !(await this.#isWorthIt(items, call.responseId))) return undefined;
    if (await this.#wouldLoseItems(ctx)) return this.#skip('hidden', HIDDEN);
    const { compacted, usage } = await this.#ask(call, items);
    return await this.#replaced(usage, { ctx, old: items, compacted });
  }

  /** What the model of a run saw, as long as nobody else wrote. */
  async #automatic(
    options: CompactionOptions,
    evidence: CompactionEvidence,
    ctx: RunContext | undefined,
  ): Promise<{ usage?: Usage } | undefined> {
    if (evidence.generation !== undefined && evidence.generation !== this.#changes.generation)
      return this.#skip('foreign', 'somebody else changed the history while the run went on');
    const call = { ...this.#callFor(options), signal: evidence.signal };
    if (options.force !== true && !(await this.#isTime(call.responseId, ctx))) return undefined;
    const found = await this.#select(evidence, ctx);
    if (found === undefined) return undefined;
    const { selection, isWhole } = found;
    // The chain of responses holds more than a part of the history.
    if (!isWhole && (options.mode ?? this.#mode) === 'previous_response_id') return undefined;
    if (!isComplete(selection.stored)) return undefined;
    if (!isWhole && !(await this.#isWorthIt(selection.stored, call.responseId))) return undefined;
    if (await this.#wouldLoseItems(ctx)) return this.#skip('hidden', HIDDEN);
    const { compacted, usage } = await this.#ask(isWhole ? call : { ...call, mode: 'input' }, selection.seen);
    return await this.#replaced(usage, { ctx, old: selection.stored, compacted });
  }

  async #select(
    evidence: CompactionEvidence,
    ctx: RunContext | undefined,
  ): Promise<{ selection: Selection; isWhole: boolean } | undefined> {
    await this.#changes.ended();
    const most = evidence.itemDigests.length;
    const stored = most === 0 ? [] : await readItems(this.session, most + 1, ctx);
    const seen = seenSuffix(stored, evidence, normalizeOf(this.session));
    if (seen.stored.length === 0)
      return this.#skip('nothing seen', 'nothing of the history is what the model of the run saw');
    if (seen.stored.length === stored.length && stored.length <= most) return { selection: seen, isWhole: true };
    if (!supports(this.session, 'transactions'))
      return this.#skip(
        'part',
        'the model of the run saw a part of the history, and the session cannot replace a part',
      );
    const selection = fromUserMessage(seen);
    return selection && { selection, isWhole: false };
  }

  async #ask(call: Call, items: readonly AgentInputItem[]): Promise<{ compacted: AgentInputItem[]; usage: Usage }> {
    const { responses } = this.#client();
    const what =
      call.mode === 'input'
        ? { input: items.map((item) => toInputItem(item)) }
        : { previous_response_id: call.responseId ?? null };
    const { output, usage } = await responses.compact(
      { model: this.#model, ...what },
      call.signal ? { signal: call.signal } : undefined,
    );
    return {
      compacted: compactedItems(output),
      usage: toUsage(usage as unknown as Record<string, unknown> | undefined),
    };
  }

  /** The replacement takes its turn among the changes; a history that is no longer there wins over it. */
  async #replaced(usage: Usage, replacement: Omit<Replacement, 'session'>): Promise<{ usage: Usage }> {
    const { session } = this;
    const replaced = await this.#changes.replace(async () => {
      // All of the history, too: what cannot be read (corrupt records, what another key encrypted) stays.
      if (supports(session, 'transactions')) return await replaceSuffix({ ...replacement, session });
      // What others appended meanwhile may be of another key.
      if (await this.#wouldLoseItems(replacement.ctx)) return false;
      return await replaceAll({ ...replacement, session });
    });
    if (replaced) this.#deferred = undefined;
    else this.#skip('gone', 'the history changed while it was compacted');
    return { usage };
  }

  // ---- deciding

  /** Where only all of the history can be replaced, what the session does not show would go with it. */
  async #wouldLoseItems(ctx: RunContext | undefined): Promise<boolean> {
    if (supports(this.session, 'transactions')) return false;
    return (await (this.session as HidingSession)[hidesItems]?.(ctx)) === true;
  }

  #callFor(options: CompactionOptions): Call {
    const responseId = options.responseId ?? this.#responseId;
    const mode = options.mode ?? this.#mode;
    if (mode === 'previous_response_id' && responseId === undefined)
      throw new UserError(
        "Compaction with mode 'previous_response_id' needs a response: give 'responseId', or use mode 'input'.",
      );
    if (mode !== 'auto') return { responseId, mode };
    const isUnstored = options.store === false || (options.store === undefined && responseId === this.#unstored);
    return { responseId, mode: responseId === undefined || isUnstored ? 'input' : 'previous_response_id' };
  }

  /** Without reading the history where a count will do. */
  async #isTime(responseId: string | undefined, ctx: RunContext | undefined): Promise<boolean> {
    // Where versions tell that others change the history too, it is always looked at.
    const counted = supports(this.session, 'versions') ? undefined : this.#changes.candidates;
    if (this.#shouldCompact === undefined && counted !== undefined) return counted >= ENOUGH;
    await this.#changes.ended();
    const items = await readItems(this.session, ALL, ctx);
    this.#changes.counted(items.filter(isCandidate).length);
    return await this.#isWorthIt(items, responseId);
  }

  async #isWorthIt(items: readonly AgentInputItem[], responseId: string | undefined): Promise<boolean> {
    const candidates = items.filter(isCandidate);
    if (this.#shouldCompact === undefined) return candidates.length >= ENOUGH;
    return await this.#shouldCompact({ candidates, items, responseId });
  }

  #remember(responseId: string | undefined, store: boolean | undefined): void {
    if (responseId === undefined) return;
    this.#responseId = responseId;
    if (store === false) this.#unstored = responseId;
    else if (store === true && this.#unstored === responseId) this.#unstored = undefined;
  }

  #forgetResponses(): void {
    this.#responseId = undefined;
    this.#unstored = undefined;
    this.#deferred = undefined;
  }

  #skip(kind: string, why: string): undefined {
    if (!this.#warned.has(kind))
      getLogger('session').warn(`The history was not compacted: ${why}.`, { sessionId: this.sessionId });
    this.#warned.add(kind);
    return undefined;
  }

  static {
    // Between our own loop and this class: the count of changes that the loop compares with its own.
    Object.defineProperty(this.prototype, compactionGeneration, {
      get(this: OpenAICompactionSession) {
        return this.#changes.generation;
      },
    });
  }
}

function normalizeOf(session: Session): ((item: AgentInputItem) => AgentInputItem) | undefined {
  return supports(session, 'itemPolicy') ? session.normalizeForComparison?.bind(session) : undefined;
}
