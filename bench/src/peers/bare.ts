import { setTimeout } from 'node:timers/promises';
import type { Peer } from './peer.ts';
import { answer, callIds, instructions, parameters, question, toolArguments, toolName, weather } from '../task.ts';
import type { Script } from '../task.ts';

// The least that the task takes: a loop over a model's answers, written out for this one tool. It has no tracing.

type Message = { type: 'text'; role: 'system' | 'user' | 'assistant'; text: string };
type Call = { type: 'call'; id: string; name: string; arguments: string };
type Item = Message | Call | { type: 'result'; id: string; output: string };
type Model = (history: readonly Item[]) => Promise<readonly (Message | Call)[]>;

function scriptedModel(script: Script): Model {
  return async (history) => {
    if (script.latencyMs !== undefined) await setTimeout(script.latencyMs);
    const turn = (history.length - 2) / (2 * script.calls);
    if (turn >= script.turns) return [{ type: 'text', role: 'assistant', text: answer }];
    return callIds(turn, script).map((id) => ({ type: 'call', id, name: toolName, arguments: toolArguments }));
  };
}

async function loop(model: Model): Promise<string> {
  const history: Item[] = [
    { type: 'text', role: 'system', text: instructions },
    { type: 'text', role: 'user', text: question },
  ];
  for (;;) {
    const items = await model(history.slice());
    history.push(...items);
    for (const item of items) {
      if (item.type === 'text') return item.text;
      history.push({ type: 'result', id: item.id, output: weather(parameters.parse(JSON.parse(item.arguments))) });
    }
  }
}

async function* streamedModel(pieces: readonly string[]): AsyncGenerator<{ type: 'delta'; delta: string }> {
  for (const delta of pieces) yield { type: 'delta', delta };
}

export const peer: Peer = {
  scripted(script) {
    const model = scriptedModel(script);
    return () => loop(model);
  },
  streamed: (pieces) => async () => {
    let read = 0;
    for await (const event of streamedModel(pieces)) if (event.type === 'delta') read += 1;
    return read;
  },
};
