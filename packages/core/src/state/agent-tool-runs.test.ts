import { describe, expect, it } from 'vitest';
import { Agent } from '../agent/agent.ts';
import type { ResponseFunctionToolCall } from '../items/wire.ts';
import {
  agentToolRunsOf,
  AgentToolRuns,
  getScope,
  ResumeCheckpoint,
  setScope,
  signatureOf,
} from './agent-tool-runs.ts';
import type { PendingNestedRun } from './agent-tool-runs.ts';
import { contextInternals, RunContext } from './context.ts';
import { copyRecord, newRecord } from './copy.ts';
import { applyDecision } from './decide.ts';
import { ToolApprovalItem } from './decisions.ts';
import type { StateRecord } from './record.ts';

const agent = new Agent({ name: 'A' });
const call = (members: Partial<ResponseFunctionToolCall> = {}): ResponseFunctionToolCall => ({
  type: 'function_call',
  call_id: 'c',
  name: 'ask',
  arguments: '{}',
  ...members,
});
const record = (): StateRecord => newRecord({ agent, context: { v: 1 }, input: 'x', maxTurns: 10 });
const run = (): PendingNestedRun => ({ record: record() });
const waiting = (callId: string, members: object = {}): ToolApprovalItem =>
  new ToolApprovalItem(agent, call({ call_id: callId, ...members }));
const paused = (...items: readonly ToolApprovalItem[]): StateRecord => {
  const at = record();
  at.step = { type: 'interruption', interruptions: items, responseAccepted: false, llmEndHooksStarted: true };
  return at;
};

describe('the registry of nested runs', () => {
  it('finds a call by its object, another object by what it says, absent members as null [STATE-251, 252, 253]', () => {
    const runs = new AgentToolRuns();
    const kept = run();
    runs.record(call(), kept);
    expect(signatureOf(call())).toEqual(['c', 'ask', '{}', 'function_call', null, null]);
    expect(runs.peek(call())).toBe(kept);
    for (const other of [{ call_id: 'd' }, { name: 'b' }, { arguments: '{ }' }, { id: 'x' }, { status: 'completed' }])
      expect(runs.peek(call(other as Partial<ResponseFunctionToolCall>))).toBeUndefined();
    expect(runs.peek(call({ call_id: 'c","ask', name: '' }))).toBeUndefined();
    expect(runs.consume(call())).toBe(kept);
    expect([runs.size, runs.consume(call()), runs.peek(call())]).toEqual([0, undefined, undefined]);
  });

  it('keeps one run per call and scope, the last one [STATE-252]', () => {
    const runs = new AgentToolRuns();
    const at = call();
    const [first, second] = [run(), run()];
    runs.record(at, first);
    runs.record(at, second);
    expect([runs.size, runs.peek(at), runs.peek(call())]).toEqual([1, second, second]);
    runs.drop(at);
    expect([runs.size, runs.peek(call())]).toEqual([0, undefined]);
  });

  it('gives nothing where a signature is that of several, and loses none of them [STATE-254, STATE#80]', () => {
    const runs = new AgentToolRuns();
    const [a, b, c] = [call(), call(), call()];
    const [first, second] = [run(), run()];
    runs.record(a, first);
    runs.record(b, second);
    expect([runs.peek(c), runs.consume(c)]).toEqual([undefined, undefined]);
    runs.drop(c);
    expect([runs.size, runs.peek(a), runs.peek(b)]).toEqual([2, first, second]);
    runs.drop(a);
    expect(runs.peek(c)).toBe(second);
  });

  it('keeps scopes apart; none is one of its own [STATE-255, STATE#80]', () => {
    const runs = new AgentToolRuns();
    const at = call();
    const [one, two, none] = [run(), run(), run()];
    runs.record(at, one, 'scope-1');
    runs.record(at, two, 'scope-2');
    expect(runs.peek(at)).toBeUndefined();
    runs.record(at, none, null);
    expect([runs.peek(at), runs.size]).toEqual([none, 3]);
    expect(runs.consume(at, 'scope-1')).toBe(one);
    expect([runs.peek(at, 'scope-1'), runs.peek(at, 'scope-2'), runs.peek(call(), 'scope-2')]).toEqual([
      undefined,
      two,
      two,
    ]);
  });

  it('is empty once it was cleared, and fails over nothing then [STATE-256, 263, STATE#80]', () => {
    const runs = new AgentToolRuns();
    runs.record(call(), run(), runs.scope);
    runs.clear();
    expect([runs.size, runs.entries(), runs.peek(call(), runs.scope), runs.consume(call())]).toEqual([
      0,
      [],
      undefined,
      undefined,
    ]);
    runs.drop(call());
    runs.clear();
    runs.record(call(), run());
    expect(runs.size).toBe(1);
  });

  it('is copied with the record, under a scope of its own, each run with a ledger of its own [STATE-133, 258, 261]', () => {
    const outer = record();
    const runs = (outer.agentToolRuns = new AgentToolRuns());
    const nested = record();
    const inner = (nested.agentToolRuns = new AgentToolRuns());
    inner.record(call({ call_id: 'i' }), run(), inner.scope);
    const at = call();
    runs.record(at, { record: nested }, runs.scope);
    const [one, two] = [copyRecord(outer), copyRecord(outer)];
    const scopes = [runs, one.agentToolRuns, two.agentToolRuns].map((each) => each?.scope);
    expect(new Set(scopes).size).toBe(3);
    for (const scope of scopes) expect(scope).toMatch(/^[0-9a-f]{32}$/);
    const copies = [one, two].map((each) => each.agentToolRuns?.peek(at, each.agentToolRuns.scope)?.record);
    expect(new Set([nested, ...copies]).size).toBe(3);
    expect(new Set([nested, ...copies].map((each) => each?.context)).size).toBe(3);
    expect(copies[0]?.context.context).toBe(nested.context.context);
    expect(copies[0]?.agentToolRuns?.size).toBe(1);
    expect(copies[0]?.agentToolRuns).not.toBe(nested.agentToolRuns);
    one.agentToolRuns?.clear();
    expect([runs.size, two.agentToolRuns?.size]).toEqual([1, 1]);
    expect(copyRecord(record()).agentToolRuns).toBeUndefined();
  });
});

describe('a resume checkpoint', () => {
  it('owns what waited, by canonical identity, and gives the live record [STATE-259, 260]', () => {
    const live = paused(waiting('a'), waiting('b'));
    const checkpoint = new ResumeCheckpoint(() => live, [waiting('a'), waiting('', { call_id: '' })]);
    expect(checkpoint.record).toBe(live);
    expect(checkpoint.interruptions).toHaveLength(2);
    expect(checkpoint.approvalIdentities.size).toBe(1);
    expect(checkpoint.owns(waiting('a', { arguments: '{ }' }))).toBe(true);
    expect(checkpoint.owns(waiting('a', { arguments: '{"x":1}' }))).toBe(false);
    expect(checkpoint.owns(waiting('b'))).toBe(false);
  });

  it('is kept for a call with what waits, or with what it is given [STATE-259]', () => {
    const runs = new AgentToolRuns();
    const at = call();
    let live = paused(waiting('a'));
    runs.recordResumeState(at, () => live, { scopeId: 's' });
    const kept = runs.peek(at, 's');
    expect(kept).toBeInstanceOf(ResumeCheckpoint);
    expect((kept as ResumeCheckpoint).owns(waiting('a'))).toBe(true);
    const later = record();
    live = later;
    expect(kept?.record).toBe(later);
    expect((kept as ResumeCheckpoint).owns(waiting('a'))).toBe(true);
    runs.recordResumeState(at, () => later, { approvalItems: [waiting('z')] });
    expect((runs.peek(at) as ResumeCheckpoint).owns(waiting('z'))).toBe(true);
  });
});

describe('scopes', () => {
  it('are on contexts, to be seen by nobody [STATE-257, 258]', () => {
    const context = new RunContext({});
    expect(getScope(context)).toBeUndefined();
    setScope(context, 's');
    expect(getScope(context)).toBe('s');
    expect(JSON.stringify(context)).not.toContain('"s"');
    expect(Object.keys(context)).toEqual(Object.keys(new RunContext({})));
    setScope(context, null);
    expect(getScope(context)).toBeUndefined();
  });

  it('of anything else are none, and nothing throws [STATE-257, STATE#81]', () => {
    const refusing = new Proxy(
      {},
      {
        get: () => {
          throw new Error('x');
        },
        defineProperty: () => {
          throw new Error('x');
        },
        deleteProperty: () => {
          throw new Error('x');
        },
      },
    );
    const key = Symbol.for('@agents/core/agent-tool-scope/1');
    for (const value of [undefined, null, 7, 'x', true, Symbol('s'), Object.freeze({}), refusing]) {
      setScope(value, 's');
      setScope(value, null);
      expect(getScope(value)).toBeUndefined();
    }
    expect(getScope({ [key]: 7 })).toBeUndefined();
  });
});

describe('a decision', () => {
  it('on a call that is done outside and waits inside goes inside [STATE-172, 173]', () => {
    const outside = waiting('c');
    const inside = waiting('c');
    const nested = paused(inside);
    const outer = paused(outside);
    const runs = agentToolRunsOf(outer);
    runs.record(call({ call_id: 'o' }), { record: nested }, runs.scope);
    const approve = (): void => applyDecision(outer, inside, { type: 'approve' });
    expect(approve).toThrow(expect.objectContaining({ code: 'approval_ambiguous' }));
    expect([outer.decisions, nested.decisions]).toEqual([[], []]);
    const { ledger } = contextInternals(outer.context);
    ledger.plan([{ call: call(), lookupKey: { kind: 'bare', name: 'ask' } }]);
    ledger.markExecuted('c');
    ledger.markCompleted('c');
    approve();
    expect([outer.decisions.length, nested.decisions.length]).toEqual([0, 1]);
  });
});
