// Every name of this package, in one place: the GenAI conventions are of Development stability
// (open-telemetry/semantic-conventions-genai, v0.1.0). What they have no name for stands under `agents.`.

/** Attributes of the conventions. */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  conversationId: 'gen_ai.conversation.id',
  outputType: 'gen_ai.output.type',
  promptName: 'gen_ai.prompt.name',
  promptVersion: 'gen_ai.prompt.version',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  previousResponseId: 'gen_ai.request.previous_response.id',
  reasoningLevel: 'gen_ai.request.reasoning.level',
  stopSequences: 'gen_ai.request.stop_sequences',
  choiceCount: 'gen_ai.request.choice.count',
  responseModel: 'gen_ai.response.model',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolDescription: 'gen_ai.tool.description',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  toolDefinitions: 'gen_ai.tool.definitions',
  systemInstructions: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  tokenModality: 'gen_ai.token.modality',
} as const;

/** Attributes of other conventions. */
export const common = {
  errorType: 'error.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  openaiApi: 'openai.api.type',
  openaiRequestTier: 'openai.request.service_tier',
  openaiResponseTier: 'openai.response.service_tier',
  mcpMethod: 'mcp.method.name',
  mcpSession: 'mcp.session.id',
} as const;

/** Attributes of our own. */
export const agents = {
  traceId: 'agents.trace_id',
  spanId: 'agents.span_id',
  spanType: 'agents.span_type',
  groupId: 'agents.group_id',
  runId: 'agents.run.id',
  interrupted: 'agents.run.interrupted',
  resumed: 'agents.task.resumed',
  streamed: 'agents.task.streamed',
  turn: 'agents.turn',
  tools: 'agents.agent.tools',
  handoffs: 'agents.agent.handoffs',
  approval: 'agents.tool.approval',
  outcome: 'agents.tool.outcome',
  handoffFrom: 'agents.handoff.from',
  handoffTo: 'agents.handoff.to',
  guardrailName: 'agents.guardrail.name',
  guardrailStage: 'agents.guardrail.stage',
  guardrailTriggered: 'agents.guardrail.triggered',
  mcpServer: 'agents.mcp.server',
  mcpToolCount: 'agents.mcp.tool_count',
  customData: 'agents.custom.data',
  attempt: 'agents.model.attempt',
  requestId: 'agents.request_id',
  abandoned: 'agents.stream.abandoned',
  leaked: 'agents.leaked',
  linkKind: 'agents.link.kind',
} as const;

/** Values of `gen_ai.operation.name`. */
export const operations = {
  workflow: 'invoke_workflow',
  agent: 'invoke_agent',
  chat: 'chat',
  tool: 'execute_tool',
} as const;

/** Attributes that hold what users, models and tools said: left out where `mapAttributes` fails. */
export const contentAttributes: readonly string[] = [
  genAi.systemInstructions,
  genAi.inputMessages,
  genAi.outputMessages,
  genAi.toolDefinitions,
  genAi.toolArguments,
  genAi.toolResult,
  agents.customData,
];
