import { Agent, run, RunState, setTracingDisabled, tool, toUsage } from '@agents/core';
import type { Model, ResponseOutputItem } from '@agents/core';
import { z } from 'zod';

/** A pause inside runs of agent tools, by how deep they are: the text of its state in bytes, and times in ms (medians). */
export interface NestedTimes {
  readonly bytes: number;
  readonly pause: number;
  readonly save: number;
  readonly restore: number;
  readonly resume: number;
}

/**
 * Each round takes every depth once, so that whatever else the machine does hits them alike.
 *
 * @param now a clock in ms
 */
export async function nestedTimes(depths: readonly number[], ms: number, now: () => number): Promise<NestedTimes[]> {
  setTracingDisabled(true);
  const contestants = depths.map((depth) => ({
    agent: nested(depth),
    bytes: 0,
    times: { pause: [] as number[], save: [] as number[], restore: [] as number[], resume: [] as number[] },
  }));
  const end = now() + 4 * ms;
  let rounds = 0;
  do {
    for (const at of contestants) {
      const { agent, times } = at;
      const take = async <T>(list: number[], work: () => Promise<T> | T): Promise<T> => {
        const before = now();
        const result = await work();
        list.push(now() - before);
        return result;
      };
      const paused = await take(times.pause, () => run(agent, 'Refund order 7'));
      const state = paused.toState();
      const text = await take(times.save, () => state.toString());
      at.bytes = text.length;
      const restored = await take(times.restore, () => RunState.fromString(agent, text));
      for (const item of restored.interruptions) restored.approve(item);
      const result = await take(times.resume, () => run(agent, restored));
      if (result.finalOutput !== 'Done.') throw new Error(`A nested run ended with ${String(result.finalOutput)}.`);
    }
    rounds += 1;
    await new Promise((resolve) => setImmediate(resolve));
  } while (now() < end || rounds < 5);
  return contestants.map(({ bytes, times: { pause, save, restore, resume } }) => ({
    bytes,
    pause: median(pause),
    save: median(save),
    restore: median(restore),
    resume: median(resume),
  }));
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

/** An agent behind so many agent tools, and at the bottom a call that waits. */
function nested(depth: number): Agent {
  const refund = tool({ name: 'refund', parameters: z.object({}), needsApproval: true, execute: () => 'Refunded.' });
  let agent = new Agent({ name: 'Agent 0', model: model('refund', {}), tools: [refund] });
  for (let level = 1; level <= depth; level += 1)
    agent = new Agent({
      name: `Agent ${level}`,
      model: model('ask', { input: 'Refund order 7' }),
      tools: [agent.asTool({ toolName: 'ask' })],
    });
  return agent;
}

/** Calls the tool, then answers. */
function model(name: string, args: object): Model {
  const usage = toUsage({ inputTokens: 20, outputTokens: 10, totalTokens: 30 });
  const call: ResponseOutputItem = {
    type: 'function_call',
    id: `fc_${name}`,
    call_id: `call_${name}`,
    name,
    arguments: JSON.stringify(args),
    status: 'completed',
  };
  const message: ResponseOutputItem = {
    type: 'message',
    id: 'msg',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
  };
  return {
    getResponse: ({ input }) =>
      Promise.resolve({
        output: [input.some((item) => item.type === 'function_call_output') ? message : { ...call }],
        usage,
      }),
    streamResponse: () => {
      throw new Error('not streamed here');
    },
  };
}
