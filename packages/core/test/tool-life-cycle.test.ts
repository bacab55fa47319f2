import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, getRunErrorState, RunContext, tool, ToolContext } from '../src/index.ts';
import type { RunItem, RunOptions, RunState, ToolOptions, TraceProcessor } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { runStreamed } from '../src/run/run.ts';
import { setTraceProcessors } from '../src/tracing.ts';
import { idle, rejection } from './run-kit.ts';
import { symmetry } from './symmetry.ts';

// The order of one call (TOOL §5) is a contract: these tests compare logs of callback names.

let recorder: InMemoryTraceProcessor;

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(() => resetDefaults());

/** Writes the begin and the end of a step into the log; in between everything else may run. */
async function step(log: string[], name: string, ticks = 1): Promise<void> {
  log.push(`${name} {`);
  await idle(ticks);
  log.push(`} ${name}`);
}

/** A tool that writes all its steps down, with the id of the call. */
function logging(log: string[], options: { gated?: boolean; ticks?: (name: string) => number } = {}) {
  const ticks = options.ticks ?? (() => 1);
  return tool({
    name: 'note',
    parameters: z.object({ id: z.string() }),
    needsApproval: async (_ctx, _args, callId) => {
      await step(log, `${callId} policy`, ticks('policy'));
      return options.gated ?? false;
    },
    execute: async ({ id }, ctx) => {
      await step(log, `${ctx.toolCallId} body`, ticks('body'));
      return `noted ${id}`;
    },
    customDataExtractor: async ({ context }) => {
      await step(log, `${context.toolCallId} facts`, ticks('facts'));
      return { id: context.toolCallId };
    },
  });
}

function loggingHooks(log: string[], ticks: (name: string) => number = () => 1) {
  const hook = (whose: string, name: string) => (ctx: ToolContext) =>
    step(log, `${ctx.toolCallId} ${name} of ${whose}`, ticks(name));
  const of = (whose: string) => ({ onToolStart: hook(whose, 'start'), onToolEnd: hook(whose, 'end') });
  return { run: of('run'), agent: of('agent') };
}

/** Tells when spans of functions open and close. */
const spanLog = (log: string[]): TraceProcessor => ({
  onSpanStart: (span) => void (span.type === 'function' && log.push(`span opens ${span.spanData.name}`)),
  onSpanEnd: (span) => void (span.type === 'function' && log.push(`span closes ${span.spanData.name}`)),
});

const functionSpan = () => recorder.spans.find((span) => span.type === 'function');
const callOf = (id: string, callId: string) => toolCall('note', { id }, { callId });

interface StateJson {
  readonly generated_items: readonly { readonly type: string }[];
  readonly agents_ts?: unknown;
  readonly context: { readonly invocations?: unknown };
}
const jsonOf = (error: unknown): StateJson => getRunErrorState(error)?.toJSON() as unknown as StateJson;
const ledgerText = (error: unknown): string => JSON.stringify(jsonOf(error));

describe('one call', () => {
  it('goes from span to span in the order of the contract [TOOL-Y1, TOOL-Y3, TOOL-Y8, TOOL-Y9, TOOL-AC26]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ log }) => {
        setTraceProcessors([spanLog(log)]);
        const hooks = loggingHooks(log);
        const model = new ScriptedModel([callOf('x', 'c1'), 'done']);
        const agent = new Agent({ name: 'A', model, tools: [logging(log)], hooks: hooks.agent });
        return { agent, input: 'hi', options: { hooks: hooks.run } };
      },
    });
    expect(streamed.log).toEqual([
      'span opens note',
      'c1 policy {',
      '} c1 policy',
      'c1 start of run {',
      'c1 start of agent {',
      '} c1 start of run',
      '} c1 start of agent',
      'c1 body {',
      '} c1 body',
      'c1 facts {',
      '} c1 facts',
      'c1 end of run {',
      'c1 end of agent {',
      '} c1 end of run',
      '} c1 end of agent',
      'span closes note',
    ]);
  });

  it('puts an undecided call to onApproval between policy and start; approved ones go on [TOOL-Y5, TOOL-Y12, TOOL-Y13]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ log }) => {
        const hooks = loggingHooks(log);
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([callOf('x', 'c1'), 'done']),
          tools: [logging(log, { gated: true })],
          hooks: hooks.agent,
        });
        const onApproval: RunOptions['onApproval'] = async (_ctx, item) => {
          await step(log, `${item.callId} onApproval`);
          return { type: 'approve' };
        };
        return { agent, input: 'hi', options: { hooks: hooks.run, onApproval } };
      },
    });
    const begun = streamed.log.filter((line) => line.endsWith('{'));
    expect(begun).toEqual([
      'c1 policy {',
      'c1 onApproval {',
      'c1 start of run {',
      'c1 start of agent {',
      'c1 body {',
      'c1 facts {',
      'c1 end of run {',
      'c1 end of agent {',
    ]);
  });

  it('ends at the gate when it waits or is rejected: no hook, no body, no facts; a free sibling runs [TOOL-Y5, TOOL-F37]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ log }) => {
        const hooks = loggingHooks(log);
        const free = tool({ name: 'free', execute: () => (log.push('free body'), 'ok') });
        const gated = tool({ name: 'gated', needsApproval: true, execute: () => (log.push('gated body {'), 'ok') });
        const names = ['free', 'gated'].map((name) => toolCall(name, {}, { callId: name }));
        const calls = [callOf('x', 'waits'), ...names, callOf('y', 'rejected')];
        const tools = [logging(log, { gated: true }), free, gated];
        const agent = new Agent({ name: 'A', model: new ScriptedModel([calls, 'done']), tools, hooks: hooks.agent });
        const onApproval: RunOptions['onApproval'] = (_ctx, item) =>
          item.callId === 'rejected' ? { type: 'reject', message: 'no' } : undefined;
        return { agent, input: 'hi', options: { hooks: hooks.run, onApproval } };
      },
    });
    const begun = streamed.log.filter((line) => line.endsWith('{') && !line.startsWith('free'));
    expect(begun).toEqual(['waits policy {', 'rejected policy {']);
    expect(streamed.log).toContain('free body');
    expect(streamed.result?.newItems.map((item) => [item.type, 'callId' in item ? item.callId : undefined])).toEqual([
      ['tool_call_item', 'waits'],
      ['tool_call_item', 'free'],
      ['tool_call_item', 'gated'],
      ['tool_call_item', 'rejected'],
      ['tool_approval_item', 'waits'],
      ['tool_call_output_item', 'free'],
      ['tool_approval_item', 'gated'],
      ['tool_call_output_item', 'rejected'],
    ]);
    expect(streamed.result?.interruptions.map((item) => item.callId)).toEqual(['waits', 'gated']);
  });

  it.each(['approve', 'reject'] as const)(
    'asks no policy where a decision is known: to %s this call, or all of the tool [TOOL-Y2, TOOL-F35]',
    async (type) => {
      const { streamed } = await symmetry({
        setUp: ({ log }) => {
          const model = new ScriptedModel([callOf('x', 'c1'), callOf('y', 'c2'), callOf('z', 'c3'), 'done']);
          return { agent: new Agent({ name: 'A', model, tools: [logging(log, { gated: true })] }), input: 'hi' };
        },
        goOn: async (first, go, { log }) => {
          const decide = async (result: typeof first.result, always: boolean) => {
            log.push(`decided ${always ? 'for all' : 'once'}`);
            const state = result?.toState() as RunState;
            for (const item of state.interruptions) state.decide(item, { type, always });
            return await go(result?.lastAgent as never, state);
          };
          const second = await decide(first.result, false);
          return await decide(second.result, true);
        },
      });
      expect(streamed.log.filter((line) => line.endsWith('policy {') || line.startsWith('decided'))).toEqual([
        'c1 policy {',
        'decided once',
        'c2 policy {',
        'decided for all',
      ]);
      expect(streamed.log.filter((line) => line.endsWith('body {'))).toHaveLength(type === 'approve' ? 3 : 0);
      expect(streamed.result?.finalOutput).toBe('done');
    },
  );

  it('reads the decisions again after its policy: one that came meanwhile holds [TOOL-F35, TOOL-Y3]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ log }) => {
        const gated = tool({
          name: 'note',
          parameters: z.object({ id: z.string() }),
          needsApproval: async (_ctx, _args, callId) => {
            await idle(callId === 'slow' ? 6 : 1);
            return true;
          },
          execute: ({ id }) => id,
        });
        const onApproval: RunOptions['onApproval'] = (_ctx, item) => {
          log.push(`asked about ${item.callId}`);
          return { type: 'approve', always: true };
        };
        const model = new ScriptedModel([[callOf('1', 'slow'), callOf('2', 'fast')], 'done']);
        return { agent: new Agent({ name: 'A', model, tools: [gated] }), input: 'hi', options: { onApproval } };
      },
    });
    expect(streamed.log).toEqual(['asked about fast']);
    expect(streamed.result?.finalOutput).toBe('done');
  });

  it('holds a rejection that came meanwhile against a policy that would let the call run [TOOL-F35, TOOL-Y3]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ log }) => {
        const gated = tool({
          name: 'note',
          parameters: z.object({ id: z.string() }),
          needsApproval: async (_ctx, _args, callId) => {
            await idle(callId === 'slow' ? 6 : 1);
            return callId === 'fast';
          },
          execute: ({ id }) => void log.push(`ran ${id}`),
        });
        const onApproval: RunOptions['onApproval'] = () => ({ type: 'reject', always: true, message: 'never' });
        const model = new ScriptedModel([[callOf('1', 'slow'), callOf('2', 'fast')], 'done']);
        return { agent: new Agent({ name: 'A', model, tools: [gated] }), input: 'hi', options: { onApproval } };
      },
    });
    expect(streamed.log).toEqual([]);
    const outputs = streamed.result?.newItems.flatMap((item) =>
      item.type === 'tool_call_output_item' ? [item.output] : [],
    );
    expect(outputs).toEqual(['never', 'never']);
  });
});

bothForms((run, form) => {
  describe(`one call (${form})`, () => {
    const agentOf = (options: Partial<ToolOptions<undefined, unknown, unknown>>, hooks?: Agent['hooks']) =>
      new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('note', {}, { callId: 'c1' }), 'done']),
        tools: [tool({ name: 'note', execute: () => 'noted', ...options })],
        hooks,
      });

    it('is marked as executed before the first code of the user runs for it [TOOL-Y6]', async () => {
      const cause = new Error('no');
      let bodies = 0;
      const agent = agentOf({ execute: () => ++bodies }, { onToolStart: () => Promise.reject(cause) });
      const error = await rejection(run(agent, 'hi'));
      expect(error).toBe(cause);
      expect(ledgerText(error)).toMatch(/"executed":true,"completed":false|"completed":false,"executed":true/);
      const again = await rejection(run(agent, getRunErrorState(error) as RunState));
      expect(again).toMatchObject({ code: 'call_executed_uncommitted' });
      expect(bodies).toBe(0);
    });

    it('has its output in turn and state before facts and end hooks are asked for [TOOL-Y11]', async () => {
      for (const options of [
        { tool: { customDataExtractor: () => Promise.reject(new Error('no')) }, hooks: undefined },
        { tool: {}, hooks: { onToolEnd: () => Promise.reject(new Error('no')) } },
      ]) {
        const error = await rejection(run(agentOf(options.tool, options.hooks), 'hi'));
        expect(jsonOf(error).generated_items.map(({ type }) => type)).toEqual([
          'tool_call_item',
          'tool_call_output_item',
        ]);
        expect(ledgerText(error)).toMatch(/"executed":true,"completed":true|"completed":true,"executed":true/);
      }
    });

    it('waits for both hooks, also when one of them fails; the first failure counts [TOOL-Y8, TOOL-Y13, TOOL-Y15]', async () => {
      for (const name of ['onToolStart', 'onToolEnd'] as const) {
        const log: string[] = [];
        const cause = new Error(name);
        const agent = agentOf({ execute: () => void log.push('body') }, { [name]: () => Promise.reject(cause) });
        const error = await rejection(run(agent, 'hi', { hooks: { [name]: () => step(log, 'other', 4) } }));
        expect(error).toBe(cause);
        expect(log.filter((line) => line !== 'body')).toEqual(['other {', '} other']);
        expect(log.includes('body')).toBe(name === 'onToolEnd');
      }
    });

    it('does not repeat the body when an end hook failed: the output is there [TOOL-Y15]', async () => {
      let bodies = 0;
      let fails = true;
      const hooks: RunOptions['hooks'] = {
        onToolEnd: () => {
          if (fails) throw new Error('hook');
        },
      };
      const agent = agentOf({ execute: () => ++bodies });
      const error = await rejection(run(agent, 'hi', { hooks }));
      fails = false;
      const result = await run(agent, getRunErrorState(error) as RunState, { hooks });
      expect([result.finalOutput, bodies]).toEqual(['done', 1]);
      expect(result.toInputList()).toMatchObject([{}, { call_id: 'c1' }, { call_id: 'c1', output: '1' }, {}]);
    });

    it('shows input and output in its span, which closes however the call ends [TOOL-Y1, TOOL-Y14]', async () => {
      const call = toolCall('note', '{"value":1}');
      const agent = (steps: ConstructorParameters<typeof ScriptedModel>[0], options = {}) =>
        new Agent({
          name: 'A',
          model: new ScriptedModel(steps),
          tools: [tool({ name: 'note', execute: () => ({ a: 1 }), ...options })],
        });
      await run(agent([call, 'done']), 'hi');
      expect(functionSpan()?.spanData).toMatchObject({ name: 'note', input: '{"value":1}', output: { a: 1 } });
      expect(functionSpan()?.toJSON()?.ended_at).toEqual(expect.any(String));

      recorder.clear();
      await run(agent([call, 'done']), 'hi', { traceIncludeSensitiveData: false });
      expect(functionSpan()?.spanData).toEqual({ name: 'note' });

      recorder.clear();
      const boom = { failureErrorFunction: null, execute: () => Promise.reject(new Error('boom')) };
      await rejection(run(agent([call], boom), 'hi'));
      expect(functionSpan()?.toJSON()?.ended_at).toEqual(expect.any(String));
      expect(functionSpan()?.error).toMatchObject({ message: 'Error running tool' });
    });

    it('gives bodies and hooks the context of the call, policies that of the run [TOOL-C5]', async () => {
      const seen: Record<string, unknown> = {};
      const note =
        (name: string) =>
        (ctx: unknown): true => {
          seen[name] = ctx;
          return true;
        };
      const failing = tool({
        name: 'failing',
        execute: () => Promise.reject(new Error('x')),
        failureErrorFunction: (ctx) => String(note('failure')(ctx)),
      });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('note', {}, { callId: 'c1' }), toolCall('failing')], 'done']),
        tools: [
          failing,
          tool({
            name: 'note',
            isEnabled: note('isEnabled'),
            needsApproval: note('policy'),
            execute: (_args, ctx) => void note('body')(ctx),
            customDataExtractor: ({ context }) => void note('facts')(context),
          }),
        ],
        hooks: { onToolStart: (ctx, _a, { name }) => void (name === 'note' && note('start of agent')(ctx)) },
      });
      await run(agent, 'hi', {
        onApproval: (ctx) => ({ type: note('onApproval')(ctx) ? 'approve' : 'reject' }),
        hooks: {
          onToolStart: (ctx, _agent, { name }) => void (name === 'note' && note('start')(ctx)),
          onToolEnd: (ctx, _agent, { name }) => void (name === 'note' && note('end')(ctx)),
          onRunStart: (ctx) => void note('run')(ctx),
        },
      });
      for (const name of ['isEnabled', 'policy', 'onApproval']) expect([name, seen[name]]).toEqual([name, seen['run']]);
      expect(seen['run']).not.toBeInstanceOf(ToolContext);
      expect(seen['failure']).toBeInstanceOf(RunContext);
      for (const name of ['start', 'start of agent', 'facts', 'end']) expect(seen[name]).toBe(seen['body']);
      expect(seen['body']).toBeInstanceOf(ToolContext);
      expect(seen['body']).toMatchObject({ toolName: 'note', toolCallId: 'c1', toolArguments: '{}', agent });
    });
  });
});

describe('several calls', () => {
  it('start in their order; within each nothing begins before what stands before it has ended [TOOL-Y16]', async () => {
    const order = ['policy', 'start of run', 'start of agent', 'body', 'facts', 'end of run', 'end of agent'];
    const stages = [
      ['policy'],
      ['start of run', 'start of agent'],
      ['body'],
      ['facts'],
      ['end of run', 'end of agent'],
    ];
    for (let seed = 1; seed <= 8; seed += 1) {
      const log: string[] = [];
      let count = seed;
      const ticks = (): number => (count = (count * 7 + 3) % 11) % 4;
      const hooks = loggingHooks(log, ticks);
      const ids = ['c1', 'c2', 'c3'];
      const model = new ScriptedModel([ids.map((id) => callOf(id, id)), 'done']);
      const agent = new Agent({ name: 'A', model, tools: [logging(log, { ticks })], hooks: hooks.agent });
      const stream = runStreamed(agent, 'hi', { hooks: hooks.run });
      await stream.completed;
      expect(log.filter((line) => line.endsWith('policy {'))).toEqual(ids.map((id) => `${id} policy {`));
      for (const id of ids) {
        const own = log.filter((line) => line.includes(`${id} `));
        expect(own).toHaveLength(2 * order.length);
        for (const [index, stage] of stages.entries()) {
          const next = stages[index + 1] ?? [];
          const ends = stage.map((name) => own.indexOf(`} ${id} ${name}`));
          const begins = next.map((name) => own.indexOf(`${id} ${name} {`));
          expect(Math.max(...ends), `seed ${seed} ${id} ${stage.join()}`).toBeLessThan(Math.min(...begins, Infinity));
        }
      }
    }
  });

  it('are announced before any of them starts, their results when all are done, in the order of newItems [TOOL-Y17]', async () => {
    const log: string[] = [];
    const wait = tool({
      name: 'wait',
      parameters: z.object({ ticks: z.number() }),
      execute: async ({ ticks }, ctx) => {
        log.push(`starts ${ctx.toolCallId}`);
        await idle(ticks);
        log.push(`ends ${ctx.toolCallId}`);
        return ticks;
      },
    });
    const gated = tool({ name: 'gated', needsApproval: true, execute: () => 1 });
    const calls = [
      toolCall('wait', { ticks: 8 }, { callId: 'slow' }),
      toolCall('gated', {}, { callId: 'gated' }),
      toolCall('wait', { ticks: 1 }, { callId: 'fast' }),
    ];
    const agent = new Agent({ name: 'A', model: new ScriptedModel([{ output: calls }]), tools: [wait, gated] });
    const stream = runStreamed(agent, 'hi');
    const told: RunItem[] = [];
    for await (const event of stream) {
      if (event.type === 'raw_response_event' && event.data.type === 'response.completed') log.push('terminal event');
      if (event.type !== 'run_item_stream_event') continue;
      told.push(event.item);
      log.push(`${event.name} ${'callId' in event.item ? event.item.callId : ''}`);
    }
    const { newItems } = await stream.completed;
    expect(told).toEqual(newItems);
    const position = (line: string): number => log.indexOf(line);
    for (const callId of ['slow', 'gated', 'fast'])
      expect(position(`tool_called ${callId}`)).toBeGreaterThan(position('terminal event'));
    expect(log.filter((line) => line.startsWith('starts'))).toEqual(['starts slow', 'starts fast']);
    expect(log.filter((line) => /^tool_(output|approval)/.test(line))).toEqual([
      'tool_output slow',
      'tool_approval_requested gated',
      'tool_output fast',
    ]);
    expect(position('tool_output slow')).toBeGreaterThan(Math.max(position('ends slow'), position('ends fast')));
  });
});
