import { Agent, run, setTracingDisabled, toUsage } from '@agents/core';
import type { Model, ResponseOutputItem } from '@agents/core';
import { cpuMs, median } from './clock.ts';

/**
 * CPU time of one handoff in µs (medians), in chains of so many agents, each of which hands the conversation to the next one.
 * Each round takes every chain once, so that whatever else the machine does hits them alike.
 */
export async function handoffTimes(lengths: readonly number[], ms: number): Promise<number[]> {
  setTracingDisabled(true);
  const chains = lengths.map((length) => ({ first: chain(length), length, times: [] as number[] }));
  const end = cpuMs() + lengths.length * ms;
  let rounds = 0;
  do {
    for (const { first, length, times } of chains) {
      // As many handoffs whatever the length, so that the clock is read as often.
      const runs = Math.ceil(Math.max(...lengths) / length);
      const before = cpuMs();
      for (let index = 0; index < runs; index += 1) {
        const { finalOutput } = await run(first, 'Whose is order 7?', { maxTurns: null });
        if (finalOutput !== 'Mine.') throw new Error(`A chain of handoffs ended with ${String(finalOutput)}.`);
      }
      times.push(((cpuMs() - before) * 1000) / (runs * (length - 1)));
    }
    rounds += 1;
    await new Promise((resolve) => setImmediate(resolve));
  } while (cpuMs() < end || rounds < 5);
  return chains.map(({ times }) => median(times));
}

/** The first of so many agents. */
function chain(length: number): Agent {
  let agent = new Agent({ name: `Agent ${length}`, model: answering(message) });
  for (let place = length - 1; place >= 1; place -= 1) {
    const toolName = `transfer_to_agent_${place + 1}`;
    const call: ResponseOutputItem = {
      type: 'function_call',
      id: `fc_${place}`,
      call_id: `call_${place}`,
      name: toolName,
      arguments: '{}',
      status: 'completed',
    };
    agent = new Agent({ name: `Agent ${place}`, model: answering(call), handoffs: [agent] });
  }
  return agent;
}

const message: ResponseOutputItem = {
  type: 'message',
  id: 'msg',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Mine.', annotations: [] }],
};

function answering(item: ResponseOutputItem): Model {
  const usage = toUsage({ inputTokens: 20, outputTokens: 10, totalTokens: 30 });
  return {
    getResponse: () => Promise.resolve({ output: [{ ...item }], usage }),
    streamResponse: () => {
      throw new Error('not streamed here');
    },
  };
}
