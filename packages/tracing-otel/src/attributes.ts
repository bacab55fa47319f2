import type { Attributes } from '@opentelemetry/api';
import { SpanKind } from '@opentelemetry/api';
import type { Span, Trace } from '@agents/core/tracing';
import type { Content } from './content.ts';
import { addModelStart, finishReasonsOf, modelEnd, requestModelOf } from './model-attributes.ts';
import { agents, common, genAi, operations } from './names.ts';

/** Where a span stands: what it has of the spans around it. */
export interface Place {
  readonly turn: number | undefined;
  readonly conversationId: string | undefined;
  /** The agent around it answers in a schema. */
  readonly outputType: string | undefined;
}

/** Name and kind of the OpenTelemetry span. */
export function nameOf(span: Span): string {
  switch (span.type) {
    case 'agent':
      return `${operations.agent} ${span.spanData.name}`;
    case 'task':
      return `task ${span.spanData.name}`;
    case 'turn':
      return `turn ${span.spanData.turn}`;
    case 'response':
    case 'generation':
      return withName(operations.chat, requestModelOf(span));
    case 'function':
      return `${operations.tool} ${span.spanData.name}`;
    case 'handoff':
      return withName(operations.tool, span.details.toolName ?? 'handoff');
    case 'guardrail':
      return `guardrail ${span.spanData.name}`;
    case 'custom':
      return span.spanData.name;
    case 'mcp_tools':
      return 'tools/list';
    case 'transcription':
    case 'speech':
      return withName(span.type, span.spanData.model);
    case 'speech_group':
      return span.type;
    default:
      return ownTypeName(span);
  }
}

function ownTypeName(span: never): string {
  const { type, spanData } = span as { type: string; spanData: { name?: unknown } };
  return withName(type, typeof spanData.name === 'string' ? spanData.name : undefined);
}

function withName(operation: string, name: string | undefined): string {
  return name === undefined || name === '' ? operation : `${operation} ${name}`;
}

const CLIENTS: ReadonlySet<string> = new Set(['response', 'generation', 'mcp_tools', 'transcription', 'speech']);

export function kindOf(span: Span): SpanKind {
  return CLIENTS.has(span.type) ? SpanKind.CLIENT : SpanKind.INTERNAL;
}

/** What every span of ours says of itself. */
function addIdentity(item: Trace | Span, attributes: Attributes): void {
  const trace = item.type === 'trace' ? item : item.trace;
  attributes[agents.traceId] = trace.traceId;
  if (item.type !== 'trace') attributes[agents.spanId] = item.spanId;
  attributes[agents.spanType] = item.type;
  if (trace.groupId !== undefined) attributes[agents.groupId] = trace.groupId;
}

/** A trace's attributes at its start; nothing but content comes later. */
export function traceStart(trace: Trace): Attributes {
  const attributes: Attributes = {};
  attributes[genAi.operation] = operations.workflow;
  attributes[genAi.agentName] = trace.name;
  addIdentity(trace, attributes);
  if (trace.groupId !== undefined) attributes[genAi.conversationId] = trace.groupId;
  return attributes;
}

/** What is known at the start and what samplers read (TRACE-O9). */
export function spanStart(span: Span, agentName: string | undefined): Attributes {
  const attributes: Attributes = {};
  addStart(span, attributes);
  addIdentity(span, attributes);
  if (agentName !== undefined && NAMED.has(span.type)) attributes[genAi.agentName] = agentName;
  return attributes;
}

/** Spans that say whose they are. */
const NAMED: ReadonlySet<string> = new Set(['response', 'generation', 'function', 'handoff', 'guardrail']);

function addStart(span: Span, attributes: Attributes): void {
  switch (span.type) {
    case 'agent':
      attributes[genAi.operation] = operations.agent;
      attributes[genAi.agentName] = span.spanData.name;
      break;
    case 'response':
    case 'generation':
      addModelStart(span, attributes);
      break;
    case 'function':
      attributes[genAi.operation] = operations.tool;
      attributes[genAi.toolName] = span.spanData.name;
      attributes[genAi.toolType] = 'function';
      break;
    case 'handoff':
      attributes[genAi.operation] = operations.tool;
      attributes[genAi.toolType] = 'function';
      break;
    case 'guardrail':
      attributes[agents.guardrailName] = span.spanData.name;
      break;
    case 'turn':
      attributes[agents.turn] = span.spanData.turn;
      break;
    case 'mcp_tools':
      attributes[common.mcpMethod] = 'tools/list';
      break;
    case 'transcription':
    case 'speech':
      attributes[genAi.operation] = span.type;
      setText(attributes, genAi.requestModel, span.spanData.model);
      break;
    case 'task':
    case 'custom':
    case 'speech_group':
      break;
    default:
  }
}

/** What is known at the end beside `started`. `content`: where what people said may be shown. */
export function spanEnd(
  span: Span,
  place: Place,
  started: Attributes | undefined,
  content: Content | undefined,
): Attributes {
  const attributes: Attributes = {};
  const { turn, conversationId } = place;
  switch (span.type) {
    case 'agent':
      agentEnd(span, attributes, content);
      setText(attributes, genAi.conversationId, conversationId);
      break;
    case 'response':
    case 'generation':
      modelEnd(span, started, attributes);
      setText(attributes, genAi.conversationId, conversationId);
      setText(attributes, genAi.outputType, place.outputType);
      if (turn !== undefined) attributes[agents.turn] = turn;
      break;
    case 'function':
      functionEnd(span, attributes, content);
      if (turn !== undefined) attributes[agents.turn] = turn;
      break;
    case 'handoff':
      handoffEnd(span, attributes);
      if (turn !== undefined) attributes[agents.turn] = turn;
      break;
    case 'task':
      taskEnd(span, attributes);
      break;
    case 'guardrail':
      setText(attributes, agents.guardrailStage, span.details.stage);
      attributes[agents.guardrailTriggered] = span.spanData.triggered ?? false;
      break;
    case 'mcp_tools':
      setText(attributes, agents.mcpServer, span.spanData.server);
      if (span.spanData.result) attributes[agents.mcpToolCount] = span.spanData.result.length;
      break;
    case 'turn':
    case 'transcription':
    case 'speech':
    case 'speech_group':
      break;
    case 'custom':
      setText(attributes, agents.customData, content?.value(span.spanData.data));
      break;
    default:
      setText(attributes, agents.customData, content?.value((span as Span).spanData));
  }
  return attributes;
}

function setText(attributes: Attributes, name: string, value: string | undefined): void {
  if (value !== undefined) attributes[name] = value;
}

function agentEnd(span: Span<'agent'>, attributes: Attributes, content: Content | undefined): void {
  const { tools, handoffs, outputType } = span.spanData;
  attributes[genAi.outputType] = outputTypeOf(outputType);
  if (tools && tools.length > 0) attributes[agents.tools] = [...tools];
  if (handoffs && handoffs.length > 0) attributes[agents.handoffs] = [...handoffs];
  if (content === undefined) return;
  setText(attributes, genAi.inputMessages, content.messages(span.details.input));
  setText(attributes, genAi.outputMessages, content.finalOutput(span.details.finalOutput));
}

/** `text`, or `json` of an agent that answers in a schema. */
export function outputTypeOf(outputType: string | undefined): string {
  return outputType === undefined || outputType === 'str' ? 'text' : 'json';
}

function functionEnd(span: Span<'function'>, attributes: Attributes, content: Content | undefined): void {
  const { details, spanData } = span;
  setText(attributes, genAi.toolCallId, details.toolCallId);
  setText(attributes, genAi.toolDescription, details.toolDescription || undefined);
  setText(attributes, agents.approval, details.approval);
  setText(attributes, agents.outcome, details.outcome);
  if (spanData.mcpData !== undefined) {
    attributes[common.mcpMethod] = 'tools/call';
    const { server } = spanData.mcpData;
    if (typeof server === 'string') attributes[agents.mcpServer] = server;
  }
  if (content === undefined) return;
  setText(attributes, genAi.toolArguments, content.value(spanData.input));
  setText(attributes, genAi.toolResult, content.value(spanData.output));
}

function handoffEnd(span: Span<'handoff'>, attributes: Attributes): void {
  setText(attributes, genAi.toolName, span.details.toolName);
  setText(attributes, genAi.toolCallId, span.details.toolCallId);
  setText(attributes, agents.handoffFrom, span.spanData.fromAgent);
  setText(attributes, agents.handoffTo, span.spanData.toAgent);
}

function taskEnd(span: Span<'task'>, attributes: Attributes): void {
  const { runId, resumed, streamed } = span.details;
  setText(attributes, agents.runId, runId);
  if (resumed !== undefined) attributes[agents.resumed] = resumed;
  if (streamed !== undefined) attributes[agents.streamed] = streamed;
}

/** Prompts and answers of a model call. `input`: what of them is to be shown. */
export function modelContent(
  span: Span<'response'> | Span<'generation'>,
  input: readonly unknown[] | undefined,
  content: Content,
): Attributes {
  const attributes: Attributes = {};
  const output: unknown = span.type === 'response' ? span.spanData.response?.output : span.spanData.output;
  const { systemInstructions, toolDefinitions } = span.details;
  setText(attributes, genAi.systemInstructions, content.instructions(systemInstructions));
  setText(attributes, genAi.inputMessages, content.messages(input));
  setText(attributes, genAi.outputMessages, content.answer(output, finishReasonsOf(span)?.[0]));
  if (toolDefinitions && toolDefinitions.length > 0)
    setText(attributes, genAi.toolDefinitions, content.value(toolDefinitions));
  return attributes;
}

/** Items of a model call's input. */
export function modelInput(span: Span<'response'> | Span<'generation'>): readonly unknown[] | undefined {
  const { input } = span.spanData;
  return Array.isArray(input) ? input : undefined;
}
