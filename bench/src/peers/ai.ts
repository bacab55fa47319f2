import type { Peer } from './peer.ts';
import { generateText, isStepCount, streamText, tool } from 'ai';
import type { LanguageModel } from 'ai';
import {
  answer,
  description,
  firstOfTwo,
  instructions,
  parameters,
  pieces,
  question,
  tokens,
  toolArguments,
  toolName,
  weather,
} from '../task.ts';

type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;
type Answer = Awaited<ReturnType<Model['doGenerate']>>;
type StreamPart = Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer P> ? P : never;

const usage: Answer['usage'] = {
  inputTokens: { total: tokens.input, noCache: tokens.input, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: tokens.output, text: tokens.output, reasoning: 0 },
};

function model(parts: Partial<Pick<Model, 'doGenerate' | 'doStream'>>): Model {
  const missing = (): never => {
    throw new Error('Not part of this measurement.');
  };
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: missing,
    doStream: missing,
    ...parts,
  };
}

function scriptedModel(): Model {
  const isFirst = firstOfTwo();
  return model({
    async doGenerate() {
      return isFirst()
        ? {
            content: [{ type: 'tool-call', toolCallId: 'call_1', toolName, input: toolArguments }],
            finishReason: { unified: 'tool-calls', raw: undefined },
            usage,
            warnings: [],
          }
        : {
            content: [{ type: 'text', text: answer }],
            finishReason: { unified: 'stop', raw: undefined },
            usage,
            warnings: [],
          };
    },
  });
}

function streamedModel(): Model {
  return model({
    async doStream() {
      const stream = new ReadableStream<StreamPart>({
        start(controller) {
          controller.enqueue({ type: 'stream-start', warnings: [] });
          controller.enqueue({ type: 'text-start', id: 'text_1' });
          for (const delta of pieces) controller.enqueue({ type: 'text-delta', id: 'text_1', delta });
          controller.enqueue({ type: 'text-end', id: 'text_1' });
          controller.enqueue({ type: 'finish', usage, finishReason: { unified: 'stop', raw: undefined } });
          controller.close();
        },
      });
      return { stream };
    },
  });
}

export const peer: Peer = {
  oneToolCall() {
    const scripted = scriptedModel();
    const tools = { [toolName]: tool({ description, inputSchema: parameters, execute: weather }) };
    const stopWhen = isStepCount(10);
    return async () => (await generateText({ model: scripted, instructions, prompt: question, tools, stopWhen })).text;
  },
  textDeltas() {
    const streamed = streamedModel();
    return async () => {
      let read = 0;
      const result = streamText({ model: streamed, instructions, prompt: question });
      for await (const part of result.fullStream) if (part.type === 'text-delta') read += 1;
      return read;
    };
  },
};
