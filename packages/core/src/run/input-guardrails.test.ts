import { afterEach, describe, expect, it } from 'vitest';
import {
  Agent,
  getRunErrorDetails,
  getRunErrorState,
  InputGuardrailTripwireTriggered,
  MemorySession,
  run,
  RunAbortedError,
  RunState,
  runStreamed,
  tool,
  UserError,
} from '../index.ts';
import type { InputGuardrail, InputGuardrailArgs, RunOptions } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import {
  effectTool,
  idle,
  kindsOf,
  logged,
  namesOf,
  PlainSession,
  rejection,
  unhandledDuring,
  user,
} from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Accepts, or trips; `after`: milliseconds, or what it waits for. */
function judge(
  name: string,
  options: {
    trips?: boolean;
    after?: number | Promise<unknown>;
    log?: string[];
    blocking?: boolean;
    throws?: unknown;
  } = {},
): InputGuardrail {
  const { trips = false, after, log, blocking } = options;
  return {
    name,
    ...(blocking ? { runInParallel: false } : {}),
    execute: async () => {
      log?.push(`${name} asked`);
      if (after !== undefined) await (typeof after === 'number' ? later(after) : after);
      log?.push(`${name} done`);
      if ('throws' in options) throw options.throws;
      return { tripwireTriggered: trips, outputInfo: { by: name } };
    },
  };
}

function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

const call = (name = 't', id = 'c1') => toolCall(name, { id }, { callId: id });

function desk(steps: ModelStep[], inputGuardrails: readonly InputGuardrail[], effects: string[] = []): Agent {
  return new Agent({
    name: 'A',
    model: new ScriptedModel(steps),
    tools: [effectTool('t', effects), effectTool('g', effects, { needsApproval: true })],
    inputGuardrails,
  });
}

bothForms((runForm, form) => {
  describe(`input guardrails (${form})`, () => {
    it('that trip beside the model abort it: no tool, no output, the session has the input [RUN#19, RUN-903, RUN-905, RUN-906, STATE-128]', async () => {
      const effects: string[] = [];
      const asked = gate();
      let signal: AbortSignal | undefined;
      const model = new ScriptedModel([
        async ({ request }) => {
          signal = request.signal;
          asked.open();
          await new Promise((_, reject) => {
            request.signal?.addEventListener('abort', () => reject(request.signal?.reason as Error));
          });
          return [call()];
        },
      ]);
      const session = new PlainSession();
      const agent = new Agent({
        name: 'A',
        model,
        tools: [effectTool('t', effects)],
        inputGuardrails: [judge('ok'), judge('no', { trips: true, after: asked.opened })],
      });
      const error = await rejection(runForm(agent, 'Hi', { session }));
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect(error).toMatchObject({
        code: 'input_guardrail_tripwire',
        message: 'The input guardrail no triggered its tripwire.',
        guardrailResult: { guardrail: { name: 'no' }, output: { tripwireTriggered: true, outputInfo: { by: 'no' } } },
      });
      expect(signal?.aborted).toBe(true);
      expect(effects).toEqual([]);
      expect(session.items).toEqual([user('Hi')]);
      const details = getRunErrorDetails(error);
      expect(details?.inputGuardrailResults.map(({ guardrail }) => guardrail.name)).toEqual(['ok', 'no']);
      expect([details?.newItems, details?.rawResponses]).toEqual([[], []]);
    });

    it('that block trip before the model, tools and hooks, and the turn does not count [RUN#20, RUN-902, RUN-907, RUN-2001, IL-130]', async () => {
      const log: string[] = [];
      const session = new PlainSession();
      const agent = desk(['never'], [judge('no', { trips: true, blocking: true, log }), judge('beside', { log })]);
      const error = await rejection(
        runForm(agent, 'Hi', { session, hooks: { onAgentStart: () => void log.push('start') } }),
      );
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect(log).toEqual(['no asked', 'no done']);
      expect((agent.model as ScriptedModel).calls).toEqual([]);
      expect(session.kinds).toBe('u');
      expect(getRunErrorState(error)?.currentTurn).toBe(0);
    });

    it('that trip at once keep the model from being asked [RUN-903]', async () => {
      const agent = desk(['never'], [{ name: 'no', execute: () => ({ tripwireTriggered: true }) }]);
      expect(await rejection(runForm(agent, 'Hi'))).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect((agent.model as ScriptedModel).calls).toEqual([]);
    });

    it('of the agent come first, then those of the run; blocking ones side by side before the others [RUN-206, RUN-902, RUN-401]', async () => {
      const log: string[] = [];
      const agent = desk(['done'], [judge('a1', { log, after: 5 }), judge('a2', { log, blocking: true, after: 5 })]);
      await runForm(agent, 'Hi', {
        inputGuardrails: [judge('r1', { log, after: 5 }), judge('r2', { log, blocking: true, after: 5 })],
        hooks: { onAgentStart: () => void log.push('start'), onLlmStart: () => void log.push('llm') },
      });
      expect(log.slice(0, 4)).toEqual(['a2 asked', 'r2 asked', 'a2 done', 'r2 done']);
      expect(log.slice(4, 6)).toEqual(['a1 asked', 'r1 asked']);
      expect(log.indexOf('start')).toBeGreaterThan(log.indexOf('r1 asked'));
    });

    it('known to have tripped when the response is there keep its calls from running [RUN#22, RUN-401, RUN-402]', async () => {
      const effects: string[] = [];
      const log: string[] = [];
      const known = gate();
      const policy = tool({
        name: 'p',
        needsApproval: () => {
          effects.push('policy');
          return false;
        },
        execute: () => 1,
      });
      const agent = desk(
        [[call(), toolCall('p', {}, { callId: 'c2' })]],
        [judge('no', { trips: true, after: known.opened })],
        effects,
      ).clone({ tools: [effectTool('t', effects), policy] });
      const error = await rejection(
        runForm(agent, 'Hi', {
          hooks: {
            onLlmEnd: async () => {
              log.push('llmEnd');
              known.open();
              await idle();
            },
          },
        }),
      );
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect([effects, log]).toEqual([[], ['llmEnd']]);
    });

    it('that throw fail the run with their error; the others are told, nothing is left unhandled [RUN#23, RUN-906, RUN-512]', async () => {
      const failure = new Error('no verdict');
      let told = false;
      const waits: InputGuardrail = {
        name: 'waits',
        execute: ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              told = true;
              reject(new Error('stopped'));
            });
          }),
      };
      let error: unknown;
      const unhandled = await unhandledDuring(async () => {
        error = await rejection(
          runForm(
            desk([{ output: 'late', delayMs: 2000 }], [waits, judge('bad', { throws: failure, after: 5 })]),
            'Hi',
          ),
        );
      });
      expect([error, told, unhandled]).toEqual([failure, true, []]);
      expect(getRunErrorDetails(error)?.inputGuardrailResults).toEqual([]);
    });

    it.each<[string, unknown]>([
      ['nothing', undefined],
      ['a boolean', true],
      ['no verdict', {}],
      ['a text for one', { tripwireTriggered: 'no' }],
    ])('that return %s are a UserError naming them [RUN-906]', async (_, value) => {
      const agent = desk(['done'], [{ name: 'odd', execute: () => value as never }]);
      const error = await rejection(runForm(agent, 'Hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toContain('The guardrail odd must return');
    });

    it('get the input as the run was prepared with: the text, or history and new input [RUN#85, RUN-904]', async () => {
      const seen: InputGuardrailArgs['input'][] = [];
      const recorder: InputGuardrail = {
        name: 'r',
        execute: ({ input, agent, context, signal }) => {
          seen.push(input);
          expect([agent.name, context.context, signal.aborted]).toEqual(['A', 7, false]);
          return { tripwireTriggered: false };
        },
      };
      await runForm(desk(['done'], [recorder]) as never, 'Hi', { context: 7 });
      const session = new MemorySession('s');
      await session.addItems([user('before')]);
      await runForm(desk(['done'], [recorder]) as never, 'Hi', { context: 7, session });
      expect(seen).toEqual(['Hi', [user('before'), user('Hi')]]);
    });

    it('that change what they get by a cast change nothing of the run [RUN-904]', async () => {
      const agent = desk(
        ['done'],
        [
          {
            name: 'writes',
            execute: ({ input }) => {
              (input[0] as { content: string }).content = 'changed';
              (input as unknown[]).length = 0;
              return { tripwireTriggered: false };
            },
          },
        ],
      );
      const input = [user('Hi')];
      const result = await runForm(agent, input);
      expect([result.input, input]).toEqual([[user('Hi')], [user('Hi')]]);
      expect((agent.model as ScriptedModel).calls[0]?.request.input).toEqual([user('Hi')]);
    });

    it('are asked in the first turn alone: not after a tool turn, not on a resume [RUN-901, RUN-305, STATE-205, STATE-211]', async () => {
      const log: string[] = [];
      const agent = desk([call('t'), call('g', 'c2'), 'done'], [judge('ok', { log })]);
      const paused = await runForm(agent, 'Hi');
      expect(paused.status).toBe('interrupted');
      const state = await RunState.fromString(agent, paused.toState().toString());
      state.approve(state.interruptions[0] as never);
      const result = await runForm(agent, state);
      expect([result.finalOutput, log]).toEqual(['done', ['ok asked', 'ok done']]);
      expect(result.inputGuardrailResults).toEqual([
        { guardrail: { name: 'ok' }, output: { tripwireTriggered: false, outputInfo: { by: 'ok' } } },
      ]);
    });

    it('are asked again with a first turn that never completed, and can trip; the input is stored once [STATE#96, STATE-321, RUN-305]', async () => {
      let trips = false;
      const agent = desk([new Error('down'), 'done'], [{ name: 'g', execute: () => ({ tripwireTriggered: trips }) }]);
      const session = new PlainSession();
      const first = await rejection(runForm(agent, 'Hi', { session }));
      const state = getRunErrorState(first) as RunState;
      trips = true;
      for (const one of [state, await RunState.fromString(agent, state.toString())])
        expect(await rejection(runForm(agent, one, { session }))).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect(session.kinds).toBe('u');
      trips = false;
      const again = getRunErrorState(first) as RunState;
      const result = await runForm(agent, again, { session });
      expect([result.finalOutput, session.kinds]).toEqual(['done', 'u m']);
      // One of each segment that this state went through: accepted, tripped, accepted.
      expect(result.inputGuardrailResults.map(({ output }) => output.tripwireTriggered)).toEqual([false, true, false]);
    });

    it('a failing model call wins over guardrails that trip later, which are told and waited for [RUN-908]', async () => {
      const failure = new Error('down');
      let told = false;
      const slow: InputGuardrail = {
        name: 'slow',
        execute: async ({ signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          told = true;
          return { tripwireTriggered: true };
        },
      };
      const error = await rejection(runForm(desk([failure], [slow]), 'Hi'));
      expect([error, told]).toEqual([failure, true]);
    });

    it('one that tripped wins over a failure of the loop that comes after it [RUN-1422, RUN-908]', async () => {
      const { open, opened } = gate();
      const agent = desk(['done'], [judge('no', { trips: true, after: opened })]);
      const error = await rejection(
        runForm(agent, 'Hi', {
          hooks: {
            onLlmEnd: async () => {
              open();
              await idle();
              throw new Error('hook');
            },
          },
        }),
      );
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
    });

    it.each([0, 60])(
      'give the same outcome whatever their speed: a trip after %s ms [RUN#21, RUN-403, RUN-909]',
      async (after) => {
        const session = new PlainSession();
        const log: string[] = [];
        const agent = desk(['secret answer'], [judge('no', { trips: true, after })]);
        const error = await rejection(
          runForm(agent, 'Hi', { session, hooks: { onAgentEnd: () => void log.push('end') } }),
        );
        expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
        expect([session.kinds, log]).toEqual(['u', []]);
        expect([getRunErrorDetails(error)?.newItems, getRunErrorDetails(error)?.rawResponses]).toEqual([[], []]);
        const state = getRunErrorState(error) as RunState;
        expect([state.status, state.toInputList()]).toEqual(['ready', [user('Hi')]]);
      },
    );

    it('late ones are waited for before a pause, and before the next turn [RUN-401, RUN-403]', async () => {
      for (const steps of [[call('g')], [call('t'), 'never']]) {
        const session = new PlainSession();
        const { open, opened } = gate();
        const agent = desk(steps, [judge('no', { trips: true, after: opened.then(() => later(20)) })]);
        const error = await rejection(runForm(agent, 'Hi', { session, hooks: { onLlmEnd: open } }));
        expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
        expect([session.kinds, (agent.model as ScriptedModel).calls.length]).toEqual(['u', 1]);
        expect(getRunErrorDetails(error)?.newItems).toEqual([]);
      }
    });

    it('that accept late are not asked again by the resume of a pause [RUN-901, STATE-205, STATE-211]', async () => {
      const log: string[] = [];
      const { open, opened } = gate();
      const agent = desk([[call('t'), call('g', 'c2')], 'done'], [judge('slow', { after: opened, log })]);
      const paused = await runForm(agent, 'Hi', { hooks: { onToolEnd: open } });
      const state = await RunState.fromString(agent, paused.toState().toString());
      expect(state.toJSON()['agents_ts']).not.toHaveProperty('input_unchecked');
      state.approve(state.interruptions[0] as never);
      expect((await runForm(agent, state)).finalOutput).toBe('done');
      expect(log).toEqual(['slow asked', 'slow done']);
    });

    it('a turn whose tools ran before the trip is not gone on with before they accept [STATE-139, RUN-305, STATE-336]', async () => {
      const effects: string[] = [];
      let trips = true;
      const { open, opened } = gate();
      const agent = desk(
        [call('t'), 'done'],
        [
          {
            name: 'no',
            execute: async () => {
              await opened;
              return { tripwireTriggered: trips };
            },
          },
        ],
        effects,
      );
      const error = await rejection(runForm(agent, 'Hi', { hooks: { onToolEnd: open } }));
      expect([error instanceof InputGuardrailTripwireTriggered, effects]).toEqual([true, ['t c1']]);
      const state = getRunErrorState(error) as RunState;
      const text = state.toString();
      for (const one of [state, await RunState.fromString(agent, text)])
        expect(await rejection(runForm(agent, one))).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect((agent.model as ScriptedModel).calls).toHaveLength(1);
      trips = false;
      const result = await runForm(agent, await RunState.fromString(agent, text));
      expect([result.finalOutput, effects]).toEqual(['done', ['t c1']]);
      expect(kindsOf((agent.model as ScriptedModel).calls[1]?.request.input ?? [])).toBe('u fc fco');
    });

    it('that do not accept stop tools that run, and let none start [RUN-511, RUN-903]', async () => {
      const running = gate();
      let reason: unknown;
      const stoppable = tool({
        name: 'slow',
        execute: async (_args, ctx) => {
          running.open();
          await new Promise<void>((resolve) =>
            ctx.signal.addEventListener('abort', () => {
              ({ reason } = ctx.signal);
              resolve();
            }),
          );
          return 'stopped';
        },
      });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('slow', {}, { callId: 'c1' })]),
        tools: [stoppable],
        inputGuardrails: [judge('no', { trips: true, after: running.opened })],
      });
      const error = await rejection(runForm(agent, 'Hi'));
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect(reason).toBe(error);
    });

    describe('and a tool that fails', () => {
      const failing = (verdict: Parameters<typeof judge>[1], session: PlainSession, effects: string[] = []) => {
        const { open, opened } = gate();
        const guardrail = judge('g', { ...verdict, after: opened.then(() => later(30)) });
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([[call('a', 'c1'), call('b', 'c2')]]),
          tools: [
            effectTool('a', effects),
            effectTool('b', effects, {
              failureErrorFunction: null,
              result: () => {
                open();
                throw new Error('B');
              },
            }),
          ],
          inputGuardrails: [guardrail],
        });
        return rejection(runForm(agent, 'Hi', { session }));
      };

      it('the finished part is kept when the input is accepted, though it takes a while [RUN#91, RUN-509]', async () => {
        const session = new PlainSession();
        const error = await failing({}, session);
        expect(error).toMatchObject({ code: 'tool_call', toolName: 'b' });
        expect(kindsOf(getRunErrorDetails(error)?.newItems.map(({ rawItem }) => rawItem as object) ?? [])).toBe(
          'fc fco',
        );
        expect(session.kinds).toBe('u fc fco');
      });

      it('a trip while siblings are being stopped replaces nothing [RUN-910, RUN-1422]', async () => {
        const { open, opened } = gate();
        const slow = tool({
          name: 'slow',
          execute: async () => {
            await later(60);
            return 1;
          },
        });
        const fails = tool({
          name: 'b',
          failureErrorFunction: null,
          execute: () => {
            open();
            throw new Error('B');
          },
        });
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([[toolCall('slow', {}, { callId: 'c1' }), toolCall('b', {}, { callId: 'c2' })]]),
          tools: [slow, fails],
          inputGuardrails: [judge('no', { trips: true, after: opened.then(() => later(10)) })],
        });
        expect(await rejection(runForm(agent, 'Hi'))).toMatchObject({ code: 'tool_call', toolName: 'b' });
      });

      it.each<[string, Parameters<typeof judge>[1]]>([
        ['trips', { trips: true }],
        ['throws', { throws: new Error('late') }],
      ])(
        'nothing is kept when a guardrail %s later; the failure stays [RUN#91, RUN-910, RUN-1422]',
        async (_, verdict) => {
          const session = new PlainSession();
          const error = await failing(verdict, session);
          expect(error).toMatchObject({ code: 'tool_call', toolName: 'b' });
          expect([getRunErrorDetails(error)?.newItems, session.kinds]).toEqual([[], 'u']);
        },
      );
    });

    it('a session that does not take the input of a stopped run changes nothing of its error [RUN-1422]', async () => {
      const records = logged();
      const session = new PlainSession();
      session.faults.push('before');
      const agent = desk(['never'], [judge('no', { trips: true, blocking: true })]);
      const error = await rejection(runForm(agent, 'Hi', { session }));
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      expect(records.map(({ message }) => message).join()).toContain('could not be stored');
      expect(getRunErrorState(error)?.toJSON()['pending_session_write']).toBeDefined();
    });

    it('their spans are children of the first turn; turn and agent tell of the trip [TRACE-T22, TRACE-N9, TRACE-E2]', async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const agent = desk(['done'], [judge('fine', { blocking: true }), judge('no_pii', { trips: true, after: 1 })]);
      await rejection(runForm(agent, 'Hi'));
      const spans = recorder.spans;
      const guards = spans.filter(({ type }) => type === 'guardrail');
      const turn = spans.find(({ type }) => type === 'turn');
      expect(guards.map((span) => [span.spanData, span.parentId, span.error])).toEqual([
        [{ name: 'fine', triggered: false }, turn?.spanId, undefined],
        [{ name: 'no_pii', triggered: true }, turn?.spanId, undefined],
      ]);
      const error = {
        message: 'Guardrail tripwire triggered',
        data: { guardrail: 'no_pii', type: 'input_guardrail' },
      };
      expect([turn?.error, spans.find(({ type }) => type === 'agent')?.error]).toEqual([error, error]);
      expect(spans.every((span) => (span.toJSON() as { ended_at?: unknown }).ended_at)).toBe(true);
    });

    it('a run with guardrails has one span without a parent [IL-114]', async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      await runForm(desk([call(), 'done'], [judge('a'), judge('b', { blocking: true })]), 'Hi', {
        outputGuardrails: [judge('o') as never],
      });
      expect(recorder.spans.filter(({ parentId }) => !parentId).map(({ type }) => type)).toEqual(['task']);
      expect(recorder.traces).toHaveLength(1);
    });

    it('one that throws says so on its span, without words where they may not show [TRACE-T11]', async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const options: RunOptions = { traceIncludeSensitiveData: false };
      await rejection(runForm(desk(['done'], [judge('bad', { throws: new Error('secret') })]), 'Hi', options));
      const span = recorder.spans.find(({ type }) => type === 'guardrail');
      expect(span?.error).toEqual({
        message: 'Error running guardrail',
        data: { guardrail: 'bad', error: 'Error details are redacted.' },
      });
    });
  });
});

describe('input guardrails and streams', () => {
  it.each([0, 60])(
    'events before the throw are the same or fewer, after %s ms, and the stream ends with it [RUN#21, RUN-909, RUN-1423]',
    async (after) => {
      const agent = desk(['answer'], [judge('no', { trips: true, after })]);
      const stream = runStreamed(agent, 'Hi');
      const names: string[] = [];
      let error: unknown;
      try {
        for await (const event of stream) names.push(...namesOf([event]));
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      const all = ['agent A', 'R', 'message_output_created'];
      expect(all.slice(0, names.length)).toEqual(names);
      expect([stream.isComplete, stream.status, stream.error, stream.finalOutput]).toEqual([
        true,
        'failed',
        error,
        undefined,
      ]);
      expect(stream.inputGuardrailResults).toHaveLength(1);
    },
  );

  it('the stream does not end before slow guardrails have accepted [RUN-909, RUN-1404]', async () => {
    const log: string[] = [];
    const agent = desk(['answer'], [judge('slow', { after: 40, log })]);
    const stream = runStreamed(agent, 'Hi');
    for await (const _ of stream);
    log.push('end');
    expect([log, stream.finalOutput]).toEqual([['slow asked', 'slow done', 'end'], 'answer']);
  });

  it('cancel ends guardrails that hang, blocking or not; listeners and timers are gone [RUN-1418, RUN-512]', async () => {
    for (const runInParallel of [true, false]) {
      let told = false;
      const hangs: InputGuardrail = {
        name: 'hangs',
        runInParallel,
        execute: ({ signal }) => {
          signal.addEventListener('abort', () => (told = true));
          return new Promise(() => {});
        },
      };
      const stream = runStreamed(desk(['answer'], [hangs]), 'Hi');
      await later(5);
      stream.cancel();
      const error = await rejection(stream.completed);
      expect([error instanceof RunAbortedError, told, stream.status]).toEqual([true, true, 'cancelled']);
    }
  });
});

describe('input guardrails in both forms', () => {
  it.each<[string, () => Parameters<typeof desk>]>([
    ['accept', () => [[call(), 'done'], [judge('ok')]]],
    ['trip late', () => [['answer'], [judge('no', { trips: true, after: 20 })]]],
    ['trip before the model', () => [['answer'], [judge('no', { trips: true, blocking: true })]]],
    ['throw', () => [['answer'], [judge('no', { throws: new Error('x') })]]],
  ])('%s: both forms agree in everything [RUN-002]', async (_, make) => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session }) => ({
        agent: desk(...make()),
        input: 'Hi',
        options: { hooks, session: session('s') },
      }),
    });
    expect(plain.writes[0]).toEqual([user('Hi')]);
  });

  it('a plain run needs no more than the model call when nobody asks for guardrails', async () => {
    const result = await run(new Agent({ name: 'A', model: new ScriptedModel([text('Hi')]) }), 'Hi');
    expect([result.inputGuardrailResults, result.outputGuardrailResults]).toEqual([[], []]);
  });
});
