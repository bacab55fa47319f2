import { setTimeout } from 'node:timers/promises';
import type { Peer } from './peer.ts';
import { Agent, run, runStreamed, setTraceProcessors, setTracingDisabled, tool, toUsage } from '@agents/core';
import type { Model, ResponseOutputItem, ResponseStreamEvent } from '@agents/core';
import { answer, callIds, notMeasured, question, tokens, toolArguments, toolName } from '../task.ts';
import { agentOptions, toolOptions } from './options.ts';
import type { Script } from '../task.ts';

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

function call(call_id: string): ResponseOutputItem {
  return { type: 'function_call', call_id, name: toolName, arguments: toolArguments, status: 'completed' };
}

function scriptedModel(script: Script): Model {
  return {
    async getResponse({ input }) {
      if (script.latencyMs !== undefined) await setTimeout(script.latencyMs);
      const turn = (input.length - 1) / (2 * script.calls);
      return { usage, output: turn < script.turns ? callIds(turn, script).map(call) : [message(answer)] };
    },
    streamResponse: notMeasured,
  };
}

function streamedModel(pieces: readonly string[]): Model {
  const output = [message(pieces.join(''))];
  const done = { id: 'resp_1', object: 'response', status: 'completed', output, usage: counts };
  return {
    getResponse: notMeasured,
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

const drop = (): void => undefined;
setTraceProcessors([{ onTraceStart: drop, onTraceEnd: drop, onSpanStart: drop, onSpanEnd: drop }]);

export const peer: Peer = {
  scripted(script) {
    const agent = new Agent({ ...agentOptions, model: scriptedModel(script), tools: [tool(toolOptions)] });
    const maxTurns = script.turns + 1;
    return async () => {
      setTracingDisabled(script.traced !== true);
      return (await run(agent, question, { maxTurns })).finalOutput ?? '';
    };
  },
  streamed(pieces) {
    setTracingDisabled(true);
    const agent = new Agent({ ...agentOptions, model: streamedModel(pieces) });
    return async () => {
      let read = 0;
      for await (const event of runStreamed(agent, question)) {
        if (event.type === 'raw_response_event' && event.data.type === 'response.output_text.delta') read += 1;
      }
      return read;
    };
  },
};
