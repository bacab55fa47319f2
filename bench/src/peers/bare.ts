import type { Peer } from './peer.ts';
import {
  answer,
  firstOfTwo,
  instructions,
  parameters,
  pieces,
  question,
  toolArguments,
  toolName,
  weather,
} from '../task.ts';

// The least that the task takes: a loop over a model's answers, written out for this one tool.

type Item =
  | { type: 'text'; role: 'system' | 'user' | 'assistant'; text: string }
  | { type: 'call'; id: string; name: string; arguments: string }
  | { type: 'result'; id: string; output: string };

function scriptedModel(): (history: readonly Item[]) => Promise<Item> {
  const isFirst = firstOfTwo();
  return async () =>
    isFirst()
      ? { type: 'call', id: 'call_1', name: toolName, arguments: toolArguments }
      : { type: 'text', role: 'assistant', text: answer };
}

async function loop(model: (history: readonly Item[]) => Promise<Item>): Promise<string> {
  const history: Item[] = [
    { type: 'text', role: 'system', text: instructions },
    { type: 'text', role: 'user', text: question },
  ];
  for (;;) {
    const item = await model(history.slice());
    history.push(item);
    if (item.type === 'text') return item.text;
    if (item.type === 'call') {
      history.push({ type: 'result', id: item.id, output: weather(parameters.parse(JSON.parse(item.arguments))) });
    }
  }
}

async function* streamedModel(): AsyncGenerator<{ type: 'delta'; delta: string }> {
  for (const delta of pieces) yield { type: 'delta', delta };
}

export const peer: Peer = {
  oneToolCall() {
    const model = scriptedModel();
    return () => loop(model);
  },
  textDeltas: () => async () => {
    let read = 0;
    for await (const event of streamedModel()) if (event.type === 'delta') read += 1;
    return read;
  },
};
