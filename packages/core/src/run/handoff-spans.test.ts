import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { Agent, handoff, RunState, tool } from '../index.ts';
import type { AgentInputItem, Handoff, HandoffOptions, Span } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep, TraceNode } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import { currentPlace } from '../../test/current-place.ts';
import { logged } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;

beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
  logged({ level: 'silent' });
});
afterEach(() => resetDefaults());

const toB = (args: object | string = {}) => toolCall('transfer_to_b', args);
const lookup = tool({ name: 'lookup', execute: () => 'found' });
const refund = tool({ name: 'refund', needsApproval: true, execute: () => 'refunded' });

function desk(steps: readonly ModelStep[], options: object = {}): { a: Agent; b: Agent } {
  const model = new ScriptedModel(steps, { trace: true });
  const b = new Agent({ name: 'B', model, tools: [lookup, refund] });
  const made = handoff(b, options as HandoffOptions<unknown>) as Handoff;
  return { a: new Agent({ name: 'A', model, tools: [lookup, refund], handoffs: [made as never] }), b };
}

/** One span a line, indented; errors behind it. */
function tree(): string {
  const lines: string[] = [];
  const add = (nodes: readonly TraceNode[], depth: number): void => {
    for (const { type, name, error, children } of nodes) {
      lines.push(`${'  '.repeat(depth)}${type} ${name}${error === undefined ? '' : ` !! ${error}`}`);
      add(children, depth + 1);
    }
  };
  add(recorder.tree(), 0);
  return lines.join('\n');
}

const spansOf = (type: Span['type']): Span[] => recorder.spans.filter((span) => span.type === type);
const handoffSpan = (): Span<'handoff'> => spansOf('handoff')[0] as Span<'handoff'>;
const boom = (): never => {
  throw new Error('boom pin-4711');
};

bothForms((runForm, form) => {
  describe(`the tree of a run with handoffs (${form})`, () => {
    const play = async (
      steps: readonly ModelStep[],
      options: object = {},
      runOptions: object = {},
    ): Promise<string> => {
      const { a } = desk(steps, options);
      await runForm(a, 'Hi', runOptions).catch(() => undefined);
      return `\n${tree()}`;
    };

    test('the span of the handoff is in its turn, the target beside the source [TRACE-T12] [TRACE-N7, N8, N15]', async () => {
      expect(await play([[text('x'), toolCall('lookup'), toB()], toolCall('lookup'), 'done'])).toBe(`
trace Agent workflow
  task Agent workflow
    agent A
      turn 1
        generation scripted
        function lookup
        handoff A → B
    agent B
      turn 2
        generation scripted
        function lookup
      turn 3
        generation scripted`);
      expect(spansOf('agent').map((span) => (span as Span<'agent'>).spanData)).toEqual([
        { name: 'A', handoffs: ['B'], tools: ['lookup', 'refund'], outputType: 'str' },
        { name: 'B', handoffs: [], tools: ['lookup', 'refund'], outputType: 'str' },
      ]);
      expect(handoffSpan().spanData).toEqual({ fromAgent: 'A', toAgent: 'B' });
      expect(handoffSpan().details).toMatchObject({ toolCallId: 'call_2', toolName: 'transfer_to_b' });
      expect(handoffSpan().error).toBeUndefined();
    });

    test('there and back again: three stretches, three spans [TRACE-N7]', async () => {
      const { a, b } = desk([toB(), toolCall('transfer_to_a'), 'done']);
      b.handoffs.push(a);
      await runForm(a, 'Hi');
      expect(`\n${tree()}`).toBe(`
trace Agent workflow
  task Agent workflow
    agent A
      turn 1
        generation scripted
        handoff A → B
    agent B
      turn 2
        generation scripted
        handoff B → A
    agent A
      turn 3
        generation scripted`);
    });

    test.each([{}, { traceTaskAndTurnSpans: false }])(
      'a stretch is over before the next one begins, not with the run (%o) [TRACE-N7]',
      async (options) => {
        const log: string[] = [];
        const told = (what: string) => (span: Span) => {
          if (span.type === 'agent') log.push(`${what} ${span.spanData.name}`);
        };
        setTraceProcessors([{ onSpanStart: told('start'), onSpanEnd: told('end') }]);
        const { a, b } = desk([toolCall('lookup'), toB(), toolCall('transfer_to_a'), 'done']);
        b.handoffs.push(a);
        await runForm(a, 'Hi', { ...options, hooks: { onRunEnd: () => void log.push('run end') } });
        const stretches = ['A', 'B'].flatMap((name) => [`start ${name}`, `end ${name}`]);
        expect(log).toEqual([...stretches, 'start A', 'run end', 'end A']);
      },
    );

    test('without spans of task and turns [TRACE-N6] [TRACE-T48]', async () => {
      expect(await play([toB(), 'done'], {}, { traceTaskAndTurnSpans: false })).toBe(`
trace Agent workflow
  agent A
    generation scripted
    handoff A → B
  agent B
    generation scripted`);
    });

    test('several: the span says so, and the run goes on [TOOL-HO10] [TRACE-E10]', async () => {
      const model = new ScriptedModel([[toB(), toolCall('transfer_to_c')], 'done'], { trace: true });
      const a = new Agent({
        name: 'A',
        model,
        handoffs: [new Agent({ name: 'B', model }), new Agent({ name: 'C', model })],
      });
      await runForm(a, 'Hi');
      expect(handoffSpan().error).toEqual({
        message: 'Multiple handoffs requested',
        data: { requested_agents: ['B', 'C'] },
      });
      expect(spansOf('agent').map(({ error }) => error)).toEqual([undefined, undefined]);
    });

    test.each<[string, object, object, string, string | undefined]>([
      ['callback', { onHandoff: boom }, {}, 'A → ', 'boom pin-4711'],
      ['hook', {}, { hooks: { onHandoff: boom } }, 'A → B', 'boom pin-4711'],
      ['filter', { inputFilter: boom }, {}, 'A → B', 'boom pin-4711'],
    ])(
      'a %s that fails: the span ends with the error, and tells the target where it is known [TOOL-HO16] [TRACE-N15, N20]',
      async (_, options, runOptions, name, error) => {
        expect(await play([toB()], options, runOptions)).toBe(`
trace Agent workflow
  task Agent workflow
    agent A !! Error in agent run
      turn 1
        generation scripted
        handoff ${name} !! Error in handoff`);
        expect(handoffSpan().error?.data).toEqual({ error });
      },
    );

    test.each<[string, object, ModelStep, string]>([
      ['a filter that returns nothing', { inputFilter: () => undefined }, toB(), 'Invalid input filter result'],
      [
        'no input',
        { inputType: z.object({}), onHandoff: () => {} },
        toB(''),
        'Handoff function expected non-null input, but got None',
      ],
      ['no JSON', { inputType: z.object({}), onHandoff: () => {} }, toB('{pin-4711'), 'Invalid JSON provided'],
    ])('%s has an error of its own [TRACE §6.1] [TRACE-E2]', async (_, options, step, message) => {
      await play([step], options);
      expect(handoffSpan().error?.message).toBe(message);
      expect(JSON.stringify(handoffSpan().error)).not.toContain('pin-4711');
      expect(spansOf('agent')[0]?.error?.message).toBe(
        message === 'Invalid input filter result' ? 'Error in agent run' : undefined,
      );
    });

    test('without sensitive data no text of an error is on a span [TRACE-E4]', async () => {
      for (const options of [{ onHandoff: boom }, { inputFilter: boom }, { inputFilter: () => 'pin-4711' }]) {
        await play([toB()], options, { traceIncludeSensitiveData: false });
        expect(JSON.stringify(recorder.spans.map((span) => [span.error, span.toJSON()]))).not.toContain('pin-4711');
      }
    });

    test('callbacks, hooks and filter run in its scope, while it is open [TRACE-C6, N15]', async () => {
      const seen: unknown[] = [];
      const look = (what: string) => (): void => void seen.push(`${what} ${currentPlace()}`);
      const { a } = desk([toB(), 'done'], {
        onHandoff: look('callback'),
        inputFilter: () => {
          look('filter')();
          return {};
        },
        isEnabled: () => {
          look('isEnabled')();
          return true;
        },
      });
      const hooked = a.clone({ hooks: { onHandoff: look('agent hook') } });
      await runForm(hooked, 'Hi', { hooks: { onHandoff: look('run hook'), onAgentStart: look('start') } });
      expect(seen).toEqual([
        'start turn',
        'isEnabled turn',
        'callback handoff',
        'run hook handoff',
        'agent hook handoff',
        'filter handoff',
        'start turn',
      ]);
      seen.length = 0;
      const nested = desk([toB(), 'done']).a;
      const handoffHistoryMapper = (items: AgentInputItem[]) => (look('mapper')(), items);
      await runForm(nested, 'Hi', { nestHandoffHistory: true, handoffHistoryMapper });
      expect(seen).toEqual(['mapper handoff']);
    });

    test('on a resume it is under the agent, and the target beside it [TRACE-N7, N15]', async () => {
      const { a } = desk([[toolCall('refund'), toB()], 'done']);
      const state = await RunState.fromString(a, (await runForm(a, 'Hi')).toState().toString());
      for (const item of state.interruptions) state.approve(item);
      recorder.clear();
      await runForm(a, state);
      expect(`\n${tree()}`).toBe(`
trace Agent workflow
  task Agent workflow
    agent A
      function refund
      handoff A → B
    agent B
      turn 2
        generation scripted`);
      expect((spansOf('agent')[0] as Span<'agent'>).spanData.handoffs).toEqual(['B']);
    });
  });
});
