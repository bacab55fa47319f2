import { setTimeout } from 'node:timers/promises';
import type { Peer } from './peer.ts';
import { Agent, run, setTraceProcessors, setTracingDisabled, tool, Usage } from '@openai/agents';
import type { Model, ModelResponse, TracingProcessor } from '@openai/agents';
import { answer, callIds, notMeasured, question, tokens, toolArguments, toolName } from '../task.ts';
import { agentOptions, toolOptions } from './options.ts';
import type { Script } from '../task.ts';

type Output = ModelResponse['output'][number];

const counts = { inputTokens: tokens.input, outputTokens: tokens.output, totalTokens: tokens.input + tokens.output };
const usage = new Usage(counts);

function message(text: string): Output {
  return { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] };
}

function call(callId: string): Output {
  return { type: 'function_call', callId, name: toolName, arguments: toolArguments, status: 'completed' };
}

function scriptedModel(script: Script): Model {
  return {
    async getResponse({ input }) {
      if (script.latencyMs !== undefined) await setTimeout(script.latencyMs);
      const turn = (input.length - 1) / (2 * script.calls);
      return { usage, output: turn < script.turns ? callIds(turn, script).map(call) : [message(answer)] };
    },
    getStreamedResponse: notMeasured,
  };
}

function streamedModel(pieces: readonly string[]): Model {
  const done = { id: 'resp_1', usage: counts, output: [message(pieces.join(''))] as never };
  return {
    getResponse: notMeasured,
    async *getStreamedResponse() {
      yield { type: 'response_started' };
      for (const delta of pieces) yield { type: 'output_text_delta', delta };
      yield { type: 'response_done', response: done };
    },
  };
}

const drop = async (): Promise<void> => undefined;
const dropping: TracingProcessor = {
  onTraceStart: drop,
  onTraceEnd: drop,
  onSpanStart: drop,
  onSpanEnd: drop,
  shutdown: drop,
  forceFlush: drop,
};
setTraceProcessors([dropping]);

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
      const stream = await run(agent, question, { stream: true });
      for await (const event of stream) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') read += 1;
      }
      return read;
    };
  },
};
