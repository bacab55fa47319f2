import { Agent, run, RunState, setTracingDisabled, tool, toUsage } from '@agents/core';
import type { AgentInputItem, Model, ResponseOutputItem } from '@agents/core';
import { description, parameters, question, toolArguments, toolName, weather } from './task.ts';

/** Where a paused run has most of its items from: the caller's history, or turns of its own. */
export type Origin = 'input' | 'items';

/** A state's own times beside those of JSON for the same document, in ms. Medians, but for the first save. */
export interface StateTimes {
  readonly firstSave: number;
  readonly save: number;
  readonly stringify: number;
  readonly restore: number;
  readonly parse: number;
}

/**
 * Each round takes every time once, one after another, so that whatever else the machine does hits them alike.
 *
 * @param now a clock in ms
 */
export async function stateTimes(origin: Origin, items: number, ms: number, now: () => number): Promise<StateTimes> {
  setTracingDisabled(true);
  const { agent, state } = await pausedRun(origin, items);
  const start = now();
  const text = state.toString();
  const firstSave = now() - start;
  const document: unknown = JSON.parse(text);
  const work = {
    save: () => state.toString(),
    stringify: () => JSON.stringify(document),
    restore: () => RunState.fromString(agent, text),
    parse: () => JSON.parse(text) as unknown,
  };
  const times = { save: [], stringify: [], restore: [], parse: [] } as Record<keyof typeof work, number[]>;
  const end = now() + 2 * ms;
  do {
    for (const name of Object.keys(work) as (keyof typeof work)[]) {
      const before = now();
      await work[name]();
      times[name].push(now() - before);
      await new Promise((resolve) => setImmediate(resolve));
    }
  } while (now() < end || times.parse.length < 5);
  const restored = await work.restore();
  if (restored.toString() !== text) throw new Error('A restored state gave another text.');
  const { save, stringify, restore, parse } = times;
  return {
    firstSave,
    save: median(save),
    stringify: median(stringify),
    restore: median(restore),
    parse: median(parse),
  };
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

/** A run that waits for a decision, after `items` of input, or after turns of a message, a call and its output. */
async function pausedRun(origin: Origin, items: number): Promise<{ agent: Agent; state: RunState }> {
  const turns = origin === 'items' ? Math.floor(items / 3) : 0;
  const agent = new Agent({
    name: 'Weather',
    model: model(turns),
    tools: [
      tool({ name: toolName, description, parameters, execute: weather }),
      tool({ name: 'book', description, parameters, needsApproval: true, execute: weather }),
    ],
  });
  const input = origin === 'input' ? history(items) : question;
  return { agent, state: (await run(agent, input, { maxTurns: null })).toState() };
}

function model(turns: number): Model {
  let calls = 0;
  const usage = toUsage({ inputTokens: 100, outputTokens: 20, totalTokens: 120 });
  const call = (name: string): ResponseOutputItem => ({
    type: 'function_call',
    id: `fc_${calls}`,
    call_id: `call_${calls}`,
    name,
    arguments: toolArguments,
    status: 'completed',
  });
  return {
    async getResponse() {
      calls += 1;
      const responseId = `resp_${calls}`;
      if (calls > turns) return { responseId, usage, output: [call('book')] };
      return { responseId, usage, output: [message(calls), call(toolName)] };
    },
    streamResponse() {
      throw new Error('Not part of this measurement.');
    },
  };
}

function message(turn: number): ResponseOutputItem {
  return {
    type: 'message',
    id: `msg_${turn}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: `I look it up for turn ${turn}`, annotations: [] }],
  };
}

function history(items: number): AgentInputItem[] {
  return Array.from({ length: items }, (_, index): AgentInputItem => {
    const call_id = `old_${Math.floor(index / 3)}`;
    if (index % 3 === 0) return { role: 'user', content: `Question number ${index}` };
    if (index % 3 === 1)
      return { type: 'function_call', call_id, name: toolName, arguments: toolArguments, status: 'completed' };
    return { type: 'function_call_output', call_id, output: weather({ city: 'Oslo' }) };
  });
}
