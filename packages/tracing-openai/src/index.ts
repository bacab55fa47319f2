// `@agents/tracing-openai`: traces to the OpenAI dashboard. Nothing leaves the process before `enableOpenAITracing()`.
export { enableOpenAITracing } from './enable.ts';
export { OpenAITraceExporter } from './exporter.ts';
export type { OpenAITraceExporterOptions } from './options.ts';
