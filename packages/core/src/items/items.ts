import { brand } from '../base/brand.ts';
import { defineInspect } from '../base/inspect.ts';
import type { Inspect } from '../base/inspect.ts';
import { toInputItem } from './convert.ts';
import { callIdOf, toolNameOf } from './read.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import type { ToolOrigin } from '../agent/tool.ts';
import type {
  FunctionCallOutput,
  JsonObject,
  McpApprovalRequest,
  McpApprovalResponse,
  ResponseFunctionToolCall,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
  ToolCallWire,
  ToolOutputWire,
} from './wire.ts';

/** A plain wire object that a model accepts as input. Kinds newer than `openai`'s types pass at run time; write them with a cast. */
export type AgentInputItem = ResponseInputItem;

/** Who made an item and why, around one Responses wire object. Discriminated by `type`. */
export abstract class RunItemBase<T = unknown> {
  static {
    brand(this, 'RunItem');
    defineInspect(this, inspectItem);
  }

  abstract readonly type: RunItem['type'];
  readonly agent: AnyAgent;
  /** The wire object as received, unknown keys included. Never changed by the SDK. */
  readonly rawItem: T;

  protected constructor(agent: AnyAgent, rawItem: T) {
    this.agent = agent;
    this.rawItem = rawItem;
  }

  /** A new wire object for the model, without provider-only members (`created_by`, null `status`). */
  toInputItem(): AgentInputItem {
    return toInputItem(this.rawItem);
  }

  /** `{ type, agent: { name }, raw_item, … }`, for logs and browsers. */
  toJSON(): JsonObject {
    return { type: this.type, agent: { name: this.agent.name }, raw_item: this.rawItem as JsonObject };
  }
}

/** Input that was staged on a paused state and admitted before a model call. */
export class InputItem extends RunItemBase<AgentInputItem> {
  static {
    brand(this, 'InputItem');
  }

  readonly type = 'input_item' as const;
  /** 32 hex digits, the same over retries and restores. */
  readonly inputId: string;

  /** @internal */
  constructor(agent: AnyAgent, rawItem: AgentInputItem, extra: { inputId: string }) {
    super(agent, rawItem);
    this.inputId = extra.inputId;
  }

  override toJSON(): JsonObject {
    return { ...super.toJSON(), input_id: this.inputId };
  }
}

export class MessageOutputItem extends RunItemBase<ResponseOutputMessage> {
  static {
    brand(this, 'MessageOutputItem');
  }

  readonly type = 'message_output_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: ResponseOutputMessage) {
    super(agent, rawItem);
  }
}

export class ReasoningItem extends RunItemBase<ResponseReasoningItem> {
  static {
    brand(this, 'ReasoningItem');
  }

  readonly type = 'reasoning_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: ResponseReasoningItem) {
    super(agent, rawItem);
  }
}

/** What is known of a call besides its wire object. */
export interface ToolCallExtra {
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly toolOrigin?: ToolOrigin | undefined;
  readonly originalArguments?: string | undefined;
}

export class ToolCallItem extends RunItemBase<ToolCallWire> {
  static {
    brand(this, 'ToolCallItem');
  }

  readonly type = 'tool_call_item' as const;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly toolOrigin: ToolOrigin | undefined;
  /** What the model had asked for, when a person edited the arguments. */
  readonly originalArguments: string | undefined;

  /** @internal */
  constructor(agent: AnyAgent, rawItem: ToolCallWire, extra: ToolCallExtra = {}) {
    super(agent, rawItem);
    this.title = extra.title;
    this.description = extra.description;
    this.toolOrigin = extra.toolOrigin;
    this.originalArguments = extra.originalArguments;
  }

  /** Name on the wire; of hosted calls the name of their kind (`web_search`). */
  get toolName(): string | undefined {
    return toolNameOf(this.rawItem);
  }

  get callId(): string | undefined {
    return callIdOf(this.rawItem);
  }

  override toJSON(): JsonObject {
    return {
      ...super.toJSON(),
      tool_name: this.toolName,
      call_id: this.callId,
      title: this.title,
      description: this.description,
      tool_origin: this.toolOrigin,
      original_arguments: this.originalArguments,
    };
  }
}

/** What is known of an output besides its wire object. */
export interface ToolOutputExtra {
  readonly output: unknown;
  readonly toolOrigin?: ToolOrigin | undefined;
  readonly customData?: JsonObject | undefined;
}

export class ToolCallOutputItem extends RunItemBase<ToolOutputWire> {
  static {
    brand(this, 'ToolCallOutputItem');
  }

  readonly type = 'tool_call_output_item' as const;
  /** The tool's value in memory; `rawItem.output` is what the model sees. Plain JSON after a restore. */
  readonly output: unknown;
  readonly toolOrigin: ToolOrigin | undefined;
  /** From `customDataExtractor`; never sent to a model, kept by `RunState`. */
  readonly customData: JsonObject | undefined;

  /** @internal */
  constructor(agent: AnyAgent, rawItem: ToolOutputWire, extra: ToolOutputExtra) {
    super(agent, rawItem);
    this.output = extra.output;
    this.toolOrigin = extra.toolOrigin;
    this.customData = extra.customData;
  }

  get callId(): string | undefined {
    return callIdOf(this.rawItem);
  }

  /** Without the value in memory, which may be anything; `raw_item` has what the model sees. */
  override toJSON(): JsonObject {
    return {
      ...super.toJSON(),
      call_id: this.callId,
      tool_origin: this.toolOrigin,
      custom_data: this.customData,
    };
  }
}

/** Adds facts to an output that stands in the history already; those that are there stay where their keys are not given. */
export function addCustomData(item: ToolCallOutputItem, data: JsonObject): void {
  (item as { customData: JsonObject | undefined }).customData = { ...item.customData, ...data };
}

export class HandoffCallItem extends RunItemBase<ResponseFunctionToolCall> {
  static {
    brand(this, 'HandoffCallItem');
  }

  readonly type = 'handoff_call_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: ResponseFunctionToolCall) {
    super(agent, rawItem);
  }

  /** Of the handoff, `transfer_to_billing`. */
  get toolName(): string {
    return this.rawItem.name;
  }

  get callId(): string {
    return this.rawItem.call_id;
  }

  override toJSON(): JsonObject {
    return { ...super.toJSON(), tool_name: this.toolName, call_id: this.callId };
  }
}

export class HandoffOutputItem extends RunItemBase<FunctionCallOutput> {
  static {
    brand(this, 'HandoffOutputItem');
  }

  readonly type = 'handoff_output_item' as const;
  readonly sourceAgent: AnyAgent;
  readonly targetAgent: AnyAgent;

  /** @internal */
  constructor(agent: AnyAgent, rawItem: FunctionCallOutput, extra: { sourceAgent: AnyAgent; targetAgent: AnyAgent }) {
    super(agent, rawItem);
    this.sourceAgent = extra.sourceAgent;
    this.targetAgent = extra.targetAgent;
  }

  override toJSON(): JsonObject {
    return {
      ...super.toJSON(),
      source_agent: { name: this.sourceAgent.name },
      target_agent: { name: this.targetAgent.name },
    };
  }
}

export class ToolSearchCallItem extends RunItemBase<Extract<ResponseOutputItem, { type: 'tool_search_call' }>> {
  static {
    brand(this, 'ToolSearchCallItem');
  }

  readonly type = 'tool_search_call_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: Extract<ResponseOutputItem, { type: 'tool_search_call' }>) {
    super(agent, rawItem);
  }
}

/** What a tool search loaded for the turn, verbatim. */
export class ToolSearchOutputItem extends RunItemBase<Extract<ResponseOutputItem, { type: 'tool_search_output' }>> {
  static {
    brand(this, 'ToolSearchOutputItem');
  }

  readonly type = 'tool_search_output_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: Extract<ResponseOutputItem, { type: 'tool_search_output' }>) {
    super(agent, rawItem);
  }
}

export class McpListToolsItem extends RunItemBase<Extract<ResponseOutputItem, { type: 'mcp_list_tools' }>> {
  static {
    brand(this, 'McpListToolsItem');
  }

  readonly type = 'mcp_list_tools_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: Extract<ResponseOutputItem, { type: 'mcp_list_tools' }>) {
    super(agent, rawItem);
  }
}

export class McpApprovalRequestItem extends RunItemBase<McpApprovalRequest> {
  static {
    brand(this, 'McpApprovalRequestItem');
  }

  readonly type = 'mcp_approval_request_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: McpApprovalRequest) {
    super(agent, rawItem);
  }
}

export class McpApprovalResponseItem extends RunItemBase<McpApprovalResponse> {
  static {
    brand(this, 'McpApprovalResponseItem');
  }

  readonly type = 'mcp_approval_response_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: McpApprovalResponse) {
    super(agent, rawItem);
  }
}

export class CompactionItem extends RunItemBase<Extract<ResponseOutputItem, { type: 'compaction' }>> {
  static {
    brand(this, 'CompactionItem');
  }

  readonly type = 'compaction_item' as const;

  /** @internal */
  // oxlint-disable-next-line no-useless-constructor -- the base's is protected
  constructor(agent: AnyAgent, rawItem: Extract<ResponseOutputItem, { type: 'compaction' }>) {
    super(agent, rawItem);
  }
}

/** Everything a run produces, in `result.newItems`. Switch on `item.type`, with a `default`. */
export type RunItem =
  | InputItem
  | MessageOutputItem
  | ReasoningItem
  | ToolCallItem
  | ToolCallOutputItem
  | ToolApprovalItem
  | HandoffCallItem
  | HandoffOutputItem
  | ToolSearchCallItem
  | ToolSearchOutputItem
  | McpListToolsItem
  | McpApprovalRequestItem
  | McpApprovalResponseItem
  | CompactionItem;

/** As `console.log` shows an item: its members, of agents the names. */
function inspectItem(item: RunItemBase, depth: number, options: object, inspect: Inspect | undefined): string {
  const shown: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(item)) {
    if (key === 'type' || value === undefined) continue;
    shown[key] = AGENTS.has(key) ? (value as AnyAgent).name : (value as unknown);
  }
  const text = inspect === undefined ? JSON.stringify(shown) : inspect(shown, { ...options, depth });
  return `${item.type} ${text}`;
}

const AGENTS: ReadonlySet<string> = new Set(['agent', 'sourceAgent', 'targetAgent']);
