import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { toolNameOf } from '../items/read.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { approvalInternals } from '../state/decisions.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import { callIdentity, ScopeDigests } from '../state/identity.ts';
import type { CallIdentity } from '../state/identity.ts';
import { completedBy, invocationOf, isInvocationType } from '../state/invocation.ts';
import type { InvocationType } from '../state/invocation.ts';
import type { LedgerEntry } from '../state/ledger.ts';
import { own } from './json.ts';
import type { Version } from './versions.ts';

/**
 * The rows as they are written; `undefined` for labels without a ledger, whose rows are rebuilt from history.
 *
 * @throws UserError `ledger_invalid`
 */
export function readRows(context: JsonObject, version: Version): LedgerEntry[] | undefined {
  if (!version.has('ledger')) return undefined;
  const json = own(context, 'tool_invocations');
  if (json === undefined) return [];
  if (!isObject(json)) throw invalid('it must be an object');
  return Object.keys(json).map((callId) => readRow(callId, json[callId]));
}

function readRow(callId: string, row: JsonValue | undefined): LedgerEntry {
  if (callId === '') throw invalid('a call id is empty');
  if (!isObject(row)) throw invalid('a row is no object');
  const { type, approval_scope: approvalScope, fingerprint, executed, completed } = row as RowJson;
  if (!isInvocationType(type)) throw invalid('a row has an unknown type');
  if (!isDigest(approvalScope) || !isDigest(fingerprint))
    throw invalid('approval_scope and fingerprint must be SHA-256 digests');
  if (typeof executed !== 'boolean' || typeof completed !== 'boolean')
    throw invalid('executed and completed must be true or false');
  if (completed && !executed) throw invalid('a completed row must be executed');
  return { type, callId, approvalScope, fingerprint, executed, completed };
}

interface RowJson {
  readonly type?: JsonValue;
  readonly approval_scope?: JsonValue;
  readonly fingerprint?: JsonValue;
  readonly executed?: JsonValue;
  readonly completed?: JsonValue;
}

// A literal in the function would be a new object at each call, twice per row.
const digest = /^[0-9a-f]{64}$/;

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && digest.test(value);
}

// ---- history

/** A call as it stands in the history, and what its item says about it. */
interface Occurrence {
  readonly wire: object;
  readonly item: RunItem | undefined;
}

/** Calls and outputs of the input and the items of a run. */
export interface CallHistory {
  readonly calls: ReadonlyMap<string, readonly Occurrence[]>;
  /** Kinds of outputs by call id. */
  readonly outputs: ReadonlyMap<string, ReadonlySet<InvocationType>>;
}

export function callHistory(
  input: string | readonly AgentInputItem[],
  ...lists: readonly (readonly RunItem[])[]
): CallHistory {
  const calls = new Map<string, Occurrence[]>();
  const outputs = new Map<string, Set<InvocationType>>();
  const add = (wire: object, item: RunItem | undefined): void => {
    const output = completedBy(wire);
    if (output !== undefined) {
      const types = outputs.get(output.callId);
      if (types === undefined) outputs.set(output.callId, new Set([output.type]));
      else types.add(output.type);
      return;
    }
    const callId = invocationOf(wire)?.callId;
    if (callId === undefined) return;
    const known = calls.get(callId);
    if (known === undefined) calls.set(callId, [{ wire, item }]);
    else if (!known.some((other) => other.item === item && item !== undefined)) known.push({ wire, item });
  };
  if (typeof input !== 'string') for (const wire of input) add(wire, undefined);
  const seen = new Set<RunItem>();
  for (const list of lists) {
    for (const item of list) {
      if (seen.has(item)) continue;
      seen.add(item);
      add(item.rawItem, item);
    }
  }
  return { calls, outputs };
}

/**
 * Completed rows must be what the history shows: at least one call, no other call of that id, and an output (STATE-362).
 *
 * @throws UserError `ledger_mismatch`
 */
export function checkRows(
  rows: readonly LedgerEntry[],
  input: string | readonly AgentInputItem[],
  ...lists: readonly (readonly RunItem[])[]
): void {
  const claims: Claims = { byId: new Map(), scopes: new ScopeDigests(), open: 0 };
  for (const row of rows) {
    if (!row.completed) continue;
    claims.byId.set(row.callId, { row, hasCall: false, hasOutput: false, item: undefined });
    claims.open += 2;
  }
  if (claims.open === 0) return;
  if (typeof input !== 'string') for (const wire of input) compare(claims, wire, undefined);
  const [first = []] = lists;
  for (const list of lists) {
    for (let i = 0; i < list.length; i++) {
      const item = list[i];
      // The lists have most items in common, at the same places until the first rewrite.
      if (item !== undefined && (list === first || item !== first[i])) compare(claims, item.rawItem, item);
    }
  }
  if (claims.open > 0) throw mismatch();
}

/** A completed row, and what of it was found. */
interface Claim {
  readonly row: LedgerEntry;
  hasCall: boolean;
  hasOutput: boolean;
  /** The last item that was compared: it stands in both lists. */
  item: RunItem | undefined;
}

interface Claims {
  readonly byId: Map<string, Claim>;
  readonly scopes: ScopeDigests;
  /** Calls and outputs that were not found yet. */
  open: number;
}

function compare(claims: Claims, wire: object, item: RunItem | undefined): void {
  const output = completedBy(wire);
  if (output !== undefined) {
    const claim = claims.byId.get(output.callId);
    if (claim === undefined || claim.hasOutput || !endsCall(claim.row, output.type)) return;
    claim.hasOutput = true;
    claims.open -= 1;
    return;
  }
  const callId = invocationOf(wire)?.callId;
  const claim = callId === undefined ? undefined : claims.byId.get(callId);
  if (claim === undefined || (item !== undefined && claim.item === item)) return;
  if (!isCallOf(claim.row, wire, item, claims.scopes)) throw mismatch();
  claim.item = item;
  if (claim.hasCall) return;
  claim.hasCall = true;
  claims.open -= 1;
}

/** A model may send a patch as a function or custom call of that name. */
function isPatchFallback(row: LedgerEntry, wire: object): boolean {
  return row.type === 'apply_patch_call' && toolNameOf(wire) === 'apply_patch';
}

/** Whether the call can have meant the row: a wire object alone does not tell a handoff from a function. */
function isCallOf(row: LedgerEntry, wire: object, item: RunItem | undefined, scopes: ScopeDigests): boolean {
  if (isPatchFallback(row, wire) || isUnnamed(row, wire)) return true;
  const known = item?.type === 'tool_approval_item' ? approvalInternals(item) : undefined;
  const { name } = wire as { name?: unknown };
  return (
    fits(callIdentity(wire, known?.lookupKey, { toolName: known?.toolName ?? toolNameOf(wire) }), row, scopes) ||
    fits(callIdentity(wire), row, scopes) ||
    fits(callIdentity(wire, undefined, { role: 'handoff' }), row, scopes) ||
    (typeof name === 'string' && fits(callIdentity(wire, { kind: 'deferred_top_level', name }), row, scopes))
  );
}

function fits(identity: CallIdentity | undefined, row: LedgerEntry, scopes: ScopeDigests): boolean {
  return (
    identity?.type === row.type &&
    identity.shareScope(scopes).approvalScope === row.approvalScope &&
    identity.fingerprint === row.fingerprint
  );
}

/** Calls of native tools do not say which tool they meant, so their scope cannot be made again. */
function isUnnamed(row: LedgerEntry, wire: object): boolean {
  const { type, name } = wire as { type?: unknown; name?: unknown };
  return (
    name === undefined &&
    row.type === type &&
    row.type !== 'function_call' &&
    row.type !== 'custom_tool_call' &&
    row.type !== 'mcp_approval_request'
  );
}

function endsCall(row: LedgerEntry, output: InvocationType): boolean {
  return (
    output === row.type ||
    (row.type === 'apply_patch_call' && (output === 'function_call' || output === 'custom_tool_call'))
  );
}

// ---- binding

/**
 * Calls whose stored decisions were made for something that cannot be named any more (STATE-361): they wait again.
 */
export function unboundCalls(
  rows: readonly LedgerEntry[],
  decided: ReadonlySet<string>,
  waiting: readonly ToolApprovalItem[],
): Set<string> {
  const ids = new Set(decided);
  for (const { callId } of waiting) ids.add(callId);
  const byId = new Map(rows.filter(({ callId }) => ids.has(callId)).map((row) => [row.callId, row]));
  const unbound = new Set<string>();
  const scopes = new ScopeDigests();
  for (const callId of decided) if (!byId.has(callId)) unbound.add(callId);
  for (const item of waiting) {
    const row = byId.get(item.callId);
    if (row !== undefined && !isCallOf(row, item.rawItem, item, scopes)) unbound.add(item.callId);
  }
  return unbound;
}

/** Rows for a label without a ledger: what history shows is finished, and what the waiting items say was decided. */
export function rebuiltRows(history: CallHistory, waiting: readonly ToolApprovalItem[]): LedgerEntry[] {
  const rows: LedgerEntry[] = [];
  const waitingIds = new Set(waiting.map((item) => item.callId));
  for (const [callId, occurrences] of history.calls) {
    const outputs = history.outputs.get(callId);
    if (outputs === undefined && !waitingIds.has(callId)) continue;
    const identity = commonIdentity(occurrences);
    // Conflicting or uncanonical: nothing can be proven equal to it.
    if (identity === undefined) continue;
    const { type, approvalScope, fingerprint } = identity;
    rows.push({
      type,
      callId,
      approvalScope,
      fingerprint,
      executed: outputs !== undefined,
      completed: outputs?.has(type) === true,
    });
  }
  return rows;
}

function commonIdentity(occurrences: readonly Occurrence[]): CallIdentity | undefined {
  let common: CallIdentity | undefined;
  for (const { wire, item } of occurrences) {
    const role = item?.type === 'handoff_call_item' ? 'handoff' : undefined;
    const known = item?.type === 'tool_approval_item' ? approvalInternals(item) : undefined;
    const identity = callIdentity(wire, known?.lookupKey, { role, toolName: known?.toolName ?? toolNameOf(wire) });
    if (identity === undefined || (common !== undefined && !common.equals(identity))) return undefined;
    common = identity;
  }
  return common;
}

/** Scope of what waits under a name of the string map: what a sticky decision of an old label was about. Functions get none. */
export function waitingScopes(waiting: readonly ToolApprovalItem[]): Map<string, string> {
  const scopes = new Map<string, string>();
  for (const item of waiting) {
    if (item.rawItem.type === 'function_call') continue;
    const { toolName } = approvalInternals(item);
    const identity = callIdentity(item.rawItem, undefined, { toolName });
    if (toolName !== undefined && identity !== undefined) scopes.set(toolName, identity.approvalScope);
  }
  return scopes;
}

function mismatch(): UserError {
  return new UserError(
    'The ledger of calls in the run state has a completed call that its items do not show: no such call, another one, or no output. Restore the state as it was written.',
    { code: 'ledger_mismatch' },
  );
}

function invalid(why: string): UserError {
  return new UserError(
    `The ledger of calls in the run state is invalid: ${why}. Restore the state as it was written.`,
    { code: 'ledger_invalid' },
  );
}
