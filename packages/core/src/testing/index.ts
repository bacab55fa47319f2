// `@agents/core/testing`: models without a network, a fake OpenAI API, contracts for backends. No test runner needed.
export { reasoning, refusal, text, toolCall } from './builders.ts';
export { ModelScriptError } from './script-error.ts';
export { ScriptedModel } from './scripted-model.ts';
export type { ModelCall, ModelStep, StepOptions } from './script.ts';
export { OfflineModel } from './offline-model.ts';
export type { ContractCase } from './contracts/case.ts';
export { sessionContract } from './contracts/session.ts';
export type { SessionFixture } from './contracts/session.ts';
export { FakeOpenAI } from './fake-openai.ts';
export type { FakeStep, Fault, RecordedRequest } from './fake/types.ts';
export { assertResponseStream } from './response-stream.ts';
export { InMemoryTraceProcessor } from './trace-processor.ts';
export type { TraceNode } from './trace-processor.ts';
export { traceProcessorContract } from './contracts/trace-processor.ts';
export { modelContract } from './contracts/model.ts';
export { resetDefaults } from './defaults.ts';
export { bothForms } from './forms.ts';
