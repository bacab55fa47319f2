import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, it } from 'vitest';
import { Agent, run, RunState, setTracingDisabled } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults, ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, idle } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

/** An agent behind `depth` agent tools, each with a model that answers once; the innermost asks for a gated call. */
function nested(depth: number): Agent {
  let agent = new Agent({
    name: 'A0',
    model: new ScriptedModel([toolCall('rm', { id: '1' }, { callId: 'in' }), 'r']),
    tools: [effectTool('rm', [], { needsApproval: true })],
  });
  for (let i = 1; i <= depth; i += 1)
    agent = new Agent({
      name: `A${i}`,
      model: new ScriptedModel([toolCall('down', { input: 'q' }, { callId: `c${i}` }), 'r']),
      tools: [agent.asTool({ toolName: 'down' })],
    });
  return agent;
}

/** Bytes in use once nothing is left to collect. */
function heapAfterCollection(): () => Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return async () => {
    for (let i = 0; i < 3; i += 1) {
      await idle(2);
      collect();
    }
    return process.memoryUsage().heapUsed;
  };
}

it('a state ten runs deep is about twice the size of one five runs deep [STATE-241]', async () => {
  const sizes = await Promise.all(
    [5, 10].map(async (depth) => (await run(nested(depth), 'hi')).toState().toString().length),
  );
  const [five = 0, ten = 0] = sizes;
  expect(ten / five).toBeLessThanOrEqual(2.2);
  expect(ten / five).toBeGreaterThan(1.5);
});

it('nothing holds paused nested runs that were dropped, and what was restored needs none of them [STATE#8, STATE-263, IL-062]', async () => {
  setTracingDisabled(true);
  const heap = heapAfterCollection();
  let held: WeakRef<object>[] = [];
  const pause = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i += 1) {
      const agent = nested(1);
      const result = await run(agent, 'hi');
      if (i % 100 === 0) held.push(new WeakRef(agent), new WeakRef(result), new WeakRef(result.toState()));
    }
  };
  await pause(200);
  held = [];
  const before = await heap();
  await pause(1000);
  const after = await heap();
  expect(held.filter((ref) => ref.deref() !== undefined)).toEqual([]);
  expect(after / before).toBeLessThan(1.05);

  const agent = nested(1);
  const text = (await run(agent, 'hi')).toState().toString();
  await heap();
  const state = await RunState.fromString(agent, text);
  for (const item of state.interruptions) state.approve(item);
  expect((await run(agent, state)).finalOutput).toBe('r');
});

bothForms((runForm, form) => {
  it(`results and items have the very agents of the user, which nothing keeps after the run (${form}) [TOOL-A20]`, async () => {
    setTracingDisabled(true);
    const heap = heapAfterCollection();
    const finish = async (): Promise<WeakRef<Agent>[]> => {
      const tools = [effectTool('t', [])];
      const last = new Agent({ name: 'B', model: new ScriptedModel([toolCall('t', {}), 'done']), tools });
      const model = new ScriptedModel([toolCall('transfer_to_b', {})]);
      const first = new Agent({ name: 'A', model, handoffs: [last] });
      const { lastAgent, newItems } = await runForm(first, 'hi');
      expect(lastAgent).toBe(last);
      expect(new Set(newItems.map(({ agent }) => agent))).toEqual(new Set([first, last]));
      return [new WeakRef(first), new WeakRef(last)];
    };
    const held = await finish();
    await heap();
    expect(held.map((ref) => ref.deref()?.name)).toEqual([undefined, undefined]);
  });
});
