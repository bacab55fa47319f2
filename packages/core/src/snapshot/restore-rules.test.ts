import { afterEach, describe, expect, it, test, vi } from 'vitest';
import { Agent, run, RunState, tool, UserError } from '../index.ts';
import { internal } from '../base/brand.ts';
import { callIdentity } from '../state/identity.ts';
import type { IdentityOptions } from '../state/identity.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { setTraceProcessors } from '../tracing.ts';
import { rejection } from '../../test/run-kit.ts';
import { changed, minimalState, withHandoffs } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { recordOf } from './run-state.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  resetDefaults();
});

const desk = new Agent({ name: 'Desk' });
/** Both ways to restore, the same outcome. */
const restored = async (members: Members, agent = desk): Promise<RunState> => {
  const json = { ...members, agents_ts: { run_key: '0'.repeat(32) } };
  const state = await RunState.fromJSON(agent, json);
  expect((await RunState.fromString(agent, JSON.stringify(json))).toString()).toBe(state.toString());
  return state;
};
const refused = async (json: Members): Promise<unknown> => {
  const errors = [
    await rejection(RunState.fromJSON(desk, json)),
    await rejection(RunState.fromString(desk, JSON.stringify(json))),
  ];
  for (const error of errors) expect(error).toBeInstanceOf(UserError);
  const [first, second] = errors.map((error) => (error as UserError).code);
  expect(second).toBe(first);
  return first;
};

describe('rows of the ledger', () => {
  const call: Members = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' };
  const output: Members = { type: 'function_call_output', call_id: 'c1', output: 'ok' };
  const rowOf = (wire: Members, options?: IdentityOptions, members: Members = {}): Members => {
    const identity = callIdentity(wire, undefined, options);
    return {
      type: identity?.type,
      approval_scope: identity?.approvalScope,
      fingerprint: identity?.fingerprint,
      executed: true,
      completed: true,
      ...members,
    };
  };
  const item = (raw: Members): Members =>
    raw['type'] === call['type']
      ? { type: 'tool_call_item', agent: { name: 'Desk' }, raw_item: raw }
      : { type: 'tool_call_output_item', agent: { name: 'Desk' }, raw_item: raw, output: raw['output'] };
  const state = (
    row: unknown,
    wires: readonly Members[] = [call, output],
    id = 'c1',
    input: unknown = 'hello',
  ): Members =>
    minimalState('1.21', {
      original_input: input,
      context: { tool_invocations: { [id]: row } },
      session_items: wires.map(item),
      generated_items: wires.map(item),
    });

  test.each<[string, Members | string]>([
    ['of an unknown type', rowOf(call, {}, { type: 'no_call' })],
    ['without a type', rowOf(call, {}, { type: undefined })],
    ['with a digest in capitals', rowOf(call, {}, { fingerprint: 'A'.repeat(64) })],
    ['with a digest that is too short', rowOf(call, {}, { approval_scope: 'a'.repeat(63) })],
    ['with a digest that is too long', rowOf(call, {}, { approval_scope: 'a'.repeat(65) })],
    ['with a digest that is no text', rowOf(call, {}, { fingerprint: 7 })],
    ['executed by a text', rowOf(call, {}, { executed: 'true' })],
    ['completed by a number', rowOf(call, {}, { completed: 1 })],
    ['completed, but not executed', rowOf(call, {}, { executed: false })],
    ['that is a text', 'executed'],
  ])('%s are refused [STATE-362]', async (_, row) => {
    expect(await refused(state(row))).toBe('ledger_invalid');
  });

  it('need an id [STATE-362]', async () => {
    expect(await refused(state(rowOf(call), [call, output], ''))).toBe('ledger_invalid');
  });

  const other = { ...call, arguments: '{"a":2}' };
  test.each<[string, readonly Members[], unknown]>([
    ['no call', [output], 'hello'],
    ['another call', [other, output], 'hello'],
    ['no output', [call], 'hello'],
    ['an output of another kind', [call, { type: 'shell_call_output', call_id: 'c1', output: [] }], 'hello'],
    ['the call, and another one of its id', [call, other, output], 'hello'],
    ['the call, and another one of its id in the input', [call, output], [other]],
  ])('that are completed are refused where the items show %s [STATE-362]', async (_, wires, input) => {
    expect(await refused(state(rowOf(call), wires, 'c1', input))).toBe('ledger_mismatch');
    // One that is not completed says nothing about the items.
    await restored(state(rowOf(call, {}, { completed: false }), wires, 'c1', input));
  });

  const patch = { type: 'function_call', call_id: 'c1', name: 'apply_patch', arguments: '{"operation":1}' };
  test.each<[string, Members, readonly Members[], unknown]>([
    ['the call and its output', rowOf(call), [call, output], 'hello'],
    ['them in the input', rowOf(call), [], [call, output]],
    ['the call twice, with other blanks', rowOf(call), [call, { ...call, arguments: '{ "a": 1 }' }, output], 'hello'],
    ['a handoff, which is a function on the wire', rowOf(call, { role: 'handoff' }), [call, output], 'hello'],
    [
      'a patch that was called as a function',
      rowOf({ type: 'apply_patch_call', call_id: 'c1', operation: { type: 'x' } }, { toolName: 'apply_patch' }),
      [patch, output],
      'hello',
    ],
  ])('that are completed are right where the items show %s [STATE-362]', async (_, row, wires, input) => {
    const { context } = (await restored(state(row, wires, 'c1', input))).toJSON() as unknown as { context: Members };
    expect(context['tool_invocations']).toEqual({ c1: row });
  });
});

describe('a state of another SDK', () => {
  /** Members as npm `@openai/agents` writes them. */
  const foreign = (version: string): Members => ({
    $schemaVersion: version,
    currentTurn: 1,
    currentAgent: { name: 'Desk' },
    originalInput: 'hello',
    modelResponses: [],
    context: { usage: { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }, approvals: {}, context: {} },
    toolUseTracker: {},
    maxTurns: 10,
    currentAgentSpan: null,
    noActiveAgentRun: true,
    inputGuardrailResults: [],
    outputGuardrailResults: [],
    currentStep: { type: 'next_step_interruption', data: { interruptions: [] } },
    generatedItems: [],
    lastProcessedResponse: null,
    trace: null,
  });

  test.each(['1.0', '1.4', '1.8', '1.13', '1.21'])(
    'is known under every label that both have: %s [STATE-364]',
    async (version) => {
      expect(await refused(foreign(version))).toBe('foreign_run_state');
    },
  );

  it('is none when it has our members too; under a label that is not ours it is a state of a future one [STATE-364]', async () => {
    expect((await restored({ ...minimalState(), currentTurn: 3 })).currentTurn).toBe(0);
    expect(await refused(foreign('1.22'))).toBe('schema_unsupported');
  });
});

describe('the agent that a state is restored with', () => {
  it('is its starting agent: items, the current agent and the run are its own [STATE-376]', async () => {
    const paused = async (model: ScriptedModel): Promise<string> =>
      (await run(deskWith(model), 'go')).toState().toString();
    const deskWith = (model: ScriptedModel): Agent =>
      new Agent({
        name: 'Desk',
        model,
        tools: [tool({ name: 'f', needsApproval: true, execute: () => 'ok' })],
      });
    const text = await paused(new ScriptedModel([toolCall('f', {}, { callId: 'c1' })]));
    const given = deskWith(new ScriptedModel(['done']));
    const state = await RunState.fromString(given, text);
    expect([recordOf(state).startingAgent, state.currentAgent]).toEqual([given, given]);
    expect(recordOf(state).startingAgent).toBe(given);
    for (const item of [...state.newItems, ...state.interruptions]) expect(item.agent).toBe(given);
    for (const item of state.interruptions) state.approve(item);
    const result = await run(given, state);
    expect([result.finalOutput, result.lastAgent === given]).toEqual(['done', true]);
  });
});

describe('an agent that is not the starting one', () => {
  it('is found from there: the state begins at the agent that was given, and goes on at its own [STATE-376]', async () => {
    const billing = new Agent({ name: 'Billing' });
    const start = withHandoffs(new Agent({ name: 'Desk' }), billing);
    const json = minimalState('1.21', { current_agent: { name: 'Billing' } });
    const state = await RunState.fromJSON(start, json);
    expect(recordOf(state).startingAgent).toBe(start);
    expect(state.currentAgent).toBe(billing);
    expect(await refused(json)).toBe('agent_missing');
  });
});

describe('a context that is given on restore', () => {
  it('takes the place of the stored one in the state, and not in the payload [STATE-384]', async () => {
    const json = minimalState('1.21', {
      context: { context: { tenant: 'stored' }, context_meta: { serialized_via: 'mapping' } },
    });
    const before = structuredClone(json);
    const contextDeserializer = vi.fn<(raw: object) => object>((raw) => raw);
    const given = { tenant: 'given' };
    const state = await RunState.fromJSON(new Agent<object>({ name: 'Desk' }), json, {
      context: given,
      contextDeserializer,
    });
    expect(state.context.context).toBe(given);
    expect(contextDeserializer).not.toHaveBeenCalled();
    expect(json).toEqual(before);
    expect((await RunState.fromJSON(desk, json)).context.context).toEqual({ tenant: 'stored' });
  });
});

describe('the text of a state', () => {
  it('is a capability: who can change it can approve; nothing claims that it proves who wrote it [STATE-406]', async () => {
    const ran: string[] = [];
    const agent = new Agent({
      name: 'Desk',
      model: new ScriptedModel([toolCall('f', {}, { callId: 'c1' }), 'done']),
      tools: [tool({ name: 'f', needsApproval: true, execute: () => ran.push('f') })],
    });
    const paused = (await run(agent, 'go')).toState();
    const json = paused.toJSON() as unknown as Members;
    for (const item of paused.interruptions) paused.approve(item);
    const approved = (paused.toJSON() as unknown as { context: Members }).context;
    const edited = { ...json, context: approved, agents_ts: json['agents_ts'] };
    expect((await run(agent, await RunState.fromString(agent, JSON.stringify(edited)))).finalOutput).toBe('done');
    expect(ran).toEqual(['f']);
    // Seals are not there yet, and nobody is left to think that they are.
    const error = await rejection(RunState.fromString(agent, JSON.stringify(json), { verifyKey: 'k' } as never));
    expect(error).toMatchObject({ name: 'UserError', message: expect.stringMatching(/verifyKey/) as string });
    expect(paused).not.toHaveProperty('seal');
  });

  it('is read without calling anything but the deserializer of the context [STATE-412]', async () => {
    const called: string[] = [];
    const note = (what: string) => (): never => {
      called.push(what);
      throw new Error(what);
    };
    const build = (quiet: boolean): Agent => {
      const say = (what: string, otherwise: unknown) => (quiet ? note(what) : () => otherwise);
      const gated = tool({
        name: 'f',
        needsApproval: say('needsApproval', true) as () => boolean,
        isEnabled: say('isEnabled', true) as () => boolean,
        execute: note('execute'),
      });
      return new Agent({
        name: 'Desk',
        instructions: say('instructions', 'x') as () => string,
        model: quiet
          ? { getResponse: note('getResponse'), streamResponse: note('streamResponse') }
          : new ScriptedModel([toolCall('f')]),
        tools: [gated],
        hooks: quiet ? { onStart: note('onStart'), onEnd: note('onEnd') } : undefined,
      });
    };
    const paused = (await run(build(false), 'go', { context: { tenant: 't1' } })).toState();
    const needsHelp = changed(paused.toJSON(), 'context.context_meta', {
      original_type: 'custom',
      serialized_via: 'context_serializer',
      requires_deserializer: true,
      omitted: false,
    });
    const traces = new InMemoryTraceProcessor();
    setTraceProcessors([traces]);
    vi.stubGlobal('fetch', note('fetch'));
    const contextDeserializer = (raw: object): object => {
      called.push('deserializer');
      return { ...raw, again: true };
    };
    const agent = build(true);
    for (const restore of [
      RunState.fromJSON(agent, needsHelp, { contextDeserializer }),
      RunState.fromString(agent, JSON.stringify(needsHelp), { contextDeserializer }),
    ]) {
      const state = await restore;
      expect(state.context.context).toEqual({ tenant: 't1', again: true });
      expect(state.interruptions).toHaveLength(1);
      expect(state.status).toBe('interrupted');
      expect(recordOf(state)).toBe(state[internal]);
    }
    expect(called).toEqual(['deserializer', 'deserializer']);
    expect(traces.traces).toEqual([]);
  });
});
