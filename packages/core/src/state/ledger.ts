import { ModelBehaviorError } from '../base/errors.ts';
import { callIdentity, ScopeDigests, storedIdentity } from './identity.ts';
import type { CallIdentity, IdentityData, IdentityOptions } from './identity.ts';
import { completedBy, invocationOf } from './invocation.ts';
import type { ToolLookupKey } from './record.ts';

/** A row of the ledger, as snapshots hold it. */
export interface LedgerEntry extends IdentityData {
  readonly executed: boolean;
  readonly completed: boolean;
}

/** A call that is about to be worked on. */
export interface CallToPlan extends IdentityOptions {
  /** The wire object. */
  readonly call: object;
  /** Key of the function tool that it resolved to; default: the one that its names mean. */
  readonly lookupKey?: ToolLookupKey | undefined;
}

/**
 * What the ledger knows about a planned call: `new` may start, `duplicate` repeats an earlier one of the same list,
 * `completed` has its output (drop it, nothing runs), `executed` was started and its end is unknown.
 */
export type PlannedStatus = 'new' | 'duplicate' | 'executed' | 'completed';

/** A call as it was planned. */
export interface PlannedCall {
  readonly callId: string;
  /** `undefined`: uncanonical; no decision can ever match it (STATE-157). */
  readonly identity: CallIdentity | undefined;
  readonly status: PlannedStatus;
}

interface Row {
  identity: CallIdentity | undefined;
  /** The wire call, to recognise an uncanonical one. */
  call: object | undefined;
  executed: boolean;
  completed: boolean;
  /** Its items stand nowhere any more: a snapshot could not show them. */
  unlisted?: boolean;
  /** `false`: a decision that names the id was not made for this call (STATE-361). */
  bound: boolean;
}

/**
 * Which call each id means, and how far it got (STATE §5.4). One per run: all agents of the run share it.
 * Rows are written before the effect that they describe.
 */
export class InvocationLedger {
  readonly #rows = new Map<string, Row>();
  /** Ids whose stored decisions were made for a call that nobody can name any more. */
  readonly #unbound: Set<string> | undefined;
  #sources: readonly Iterable<unknown>[] = [];
  /** Completed calls of the history by id; made when the first call is planned. */
  #history: ReadonlyMap<string, object> | undefined;

  constructor(entries: Iterable<LedgerEntry> = [], unbound?: Iterable<string>) {
    this.#unbound = unbound && new Set(unbound);
    for (const entry of entries) {
      this.#rows.set(entry.callId, {
        identity: storedIdentity(entry),
        call: undefined,
        executed: entry.executed,
        completed: entry.completed,
        bound: !this.#unbound?.has(entry.callId),
      });
    }
  }

  /**
   * Lists of wire items or run items whose completed calls are protected too (STATE-155, 159): the input of the segment
   * and the items that it goes on from. They are read when the first call is planned.
   */
  protect(...lists: readonly Iterable<unknown>[]): void {
    this.#sources = lists;
    this.#history = undefined;
  }

  /**
   * Plans the local calls of one response, before anything of it starts: all or none.
   * @throws ModelBehaviorError `call_id_empty`, or `call_id_reused` when an id means two different calls.
   */
  plan(calls: readonly CallToPlan[]): PlannedCall[] {
    const history = calls.length === 0 ? undefined : this.#completedInHistory();
    const seen = new Map<string, PlannedCall>();
    const planned = calls.map((call) => {
      const callId = invocationOf(call.call)?.callId;
      if (callId === undefined)
        throw new ModelBehaviorError(
          'The model made a tool call without a call id. Calls need a non-empty call id, unique in the run.',
          { code: 'call_id_empty' },
        );
      const identity = callIdentity(call.call, call.lookupKey, call);
      const first = seen.get(callId);
      if (first !== undefined) {
        if (identity === undefined || first.identity?.equals(identity) !== true) throw reused(callId);
        return { callId, identity, status: 'duplicate' as const };
      }
      const result = { callId, identity, status: this.#statusOf(callId, identity, call, history?.get(callId)) };
      seen.set(callId, result);
      return result;
    });
    planned.forEach((result, index) => this.#register(result, calls[index]?.call));
    return planned;
  }

  /** The response that asked for the call is thrown away before anything of it began: another one may use the id (STATE-136). */
  withdraw(callId: string): void {
    if (this.#rows.get(callId)?.executed === false) this.#rows.delete(callId);
  }

  /** Before the first user code that belongs to the call (STATE-152). */
  markExecuted(callId: string): void {
    this.#row(callId).executed = true;
  }

  /** When the output is among the run's items (STATE-152). */
  markCompleted(callId: string): void {
    const row = this.#row(callId);
    row.executed = true;
    row.completed = true;
  }

  /** The items of the call are gone from the run: a repeat is still known for one, and no snapshot tells of it. */
  forget(callId: string): void {
    const row = this.#rows.get(callId);
    if (row) row.unlisted = true;
  }

  /** How far the call with this id got; `undefined` if the ledger has no row for it. */
  status(callId: string): { readonly executed: boolean; readonly completed: boolean } | undefined {
    return this.#rows.get(callId);
  }

  /** Whether the call was started and its end is unknown (STATE-510). */
  isInDoubt(callId: string): boolean {
    const row = this.#rows.get(callId);
    return row !== undefined && row.executed && !row.completed && !this.#completedInHistory().has(callId);
  }

  /** Whether decisions that name this id were made for exactly this call (STATE-164). */
  isBound(identity: CallIdentity): boolean {
    const row = this.#rows.get(identity.callId);
    return row !== undefined && row.bound && row.identity !== undefined && row.identity.equals(identity);
  }

  /** @throws ModelBehaviorError `call_id_reused`: a decision on this call would name another one too. */
  checkBinding(identity: CallIdentity): void {
    const row = this.#rows.get(identity.callId);
    if (row === undefined || (!row.bound && !row.executed)) return;
    if (row.identity?.equals(identity) !== true) throw reused(identity.callId);
  }

  /** A decision was made for exactly this call; call `checkBinding` before. */
  bind(identity: CallIdentity): void {
    this.#unbound?.delete(identity.callId);
    const row = this.#rows.get(identity.callId);
    if (row === undefined) {
      this.#rows.set(identity.callId, { identity, call: undefined, executed: false, completed: false, bound: true });
    } else {
      row.identity = identity;
      row.bound = true;
    }
  }

  /** Rows for a snapshot, digests included; uncanonical calls, and unbound ones that never started, have none. */
  *entries(): Generator<LedgerEntry, void, undefined> {
    const scopes = new ScopeDigests();
    for (const [callId, { identity, executed, completed, bound, unlisted }] of this.#rows) {
      if (identity === undefined || unlisted === true || (!bound && !executed)) continue;
      identity.shareScope(scopes);
      yield {
        type: identity.type,
        callId,
        approvalScope: identity.approvalScope,
        fingerprint: identity.fingerprint,
        executed,
        completed,
      };
    }
  }

  /** An independent ledger with the same rows. */
  copy(): InvocationLedger {
    const copy = new InvocationLedger([], this.#unbound);
    for (const [callId, row] of this.#rows) copy.#rows.set(callId, { ...row });
    copy.#sources = this.#sources;
    copy.#history = this.#history;
    return copy;
  }

  #statusOf(
    callId: string,
    identity: CallIdentity | undefined,
    call: CallToPlan,
    completed: object | undefined,
  ): PlannedStatus {
    let row = this.#rows.get(callId);
    if (row !== undefined && !isSameCall(row, identity, call.call)) {
      if (row.bound || row.executed) throw reused(callId);
      // A stored row that its waiting item contradicts protects nothing; planning replaces it.
      row = undefined;
    }
    if (row?.completed === true) return 'completed';
    if (completed !== undefined) {
      const known = { identity: callIdentity(completed, undefined, call), call: completed };
      if (isSameCall(known, identity, call.call)) return 'completed';
      throw reused(callId);
    }
    return row?.executed === true ? 'executed' : 'new';
  }

  #register({ callId, identity, status }: PlannedCall, call: object | undefined): void {
    if (status === 'duplicate') return;
    const row = this.#rows.get(callId);
    if (status === 'completed') {
      // Python leaves the kept siblings of a failing turn as not completed; history knows better.
      if (row !== undefined) row.executed = row.completed = true;
      return;
    }
    if (row === undefined) {
      this.#rows.set(callId, {
        identity,
        call: identity === undefined ? call : undefined,
        executed: false,
        completed: false,
        bound: !this.#unbound?.has(callId),
      });
    } else if (!row.executed && !row.bound) {
      row.identity = identity;
      row.call = identity === undefined ? call : undefined;
    }
  }

  #row(callId: string): Row {
    const row = this.#rows.get(callId);
    if (row === undefined) throw new Error('A call was worked on that the ledger did not plan.');
    return row;
  }

  #completedInHistory(): ReadonlyMap<string, object> {
    if (this.#history !== undefined) return this.#history;
    const history = completedCalls(this.#sources);
    this.#sources = [];
    return (this.#history = history);
  }
}

/** The error of STATE-154: these calls were started, and nobody knows how they ended. Nobody can answer for a handoff. */
export function executedUncommitted(
  calls: readonly { readonly name: string; readonly call_id: string }[],
  { handoff = false }: { readonly handoff?: boolean } = {},
): ModelBehaviorError {
  const names = calls.map((call) => `${call.name} (${call.call_id})`).join(', ');
  const which = calls.length === 1 ? `The tool call ${names} was` : `The tool calls ${names} were`;
  const remedy = handoff
    ? "A handoff is taken as a whole: resume with onInDoubt: 'retry' to take it again from its callback on, or start a new run."
    : "Resume with onInDoubt: 'interrupt' to decide each such call (rerun, done or reject), with 'retry' to run them again, or start a new run.";
  return new ModelBehaviorError(
    `${which} started, and no output was committed: what it does may have happened, so running again could repeat it. ${remedy}`,
    { code: 'call_executed_uncommitted' },
  );
}

/** Whether the calls of a response could not be told from others, or be run. */
export function isOfCallIds(error: unknown): boolean {
  return (
    error instanceof ModelBehaviorError &&
    ['call_id_reused', 'call_id_empty', 'call_executed_uncommitted'].includes(error.code)
  );
}

function reused(callId: string): ModelBehaviorError {
  return new ModelBehaviorError(
    `The call id '${callId}' stands for two different tool calls. Call ids must be unique in a run and its history.`,
    { code: 'call_id_reused' },
  );
}

function isSameCall(
  known: { readonly identity: CallIdentity | undefined; readonly call: object | undefined },
  identity: CallIdentity | undefined,
  call: object,
): boolean {
  if (identity !== undefined && known.identity !== undefined) return known.identity.equals(identity);
  return (
    identity === undefined &&
    known.identity === undefined &&
    known.call !== undefined &&
    isSameUncanonical(known.call, call)
  );
}

/** Without an identity only the same text is the same call. */
function isSameUncanonical(a: object, b: object): boolean {
  if (a === b) return true;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return ['type', 'name', 'namespace', 'arguments', 'input'].every(
    (member) => left[member] === right[member] && typeof left[member] !== 'object',
  );
}

/** Calls that have an output of their kind. @throws ModelBehaviorError `call_id_reused` when two of them share an id. */
function completedCalls(lists: readonly Iterable<unknown>[]): ReadonlyMap<string, object> {
  const calls: { readonly key: string; readonly callId: string; readonly wire: object }[] = [];
  const outputs = new Set<string>();
  for (const list of lists) {
    for (const item of list) {
      const wire = wireOf(item);
      if (wire === undefined) continue;
      const output = completedBy(wire);
      if (output !== undefined) {
        outputs.add(`${output.type} ${output.callId}`);
        continue;
      }
      const call = invocationOf(wire);
      if (call?.callId !== undefined) calls.push({ key: `${call.type} ${call.callId}`, callId: call.callId, wire });
    }
  }
  const completed = new Map<string, object>();
  if (outputs.size === 0) return completed;
  for (const { key, callId, wire } of calls) {
    if (!outputs.has(key)) continue;
    const known = completed.get(callId);
    if (known === undefined) completed.set(callId, wire);
    else if (known !== wire && !isSameCall({ identity: callIdentity(known), call: known }, callIdentity(wire), wire))
      throw reused(callId);
  }
  return completed;
}

function wireOf(item: unknown): object | undefined {
  if (typeof item !== 'object' || item === null) return undefined;
  const raw = 'rawItem' in item ? item.rawItem : item;
  return typeof raw === 'object' && raw !== null ? raw : undefined;
}
