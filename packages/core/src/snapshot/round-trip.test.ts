import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { AgentsError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import { InputItem, MessageOutputItem, ReasoningItem, ToolCallItem, ToolCallOutputItem } from '../items/items.ts';
import type { RunItem } from '../items/items.ts';
import { contextInternals } from '../state/context.ts';
import { newRecord } from '../state/copy.ts';
import { ToolApprovalItem } from '../state/decisions.ts';
import type { StateRecord } from '../state/record.ts';
import { pythonState } from '../../test/states.ts';
import { recordOf, RunState, stateOf } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetAll());

const json = fc.jsonValue({ maxDepth: 3 });
const object = fc.dictionary(fc.string(), json, { maxKeys: 4 });
const call = fc.record({
  tool: fc.constantFrom('refund', 'look', 'toString'),
  args: object,
  output: json,
  done: fc.boolean(),
  decision: fc.constantFrom('approve', 'reject', 'always', undefined),
  extra: object,
});
const turn = fc.record({
  text: fc.option(fc.string(), { nil: undefined }),
  calls: fc.array(call, { maxLength: 3 }),
  usage: fc.record({ inputTokens: fc.nat(), outputTokens: fc.nat(), totalTokens: fc.nat() }),
});
const run = fc.record({
  context: fc.option(object, { nil: null }),
  input: fc.oneof(
    fc.string(),
    fc.array(fc.record({ role: fc.constantFrom('user', 'system'), content: fc.string() }), { maxLength: 3 }),
  ),
  maxTurns: fc.option(fc.nat(), { nil: null }),
  turns: fc.array(turn, { maxLength: 4 }),
  policy: fc.constantFrom('preserve' as const, 'omit' as const, undefined),
  sessionId: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
  metadata: fc.option(object, { nil: undefined }),
});
type Script = typeof run extends fc.Arbitrary<infer T> ? T : never;

/** A record as a run would have left it: each call has its item, a row, and its output or a place among the waiting ones. */
function recordFrom(script: Script): StateRecord {
  const record = newRecord({
    agent: desk,
    context: script.context,
    input: script.input,
    maxTurns: script.maxTurns,
    reasoningItemIdPolicy: script.policy,
    sessionId: script.sessionId,
  });
  const { ledger, usage } = contextInternals(record.context);
  let number = 0;
  for (const [index, step] of script.turns.entries()) {
    const items: RunItem[] = [new ReasoningItem(desk, { type: 'reasoning', id: `rs_${index}`, summary: [] })];
    if (step.text !== undefined)
      items.push(
        new MessageOutputItem(desk, {
          type: 'message',
          id: `m_${index}`,
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: step.text, annotations: [] }],
        }),
      );
    const calls = step.calls.map((one) => ({
      ...one,
      raw: {
        ...one.extra,
        type: 'function_call' as const,
        call_id: `call_${number++}`,
        name: one.tool,
        arguments: JSON.stringify(one.args),
      },
    }));
    const response = [
      ...items,
      ...calls.map(
        ({ raw }) => new ToolCallItem(desk, raw as never, { description: 'd', toolOrigin: { type: 'function' } }),
      ),
    ];
    const waiting: ToolApprovalItem[] = [];
    const isLast = index === script.turns.length - 1;
    const outcomes = calls.map(({ raw, output, done }) => {
      if (done || !isLast)
        return new ToolCallOutputItem(
          desk,
          { type: 'function_call_output', call_id: raw.call_id, output: JSON.stringify(output) },
          { output, toolOrigin: { type: 'function' } },
        );
      const item = new ToolApprovalItem(desk, raw, {
        lookupKey: { kind: 'bare', name: raw.name },
        toolOrigin: { type: 'function' },
        createdAt: '2026-01-01T00:00:00.000Z',
      });
      waiting.push(item);
      return item;
    });
    ledger.plan(calls.map(({ raw }) => ({ call: raw })));
    for (const item of outcomes)
      if (item.type === 'tool_call_output_item' && item.callId !== undefined) ledger.markCompleted(item.callId);
    record.generatedItems.push(...response, ...outcomes);
    record.sessionItems.push(...response, ...outcomes);
    const counts = toUsage({ requests: 1, ...step.usage });
    usage.add(counts);
    record.modelResponses.push({
      output: response.map((item) => item.rawItem) as never,
      usage: counts,
      responseId: `resp_${index}`,
    });
    record.toolUse.set(desk, new Set(calls.map(({ tool }) => tool)));
    record.processed = {
      newItems: response,
      toolsUsed: calls.map(({ tool }) => tool),
      foreign: {},
      handoffs: [],
      functions: calls.map(({ raw, tool }) => ({
        call: raw as never,
        tool: { name: tool, lookupKey: { kind: 'bare', name: tool }, description: 'd' },
      })),
    };
    record.step =
      waiting.length > 0
        ? { type: 'interruption', interruptions: waiting, responseAccepted: false, llmEndHooksStarted: true }
        : { type: 'run_again' };
    record.currentTurn++;
  }
  record.generatedItems.push(new InputItem(desk, { role: 'user', content: 'also' }, { inputId: '0'.repeat(32) }));
  if (script.metadata !== undefined)
    record.trace = { traceId: 'trace_1', workflowName: 'w', metadata: script.metadata, extra: {} };
  return record;
}

function decideAll(state: RunState, script: Script): void {
  const decisions =
    script.turns
      .at(-1)
      ?.calls.filter(({ done }) => !done)
      .map(({ decision }) => decision) ?? [];
  for (const [index, item] of state.interruptions.entries()) {
    const decision = decisions[index];
    if (decision === 'reject') state.reject(item, { message: 'no' });
    else if (decision !== undefined) state.approve(item, { always: decision === 'always', by: 'ann' });
  }
}

/** Of ms; against a hang, on a machine that is busy. */
const timeout = 60_000;

describe('any run', { timeout }, () => {
  test('comes back from its text as it was, and what was one object is one again [STATE-341], [STATE#38]', async () => {
    await fc.assert(
      fc.asyncProperty(run, async (script) => {
        const state = stateOf(recordFrom(script));
        decideAll(state, script);
        const text = state.toString();
        const fromText = (await RunState.fromString(desk, text)) as RunState;
        const fromValue = (await RunState.fromJSON(desk, state.toJSON())) as RunState;
        expect(fromText.toString()).toBe(text);
        expect(fromValue.toString()).toBe(text);
        expect(JSON.stringify(state.toJSON())).toBe(JSON.stringify(JSON.parse(text)));
        const [before, after] = [recordOf(state), recordOf(fromText)];
        const places = ({ generatedItems, sessionItems, processed, step }: StateRecord): unknown => [
          generatedItems.map((item) => sessionItems.indexOf(item)),
          step.type === 'interruption' ? step.interruptions.map((item) => generatedItems.indexOf(item)) : [],
          step.type === 'interruption' ? processed?.newItems.map((item) => generatedItems.indexOf(item)) : [],
        ];
        expect(places(after)).toEqual(places(before));
        expect(fromText.getDecisions()).toEqual(state.getDecisions());
        expect(fromText.usage).toEqual(state.usage);
        expect(JSON.stringify(fromText.toInputList())).toBe(JSON.stringify(state.toInputList()));
      }),
      { numRuns: 60 },
    );
  });
});

describe('any text', { timeout }, () => {
  /** Every place of a state, to be given another value. */
  const paths = (value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] => {
    if (typeof value !== 'object' || value === null) return [path];
    return [path, ...Object.entries(value).flatMap(([key, member]) => paths(member, [...path, key]))];
  };
  const sources = [
    'a4_gated_and_free_calls.json',
    'b6_pending_write_append_failed.json',
    'e1_sticky_approve_and_exact_reject.json',
    'f10_guardrail_results_finished.json',
  ].map(pythonState);
  const places = sources.map((source) => paths(source).slice(1));

  test('is restored, or refused with one error of ours; what is restored can be written and restored again [STATE-411]', async () => {
    const value = fc.oneof(json, fc.constantFrom(null, -1, 0.5, '', [], {}, true, 'Desk', [[]], { name: 'Desk' }));
    const index = fc.nat({ max: sources.length - 1 });
    await fc.assert(
      fc.asyncProperty(index, fc.nat(), value, async (source, place, replacement) => {
        const path = places[source]?.[place % (places[source]?.length ?? 1)] ?? [];
        const state = structuredClone(sources[source]);
        let at = state as unknown as { [key: string]: unknown };
        for (const key of path.slice(0, -1)) at = at[key] as typeof at;
        at[path.at(-1) ?? ''] = replacement;
        const restored: unknown = await RunState.fromJSON(desk, state).catch((error: unknown) => error);
        if (restored instanceof AgentsError) return;
        if (!(restored instanceof RunState)) throw restored;
        // What was skipped may be found again by what is left of it, once.
        const text = (await RunState.fromString(desk, restored.toString())).toString();
        expect((await RunState.fromString(desk, text)).toString()).toBe(text);
      }),
      { numRuns: 250 },
    );
  });

  test('garbage is no state', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (text) => {
        await expect(RunState.fromString(desk, text)).rejects.toBeInstanceOf(AgentsError);
      }),
    );
  });
});
