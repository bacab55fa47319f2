import { setTimeout } from 'node:timers/promises';
import type { Peer } from './peer.ts';
import { generateText, isStepCount, streamText, tool } from 'ai';
import type { LanguageModel, Telemetry } from 'ai';
import {
  answer,
  callIds,
  description,
  instructions,
  notMeasured,
  parameters,
  question,
  tokens,
  toolArguments,
  toolName,
  weather,
} from '../task.ts';
import type { Script } from '../task.ts';

type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;
type Answer = Awaited<ReturnType<Model['doGenerate']>>;
type StreamPart = Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer P> ? P : never;

const usage: Answer['usage'] = {
  inputTokens: { total: tokens.input, noCache: tokens.input, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: tokens.output, text: tokens.output, reasoning: 0 },
};

function model(parts: Partial<Pick<Model, 'doGenerate' | 'doStream'>>): Model {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    doGenerate: notMeasured,
    doStream: notMeasured,
    ...parts,
  };
}

function scriptedModel(script: Script): Model {
  return model({
    async doGenerate({ prompt }) {
      if (script.latencyMs !== undefined) await setTimeout(script.latencyMs);
      // Beside instructions and question: for each turn one message with all calls, and one with all outputs.
      const turn = (prompt.length - 2) / 2;
      return turn < script.turns
        ? {
            content: callIds(turn, script).map((toolCallId) => ({
              type: 'tool-call',
              toolCallId,
              toolName,
              input: toolArguments,
            })),
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

function streamedModel(pieces: readonly string[]): Model {
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

const drop = (): void => undefined;
/** The events of what would be spans: of the run, its steps, its calls of models and tools. */
const dropping: Telemetry = {
  onStart: drop,
  onStepStart: drop,
  onLanguageModelCallStart: drop,
  onLanguageModelCallEnd: drop,
  onToolExecutionStart: drop,
  onToolExecutionEnd: drop,
  onStepEnd: drop,
  onEnd: drop,
};

export const peer: Peer = {
  scripted(script) {
    const options = {
      model: scriptedModel(script),
      instructions,
      prompt: question,
      tools: { [toolName]: tool({ description, inputSchema: parameters, execute: weather }) },
      stopWhen: isStepCount(script.turns + 1),
      telemetry: script.traced ? { integrations: dropping } : { isEnabled: false },
    };
    return async () => (await generateText(options)).text;
  },
  streamed(pieces) {
    const streamed = streamedModel(pieces);
    return async () => {
      let read = 0;
      const result = streamText({ model: streamed, instructions, prompt: question, telemetry: { isEnabled: false } });
      for await (const part of result.fullStream) if (part.type === 'text-delta') read += 1;
      return read;
    };
  },
};
