import { convertJsSdkItems } from '@agents/core/session';
import { Agent, run, setTracingDisabled, tool, Usage } from '@openai/agents';
import type { AgentInputItem, Model, ModelRequest, ModelResponse, Session } from '@openai/agents';
import { expect, it } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName } from './support/databases.ts';
import { makeTables } from './support/tables.ts';

/** Calls the tool for a question, then tells what it heard. */
class Scripted implements Model {
  readonly inputs: AgentInputItem[][] = [];

  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    const items = typeof input === 'string' ? [] : input;
    this.inputs.push([...items]);
    const id = `c${this.inputs.length}`;
    const last = items.at(-1);
    const output: ModelResponse['output'] =
      last?.type === 'function_call_result'
        ? [
            {
              type: 'message',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: `heard ${id}` }],
            },
          ]
        : [{ type: 'function_call', callId: id, name: 'look', arguments: '{}', status: 'completed' }];
    return { usage: new Usage(), output };
  }

  getStreamedResponse(): never {
    throw new Error('not used');
  }
}

it.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])(
  '%s is the session of a runner of @openai/agents over three turns with a tool [SESS#75, SESS-393]',
  async (driver) => {
    setTracingDisabled(true);
    const opened = await open(driver);
    await makeTables(opened);
    const session = new DrizzleSession<AgentInputItem>('s', { db: opened.db });
    const look = tool({
      name: 'look',
      description: 'Looks.',
      parameters: { type: 'object' as const, properties: {}, required: [], additionalProperties: false as const },
      strict: true,
      execute: () => 'seen',
    });
    const model = new Scripted();
    const agent = new Agent({ name: 'A', model, tools: [look] });
    for (const turn of ['1', '2', '3']) {
      const { finalOutput } = await run(agent, `question ${turn}`, { session: session satisfies Session });
      expect(finalOutput).toBe(`heard c${Number(turn) * 2}`);
    }
    const stored = await session.getItems();
    expect(stored.map((item) => item.type ?? 'message')).toEqual(
      [1, 2, 3].flatMap(() => ['message', 'function_call', 'function_call_result', 'message']),
    );
    // The last request had all that was stored before it.
    expect(model.inputs.at(-1)).toHaveLength(11);
    expect(convertJsSdkItems(stored)[1]).toMatchObject({ type: 'function_call', call_id: 'c1', name: 'look' });
    expect(await session.popItem()).toMatchObject({ role: 'assistant' });
    expect(await session.getItems()).toHaveLength(11);
    await opened.close();
  },
);
