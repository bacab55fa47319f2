import type { Peer } from './peer.ts';
import { Agent, run, runStreamed, setTracingDisabled, tool, toUsage } from '@agents/core';
import type { Model, ResponseOutputItem, ResponseStreamEvent } from '@agents/core';
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

const counts = { input_tokens: tokens.input, output_tokens: tokens.output, total_tokens: tokens.input + tokens.output };
const usage = toUsage(counts);

function message(text: string): ResponseOutputItem {
  return {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  };
}

function scriptedModel(): Model {
  const isFirst = firstOfTwo();
  return {
    async getResponse() {
      return {
        usage,
        output: [
          isFirst()
            ? {
                type: 'function_call',
                call_id: 'call_1',
                name: toolName,
                arguments: toolArguments,
                status: 'completed',
              }
            : message(answer),
        ],
      };
    },
    streamResponse() {
      throw new Error('Not part of this measurement.');
    },
  };
}

function streamedModel(): Model {
  const done = { id: 'resp_1', object: 'response', status: 'completed', output: [message(longAnswer)], usage: counts };
  return {
    getResponse() {
      throw new Error('Not part of this measurement.');
    },
    async *streamResponse() {
      const logprobs: never[] = [];
      let sequence_number = 0;
      for (const delta of pieces) {
        yield {
          type: 'response.output_text.delta',
          item_id: 'msg_1',
          output_index: 0,
          content_index: 0,
          delta,
          logprobs,
          sequence_number: sequence_number++,
        };
      }
      // A whole response has members that no one reads here.
      yield { type: 'response.completed', response: done, sequence_number } as unknown as ResponseStreamEvent;
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
      for await (const event of runStreamed(agent, question)) {
        if (event.type === 'raw_response_event' && event.data.type === 'response.output_text.delta') read += 1;
      }
      return read;
    };
  },
};
