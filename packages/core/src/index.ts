/** `@agents/core`: what programs use. Subpaths: `/session`, `/tracing`, `/openai`, `/testing`. */

// agents and tools
export { Agent } from './agent/agent.ts';
export type {
  AgentConstructor,
  AgentLike,
  AgentOptions,
  AnyAgent,
  ContextsOf,
  FunctionToolResult,
  HandoffLike,
  Instructions,
  OutputsOf,
  ToolsToFinalOutputResult,
  ToolUseBehavior,
} from './agent/agent.ts';
export type { AgentToolOptions } from './agent/agent-tool.ts';
export type {
  GuardrailFunctionOutput,
  InputGuardrail,
  InputGuardrailArgs,
  InputGuardrailResult,
  OutputGuardrail,
  OutputGuardrailArgs,
  OutputGuardrailResult,
  ToolGuardrailBehavior,
  ToolGuardrailFunctionOutput,
  ToolGuardrailResult,
  ToolInputGuardrail,
  ToolOutputGuardrail,
} from './agent/guardrail.ts';
export { handoff, Handoff } from './agent/handoff.ts';
export type {
  HandoffCallback,
  HandoffHistoryMapper,
  HandoffInit,
  HandoffInputData,
  HandoffInputFilter,
  HandoffInputPatch,
  HandoffOptions,
  HandoffTarget,
} from './agent/handoff.ts';
export type { AgentHooks, RunHooks } from './agent/hooks.ts';
export { invokeFunctionTool } from './agent/invoke-function-tool.ts';
export type { InvokeArgs } from './agent/invoke-function-tool.ts';
export { outputSchema } from './agent/output.ts';
export type { OutputSchema, OutputType } from './agent/output.ts';
export { jsonSchema } from './agent/schema.ts';
export type { JsonSchema, SchemaWithJson } from './agent/schema.ts';
export type { DynamicPrompt, Prompt } from './agent/prompt.ts';
export { tool, toolFor } from './agent/tool.ts';
export { toolOutput } from './agent/tool-output-helpers.ts';
export type { ToolOutputFile, ToolOutputImage, ToolOutputText } from './agent/tool-output-helpers.ts';
export type {
  FitsOutput,
  FunctionTool,
  IsEnabled,
  MaybePromise,
  NeedsJsonSchema,
  Tool,
  ToolArgs,
  ToolCustomDataContext,
  ToolErrorFunction,
  ToolOptions,
  ToolOrigin,
  ToolOverrides,
  ToolParameters,
  ToolValue,
} from './agent/tool.ts';
export { RunContext, ToolContext } from './state/context.ts';

// runs
export { run, Runner, runStreamed } from './run/run.ts';
export type { RunArgs, RunnerDefaults, StreamOption } from './run/run.ts';
export type {
  BlockedMessageArgs,
  CallModelInputFilter,
  ModelInputData,
  NestedRunOptions,
  RunInput,
  RunErrorHandler,
  RunErrorHandlerResult,
  RunErrorHandlers,
  RunOptions,
  RunOptionsWithContext,
  ToolErrorArgs,
  ToolErrorFormatter,
  ToolExecutionOptions,
} from './run/options.ts';
export type {
  AgentToolInvocation,
  AgentToolResult,
  CompletedRunResult,
  InterruptedRunResult,
  RunResult,
  RunResultBase,
  RunResultStreaming,
} from './run/result.ts';
export { streamEventToJSON } from './run/events.ts';
export type {
  AgentUpdatedStreamEvent,
  RawResponsesStreamEvent,
  RunExtendedStreamEvent,
  RunItemEvents,
  RunItemStreamEvent,
  RunItemStreamEventName,
  RunStreamEvent,
} from './run/events.ts';
export {
  CompactionItem,
  HandoffCallItem,
  HandoffOutputItem,
  InputItem,
  McpApprovalRequestItem,
  McpApprovalResponseItem,
  McpListToolsItem,
  MessageOutputItem,
  ReasoningItem,
  ToolCallItem,
  ToolCallOutputItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
} from './items/items.ts';
export type { AgentInputItem, RunItem } from './items/items.ts';
export { messageText, outputText } from './items/read.ts';

// states and decisions
export { RunState } from './snapshot/run-state.ts';
export type { RestoreOptions, SerializedRunState, SerializeOptions } from './snapshot/run-state.ts';
export { ToolApprovalItem } from './state/decisions.ts';
export type {
  ApproveOptions,
  Decision,
  DecisionNote,
  DecisionRecord,
  NeedsApproval,
  OnApproval,
  RejectOptions,
} from './state/decisions.ts';
export type { NextStep } from './state/next-step.ts';

// errors and logs
export {
  AgentsError,
  getRunErrorDetails,
  getRunErrorState,
  InputGuardrailTripwireTriggered,
  MaxTurnsExceededError,
  MissingCredentialsError,
  ModelBehaviorError,
  ModelRefusalError,
  ModelStreamTruncatedError,
  ModelTimeoutError,
  OutputGuardrailTripwireTriggered,
  RunAbortedError,
  ToolCallError,
  ToolInputGuardrailTripwireTriggered,
  ToolOutputGuardrailTripwireTriggered,
  ToolTimeoutError,
  UserError,
} from './base/errors.ts';
export type { AgentsErrorCode, ModelBehaviorErrorCode, UserErrorCode } from './base/error-codes.ts';
export type { RunErrorDetails } from './base/errors.ts';
export { configureLogging, getLogger } from './base/logger.ts';
export type { Logger, LoggingOptions, LogLevel, LogRecord } from './base/logger.ts';

// sessions, models, traces
export { MemorySession } from './sessions/memory.ts';
export type { Session, SessionInputCallback, SessionSettings } from './sessions/contract.ts';
export { addUsage, toUsage } from './base/usage.ts';
export { getDefaultModel, getDefaultModelSettings } from './agent/model-defaults.ts';
export { defineModel } from './models/define.ts';
export { setDefaultModelProvider } from './models/provider.ts';
export type {
  Model,
  ModelAttempt,
  ModelProvider,
  ModelRequest,
  ModelResponse,
  ModelSettings,
  ModelTracing,
  Reasoning,
  ResponseMetadata,
  Usage,
} from './models/model.ts';
export { createSpan, createTrace } from './tracing/create.ts';
export { addTraceProcessor, setTraceProcessors } from './tracing/processors.ts';
export { flushTraces, setTracingDisabled } from './tracing/provider.ts';
export { getCurrentSpan, getCurrentTrace } from './tracing/scope.ts';
export { withSpan, withTrace } from './tracing/with.ts';
export type { RunTraceOptions, Span, Trace, TraceProcessor } from './tracing/types.ts';

// wire types of `openai`
export type {
  JsonObject,
  JsonValue,
  PromptVariable,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
  ToolCallWire,
  ToolOutputWire,
} from './items/wire.ts';
