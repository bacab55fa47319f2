// Waits for a line on its input, then runs an agent with two tool calls a few times on one session, streamed and not. The
// model fails when what it is sent is no conversation that a provider would take.
// agent.ts <path> <session id> <writer> <runs>
import { once } from 'node:events';

import { Agent, defineModel, run, runStreamed, tool, toUsage } from '@agents/core';
import type { AgentInputItem } from '@agents/core';
import { text, toolCall } from '@agents/core/testing';

import { SQLiteSession } from '../../src/index.ts';

const [path = '', sessionId = '', writer = '', runs = ''] = process.argv.slice(2);

/** @throws Error for a call without its output, an output without its call, and for two of one id */
function check(input: readonly AgentInputItem[]): void {
  const ids = (type: string): string[] =>
    input.flatMap((item) => (item.type === type && 'call_id' in item ? [String(item.call_id)] : []));
  const [calls, outputs] = [ids('function_call'), ids('function_call_output')];
  const isWhole = calls.toSorted().join() === outputs.toSorted().join() && new Set(calls).size === calls.length;
  if (!isWhole) throw new Error(`calls ${calls.join()}, outputs ${outputs.join()}`);
}

function modelOf(number: number) {
  let asked = 0;
  return defineModel({
    async getResponse({ input }) {
      check(input);
      asked += 1;
      const output =
        asked === 1
          ? ['a', 'b'].map((call) => toolCall('look', {}, { callId: `${writer}${number}${call}` }))
          : [{ ...text(`${writer}/${number}`), id: `msg_${writer}${number}` }];
      return { output, usage: toUsage({ requests: 1 }) };
    },
  });
}

const look = tool({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, execute: () => 'seen' });
process.stdout.write('ready\n');
await once(process.stdin, 'data');
process.stdin.destroy();
await using session = new SQLiteSession(sessionId, path);
for (let number = 0; number < Number(runs); number++) {
  const agent = new Agent({ name: 'A', model: modelOf(number), tools: [look] });
  if (number % 2 === 0) await run(agent, `${writer}/${number}`, { session });
  else await runStreamed(agent, `${writer}/${number}`, { session }).completed;
}
