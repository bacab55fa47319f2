import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  getCurrentSpan,
  getRunErrorDetails,
  getRunErrorState,
  MaxTurnsExceededError,
  ModelBehaviorError,
  ModelRefusalError,
  run,
  RunAbortedError,
  Runner,
  runStreamed,
  RunState,
  UserError,
} from '../index.ts';
import type { RunErrorDetails, RunErrorHandlers, RunItem, RunOptions } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, refusal, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import { effectTool, idle, kindsOf, namesOf, PlainSession, readAll, rejection, user } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const Answer = z.object({ answer: z.string() });
const lookup = toolCall('lookup', { id: '7' }, { callId: 'c1' });
const desk = (steps: ModelStep[]): Agent =>
  new Agent({ name: 'A', model: new ScriptedModel(steps), tools: [effectTool('lookup', [])] });
const structured = (steps: ModelStep[], outputType: z.ZodType = Answer): Agent<unknown, unknown> =>
  new Agent<unknown, unknown>({ name: 'A', model: new ScriptedModel(steps), outputType });
const message = (said: string): unknown => ({
  id: '__fake_id__',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: said, annotations: [], logprobs: [] }],
});
type EndOptions = Pick<RunOptions, 'maxTurns' | 'errorHandlers'>;
const limited = (errorHandlers: RunErrorHandlers): EndOptions => ({ maxTurns: 1, errorHandlers });
const wire = (items: readonly RunItem[] | undefined): object[] => (items ?? []).map(({ rawItem }) => rawItem as object);

describe('a handler at the turn limit', () => {
  it('ends the run: hooks, then the session, then item and event; no turn is counted [RUN#10, RUN-706, 709, 710, 712]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: desk([lookup]),
        input: 'go',
        options: {
          ...limited({ maxTurns: ({ error }) => (log.push(error.message), { finalOutput: 'stop' }) }),
          hooks,
          session: session('s'),
        },
      }),
    });
    const { result, log, writes } = plain;
    expect([result?.status, result?.finalOutput, result?.currentTurn, result?.rawResponses.length]).toEqual([
      'completed',
      'stop',
      1,
      1,
    ]);
    expect(kindsOf(result?.newItems.map(({ rawItem }) => rawItem as object) ?? [])).toBe('fc fco m');
    expect(result?.newItems.at(-1)?.rawItem).toEqual(message('stop'));
    expect(result?.toInputList().at(-1)).toMatchObject({ role: 'assistant', content: [{ text: 'stop' }] });
    expect(log.slice(log.indexOf('Max turns (1) exceeded'))).toEqual([
      'Max turns (1) exceeded',
      'agentEnd A "stop"',
      'runEnd completed',
    ]);
    expect(writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'fc fco', 'm']);
    expect(namesOf(streamed.events)).toEqual(['agent A', 'R', 'tool_called', 'tool_output', 'message_output_created']);
    const last = streamed.events.at(-1);
    expect(last?.type === 'run_item_stream_event' && [last.item.rawItem, last.position]).toEqual([message('stop'), 2]);
  });

  it('leaves no trace in the history when it says so [RUN#11, RUN-709]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: ({ hooks, session }) => ({
        agent: desk([lookup]),
        input: 'go',
        options: {
          ...limited({ maxTurns: () => ({ finalOutput: 'stop', includeInHistory: false }) }),
          hooks,
          session: session('s'),
        },
      }),
    });
    expect(plain.result?.finalOutput).toBe('stop');
    expect(plain.result?.newItems.map((item) => item.type)).toEqual(['tool_call_item', 'tool_call_output_item']);
    expect(plain.log).toContain('agentEnd A "stop"');
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'fc fco']);
    expect(namesOf(streamed.events).at(-1)).toBe('tool_output');
  });

  it('declines by returning nothing; the default one is asked when there is no other, or it declined [RUN#12, RUN-706]', async () => {
    const play = (handlers: (log: string[]) => RunErrorHandlers): ReturnType<typeof symmetry> =>
      symmetry({
        setUp: ({ log }) => ({ agent: desk([lookup]), input: 'go', options: limited(handlers(log)) }),
      });
    const declined = await play((log) => ({
      maxTurns: () => void log.push('own'),
      default: async () => void log.push('default'),
      modelRefusal: () => void log.push('refusal'),
    }));
    expect(declined.plain.error).toBeInstanceOf(MaxTurnsExceededError);
    expect(declined.plain.log).toEqual(['own', 'default']);
    const own = await play((log) => ({
      maxTurns: () => ({ finalOutput: 'own' }),
      default: () => void log.push('default'),
    }));
    expect([own.plain.result?.finalOutput, own.plain.log]).toEqual(['own', []]);
    const fallback = await play(() => ({ default: ({ error }) => ({ finalOutput: error.code }) }));
    expect(fallback.plain.result?.finalOutput).toBe('max_turns_exceeded');
  });

  it('ends a run that has no turn at all, with the input in the session [RUN-703, 710] [RUN#8]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session }) => ({
        agent: desk([]),
        input: 'go',
        options: {
          maxTurns: 0,
          errorHandlers: { maxTurns: () => ({ finalOutput: 'no' }) },
          hooks,
          session: session('s'),
        },
      }),
    });
    expect([plain.result?.finalOutput, plain.result?.currentTurn]).toEqual(['no', 0]);
    expect(plain.log).toEqual(['runStart A', 'agentEnd A "no"', 'runEnd completed']);
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'm']);
  });

  it('of a resumed run, over a JSON round trip, writes its message once', async () => {
    for (const form of ['plain', 'streamed'] as const) {
      const session = new PlainSession('s');
      const agent = desk([lookup]);
      const failed = await rejection(run(agent, 'go', { maxTurns: 1, session }));
      const state = await RunState.fromString(agent, getRunErrorState(failed)?.toString() ?? '');
      const options = { session, errorHandlers: { maxTurns: () => ({ finalOutput: 'stop' }) } };
      const result =
        form === 'plain' ? await run(agent, state, options) : await runStreamed(agent, state, options).completed;
      expect([result.finalOutput, result.currentTurn, session.kinds]).toEqual(['stop', 1, 'u fc fco m']);
      expect(session.log.filter((call) => call.startsWith('add'))).toEqual(['add[u]', 'add[fc fco]', 'add[m]']);
    }
  });
});

describe('what a handler gives', () => {
  it.each([
    ['an unknown member', { finalOutput: 1, foo: 2 }],
    ['a bare value', 'stop'],
    ['null', null],
    ['a list', [1]],
    ['no output', { includeInHistory: true }],
    ['a wrong kind', { finalOutput: 1, includeInHistory: 'yes' }],
  ])('is refused when it is %s [RUN#13, RUN-707]', async (_, result) => {
    const { plain } = await symmetry({
      setUp: ({ session }) => ({
        agent: desk([lookup]),
        input: 'go',
        options: { ...limited({ maxTurns: () => result as never }), session: session('s') },
      }),
    });
    expect(plain.error).toBeInstanceOf(UserError);
    expect((plain.error as Error).message).toContain('errorHandlers.maxTurns');
    expect((plain.error as Error).message).toContain('invalid run error handler result');
    expect(plain.writes).toHaveLength(2);
  });

  it('must fit the output type; what does not fit shows only where logs may show model data [RUN#14, RUN-708, 1902]', async () => {
    const play = (): ReturnType<typeof symmetry> =>
      symmetry({
        setUp: () => ({
          agent: structured([], z.object({ a: z.number() })),
          input: 'go',
          options: { maxTurns: 0, errorHandlers: { maxTurns: () => ({ finalOutput: { a: 'secret' } }) } },
        }),
      });
    const { plain: redacted } = await play();
    expect(redacted.error).toBeInstanceOf(UserError);
    expect((redacted.error as Error).message).toMatch(/invalid for the structured output of agent A.*redacted/);
    expect((redacted.error as Error).cause).toBeUndefined();
    expect(getRunErrorDetails(redacted.error)).toBeUndefined();
    configureLogging({ dontLogModelData: false });
    const { plain: open } = await play();
    expect((open.error as Error).message).toMatch(/invalid for the structured output of agent A: .*\ba\b.*secret/);
    expect((open.error as Error).cause).toBeInstanceOf(ModelBehaviorError);
    expect(getRunErrorDetails(open.error)).toBeDefined();
  });

  it('has no JSON form: refused like what does not fit [RUN-708]', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['answer'] = cycle;
    for (const finalOutput of [cycle, () => 'x', { answer: 1n }])
      await expect(
        run(structured([]), 'go', { maxTurns: 0, errorHandlers: { default: () => ({ finalOutput }) } }),
      ).rejects.toThrow('invalid for the structured output');
  });

  it.each([
    ['an object', Answer, { answer: 'gave up' }, { answer: 'gave up' }, '{"answer":"gave up"}'],
    ['a list, wrapped as the model would', z.array(z.int()), [1, 2], [1, 2], '{"response":[1,2]}'],
    ['defaults filled in', z.object({ a: z.string().default('x') }), {}, { a: 'x' }, '{}'],
  ] as const)(
    'is typed as the output type makes it, and told as JSON: %s [RUN-708, 709]',
    async (_, type, given, typed, said) => {
      const { plain } = await symmetry({
        setUp: () => ({
          agent: structured([], type),
          input: 'go',
          options: { maxTurns: 0, errorHandlers: { maxTurns: () => ({ finalOutput: given }) } },
        }),
      });
      expect(plain.result?.finalOutput).toEqual(typed);
      expect(wire(plain.result?.newItems)).toEqual([message(said)]);
    },
  );

  it('is text for an agent whose output is text [RUN-709]', async () => {
    const result = await run(desk([]), 'go', {
      maxTurns: 0,
      errorHandlers: { maxTurns: () => ({ finalOutput: { a: 1 } }) },
    });
    expect(result.finalOutput).toBe('{"a":1}');
    expect(result.newItems[0]?.rawItem).toEqual(message('{"a":1}'));
  });
});

describe('a handler of answers', () => {
  it('takes a refusal: its value is the output, and the model is not asked again [RUN#15, RUN-603, 714]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: ({ session, log, hooks }) => ({
        agent: structured([[refusal('no')]]),
        input: 'go',
        options: {
          session: session('s'),
          hooks,
          errorHandlers: {
            modelRefusal: ({ error }) => (log.push(error.refusal), { finalOutput: { answer: 'none' } }),
          },
        },
      }),
    });
    expect([plain.result?.finalOutput, plain.result?.rawResponses.length]).toEqual([{ answer: 'none' }, 1]);
    const [rejected, said] = wire(plain.result?.newItems);
    expect(rejected).toMatchObject({ content: [{ type: 'refusal', refusal: 'no' }] });
    expect(said).toEqual(message('{"answer":"none"}'));
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'm m']);
    expect(plain.log.slice(-3)).toEqual(['no', 'agentEnd A {"answer":"none"}', 'runEnd completed']);
    expect(namesOf(streamed.events)).toEqual(['agent A', 'R', 'message_output_created', 'message_output_created']);
    const { plain: without } = await symmetry({
      setUp: () => ({ agent: structured([[refusal('no')]]), input: 'go' }),
    });
    expect(without.error).toBeInstanceOf(ModelRefusalError);
    expect((without.error as ModelRefusalError).refusal).toBe('no');
  });

  it('takes a text that does not fit; the text stays before its message [RUN#16, RUN-604, 714]', async () => {
    const { plain } = await symmetry({
      setUp: () => ({
        agent: structured(['not json']),
        input: 'go',
        options: { errorHandlers: { invalidFinalOutput: () => ({ finalOutput: { answer: 'none' } }) } },
      }),
    });
    expect(plain.result?.finalOutput).toEqual({ answer: 'none' });
    expect(wire(plain.result?.newItems)).toMatchObject([
      { content: [{ text: 'not json' }] },
      { id: '__fake_id__', content: [{ text: '{"answer":"none"}' }] },
    ]);
    expect(plain.result?.rawResponses).toHaveLength(1);
    const { plain: kept } = await symmetry({
      setUp: () => ({
        agent: structured(['not json']),
        input: 'go',
        options: {
          errorHandlers: {
            invalidFinalOutput: () => ({ finalOutput: { answer: 'none' }, includeInHistory: false }),
          },
        },
      }),
    });
    expect(wire(kept.result?.newItems)).toMatchObject([{ content: [{ text: 'not json' }] }]);
    const { plain: without } = await symmetry({ setUp: () => ({ agent: structured(['not json']), input: 'go' }) });
    expect(without.error).toBeInstanceOf(ModelBehaviorError);
  });

  it('hears of no other error of the model [RUN-604]', async () => {
    for (const step of [toolCall('nobody', {}), toolCall('lookup', {}, { callId: '' })]) {
      const { plain } = await symmetry({
        setUp: ({ log }) => ({
          agent: new Agent<unknown, unknown>({
            name: 'A',
            model: new ScriptedModel([step]),
            tools: [effectTool('lookup', [])],
            outputType: Answer,
          }),
          input: 'go',
          options: {
            errorHandlers: {
              invalidFinalOutput: () => void log.push('invalid'),
              default: () => void log.push('default'),
            },
          },
        }),
      });
      expect([plain.error instanceof ModelBehaviorError, plain.log]).toEqual([true, []]);
    }
  });

  it('is asked for an answer without text, when there is one for it; else the model is asked again [TOOL-O13, RUN-602, 409]', async () => {
    const play = (handlers: (log: string[]) => RunErrorHandlers): ReturnType<typeof symmetry> =>
      symmetry({
        setUp: ({ log }) => ({
          agent: structured([[], [text('')], '{"answer":"yes"}']),
          input: 'go',
          options: { errorHandlers: handlers(log) },
        }),
      });
    const taken = await play((log) => ({
      invalidFinalOutput: ({ error }) => (log.push(error.message), { finalOutput: { answer: 'none' } }),
    }));
    expect([taken.plain.result?.finalOutput, taken.plain.result?.rawResponses.length]).toEqual([{ answer: 'none' }, 1]);
    expect(taken.plain.log).toEqual([expect.stringMatching(/no final output.*final_output/)]);
    const declined = await play((log) => ({ invalidFinalOutput: () => void log.push('asked') }));
    expect([declined.plain.result?.finalOutput, declined.plain.log]).toEqual([{ answer: 'yes' }, ['asked', 'asked']]);
    const unasked = await play((log) => ({ default: () => void log.push('default') }));
    expect([unasked.plain.result?.finalOutput, unasked.plain.log]).toEqual([{ answer: 'yes' }, []]);
  });

  it('never runs tools again, and an earlier turn stays as it was [RUN-714]', async () => {
    const { plain } = await symmetry({
      setUp: ({ log, session }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([lookup, [refusal('no')]]),
          tools: [effectTool('lookup', log)],
        }),
        input: 'go',
        options: { session: session('s'), errorHandlers: { default: () => ({ finalOutput: 'sorry' }) } },
      }),
    });
    expect([plain.result?.finalOutput, plain.log]).toEqual(['sorry', ['lookup 7']]);
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'fc fco', 'm m']);
  });
});

describe('what a handler sees', () => {
  const seenBy = async (make: () => Agent<unknown, unknown>, options: EndOptions = {}): Promise<RunErrorDetails[]> => {
    const seen: RunErrorDetails[] = [];
    await symmetry({
      setUp: () => ({
        agent: make(),
        input: 'go',
        options: {
          ...options,
          errorHandlers: {
            default: ({ runData }) => {
              seen.push(runData);
              return { finalOutput: { answer: 'x' } };
            },
          },
        },
      }),
    });
    return seen;
  };
  it.each([
    ['a refusal', [refusal('no')]],
    ['an output that does not fit', [text('{')]],
  ] as const)('is the run as it is, with the response in question: %s [RUN-711]', async (_, last) => {
    const seen = await seenBy(
      () =>
        new Agent<unknown, unknown>({
          name: 'A',
          model: new ScriptedModel([lookup, last]),
          tools: [effectTool('lookup', [])],
          outputType: Answer,
        }),
    );
    expect(seen).toHaveLength(2);
    for (const runData of seen) {
      // A snapshot: the handler's own message came later.
      expect(kindsOf(wire(runData.newItems))).toBe('fc fco m');
      expect(runData.newItems.at(-1)?.rawItem).toEqual(runData.rawResponses.at(-1)?.output[0]);
      expect(runData.rawResponses).toHaveLength(2);
      expect(runData.lastAgent.name).toBe('A');
      expect(kindsOf(runData.toInputList())).toBe('u fc fco m');
      expect(runData.toInputList()[0]).toEqual(user('go'));
    }
  });

  it('is the completed turns, at the turn limit [RUN-711]', async () => {
    const seen = await seenBy(() => desk([lookup]), { maxTurns: 1 });
    for (const runData of seen) {
      expect(kindsOf(wire(runData.newItems))).toBe('fc fco');
      expect([runData.rawResponses.length, runData.context.usage.requests]).toEqual([1, 1]);
    }
  });
});

describe('a handler that fails', () => {
  it('fails the run with its error, which keeps the one that it was to handle [RUN-713]', async () => {
    const own = new Error('own cause');
    const play = (thrown: () => unknown): ReturnType<typeof symmetry> =>
      symmetry({
        setUp: () => ({
          agent: desk([lookup]),
          input: 'go',
          options: limited({
            maxTurns: () => {
              throw thrown();
            },
          }),
        }),
      });
    const { plain } = await play(() => new TypeError('handler'));
    expect(plain.error).toBeInstanceOf(TypeError);
    expect((plain.error as Error).cause).toBeInstanceOf(MaxTurnsExceededError);
    expect(getRunErrorDetails(plain.error)?.newItems).toHaveLength(2);
    const { plain: withCause } = await play(() => new Error('handler', { cause: own }));
    expect((withCause.error as Error).cause).toBe(own);
    const frozen = Object.freeze(new Error('frozen'));
    const { plain: guarded } = await play(() => frozen);
    expect((guarded.error as Error).cause).toBe(frozen);
    const { plain: bare } = await play(() => 'a string');
    expect((bare.error as Error).cause).toBe('a string');
    const rethrown = await rejection(
      run(desk([lookup]), 'go', limited({ maxTurns: ({ error }) => Promise.reject(error) })),
    );
    expect([rethrown instanceof MaxTurnsExceededError, (rethrown as Error).cause]).toEqual([true, undefined]);
  });

  it('leaves a state that goes on [RUN-715]', async () => {
    const agent = desk([lookup, 'done']);
    const failed = await rejection(run(agent, 'go', limited({ maxTurns: () => Promise.reject(new Error('x')) })));
    const state = getRunErrorState(failed) as RunState;
    expect((await run(agent, state, { maxTurns: 2 })).finalOutput).toBe('done');
  });

  it('of a stream is cut short by an abort', async () => {
    const stop = new AbortController();
    const stream = runStreamed(desk([lookup]), 'go', {
      ...limited({ maxTurns: () => new Promise(() => stop.abort('enough')) }),
      signal: stop.signal,
    });
    await readAll(stream);
    const error = await rejection(stream.completed);
    expect([error instanceof RunAbortedError, (error as Error).cause, stream.status]).toEqual([
      true,
      'enough',
      'cancelled',
    ]);
  });
});

describe('the end that a handler gave', () => {
  const end = limited({ maxTurns: () => ({ finalOutput: 'stop' }) });

  it('is public only when the session has it [RUN-710]', async () => {
    const session = new PlainSession();
    let open = (): void => {};
    const maxTurns = (): { finalOutput: string } => {
      session.gate = new Promise<void>((resolve) => (open = resolve));
      return { finalOutput: 'stop' };
    };
    const stream = runStreamed(desk([lookup]), 'go', { ...limited({ maxTurns }), session });
    const events = readAll(stream);
    while (!session.log.includes('add[m]')) await idle();
    await idle();
    expect(kindsOf(wire(stream.newItems))).toBe('fc fco');
    expect(stream.finalOutput).toBeUndefined();
    open();
    expect(namesOf(await events).at(-1)).toBe('message_output_created');
    expect(kindsOf(wire(stream.newItems))).toBe('fc fco m');
  });

  bothForms((runForm, form) => {
    it(`is not recorded when the session fails, and nothing can go on from there (${form}) [RUN-710, 1613] [STATE-331]`, async () => {
      const session = new PlainSession();
      session.faults.push(undefined, undefined, 'before');
      const agent = desk([lookup]);
      const error = await rejection(runForm(agent, 'go', { ...end, session }));
      expect(error).toBe(session.error);
      expect(kindsOf(wire(getRunErrorDetails(error)?.newItems))).toBe('fc fco');
      const state = getRunErrorState(error) as RunState;
      expect(state.status).toBe('unrecoverable');
      await expect(runForm(agent, state, { maxTurns: 9, session })).rejects.toMatchObject({
        code: 'state_unrecoverable',
      });
      expect(session.kinds).toBe('u fc fco');
    });

    it(`is lost with the input that the session did not take, and the run can go on (${form}) [RUN-1606]`, async () => {
      const session = new PlainSession();
      session.faults.push('before');
      const agent = desk(['done']);
      const error = await rejection(runForm(agent, 'go', { ...end, maxTurns: 0, session }));
      expect(error).toBe(session.error);
      const state = getRunErrorState(error) as RunState;
      expect(state.status).not.toBe('unrecoverable');
      expect((await runForm(agent, state, { maxTurns: 1, session })).finalOutput).toBe('done');
      expect(session.kinds).toBe('u m');
    });

    it(`stores the input of a run without turns, also when it is itself not stored (${form}) [RUN-709]`, async () => {
      const session = new PlainSession();
      const maxTurns = (): object => ({ finalOutput: 'no', includeInHistory: false });
      await runForm(desk([]), 'go', { maxTurns: 0, errorHandlers: { maxTurns: maxTurns as never }, session });
      expect(session.kinds).toBe('u');
    });

    it(`of a refusal is not recorded when the session fails (${form}) [RUN-710]`, async () => {
      const session = new PlainSession();
      session.faults.push(undefined, 'before');
      const options = { session, errorHandlers: { modelRefusal: () => ({ finalOutput: 'sorry' }) } };
      const error = await rejection(runForm(desk([[refusal('no')]]), 'go', options));
      expect(error).toBe(session.error);
      expect(getRunErrorDetails(error)?.newItems.map((item) => item.rawItem)).toMatchObject([
        { content: [{ refusal: 'no' }] },
      ]);
      expect(getRunErrorState(error)?.status).toBe('unrecoverable');
    });

    it(`is not recorded when an end hook fails, and the run can go on (${form}) [RUN-710]`, async () => {
      const session = new PlainSession();
      const agent = desk([lookup, 'done']);
      const hooks = {
        onAgentEnd: (_: unknown, __: unknown, output: unknown) => {
          if (output === 'stop') throw new Error('hook');
        },
      };
      const error = await rejection(runForm(agent, 'go', { ...end, session, hooks }));
      expect((error as Error).message).toBe('hook');
      expect(session.kinds).toBe('u fc fco');
      const result = await runForm(agent, getRunErrorState(error) as RunState, { maxTurns: 2, session });
      expect([result.finalOutput, session.kinds]).toEqual(['done', 'u fc fco m']);
    });

    it(`leaves the limit on the agent's span, under which the handler ran (${form}) [TRACE-T24, C5] [RUN-401]`, async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      let within: string | undefined;
      await runForm(desk([]), 'go', {
        maxTurns: 0,
        errorHandlers: {
          maxTurns: () => {
            within = getCurrentSpan()?.type;
            return { finalOutput: 'stop' };
          },
        },
      });
      const spans = recorder.spans;
      expect(spans.map((span) => span.type)).toEqual(['task', 'agent']);
      expect([within, spans[1]?.error]).toEqual(['agent', { message: 'Max turns exceeded', data: { max_turns: 0 } }]);
    });
  });
});

it('`errorHandlers` takes functions under known names, and those of a call replace those of its runner [RUN-104]', async () => {
  expect(() => new Runner({ errorHandlers: { maxTurn: () => undefined } as never })).toThrow("'maxTurns'");
  expect(() => new Runner({ errorHandlers: { maxTurns: 'stop' } as never })).toThrow("'maxTurns'");
  expect(() => runStreamed(desk([]), 'go', { errorHandlers: 5 as never })).toThrow("'errorHandlers'");
  const runner = new Runner({ maxTurns: 0, errorHandlers: { maxTurns: () => ({ finalOutput: 'runner' }) } });
  expect((await runner.run(desk([]), 'go')).finalOutput).toBe('runner');
  const own = { errorHandlers: { default: () => ({ finalOutput: 'call' }) } };
  expect((await runner.run(desk([]), 'go', own)).finalOutput).toBe('call');
});
