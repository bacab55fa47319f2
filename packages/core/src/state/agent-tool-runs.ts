import type { ResponseFunctionToolCall } from '../items/wire.ts';
import type { ToolApprovalItem } from './decisions.ts';
import type { CallIdentity } from './identity.ts';
import type { StateRecord } from './record.ts';
import { randomHex } from '../base/ids.ts';
import { approvalInternals } from './decisions.ts';
import { callIdentity } from './identity.ts';

// Paused runs of agent tools (STATE §10). They belong to the record of the run around them, so that isolation and life time
// follow from ownership: no map of the module, no weak reference, no finalizer.

/** What tells one call from another when its object is not at hand; absent `id` and `status` are null. */
export type ToolCallSignature = readonly [
  callId: string,
  name: string,
  args: string,
  type: string,
  id: string | null,
  status: string | null,
];

export function signatureOf(call: ResponseFunctionToolCall): ToolCallSignature {
  return [call.call_id, call.name, call.arguments, call.type, call.id ?? null, call.status ?? null];
}

/** A run of an agent tool that is kept for its call: paused, or going on since a resume. */
export interface PendingNestedRun {
  /** Where it stands; it belongs to the registry. */
  readonly record: StateRecord;
}

/** Stands for a nested run that goes on again: whatever ends the outer run, this is where the nested one can be gone on from. */
export class ResumeCheckpoint implements PendingNestedRun {
  readonly #current: () => StateRecord;
  /** Calls that waited when it was resumed. */
  readonly #items: readonly ToolApprovalItem[];
  #identities: ReadonlySet<string> | undefined;

  constructor(current: () => StateRecord, items: readonly ToolApprovalItem[]) {
    this.#current = current;
    this.#items = items;
  }

  /** Canonical identities of those calls, as texts; made when somebody asks. */
  get approvalIdentities(): ReadonlySet<string> {
    return (this.#identities ??= new Set(this.#items.flatMap((item) => identityText(item) ?? [])));
  }

  /** The live record, no copy. */
  get record(): StateRecord {
    return this.#current();
  }

  get interruptions(): readonly ToolApprovalItem[] {
    return waitingItems(this.record);
  }

  owns(item: ToolApprovalItem): boolean {
    const identity = identityText(item);
    return identity !== undefined && this.approvalIdentities.has(identity);
  }
}

interface Entry {
  readonly call: ResponseFunctionToolCall;
  readonly key: string;
  readonly run: PendingNestedRun;
}

/** Entries of one scope, and which of them have a signature. */
interface Scope {
  readonly entries: Map<ResponseFunctionToolCall, Entry>;
  readonly signatures: Map<string, Set<Entry>>;
}

type ScopeId = string | null | undefined;

/** The nested runs that one run keeps. An entry lives as long as its call needs it. */
export class AgentToolRuns {
  /** Of the run that owns this registry: 128 random bits as hex, never written down. */
  readonly scope: string = randomHex(16);
  readonly #scopes: Map<string | undefined, Scope> = new Map();

  /** Keeps a run for a call; one that is kept for it already is replaced. */
  record(call: ResponseFunctionToolCall, run: PendingNestedRun, scopeId?: ScopeId): void {
    const id = scopeId ?? undefined;
    let scope = this.#scopes.get(id);
    if (scope === undefined) this.#scopes.set(id, (scope = { entries: new Map(), signatures: new Map() }));
    const known = scope.entries.get(call);
    if (known) unindex(scope, known);
    const entry = { call, key: JSON.stringify([id ?? null, ...signatureOf(call)]), run };
    scope.entries.set(call, entry);
    const same = scope.signatures.get(entry.key);
    if (same) same.add(entry);
    else scope.signatures.set(entry.key, new Set([entry]));
  }

  /**
   * Keeps a run that goes on again.
   * @param current where it stands, asked whenever somebody looks
   * @param approvalItems calls that it accepted decisions of. Default: those that wait
   */
  recordResumeState(
    call: ResponseFunctionToolCall,
    current: () => StateRecord,
    options: { readonly scopeId?: ScopeId; readonly approvalItems?: readonly ToolApprovalItem[] } = {},
  ): void {
    const items = options.approvalItems ?? waitingItems(current());
    this.record(call, new ResumeCheckpoint(current, items), options.scopeId);
  }

  /** What is kept for the call: for this very object, else for its signature where only one entry has that. */
  peek(call: ResponseFunctionToolCall, scopeId?: ScopeId): PendingNestedRun | undefined {
    return this.#find(call, scopeId)?.entry.run;
  }

  /** `peek`, and keeps it no longer. */
  consume(call: ResponseFunctionToolCall, scopeId?: ScopeId): PendingNestedRun | undefined {
    const found = this.#find(call, scopeId);
    if (found) remove(found.scope, found.entry);
    return found?.entry.run;
  }

  drop(call: ResponseFunctionToolCall, scopeId?: ScopeId): void {
    this.consume(call, scopeId);
  }

  /** The run is over, or its turn. */
  clear(): void {
    this.#scopes.clear();
  }

  get size(): number {
    let size = 0;
    for (const { entries } of this.#scopes.values()) size += entries.size;
    return size;
  }

  /** Calls and runs of the owner's scope, in the order of recording. */
  entries(): readonly { readonly call: ResponseFunctionToolCall; readonly run: PendingNestedRun }[] {
    const scope = this.#scopes.get(this.scope);
    return scope === undefined ? [] : [...scope.entries.values()];
  }

  /** The owner's runs once more, under a scope of their own. */
  copy(copyRecord: (record: StateRecord) => StateRecord): AgentToolRuns {
    const copy = new AgentToolRuns();
    for (const { call, run } of this.entries()) copy.record(call, { record: copyRecord(run.record) }, copy.scope);
    return copy;
  }

  #find(call: ResponseFunctionToolCall, scopeId: ScopeId): { scope: Scope; entry: Entry } | undefined {
    const scope = this.#scopes.get(scopeId ?? undefined);
    if (scope === undefined) return undefined;
    const own = scope.entries.get(call);
    if (own) return { scope, entry: own };
    const same = scope.signatures.get(JSON.stringify([scopeId ?? null, ...signatureOf(call)]));
    const [only, another] = same ?? [];
    // More than one: a guess could give a call the run of another one.
    return only === undefined || another !== undefined ? undefined : { scope, entry: only };
  }
}

function remove(scope: Scope, entry: Entry): void {
  scope.entries.delete(entry.call);
  unindex(scope, entry);
}

function unindex({ signatures }: Scope, entry: Entry): void {
  const same = signatures.get(entry.key);
  same?.delete(entry);
  if (same?.size === 0) signatures.delete(entry.key);
}

function identityText(item: ToolApprovalItem): string | undefined {
  const identity = identityOf(item);
  return identity && JSON.stringify([identity.type, identity.callId, identity.approvalScope, identity.fingerprint]);
}

/** Canonical identity of a waiting call; `undefined`: it has none. */
export function identityOf(item: ToolApprovalItem): CallIdentity | undefined {
  const { lookupKey, toolName } = approvalInternals(item);
  return callIdentity(item.rawItem, lookupKey, { toolName });
}

// ---- the registry of a record

/** The registry of the record, made if there is none; its scope goes to the context that the run goes on with. */
export function agentToolRunsOf(record: StateRecord): AgentToolRuns {
  if (record.agentToolRuns === undefined) {
    record.agentToolRuns = new AgentToolRuns();
    setScope(record.context, record.agentToolRuns.scope);
  }
  return record.agentToolRuns;
}

/** The run that a record keeps for one of its calls. */
export function pausedRunOf(record: StateRecord, call: ResponseFunctionToolCall): PendingNestedRun | undefined {
  const { agentToolRuns } = record;
  return agentToolRuns?.peek(call, agentToolRuns.scope);
}

/** The nested runs of a record, in the order of their calls. */
export function nestedRuns(record: StateRecord): readonly { callId: string; record: StateRecord }[] {
  const { agentToolRuns, processed } = record;
  if (agentToolRuns === undefined || agentToolRuns.size === 0) return [];
  const runs = agentToolRuns.entries().map(({ call, run }) => ({ callId: call.call_id, record: run.record }));
  if (runs.length === 1) return runs;
  const order = new Map(
    processed?.newItems.map((item, index) => [item.type === 'tool_call_item' ? item.callId : undefined, index]),
  );
  return runs.toSorted((a, b) => (order.get(a.callId) ?? -1) - (order.get(b.callId) ?? -1));
}

/**
 * Calls that wait, those of nested runs included: in call order, each call's own item before those of its nested run
 * (STATE-123). The step of a record has its own alone.
 */
export function waitingItems(record: StateRecord): readonly ToolApprovalItem[] {
  const { step } = record;
  if (step.type !== 'interruption') return [];
  if (record.agentToolRuns === undefined) return step.interruptions;
  const items: ToolApprovalItem[] = [];
  collectWaiting(record, items);
  return items;
}

function collectWaiting(record: StateRecord, items: ToolApprovalItem[]): void {
  const { step, processed } = record;
  if (step.type !== 'interruption') return;
  const nested = nestedRuns(record);
  if (nested.length === 0 || step.interruptions.length === 0) {
    items.push(...step.interruptions);
    for (const inner of nested) collectWaiting(inner.record, items);
    return;
  }
  const open = new Set(step.interruptions);
  const own = new Map<string, ToolApprovalItem>(step.interruptions.map((item) => [item.callId, item]));
  const inner = new Map(nested.map(({ callId, record: run }) => [callId, run]));
  for (const item of processed?.newItems ?? []) {
    if (item.type !== 'tool_call_item' || item.callId === undefined) continue;
    const waiting = own.get(item.callId);
    if (waiting && open.delete(waiting)) items.push(waiting);
    const run = inner.get(item.callId);
    if (run) collectWaiting(run, items);
  }
  items.push(...open);
}

/** Ids of the calls that have no output because somebody has to decide: on them, or in their nested runs. */
export function openCallIds(record: StateRecord): ReadonlySet<string> {
  const { step } = record;
  const own = step.type === 'interruption' ? step.interruptions : [];
  return new Set([...own.map(({ callId }) => callId), ...nestedRuns(record).map(({ callId }) => callId)]);
}

// ---- scopes

/** Where a context tells which runs are its own; not enumerable, and never written down. */
const scopeKey: unique symbol = Symbol.for('@agents/core/agent-tool-scope/1');

/** The scope that a context has; `undefined` for anything that has none. Never throws. */
export function getScope(context: unknown): string | undefined {
  try {
    const scope = (context as { readonly [scopeKey]?: unknown } | null | undefined)?.[scopeKey];
    return typeof scope === 'string' ? scope : undefined;
  } catch {
    return undefined;
  }
}

/** Gives a context its scope, or takes it (`null`); does nothing where that cannot be. Never throws. */
export function setScope(context: unknown, id: string | null): void {
  if ((typeof context !== 'object' || context === null) && typeof context !== 'function') return;
  try {
    if (id === null) Reflect.deleteProperty(context, scopeKey);
    else Reflect.defineProperty(context, scopeKey, { value: id, configurable: true, writable: true });
  } catch {
    // A proxy may refuse in its own way.
  }
}
