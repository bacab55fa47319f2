import type { Peer } from './peer.ts';
import { Agent, run, setTracingDisabled, tool, Usage } from '@openai/agents';
import type { Model, ModelResponse } from '@openai/agents';
import {
  answer,
  description,
  firstOfTwo,
  instructions,
  longAnswer,
  parameters,
  pieces,
  question,
  tokens,
  toolArguments,
  toolName,
  weather,
} from '../task.ts';

setTracingDisabled(true);

const counts = { inputTokens: tokens.input, outputTokens: tokens.output, totalTokens: tokens.input + tokens.output };
const usage = new Usage(counts);

function message(text: string): ModelResponse['output'][number] {
  return { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] };
}

function scriptedModel(): Model {
  const isFirst = firstOfTwo();
  return {
    async getResponse() {
      return {
        usage,
        output: [
          isFirst()
            ? { type: 'function_call', callId: 'call_1', name: toolName, arguments: toolArguments, status: 'completed' }
            : message(answer),
        ],
      };
    },
    getStreamedResponse() {
      throw new Error('Not part of this measurement.');
    },
  };
}

function streamedModel(): Model {
  return {
    getResponse() {
      throw new Error('Not part of this measurement.');
    },
    async *getStreamedResponse() {
      yield { type: 'response_started' };
      for (const delta of pieces) yield { type: 'output_text_delta', delta };
      yield {
        type: 'response_done',
        response: { id: 'resp_1', usage: counts, output: [message(longAnswer)] as never },
      };
    },
  };
}

export const peer: Peer = {
  oneToolCall() {
    const weatherTool = tool({ name: toolName, description, parameters, execute: weather });
    const agent = new Agent({ name: 'Weather', instructions, model: scriptedModel(), tools: [weatherTool] });
    return async () => (await run(agent, question)).finalOutput ?? '';
  },
  textDeltas() {
    const agent = new Agent({ name: 'Weather', instructions, model: streamedModel() });
    return async () => {
      let read = 0;
      const stream = await run(agent, question, { stream: true });
      for await (const event of stream) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') read += 1;
      }
      return read;
    };
  },
};
