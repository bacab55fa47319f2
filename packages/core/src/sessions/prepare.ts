import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { checkItemList, checkNewItems } from '../items/check.ts';
import { dedupeInput, inputToList, withoutReasoningId } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import { readItems } from './calls.ts';
import type { SessionStep } from './calls.ts';
import { classifyResult } from './classify.ts';
import { supports } from './contract.ts';
import type { Session, SessionInputCallback, SessionSettings } from './contract.ts';
import { pruneOrphans } from './prune.ts';
import type { Sourced } from './prune.ts';
import { checkSessionSettings, resolveLimit } from './settings.ts';
import { KnownTail, tailDigest } from './tail.ts';
import type { VersionChain } from './version-chain.ts';

/** What a fresh run starts from. */
export interface PreparedInput {
  /** For the model: history and new input. */
  readonly input: AgentInputItem[];
  /** For the session: of the new turn only, never history. */
  readonly newItems: AgentInputItem[];
  readonly tail: KnownTail;
}

export interface PrepareArgs {
  readonly session: Session;
  readonly settings?: SessionSettings | undefined;
  readonly callback?: SessionInputCallback | undefined;
  readonly input: string | readonly AgentInputItem[];
  readonly context: RunContext;
  readonly reasoningItemIdPolicy?: 'preserve' | 'omit' | undefined;
  readonly step: SessionStep;
  /** Reads, where other writers are noticed. */
  readonly chain?: VersionChain | undefined;
}

/**
 * Reads the history once and joins it with the new input (SESS-061…075). Nothing is written.
 *
 * @throws UserError for settings and callbacks of a wrong kind, and `session_foreign_items`; what the session throws passes
 */
export async function prepareInput(args: PrepareArgs): Promise<PreparedInput> {
  const { session, settings, callback, context, chain } = args;
  checkSessionSettings(settings, "'sessionSettings'");
  if (callback !== undefined && typeof callback !== 'function') {
    throw new UserError(`'sessionInputCallback' must be a function, not ${kindOf(callback)}.`);
  }
  const own = session.sessionSettings;
  const limit = resolveLimit(undefined, settings, own);
  // Without an argument the session would fall back to its own limit, which `null` overrules.
  const argument = limit ?? (own?.limit === undefined || own.limit === null ? undefined : Number.MAX_SAFE_INTEGER);
  const stored = await args.step({ kind: 'session', operation: 'read' }, () =>
    chain ? chain.read(argument) : readItems(session, argument, context),
  );
  const history = modelView(stored, session, args.reasoningItemIdPolicy);
  const newItems = inputToList(args.input);
  const all =
    callback === undefined
      ? [...history.map((item) => ({ item, isNew: false })), ...newItems.map((item) => ({ item, isNew: true }))]
      : await combine(callback, history, newItems, session);
  const view = pruneOrphans(all, true);
  return {
    input: [...dedupeInput(view.map(({ item }) => item))],
    newItems: all.filter(({ isNew }) => isNew).map(({ item }) => item),
    tail: new KnownTail(stored, limit === undefined || (limit > 0 && stored.length === 0)),
  };
}

/** Copies of the history as a model may see it (SESS-062, 065). */
function modelView(
  stored: readonly AgentInputItem[],
  session: Session,
  policy: 'preserve' | 'omit' | undefined,
): AgentInputItem[] {
  const itemPolicy = supports(session, 'itemPolicy') ? session : undefined;
  const omitIds = policy === 'omit' && itemPolicy?.preserveReasoningItemIds !== true;
  const view = stored.map((item) => {
    refuseForeign(item);
    const plain = withoutSdkKeys(item);
    const copy = omitIds ? withoutReasoningId(plain) : plain;
    return itemPolicy?.prepareHistoryItemForModelInput ? itemPolicy.prepareHistoryItemForModelInput(copy) : copy;
  });
  if (itemPolicy) checkItemList(view, "The session's prepareHistoryItemForModelInput() returned");
  return view;
}

function withoutSdkKeys(item: AgentInputItem): AgentInputItem {
  const {
    _agents_tool_description: _1,
    _agents_tool_title: _2,
    created_by: _3,
    ...rest
  } = item as AgentInputItem & Record<string, unknown>;
  return rest;
}

/** camelCase members without their snake_case counterpart: an item of another SDK, which the API would refuse. */
function refuseForeign(item: object): void {
  const foreign = ('callId' in item && !('call_id' in item)) || ('providerData' in item && !('provider_data' in item));
  if (!foreign) return;
  throw new UserError(
    "The session holds items of npm '@openai/agents' (camelCase). Convert the history once: copy it with migrateSession(), or convert its items with convertJsSdkItems(), both of '@agents/core/session'.",
    { code: 'session_foreign_items' },
  );
}

async function combine(
  callback: SessionInputCallback,
  history: readonly AgentInputItem[],
  newItems: readonly AgentInputItem[],
  session: Session,
): Promise<Sourced[]> {
  const old = history.map(deepCopy);
  const fresh = newItems.map(deepCopy);
  const handed: ReadonlySet<AgentInputItem> = new Set(old);
  const result: unknown = await callback(old, fresh);
  if (!Array.isArray(result)) {
    throw new UserError(`'sessionInputCallback' must return an array of input items, not ${kindOf(result)}.`);
  }
  checkItemList(result, "'sessionInputCallback' returned");
  const sourced = classifyResult(result as AgentInputItem[], old, fresh, handed, (item) => tailDigest(session, item));
  const added = sourced.filter(({ isNew }) => isNew).map(({ item }) => item);
  checkNewItems(added, 'new items', "'sessionInputCallback' returned what cannot be stored");
  return sourced;
}

function deepCopy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(deepCopy) as T;
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Instances (a Date, a URL) are not JSON; the session refuses or converts them when they are stored.
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, deepCopy(member)])) as T;
}
