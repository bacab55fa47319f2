import type { AnyAgent } from '../agent/agent.ts';
import type { JsonObject } from '../items/wire.ts';
import type { CallIdentity } from './identity.ts';
import { approvalKeyOf } from './lookup-key.ts';
import type { InvocationLedger } from './ledger.ts';
import type { ToolLookupKey } from './record.ts';

/**
 * Decisions under one key (STATE §5.5). `true` is a sticky decision, a list holds ids of calls that were decided one by
 * one, `false` is none of both.
 */
export interface ApprovalRecord {
  approved: boolean | string[];
  rejected: boolean | string[];
  /** Texts for the model by call id. */
  readonly rejectionMessages: Map<string, string>;
  stickyRejectionMessage?: string | undefined;
  /** Approval scope that a sticky decision covers. */
  stickyScope?: string | undefined;
}

/** Decisions on a hosted MCP server's requests; kept as they were read, nothing here interprets them. */
export interface HostedApproval {
  readonly identity: JsonObject;
  readonly record: ApprovalRecord;
}

/** What a stored decision says about a call. */
export type CallDecision =
  | { readonly approved: true }
  | { readonly approved: false; readonly message: string | undefined };

/** A function call whose decision is looked up. */
export interface DecidedCall {
  /** The agent that made the call. */
  readonly owner: AnyAgent;
  readonly lookupKey: ToolLookupKey;
  /** `undefined`: no decision can match. */
  readonly identity: CallIdentity | undefined;
}

/** Who may run what. Decisions on functions belong to an agent; nothing in the other two lists ever answers for a function. */
export class ApprovalMap {
  // Made when first asked for: in most runs nobody decides anything.
  #functions: Map<AnyAgent, Map<string, ApprovalRecord>> | undefined;
  #named: Map<string, ApprovalRecord> | undefined;
  readonly hosted: HostedApproval[] = [];

  /** Owner, then key of the tool (`approvalKeyOf`). */
  get functions(): Map<AnyAgent, Map<string, ApprovalRecord>> {
    return (this.#functions ??= new Map());
  }

  /** Native and custom tools, and function entries of old snapshots (STATE-146). */
  get named(): Map<string, ApprovalRecord> {
    return (this.#named ??= new Map());
  }

  /** The record of a function, made if there is none. */
  functionRecord(owner: AnyAgent, key: string): ApprovalRecord {
    let records = this.functions.get(owner);
    if (records === undefined) this.functions.set(owner, (records = new Map()));
    let record = records.get(key);
    if (record === undefined) records.set(key, (record = emptyRecord()));
    return record;
  }

  /** The decision that covers exactly this function call (STATE-161, 164, 165, 168). */
  decisionFor(call: DecidedCall, ledger: InvocationLedger): CallDecision | undefined {
    const own = this.#functions?.get(call.owner);
    if (call.identity === undefined || (own === undefined && this.#named === undefined)) return undefined;
    for (const key of keysOf(call.lookupKey)) {
      const decision =
        decide(own?.get(key), call.identity, ledger, true) ?? decide(this.named.get(key), call.identity, ledger, false);
      if (decision !== undefined) return decision;
    }
    return undefined;
  }

  /** Takes back that this one call was rejected: something else was said of it since. */
  withdrawRejection(owner: AnyAgent, lookupKey: ToolLookupKey, callId: string): void {
    for (const key of keysOf(lookupKey)) {
      const record = this.functions.get(owner)?.get(key);
      if (record === undefined || !Array.isArray(record.rejected)) continue;
      record.rejected = record.rejected.filter((id) => id !== callId);
      record.rejectionMessages.delete(callId);
    }
  }

  /** Status under an exact name, for inspection; it authorizes nothing (STATE-167). */
  isToolApproved(name: string, callId: string): boolean | undefined {
    const queried = this.hosted.find(
      ({ identity }) =>
        identity['type'] === 'query' && identity['tool_name'] === name && identity['request_id'] === callId,
    );
    const hosted = queried === undefined ? undefined : statusIn(queried.record, callId);
    if (hosted !== undefined) return hosted;
    let owned = [...this.functions.values()].flatMap((records) => records.get(name) ?? []);
    if (owned.length > 1) owned = owned.filter((record) => exactStatus(record, callId) !== undefined);
    const [only] = owned;
    const status = owned.length === 1 && only !== undefined ? statusIn(only, callId) : undefined;
    if (status !== undefined) return status;
    const named = this.named.get(name);
    return named === undefined ? undefined : statusIn(named, callId);
  }

  /** An independent map with the same decisions. */
  copy(): ApprovalMap {
    const copy = new ApprovalMap();
    for (const [owner, records] of this.#functions ?? []) copy.functions.set(owner, copyRecords(records));
    for (const [key, record] of this.#named ?? []) copy.named.set(key, copyRecord(record));
    for (const { identity, record } of this.hosted) copy.hosted.push({ identity, record: copyRecord(record) });
    return copy;
  }
}

/** A record without decisions. */
export function emptyRecord(): ApprovalRecord {
  return { approved: [], rejected: [], rejectionMessages: new Map() };
}

/** Decides one call (STATE-162). The latest decision wins; a sticky one stays for other calls. */
export function decideCall(record: ApprovalRecord, callId: string, approved: boolean, message?: string): void {
  const [own, opposite] = approved ? (['approved', 'rejected'] as const) : (['rejected', 'approved'] as const);
  const other = record[opposite];
  if (Array.isArray(other)) record[opposite] = other.filter((id) => id !== callId);
  const mine = record[own];
  if (mine === false) record[own] = [callId];
  else if (Array.isArray(mine) && !mine.includes(callId)) mine.push(callId);
  if (approved || message === undefined || message === '') record.rejectionMessages.delete(callId);
  else record.rejectionMessages.set(callId, message);
}

/**
 * Decides this and later calls of the tool (STATE-163). What was said about other single calls stands: a call that a person
 * rejected must not run because they trust the next one.
 */
export function decideAlways(
  record: ApprovalRecord,
  identity: CallIdentity,
  approved: boolean,
  message?: string,
): void {
  const { callId } = identity;
  const others = (value: boolean | string[]): string[] =>
    Array.isArray(value) ? value.filter((id) => id !== callId) : [];
  record.stickyScope = identity.approvalScope;
  record.rejectionMessages.delete(callId);
  if (approved) {
    record.rejected = others(record.rejected);
    record.approved = true;
    record.stickyRejectionMessage = undefined;
    return;
  }
  const kept = others(record.approved);
  record.approved = kept.length > 0 && kept;
  record.rejected = true;
  record.stickyRejectionMessage = message === '' ? undefined : message;
  if (record.stickyRejectionMessage !== undefined) record.rejectionMessages.set(callId, record.stickyRejectionMessage);
}

/** Exact key first, then the one that old snapshots have for a deferred tool (STATE-143). */
function keysOf(key: ToolLookupKey): readonly string[] {
  return key.kind === 'deferred_top_level' ? [approvalKeyOf(key), `${key.name}.${key.name}`] : [approvalKeyOf(key)];
}

/** Entries of old snapshots have no owner: what they say about single calls counts, what they say about all grants nothing. */
function decide(
  record: ApprovalRecord | undefined,
  identity: CallIdentity,
  ledger: InvocationLedger,
  owned: boolean,
): CallDecision | undefined {
  if (record === undefined) return undefined;
  const exact = exactStatus(record, identity.callId);
  if (exact !== undefined) {
    // A decision for another call of this id is absent, and a sticky one must not take the place of what was meant for it.
    return ledger.isBound(identity) ? decisionOf(record, identity.callId, exact) : undefined;
  }
  if (!owned || (record.approved !== true && record.rejected !== true) || record.stickyScope !== identity.approvalScope)
    return undefined;
  return decisionOf(record, identity.callId, record.approved === true);
}

function decisionOf(record: ApprovalRecord, callId: string, approved: boolean): CallDecision {
  if (approved) return { approved };
  const own = record.rejectionMessages.get(callId);
  return { approved, message: own ?? (record.rejected === true ? record.stickyRejectionMessage : undefined) };
}

function statusIn(record: ApprovalRecord, callId: string): boolean | undefined {
  return (
    exactStatus(record, callId) ?? (record.approved === true ? true : record.rejected === true ? false : undefined)
  );
}

function exactStatus({ approved, rejected }: ApprovalRecord, callId: string): boolean | undefined {
  if (Array.isArray(approved) && approved.includes(callId)) return true;
  return Array.isArray(rejected) && rejected.includes(callId) ? false : undefined;
}

function copyRecords(records: ReadonlyMap<string, ApprovalRecord>): Map<string, ApprovalRecord> {
  return new Map([...records].map(([key, record]) => [key, copyRecord(record)]));
}

function copyRecord(record: ApprovalRecord): ApprovalRecord {
  const list = (value: boolean | string[]): boolean | string[] => (Array.isArray(value) ? [...value] : value);
  return {
    ...record,
    approved: list(record.approved),
    rejected: list(record.rejected),
    rejectionMessages: new Map(record.rejectionMessages),
  };
}
