import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent, configureLogging, getRunErrorState, run, RunState } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, kindsOf, PlainSession, rejection, user } from '../../test/run-kit.ts';

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
