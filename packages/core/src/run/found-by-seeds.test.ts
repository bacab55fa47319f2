import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent, configureLogging, getRunErrorState, run, RunState, runStreamed, tool } from '../index.ts';
import type { Model, RunHooks, RunInput, RunOptions, RunResult, ToolApprovalItem } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, idle, kindsOf, PlainSession, rejection, thrown, user } from '../../test/run-kit.ts';
import { watchTimers } from '../../test/random/timers.ts';

// What random runs found, each by itself.

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

/** Two calls of one response, of which `a` fails on its first attempt after its sibling is done. */
function desk() {
  const effects: string[] = [];
  const a = effectTool('a', effects, {
    failureErrorFunction: null,
    result: () => {
      if (effects.filter((effect) => effect.startsWith('a')).length === 1)
        return new Promise((_, reject) => setImmediate(() => reject(new Error('cut'))));
      return 'a ok';
    },
  });
  const calls = ['a', 'b'].map((name) => toolCall(name, { id: name }, { callId: name }));
  const agent = new Agent({
    name: 'A',
    model: new ScriptedModel([calls, 'done']),
    tools: [a, effectTool('b', effects)],
  });
  return { agent, effects };
}

const stateOf = async (running: Promise<unknown>): Promise<RunState> => {
  const state = getRunErrorState(await rejection(running));
  if (state === undefined) throw new Error('The error has no state.');
  return state;
};

describe.each(['live', 'through text'])('a state, %s', (way) => {
  const passOn = async (agent: Agent, state: RunState): Promise<RunState> =>
    way === 'live' ? state : await RunState.fromString(agent, state.toString());

  it('of a run whose history could not be read is prepared by its resume: history and input are there [STATE-321]', async () => {
    const session = new PlainSession('s', [user('earlier')]);
    const model = new ScriptedModel(['done']);
    const agent = new Agent({ name: 'A', model });
    session.failReads = true;
    const failed = await stateOf(run(agent, 'go', { session }));
    session.failReads = false;
    const result = await run(agent, await passOn(agent, failed), { session });
    expect(result.finalOutput).toBe('done');
    expect(model.calls[0]?.request.input).toMatchObject([{ content: 'earlier' }, { content: 'go' }]);
    expect(session.kinds).toBe('u u m');
  });

  it('of a turn that was published in two parts loses no output that was made later [STATE-212, 345]', async () => {
    const { agent, effects } = desk();
    const session = new PlainSession();
    const cut = await stateOf(run(agent, 'go', { session }));
    const paused = await run(agent, await passOn(agent, cut), { session, onInDoubt: 'interrupt' });
    const waits = await passOn(agent, paused.toState());
    for (const item of waits.interruptions) waits.decide(item, { type: 'rerun' });
    const hooks = { onToolEnd: () => Promise.reject(new Error('hook')) };
    const failed = await passOn(agent, await stateOf(run(agent, waits, { session, hooks })));
    // It has its output: nobody is asked about it (STATE-139).
    expect(failed.interruptions).toEqual([]);
    const result = await run(agent, failed, { session });
    expect(effects).toEqual(['a a', 'b b', 'a a']);
    expect(kindsOf(result.toInputList())).toBe('u fc fco fc fco m');
    expect(session.kinds).toBe('u fc fco fc fco m');
  });

  it('whose finished work could not be stored owes that work and no call that is not public yet [STATE-304]', async () => {
    const { agent } = desk();
    const session = new PlainSession();
    session.faults.push(undefined, 'before');
    session.failReads = false;
    const failed = await passOn(agent, await stateOf(run(agent, 'go', { session })));
    const result = await run(agent, failed, { session, onInDoubt: 'retry' });
    expect(result.finalOutput).toBe('done');
    expect(session.kinds).toBe('u fc fco fc fco m');
  });
});

describe.each(['plain', 'streamed'])('what random callbacks found (%s)', (form) => {
  const runForm = async (agent: Agent, input: RunInput, options: RunOptions = {}): Promise<RunResult> =>
    form === 'plain' ? await run(agent, input, options) : await runStreamed(agent, input, options).completed;

  it('a failing call is told of, not the agent tool beside it that was told to stop [RUN-508] [TOOL-X8, AT11]', async () => {
    const down = new Error('down');
    const waits = tool({
      name: 'wait',
      execute: (_args, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'))),
    });
    const inner = new Agent({ name: 'N', model: new ScriptedModel([toolCall('wait')]), tools: [waits] });
    const fails = tool({
      name: 'fails',
      failureErrorFunction: null,
      execute: async () => {
        await idle();
        throw down;
      },
    });
    const model = new ScriptedModel([[toolCall('n', { input: 'x' }), toolCall('fails')]]);
    const agent = new Agent({ name: 'A', model, tools: [inner.asTool({ failureErrorFunction: null }), fails] });
    expect(await rejection(runForm(agent, 'go'))).toMatchObject({ name: 'ToolCallError', cause: down });
  });

  it('the model may use the ids of a response that was thrown away again, for other calls [STATE-136]', async () => {
    const effects: string[] = [];
    const model = new ScriptedModel([
      toolCall('t', { id: '1' }, { callId: 'c' }),
      toolCall('t', { id: '2' }, { callId: 'c' }),
      'done',
    ]);
    const agent = new Agent({ name: 'A', model, tools: [effectTool('t', effects)] });
    let failed = false;
    const onLlmEnd = (): void => {
      if (failed) return;
      failed = true;
      throw new Error('hook');
    };
    const state = await stateOf(runForm(agent, 'go', { hooks: { onLlmEnd } }));
    expect(JSON.parse(state.toString())).toMatchObject({ context: { tool_invocations: {} } });
    const result = await runForm(agent, state);
    expect([result.finalOutput, effects]).toEqual(['done', ['t 2']]);
  });

  it('calls that wait stand in call order in the state of a failure, and none is lost with its output [STATE-123, 139, 345]', async () => {
    const effects: string[] = [];
    const slowly = effectTool('slow', effects).copyWith({
      needsApproval: async () => {
        await idle();
        return true;
      },
    });
    const tools = [slowly, effectTool('gated', effects, { needsApproval: true }), effectTool('free', effects)];
    const calls = ['slow', 'gated', 'free'].map((name) => toolCall(name, { id: name }, { callId: name }));
    const agent = new Agent({ name: 'A', model: new ScriptedModel([calls, 'done']), tools });
    const session = new PlainSession();
    const onToolEnd = async (): Promise<void> => {
      await idle(6);
      throw new Error('hook');
    };
    const failed = await stateOf(runForm(agent, 'go', { session, hooks: { onToolEnd } }));
    expect(failed.interruptions.map(({ callId }) => callId)).toEqual(['slow', 'gated']);
    const restored = await RunState.fromString(agent, failed.toString());
    restored.approve(restored.interruptions[0] as ToolApprovalItem);
    const paused = await runForm(agent, restored, { session });
    expect(session.kinds).toBe('u fc fco fc fc fco');
    const state = paused.toState();
    for (const item of state.interruptions) state.approve(item);
    expect((await runForm(agent, state, { session })).finalOutput).toBe('done');
    expect([effects, session.kinds]).toEqual([['free free', 'slow slow', 'gated gated'], 'u fc fco fc fc fco fco m']);
  });

  it('a list that a hook is told of is read only: the model gets it whole [RUN-216] [IL-070]', async () => {
    const model = new ScriptedModel([toolCall('t'), 'done']);
    const agent = new Agent({ name: 'A', model, tools: [effectTool('t', [])] });
    const refused: unknown[] = [];
    const empty = (list: readonly unknown[]): void => {
      refused.push(thrown(() => ((list as unknown[]).length = 0)));
    };
    const hooks: RunHooks = {
      onLlmStart: (_ctx, _agent, _instructions, input) => empty(input),
      onLlmEnd: (_ctx, _agent, response) => {
        empty(response.output);
        refused.push(thrown(() => Object.assign(response, { responseId: 'other' })));
      },
    };
    const result = await runForm(agent, 'go', { hooks });
    expect(model.calls.map(({ request }) => kindsOf(request.input))).toEqual(['u', 'u fc fco']);
    expect(result.rawResponses.map(({ output }) => output.length)).toEqual([1, 1]);
    expect(refused).toHaveLength(6);
    expect(refused.every((error) => error instanceof TypeError)).toBe(true);
  });
});

it('an abort leaves no timer behind, also where the stream of a model never ends [RUN-512, MODEL-106]', async () => {
  const never = (): Promise<never> => new Promise(() => {});
  const model = { getResponse: never, streamResponse: () => ({ next: never, return: never }) } as unknown as Model;
  const timers = watchTimers();
  try {
    const { left } = await timers.count(async () => {
      const stream = runStreamed(new Agent({ name: 'A', model }), 'go');
      await idle();
      stream.cancel();
      await rejection(stream.completed);
    });
    expect(left).toBe(0);
  } finally {
    timers.restore();
  }
});
