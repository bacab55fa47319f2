import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  getRunErrorDetails,
  getRunErrorState,
  RunState,
  tool,
  ToolInputGuardrailTripwireTriggered,
  ToolOutputGuardrailTripwireTriggered,
  UserError,
} from '../index.ts';
import type {
  FunctionTool,
  RunHooks,
  RunOptions,
  ToolApprovalItem,
  ToolContext,
  ToolGuardrailBehavior,
  ToolInputGuardrail,
  ToolOptions,
  ToolOutputGuardrail,
} from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import { idle, kindsOf, PlainSession, rejection } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const call = (name = 't', id = 'c1') => toolCall(name, { id }, { callId: id });
const parameters = z.object({ id: z.string() });
const allow: ToolGuardrailBehavior = { type: 'allow' };
const reject = (message: string): ToolGuardrailBehavior => ({ type: 'reject_content', message });
const raise: ToolGuardrailBehavior = { type: 'raise_exception' };

/** A guardrail of inputs or outputs that says the same of every call. */
function says(
  name: string,
  behavior: ToolGuardrailBehavior,
  log: string[] = [],
): ToolInputGuardrail & ToolOutputGuardrail {
  return {
    name,
    execute: ({ context }: { context: ToolContext<unknown> }) => {
      log.push(`${name} ${context.toolCallId}`);
      return { behavior, outputInfo: { by: name } };
    },
  };
}

type Extra = Partial<Omit<ToolOptions<typeof parameters, unknown, unknown>, 'parameters'>>;
const guarded = (log: string[], extra: Extra = {}): FunctionTool<unknown> =>
  tool({
    name: 't',
    parameters,
    execute: ({ id }) => {
      log.push(`body ${id}`);
      return `value ${id}`;
    },
    ...extra,
  });
const desk = (steps: ModelStep[], ...tools: FunctionTool<unknown>[]): Agent =>
  new Agent({ name: 'A', model: new ScriptedModel(steps), tools });
const hooksInto = (log: string[]): RunHooks => ({
  onToolStart: (ctx, _agent, { name }) => void log.push(`start ${name} ${ctx.toolCallId}`),
  onToolEnd: (ctx, _agent, { name }, result) => void log.push(`end ${name} ${ctx.toolCallId} ${String(result)}`),
});
const outputs = (items: readonly { readonly rawItem: unknown }[] | undefined): unknown[] =>
  (items ?? []).flatMap(({ rawItem }) => (rawItem as { output?: unknown }).output ?? []);
const result = (name: string, behavior: ToolGuardrailBehavior): unknown => ({
  guardrail: { name },
  output: { behavior, outputInfo: { by: name } },
});

bothForms((runForm, form) => {
  describe(`guardrails of a tool (${form})`, () => {
    it('run around the call in the order of the contract [TOOL-AC26, TOOL-G1, TOOL-G3, TOOL-Y7, RUN-806]', async () => {
      const log: string[] = [];
      const t = guarded(log, {
        inputGuardrails: [says('in1', allow, log), says('in2', allow, log)],
        outputGuardrails: [says('out', allow, log)],
        customDataExtractor: () => void log.push('extract'),
      });
      const done = await runForm(desk([call(), 'done'], t), 'Hi', { hooks: hooksInto(log) });
      expect(log).toEqual(['in1 c1', 'in2 c1', 'start t c1', 'body c1', 'out c1', 'extract', 'end t c1 value c1']);
      expect(done.toolInputGuardrailResults).toEqual([result('in1', allow), result('in2', allow)]);
      expect(done.toolOutputGuardrailResults).toEqual([result('out', allow)]);
    });

    it('that reject a call give its output; tool, hooks and what follows do not run [TOOL-AC24, TOOL-G2, TOOL-G9, RUN-931, RUN-933]', async () => {
      const log: string[] = [];
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const t = guarded(log, {
        inputGuardrails: [
          says('no', reject('not today'), log),
          {
            name: 'never',
            execute: () => {
              throw new Error('never asked');
            },
          },
        ],
        outputGuardrails: [says('out', allow, log)],
      });
      const done = await runForm(desk([call(), 'done'], t), 'Hi', { hooks: hooksInto(log) });
      expect([log, outputs(done.newItems)]).toEqual([['no c1'], ['not today']]);
      expect(done.toolInputGuardrailResults).toEqual([result('no', reject('not today'))]);
      expect(done.toolOutputGuardrailResults).toEqual([]);
      const span = recorder.spans.find(({ type }) => type === 'function');
      expect([span?.error, span?.spanData]).toEqual([undefined, expect.objectContaining({ output: 'not today' })]);
    });

    it('may reject with an empty text [TOOL-G12]', async () => {
      const t = guarded([], { inputGuardrails: [says('no', reject(''))] });
      expect(outputs((await runForm(desk([call(), 'done'], t), 'Hi')).newItems)).toEqual(['']);
    });

    it('see the tool context of the call, and its output as the tool gave it [TOOL-C5, RUN-932]', async () => {
      const seen: unknown[] = [];
      const t = guarded([], {
        execute: () => ({ n: 1 }),
        inputGuardrails: [
          {
            name: 'in',
            execute: ({ context, agent }) => {
              seen.push([context.toolName, context.toolArguments, context.toolCallId, agent.name]);
              return { behavior: allow };
            },
          },
        ],
        outputGuardrails: [
          {
            name: 'out',
            execute: ({ context, output }) => (seen.push([context.toolCallId, output]), { behavior: allow }),
          },
        ],
      });
      await runForm(desk([call(), 'done'], t), 'Hi');
      expect(seen).toEqual([
        ['t', '{"id":"c1"}', 'c1', 'A'],
        ['c1', { n: 1 }],
      ]);
    });

    it('that reject an output replace it for the model, hooks, and as a final output; later ones are not asked [TOOL-G3, TOOL-G10, RUN-931]', async () => {
      const log: string[] = [];
      const make = () =>
        guarded(log, { outputGuardrails: [says('no', reject('hidden'), log), says('later', allow, log)] });
      const done = await runForm(desk([call(), 'done'], make()), 'Hi', { hooks: hooksInto(log) });
      expect(log).toEqual(['start t c1', 'body c1', 'no c1', 'end t c1 hidden']);
      expect(outputs(done.newItems)).toEqual(['hidden']);
      const agent = desk([call()], make()).clone({ toolUseBehavior: 'stop_on_first_tool' });
      expect((await runForm(agent, 'Hi')).finalOutput).toBe('hidden');
    });

    it('judge failure and timeout texts too, and calls whose arguments are no JSON [TOOL-F23, TOOL-G1, TOOL-G3]', async () => {
      const seen: unknown[] = [];
      const out: ToolOutputGuardrail = {
        name: 'out',
        execute: ({ output }) => (seen.push(output), { behavior: allow }),
      };
      const asked: ToolInputGuardrail = {
        name: 'in',
        execute: ({ context }) => (seen.push(context.toolArguments), { behavior: allow }),
      };
      const broken = guarded([], {
        execute: () => {
          throw new Error('x');
        },
        failureErrorFunction: () => 'failed',
        outputGuardrails: [out],
        inputGuardrails: [asked],
      });
      const slow = guarded([], {
        name: 'slow',
        execute: () => new Promise(() => {}),
        timeoutMs: 5,
        timeoutErrorFunction: () => 'too slow',
        outputGuardrails: [out],
      });
      await runForm(desk([[toolCall('t', '{', { callId: 'c1' }), call('slow', 'c2')], 'done'], broken, slow), 'Hi');
      expect(seen).toEqual(['{', 'failed', 'too slow']);
    });

    it.each<
      [
        string,
        'inputGuardrails' | 'outputGuardrails',
        typeof ToolInputGuardrailTripwireTriggered | typeof ToolOutputGuardrailTripwireTriggered,
        string,
      ]
    >([
      ['an input', 'inputGuardrails', ToolInputGuardrailTripwireTriggered, 'tool_input_guardrail_tripwire'],
      ['an output', 'outputGuardrails', ToolOutputGuardrailTripwireTriggered, 'tool_output_guardrail_tripwire'],
    ])(
      'that raise at %s fail the run with an error of their own, with what finished siblings gave [TOOL-AC25, TOOL-G11, RUN-931, RUN-932, TOOL-X8]',
      async (_, field, Kind, code) => {
        const log: string[] = [];
        const session = new PlainSession();
        const stops = guarded(log, {
          name: 'stops',
          [field]: [
            {
              name: 'stop',
              execute: async () => {
                await new Promise((resolve) => setTimeout(resolve, 15));
                return { behavior: raise, outputInfo: 'why' };
              },
            },
          ],
        });
        const error = await rejection(
          runForm(desk([call('t', 'c0'), [call('t', 'c1'), call('stops', 'c2')]], guarded(log), stops), 'Hi', {
            session,
          }),
        );
        expect(error).toBeInstanceOf(Kind);
        expect(error).toMatchObject({
          code,
          guardrail: { name: 'stop' },
          output: { behavior: raise, outputInfo: 'why' },
          message: expect.stringContaining('stop'),
        });
        const details = getRunErrorDetails(error);
        expect(outputs(details?.newItems)).toEqual(['value c0', 'value c1']);
        expect(session.kinds).toBe('u fc fco fc fco');
        // The result that raised is on the error alone.
        expect([details?.toolInputGuardrailResults, details?.toolOutputGuardrailResults]).toEqual([[], []]);
      },
    );

    it('that raise show on the span of the call; the agent has no error of its own [TRACE-E1, TRACE-E2]', async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      await rejection(runForm(desk([call()], guarded([], { inputGuardrails: [says('stop', raise)] })), 'Hi'));
      const errorOf = (type: string) => recorder.spans.find((span) => span.type === type)?.error;
      expect([errorOf('function')?.message, errorOf('turn'), errorOf('agent')]).toEqual([
        'Error running tool',
        undefined,
        undefined,
      ]);
    });

    it('that raise count before an ordinary failure of a sibling, though they come after it [TOOL-X8]', async () => {
      const fails = guarded([], {
        name: 'fails',
        failureErrorFunction: null,
        execute: () => {
          throw new Error('ordinary');
        },
      });
      const stops = guarded([], {
        name: 'stops',
        inputGuardrails: [
          {
            name: 'stop',
            execute: async () => {
              await new Promise((resolve) => setTimeout(resolve, 30));
              return { behavior: raise };
            },
          },
        ],
      });
      const error = await rejection(runForm(desk([[call('fails', 'c1'), call('stops', 'c2')]], fails, stops), 'Hi'));
      expect(error).toBeInstanceOf(ToolInputGuardrailTripwireTriggered);
    });

    it('that throw fail the run with that error, which no failure function sees [TOOL-G7]', async () => {
      const failure = new TypeError('broken guardrail');
      for (const field of ['inputGuardrails', 'outputGuardrails'] as const) {
        const t = guarded([], {
          [field]: [{ name: 'bad', execute: () => Promise.reject(failure) }],
          failureErrorFunction: () => 'swallowed',
        });
        expect(await rejection(runForm(desk([call()], t), 'Hi'))).toBe(failure);
      }
    });

    it.each<[string, unknown]>([
      ['nothing', undefined],
      ['no behaviour', {}],
      ['an unknown behaviour', { behavior: { type: 'deny' } }],
      ['a rejection without a text', { behavior: { type: 'reject_content' } }],
      ['a verdict of agents', { tripwireTriggered: true }],
    ])('that return %s are a UserError naming them [TOOL-G5]', async (_, value) => {
      const t = guarded([], { inputGuardrails: [{ name: 'odd', execute: () => value as never }] });
      const error = await rejection(runForm(desk([call()], t), 'Hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toContain('The tool guardrail odd must return');
    });

    it('are not asked for calls that wait or were rejected by a person [STATE-116, TOOL-F36]', async () => {
      const log: string[] = [];
      const t = guarded(log, { needsApproval: true, inputGuardrails: [says('in', allow, log)] });
      const agent = desk([[call('t', 'c1'), call('t', 'c2')], 'done'], t);
      const paused = await runForm(agent, 'Hi');
      expect(log).toEqual([]);
      const state = paused.toState();
      state.approve(state.interruptions[0] as never);
      state.reject(state.interruptions[1] as never);
      const done = await runForm(agent, state);
      expect([log, done.finalOutput]).toEqual([['in c1', 'body c1'], 'done']);
      expect(done.toolInputGuardrailResults).toHaveLength(1);
    });

    it('run before a person is asked as well, where the run wants that [RUN-934, RUN-214, TOOL-G6, STATE-104, TOOL-Y4]', async () => {
      const log: string[] = [];
      const options: RunOptions = { toolExecution: { preApprovalToolInputGuardrails: true } };
      const t = guarded(log, { needsApproval: true, inputGuardrails: [says('in', allow, log)] });
      const agent = desk([call(), 'done'], t);
      const paused = await runForm(agent, 'Hi', options);
      expect([paused.status, log, paused.toolInputGuardrailResults.length]).toEqual(['interrupted', ['in c1'], 1]);
      const state = await RunState.fromString(agent, paused.toState().toString());
      // Undecided it waits on, and nobody judges it anew.
      const again = await runForm(agent, state, options);
      expect([again.status, log]).toEqual(['interrupted', ['in c1']]);
      const last = again.toState();
      last.approve(last.interruptions[0] as never);
      const done = await runForm(agent, last, options);
      expect([done.finalOutput, log]).toEqual(['done', ['in c1', 'in c1', 'body c1']]);
      expect(done.toolInputGuardrailResults).toEqual([result('in', allow), result('in', allow)]);
    });

    it('that reject before a person is asked give the output, and nobody waits [STATE#84, STATE-104, TOOL-G6]', async () => {
      const log: string[] = [];
      const options: RunOptions = {
        toolExecution: { preApprovalToolInputGuardrails: true },
        onApproval: () => {
          log.push('asked');
          return undefined;
        },
      };
      const t = guarded(log, { needsApproval: true, inputGuardrails: [says('no', reject('blocked'), log)] });
      const done = await runForm(desk([call(), 'done'], t), 'Hi', options);
      expect([done.finalOutput, outputs(done.newItems), log]).toEqual(['done', ['blocked'], ['no c1']]);
      expect(done.toolInputGuardrailResults).toEqual([result('no', reject('blocked'))]);
    });

    it('a decision that came while they judged wins over their rejection [STATE-103, STATE-104]', async () => {
      const log: string[] = [];
      let found = (_: ToolApprovalItem): void => undefined;
      const asked = new Promise<ToolApprovalItem>((resolve) => {
        found = resolve;
      });
      const t = guarded(log, {
        needsApproval: true,
        inputGuardrails: [
          {
            name: 'decides',
            execute: async ({ context }) => {
              log.push(`judged ${context.toolCallId}`);
              if (context.toolCallId === 'c1' || log.filter((line) => line === 'judged c2').length > 1)
                return { behavior: allow };
              context.decide(await asked, { type: 'approve', always: true });
              return { behavior: reject('blocked') };
            },
          },
        ],
      });
      const agent = desk([[call('t', 'c1'), call('t', 'c2')], 'done'], t);
      const paused = await runForm(agent, 'Hi', {
        toolExecution: { preApprovalToolInputGuardrails: true },
        onApproval: async (_ctx, item) => {
          found(item);
          await idle(5);
          return undefined;
        },
      });
      // Approved meanwhile: it is judged once more, and runs.
      expect([outputs(paused.newItems), log.includes('body c2')]).toEqual([['value c1', 'value c2'], true]);
    });

    it('their results are in the state with the turn, once, over pauses and JSON [TOOL-G4, STATE-217, STATE-228, RUN-1210]', async () => {
      const free = guarded([], {
        inputGuardrails: [says('in', allow)],
        outputGuardrails: [says('out', reject('short'))],
      });
      const gated = guarded([], { name: 'g', needsApproval: true, outputGuardrails: [says('g out', allow)] });
      const agent = desk([[call('t', 'c1'), call('g', 'c2')], 'done'], free, gated);
      const paused = await runForm(agent, 'Hi');
      const results = [result('in', allow)];
      expect(paused.toolInputGuardrailResults).toEqual(results);
      expect(paused.toolOutputGuardrailResults).toEqual([result('out', reject('short'))]);
      const state = await RunState.fromString(agent, paused.toState().toString());
      state.approve(state.interruptions[0] as never);
      const done = await runForm(agent, state);
      expect(done.toolInputGuardrailResults).toEqual(results);
      expect(done.toolOutputGuardrailResults).toEqual([result('out', reject('short')), result('g out', allow)]);
    });

    it('a committed call whose hook fails is not judged again, and its results become public with the pass that succeeds [STATE#116, STATE-230, STATE-211, STATE-347, IL-081]', async () => {
      const log: string[] = [];
      const gated = guarded(log, {
        name: 'g',
        needsApproval: true,
        inputGuardrails: [says('in', allow, log)],
        outputGuardrails: [says('out', allow, log)],
      });
      const agent = desk([call('g', 'c2'), 'done'], gated);
      const session = new PlainSession();
      const state = (await runForm(agent, 'Hi', { session })).toState();
      state.approve(state.interruptions[0] as never);
      const failure = new Error('hook');
      const error = await rejection(
        runForm(agent, state, {
          session,
          hooks: {
            onToolEnd: () => {
              throw failure;
            },
          },
        }),
      );
      expect(error).toBe(failure);
      const details = getRunErrorDetails(error);
      expect([details?.toolInputGuardrailResults, details?.toolOutputGuardrailResults]).toEqual([[], []]);
      const left = getRunErrorState(error) as RunState;
      expect(left.toJSON()['last_processed_response']).toMatchObject({ tool_output_guardrail_result_start: 0 });
      expect(left.toJSON()['tool_output_guardrail_results']).toHaveLength(1);
      const again = await RunState.fromString(agent, left.toString());
      const done = await runForm(agent, again, { session });
      expect([log, done.finalOutput]).toEqual([['in c2', 'body c2', 'out c2'], 'done']);
      expect(done.toolOutputGuardrailResults).toEqual([result('out', allow)]);
      expect(done.toState().toJSON()['last_processed_response']).not.toHaveProperty(
        'tool_output_guardrail_result_start',
      );
      expect(session.kinds).toBe('u fc fco m');
    });

    it('on a resumed turn a tripwire leaves the finished sibling in the state [TOOL-G11, STATE-212]', async () => {
      const log: string[] = [];
      let raises = true;
      const stops = guarded(log, {
        name: 's',
        needsApproval: true,
        outputGuardrails: [{ name: 'stop', execute: () => ({ behavior: raises ? raise : allow }) }],
      });
      const gated = guarded(log, { name: 'g', needsApproval: true });
      const agent = desk([[call('g', 'c1'), call('s', 'c2')], 'done'], gated, stops);
      const state = (await runForm(agent, 'Hi')).toState();
      for (const item of state.interruptions) state.approve(item);
      const error = await rejection(runForm(agent, state));
      expect(error).toBeInstanceOf(ToolOutputGuardrailTripwireTriggered);
      expect(outputs(getRunErrorDetails(error)?.newItems)).toEqual(['value c1']);
      raises = false;
      const left = getRunErrorState(error) as RunState;
      const done = await runForm(agent, left, { onInDoubt: 'retry' });
      expect([log, done.finalOutput]).toEqual([['body c1', 'body c2', 'body c2'], 'done']);
    });

    it('a waiting call of a sibling is not held up by guardrails, nor by one that hangs when the run is aborted [RUN-512, TOOL-X7]', async () => {
      const controller = new AbortController();
      const t = guarded([], {
        inputGuardrails: [
          {
            name: 'hangs',
            execute: () => {
              setTimeout(() => controller.abort(), 5);
              return new Promise(() => {});
            },
          },
        ],
      });
      const error = await rejection(runForm(desk([call()], t), 'Hi', { signal: controller.signal }));
      expect((error as Error).name).toBe('AbortError');
    });

    it('of a copy take the place of those of the tool [TOOL-G8]', async () => {
      const log: string[] = [];
      const t = guarded(log, { inputGuardrails: [says('first', allow, log)] });
      const copy = t.copyWith({ inputGuardrails: [says('second', allow, log)], outputGuardrails: [] });
      await runForm(desk([call(), 'done'], copy), 'Hi');
      expect(log).toEqual(['second c1', 'body c1']);
    });
  });
});

describe('guardrails of tools in both forms', () => {
  it.each<[string, Extra]>([
    ['allow', { inputGuardrails: [says('in', allow)], outputGuardrails: [says('out', allow)] }],
    ['reject a call', { inputGuardrails: [says('in', reject('no'))] }],
    ['reject an output', { outputGuardrails: [says('out', reject('no'))] }],
    ['raise', { outputGuardrails: [says('out', raise)] }],
  ])('%s: both forms agree in everything [RUN-002]', async (_, extra) => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session }) => ({
        agent: desk([call(), 'done'], guarded([], extra)),
        input: 'Hi',
        options: { hooks, session: session('s') },
      }),
    });
    expect(kindsOf(plain.writes[0] as object[])).toBe('u');
  });
});
