// `@agents/testkit/openai-agents`: sessions of ours as those of the runner of npm `@openai/agents`.
import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';

import { convertJsSdkItems } from '@agents/core/session';
import type {
  AgentInputItem,
  AssistantMessageItem,
  Model,
  ModelRequest,
  ModelResponse,
  SessionHistoryTransactionAwareSession,
} from '@openai/agents';

export type TheirItem = AgentInputItem;
export type TheirSession = SessionHistoryTransactionAwareSession;

// One of what it depends on has sources under the condition by which our packages are found.
const hooks = registerHooks({
  resolve: (specifier, context, next) =>
    context.parentURL?.includes('/node_modules/') === true
      ? next(specifier, { ...context, conditions: context.conditions.filter((condition) => condition !== 'source') })
      : next(specifier, context),
});
const { Agent, run, setTracingDisabled, tool, Usage } = await import('@openai/agents');
hooks.deregister();

/** Calls the tool for a question, then tells what it heard. */
class Scripted implements Model {
  readonly inputs: AgentInputItem[][] = [];

  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    const items = typeof input === 'string' ? [] : input;
    this.inputs.push([...items]);
    const id = `c${this.inputs.length}`;
    const heard = items.at(-1)?.type === 'function_call_result';
    const output: ModelResponse['output'] = heard
      ? [message(`heard ${id}`)]
      : [{ type: 'function_call', callId: id, name: 'look', arguments: '{}', status: 'completed' }];
    return { usage: new Usage(), output };
  }

  getStreamedResponse(): never {
    throw new Error('Nothing is streamed here.');
  }
}

const message = (text: string): AssistantMessageItem => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});

/**
 * Three turns with a tool on one history, then what that SDK does to a session beside: pops, changes of the end, and a clear.
 *
 * @param open a session of always the same history, which is empty; a new object for each turn, as servers make them
 * @throws AssertionError
 */
export async function checkWithOpenAIAgents(open: () => TheirSession): Promise<void> {
  setTracingDisabled(true);
  const look = tool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object' as const, properties: {}, required: [], additionalProperties: false as const },
    strict: true,
    execute: () => 'seen',
  });
  const model = new Scripted();
  const agent = new Agent({ name: 'A', model, tools: [look] });
  for (const turn of [1, 2, 3]) {
    const { finalOutput } = await run(agent, `question ${turn}`, { session: open() });
    assert.equal(finalOutput, `heard c${turn * 2}`);
  }
  const session = open();
  const stored = await session.getItems();
  assert.deepEqual(
    stored.map((item) => item.type ?? 'message'),
    [1, 2, 3].flatMap(() => ['message', 'function_call', 'function_call_result', 'message']),
  );
  assert.deepEqual(stored[0], { type: 'message', role: 'user', content: 'question 1' });
  // The last request had all that was stored before it.
  assert.equal(model.inputs.at(-1)?.length, 11);
  const ours = convertJsSdkItems(stored);
  assert.partialDeepStrictEqual(ours.slice(1, 3), [
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1' },
  ]);
  await checkChanges(session, stored);
}

/** What their own session in memory does, too. */
async function checkChanges(session: TheirSession, stored: readonly AgentInputItem[]): Promise<void> {
  assert.equal(await session.getSessionId(), await session.getSessionId());
  assert.deepEqual(await session.getItems(2), stored.slice(-2));
  assert.deepEqual(await session.getItems(0), []);
  assert.deepEqual(await session.popItem(), stored.at(-1));
  const left = stored.slice(0, -1);
  const append = async (text: string): Promise<void> => {
    const transaction = { type: 'append_items' as const, items: [message(text)] };
    await session.applyHistoryTransaction({ operationId: 'append', transaction });
  };
  await append('appended');
  await append('appended');
  assert.deepEqual(await session.getItems(), [...left, message('appended')]);
  await assert.rejects(append('another'));
  const replace = async (operationId: string, expected: AgentInputItem): Promise<void> => {
    const transaction = {
      type: 'replace_suffix' as const,
      expectedSuffix: [expected],
      replacement: [message('replaced')],
    };
    await session.applyHistoryTransaction({ operationId, transaction });
  };
  await assert.rejects(replace('wrong', message('something else')));
  await replace('replace', message('appended'));
  await replace('replace', message('appended'));
  assert.deepEqual(await session.getItems(), [...left, message('replaced')]);
  const cut = async (): Promise<void> => {
    const transaction = { type: 'replace_suffix' as const, expectedSuffix: [message('replaced')], replacement: [] };
    await session.applyHistoryTransaction({ operationId: 'cut', transaction });
  };
  await cut();
  await cut();
  assert.deepEqual(await session.getItems(), left);
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
  assert.equal(await session.popItem(), undefined);
}
