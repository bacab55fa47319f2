import { brand, internal } from '../base/brand.ts';
import { AgentsError, ModelBehaviorError } from '../base/errors.ts';
import { RunItemBase } from '../items/items.ts';
import { lookupKeyOf, qualifiedNameOf, sameLookupKey } from './lookup-key.ts';
import type { RunContext } from './context.ts';
import type { ToolLookupKey } from './record.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { FunctionTool, MaybePromise, ToolOrigin } from '../agent/tool.ts';
import type { JsonObject, McpApprovalRequest, ToolCallWire } from '../items/wire.ts';

/** Who decided and why, for the record. */
export interface DecisionNote {
  by?: string | undefined;
  note?: string | undefined;
}

export interface ApproveOptions extends DecisionNote {
  /** Also holds for later calls of this tool by this agent in this run. Default `false`. */
  always?: boolean | undefined;
}

export interface RejectOptions extends DecisionNote {
  /** What the model sees as output. Default: `toolErrorFormatter`, else `Tool execution was not approved.` */
  message?: string | undefined;
  /** Also holds for later calls of this tool by this agent in this run. Default `false`. */
  always?: boolean | undefined;
}

/** What a person (or a program) answers to a waiting call. `rerun` and `done` answer calls that are `inDoubt`. */
export type Decision =
  | ({ type: 'approve' } & ApproveOptions)
  | ({ type: 'reject' } & RejectOptions)
  /** It did not happen (or may happen twice): run it again, with the same idempotency key. */
  | ({ type: 'rerun' } & DecisionNote)
  /** It happened: this is its output. */
  | ({ type: 'done'; output: unknown } & DecisionNote);

/** One line of the audit trail; survives serialization. */
export interface DecisionRecord {
  readonly callId: string;
  /** Call ids of the agent tools around the call, outermost first; `[]` for a direct call. */
  readonly path: readonly string[];
  readonly toolName: string;
  readonly type: Decision['type'];
  readonly always: boolean;
  readonly by: string | undefined;
  readonly note: string | undefined;
  /** ISO 8601. */
  readonly at: string;
  readonly arguments: string;
  /** Only if the decision edited them. */
  readonly originalArguments: string | undefined;
}

/** What a waiting item says beside its call. */
export interface ApprovalItemFacts {
  /** Resolved name of the tool. Default: the call's own. */
  readonly toolName?: string | undefined;
  readonly namespace?: string | undefined;
  readonly lookupKey?: ToolLookupKey | undefined;
  readonly toolOrigin?: ToolOrigin | undefined;
  /** A decision on this one call of a deferred tool is kept under the bare name too (STATE-142). */
  readonly allowBareNameAlias?: boolean | undefined;
  readonly inDoubt?: boolean | undefined;
  /** ISO 8601. Default: now. */
  readonly createdAt?: string | undefined;
}

/** What the run and snapshots read of a waiting item. */
export interface ApprovalItemInternals {
  readonly toolName: string | undefined;
  readonly namespace: string | undefined;
  /** Of a function call; `undefined` for other kinds, and when the names cannot mean one. */
  readonly lookupKey: ToolLookupKey | undefined;
  readonly allowBareNameAlias: boolean;
}

/** A call that waits for a decision: in `result.interruptions`, in `newItems` of its own run (one that waits inside an agent tool is in none of the outer run's, and has no event there), never in model input or sessions. */
export class ToolApprovalItem extends RunItemBase<ToolCallWire | McpApprovalRequest> {
  static {
    brand(this, 'ToolApprovalItem');
  }

  readonly type = 'tool_approval_item' as const;
  readonly name: string;
  /** `namespace.name`; the same as `name` for most tools. */
  readonly qualifiedName: string;
  /** Raw text: JSON for functions, free text for custom tools, the action as JSON for shell, patch and computer. */
  readonly arguments: string;
  readonly callId: string;
  readonly toolOrigin: ToolOrigin | undefined;
  /** The call was started and its end is unknown (crash, failed sibling, abort). Answer with `rerun`, `done` or `reject`. */
  readonly inDoubt: boolean;
  /** ISO 8601. */
  readonly createdAt: string;
  /** @internal */
  declare readonly [internal]: ApprovalItemInternals;

  /** @internal */
  constructor(agent: AnyAgent, rawItem: ToolCallWire | McpApprovalRequest, facts: ApprovalItemFacts = {}) {
    // What a person decided on is what runs.
    super(agent, Object.freeze(rawItem));
    const raw = rawItem as unknown as Raw;
    const own = { name: text(raw['name']) ?? text(raw['tool_name']), namespace: text(raw['namespace']) };
    const toolName = facts.toolName ?? own.name;
    const namespace = facts.namespace ?? own.namespace;
    this.name = toolName ?? text(raw['type']) ?? 'unknown_tool';
    this.qualifiedName = qualifiedNameOf(this.name, namespace);
    this.arguments = argumentsOf(raw);
    this.callId = text(raw['call_id']) ?? text(raw['id']) ?? '';
    this.toolOrigin = facts.toolOrigin;
    this.inDoubt = facts.inDoubt ?? false;
    this.createdAt = facts.createdAt ?? new Date().toISOString();
    // Not enumerable: what the run keeps is nothing to show or compare.
    Object.defineProperty(this, internal, {
      value: {
        toolName,
        namespace,
        lookupKey: facts.lookupKey ?? derivedKey(raw, toolName, namespace),
        allowBareNameAlias: facts.allowBareNameAlias ?? false,
      } satisfies ApprovalItemInternals,
    });
  }

  /**
   * The arguments, validated by the tool; `undefined` if this is a call of another tool.
   * @throws ModelBehaviorError when they do not fit.
   */
  argumentsFor<A>(tool: FunctionTool<never, A>): A | undefined {
    const { lookupKey } = this[internal];
    const toolKey = lookupKeyOf(tool);
    if (lookupKey === undefined || toolKey === undefined || !sameLookupKey(lookupKey, toolKey)) return undefined;
    // Layer 4 is above this one: what a tool keeps under the symbol is known by its shape alone.
    const parsed = (tool as unknown as { readonly [internal]: ArgumentsParser })[internal].parse(this.arguments);
    if (!parsed.ok)
      throw new ModelBehaviorError(`The arguments of this call do not fit the tool '${this.name}'.`, {
        cause: parsed.error,
      });
    return parsed.value as A;
  }

  /** @throws AgentsError always: a waiting call is no model input. */
  override toInputItem(): never {
    throw new AgentsError(
      'A call that waits for approval cannot be sent to the model. Leave out items of type `tool_approval_item`, or use `toInputList()`.',
    );
  }

  override toJSON(): JsonObject {
    return {
      ...super.toJSON(),
      name: this.name,
      qualified_name: this.qualifiedName,
      arguments: this.arguments,
      call_id: this.callId,
      ...(this.toolOrigin === undefined ? {} : { tool_origin: this.toolOrigin }),
      in_doubt: this.inDoubt,
      created_at: this.createdAt,
    };
  }
}

/** What the run and snapshots need of a waiting item beside its public members. */
export function approvalInternals(item: ToolApprovalItem): ApprovalItemInternals {
  return item[internal];
}

interface ArgumentsParser {
  parse(
    argumentsJson: string,
  ): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };
}

type Raw = Readonly<Record<string, unknown>>;

/** A namespace that repeats the name is made up by the provider: it names no key by itself. */
function derivedKey(raw: Raw, name: string | undefined, namespace: string | undefined): ToolLookupKey | undefined {
  if (raw['type'] !== 'function_call' || name === undefined || name === namespace) return undefined;
  return lookupKeyOf({ name, namespace });
}

function argumentsOf(raw: Raw): string {
  const value =
    raw['arguments'] ??
    raw['params'] ??
    raw['input'] ??
    raw['action'] ??
    raw['actions'] ??
    raw['operation'] ??
    raw['operations'] ??
    '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** `true` or a function that says for this call. It gets the validated arguments; arguments that cannot run go back to the model and wait for nobody. */
export type NeedsApproval<C, A> = boolean | ((ctx: RunContext<C>, args: A, callId: string) => MaybePromise<boolean>);

/** Answers waiting calls inside the process; `undefined` leaves the call waiting. */
export type OnApproval<C> = (ctx: RunContext<C>, item: ToolApprovalItem) => MaybePromise<Decision | undefined | void>;
