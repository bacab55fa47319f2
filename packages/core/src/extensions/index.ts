// `@agents/core/extensions`: ready-made filters, prompts and views of agents, and schemas for authors of adapters.
export { agentGraph } from './agent-graph.ts';
export { composeHandoffFilters, keepLastMessages, nestHandoffHistory, removeAllTools } from './handoff-filters.ts';
export { promptWithHandoffInstructions, RECOMMENDED_PROMPT_PREFIX } from './handoff-prompt.ts';
export { inspectAgentRequest } from './inspect-request.ts';
export type { AgentRequestView } from './inspect-request.ts';
export { toJsonSchema } from '../agent/schema.ts';
export { ensureStrictJsonSchema } from '../agent/strict-schema.ts';
export { toolOutputTrimmer } from './tool-output-trimmer.ts';
