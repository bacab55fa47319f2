// `@agents/core/openai`: what talks to the OpenAI API. Loads the `openai` package.
export { OpenAICompactionSession } from './compaction-session.ts';
export type { OpenAICompactionSessionOptions } from './compaction-session.ts';
export { OpenAIConversationsSession } from './conversations-session.ts';
export { setOpenAIDefaults } from './defaults.ts';
export type { OpenAIDefaults } from './defaults.ts';
export { MultiProvider } from './multi-provider.ts';
export type { MultiProviderOptions } from './multi-provider.ts';
export { OpenAIProvider } from './provider.ts';
export type { OpenAIProviderOptions } from './provider.ts';
export { OpenAIResponsesModel } from './responses-model.ts';
export type { OpenAIModelOptions } from './responses-model.ts';
