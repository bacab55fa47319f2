import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  getRunErrorDetails,
  getRunErrorState,
  handoff,
  OutputGuardrailTripwireTriggered,
  run,
  RunAbortedError,
  RunState,
  runStreamed,
  tool,
  UserError,
} from '../index.ts';
import type {
  AnyAgent,
  OutputGuardrail,
  OutputGuardrailArgs,
  RunOptions,
  ToolGuardrailFunctionOutput,
  ToolUseBehavior,
} from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import {
  effectTool,
  exactly,
  idle,
  kindsOf,
  logged,
  namesOf,
  PlainSession,
  readAll,
  rejection,
  user,
} from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const call = (name = 't', id = 'c1') => toolCall(name, { id }, { callId: id });
const WITHHELD = 'Output withheld by an output guardrail.';

function judge(name: string, trips: boolean, outputInfo?: unknown): OutputGuardrail {
  return { name, execute: () => ({ tripwireTriggered: trips, outputInfo }) };
}

interface DeskOptions {
  readonly guardrails?: readonly OutputGuardrail[];
  readonly behavior?: ToolUseBehavior<unknown>;
  readonly effects?: string[];
  readonly result?: unknown;
}

function desk(
  steps: ModelStep[],
  { guardrails = [], behavior = 'run_llm_again', effects = [], result = 'secret' }: DeskOptions,
): Agent {
  return new Agent({
    name: 'A',
    model: new ScriptedModel(steps),
    tools: [
      effectTool('t', effects, { result: () => result }),
      effectTool('g', effects, { needsApproval: true, result: () => result }),
    ],
    outputGuardrails: guardrails,
    toolUseBehavior: behavior,
  });
}

const rawOf = (items: readonly { readonly rawItem: unknown }[] | undefined): object[] =>
  (items ?? []).map(({ rawItem }) => rawItem as object);

bothForms((runForm, form) => {
  describe(`output guardrails (${form})`, () => {
    it('get the typed value, the agent, the context and the response that gave it [RUN-911, TOOL-C1]', async () => {
      const seen: OutputGuardrailArgs[] = [];
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel(['{"n":1}']),
        outputType: z.object({ n: z.number() }),
        outputGuardrails: [{ name: 'o', execute: (args) => (seen.push(args), { tripwireTriggered: false }) }],
      });
      const result = await runForm(agent, 'Hi', {
        context: 7,
        outputGuardrails: [judge('run', false, 'fine')],
      });
      expect(seen).toHaveLength(1);
      expect(seen[0]).toMatchObject({ agentOutput: { n: 1 }, agent, modelResponse: result.rawResponses[0] });
      expect([seen[0]?.context, seen[0]?.signal instanceof AbortSignal]).toEqual([result.context, true]);
      expect(result.outputGuardrailResults).toEqual([
        { guardrail: { name: 'o' }, agent, agentOutput: { n: 1 }, output: { tripwireTriggered: false } },
        {
          guardrail: { name: 'run' },
          agent,
          agentOutput: { n: 1 },
          output: { tripwireTriggered: false, outputInfo: 'fine' },
        },
      ]);
    });

    it('that trip on a message fail the run: it is not stored, earlier turns are; the error shows the real output [RUN#25, RUN-912, RUN-928, RUN-1605]', async () => {
      const session = new PlainSession();
      const agent = desk([call(), 'rude'], { guardrails: [judge('polite', true, { word: 'rude' })] });
      const error = await rejection(runForm(agent, 'Hi', { session }));
      expect(error).toBeInstanceOf(OutputGuardrailTripwireTriggered);
      expect(error).toMatchObject({
        code: 'output_guardrail_tripwire',
        message: 'The output guardrail polite triggered its tripwire.',
        guardrailResult: {
          guardrail: { name: 'polite' },
          agentOutput: 'rude',
          output: { tripwireTriggered: true, outputInfo: { word: 'rude' } },
        },
      });
      expect(session.kinds).toBe('u fc fco');
      const details = getRunErrorDetails(error);
      expect(details?.outputGuardrailResults).toHaveLength(1);
      expect(details?.rawResponses).toHaveLength(2);
    });

    it('of the agent that answers are asked, not those of the one that handed off; its input guardrails are not [RUN#24, RUN-901, RUN-911, TOOL-HO15]', async () => {
      const log: string[] = [];
      const note = (name: string) => ({
        name,
        execute: () => (log.push(name), { tripwireTriggered: false }),
      });
      const b = new Agent({
        name: 'B',
        model: new ScriptedModel(['done']),
        inputGuardrails: [note('B input')],
        outputGuardrails: [note('B output')],
      });
      const a = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('transfer_to_b', {}, { callId: 'h1' })]),
        handoffs: [handoff(b)],
        inputGuardrails: [note('A input')],
        outputGuardrails: [note('A output')],
      });
      await runForm(a, 'Hi', { outputGuardrails: [note('run output')] });
      expect(log).toEqual(['A input', 'B output', 'run output']);
    });

    it('come after the end hooks and before the session; a failing hook keeps them out [RUN#35, RUN-609]', async () => {
      const log: string[] = [];
      const session = new PlainSession();
      const note: OutputGuardrail = {
        name: 'o',
        execute: () => (log.push(`judged ${session.kinds}`), { tripwireTriggered: false }),
      };
      await runForm(desk(['done'], { guardrails: [note] }), 'Hi', {
        session,
        hooks: { onAgentEnd: () => void log.push('end') },
      });
      expect([log, session.kinds]).toEqual([['end', 'judged u'], 'u m']);
      const other = new PlainSession();
      const failure = new Error('hook');
      const error = await rejection(
        runForm(desk(['done'], { guardrails: [note] }), 'Hi', {
          session: other,
          hooks: {
            onAgentEnd: () => {
              throw failure;
            },
          },
        }),
      );
      expect([error, log.length, other.kinds]).toEqual([failure, 2, 'u']);
    });

    it('that trip stop the others, whose verdicts do not count; what was said before does [RUN-912]', async () => {
      let told = false;
      const waits: OutputGuardrail = {
        name: 'waits',
        execute: async ({ signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          told = true;
          return { tripwireTriggered: true };
        },
      };
      const error = await rejection(
        runForm(desk(['x'], { guardrails: [judge('fine', false), waits, judge('no', true)] }), 'Hi'),
      );
      expect([(error as OutputGuardrailTripwireTriggered).guardrailResult.guardrail.name, told]).toEqual(['no', true]);
      expect(getRunErrorDetails(error)?.outputGuardrailResults.map(({ guardrail }) => guardrail.name)).toEqual(
        expect.arrayContaining(['fine', 'no']),
      );
    });

    it('that throw fail the run with their error, behind an output that is accepted history [RUN#28, RUN-913, RUN-1613, SESS-087]', async () => {
      const failure = new Error('no verdict');
      const broken: OutputGuardrail = {
        name: 'bad',
        execute: () => {
          throw failure;
        },
      };
      const session = new PlainSession();
      const agent = desk(['done', 'more'], { guardrails: [broken] });
      expect(await rejection(runForm(agent, 'Hi', { session }))).toBe(failure);
      expect(session.kinds).toBe('u m');
      const state = getRunErrorState(failure) as RunState;
      expect(state.status).not.toBe('unrecoverable');
      expect(kindsOf(rawOf(state.newItems))).toBe('m');

      const down = new PlainSession();
      down.faults.push(undefined, 'before');
      const error = await rejection(runForm(desk(['done'], { guardrails: [broken] }), 'Hi', { session: down }));
      expect([error, (error as Error).cause]).toEqual([down.error, failure]);
      const owed = getRunErrorState(error) as RunState;
      expect(owed.toJSON()['pending_session_write']).toMatchObject({ items: [{ type: 'message' }] });
      // Restored and gone on with, the message is stored before the next turn's.
      const again = await RunState.fromString(desk(['more'], {}), owed.toString());
      await runForm(desk(['more'], {}), again, { session: down });
      expect(down.kinds).toBe('u m m');
    });

    it.each<[string, unknown]>([
      ['nothing', undefined],
      ['another kind', { tripwireTriggered: 1 }],
    ])('that return %s are a UserError naming them [RUN-906]', async (_, value) => {
      const agent = desk(['done'], { guardrails: [{ name: 'odd', execute: () => value as never }] });
      const error = await rejection(runForm(agent, 'Hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toContain('The guardrail odd must return');
    });

    it('pushed to the agent later are checked when they are asked [RUN-901, TOOL-A3]', async () => {
      const agent = desk(['done'], {});
      (agent.outputGuardrails as unknown[]).push({ execute: () => ({ tripwireTriggered: false }) });
      expect(await rejection(runForm(agent, 'Hi'))).toMatchObject({
        code: 'user_error',
        message: expect.stringContaining('outputGuardrails[0]'),
      });
    });

    it('the output of a handler passes them too: what is blocked is nowhere, what nobody judged is kept [RUN-710, RUN-911, STATE-333]', async () => {
      const options = { maxTurns: 1, errorHandlers: { maxTurns: () => ({ finalOutput: 'gave up' }) } };
      const session = new PlainSession();
      const agent = desk([call()], { guardrails: [judge('no', true)] });
      const error = await rejection(runForm(agent, 'Hi', { ...options, session }));
      expect(error).toBeInstanceOf(OutputGuardrailTripwireTriggered);
      expect([session.kinds, kindsOf(rawOf(getRunErrorDetails(error)?.newItems))]).toEqual(['u fc fco', 'fc fco']);
      const again = await rejection(runForm(agent, getRunErrorState(error) as RunState, { ...options, session }));
      expect(again).toBeInstanceOf(OutputGuardrailTripwireTriggered);

      const failure = new Error('no verdict');
      const other = new PlainSession();
      const broken: OutputGuardrail = { name: 'bad', execute: () => Promise.reject(failure) };
      expect(
        await rejection(runForm(desk([call()], { guardrails: [broken] }), 'Hi', { ...options, session: other })),
      ).toBe(failure);
      expect(other.kinds).toBe('u fc fco m');
      expect(kindsOf(rawOf(getRunErrorDetails(failure)?.newItems))).toBe('fc fco m');
    });

    it('their spans are children of the agent, behind the closed turn; the agent tells of the trip [TRACE-T23, TRACE-T67, TRACE-N8]', async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      await rejection(runForm(desk(['done'], { guardrails: [judge('no', true, 'info')] }), 'Hi'));
      const of = (type: string) => recorder.spans.find((span) => span.type === type);
      expect(of('guardrail')).toMatchObject({
        parentId: of('agent')?.spanId,
        spanData: { name: 'no', triggered: true },
      });
      expect([of('turn')?.error, of('agent')?.error]).toEqual([
        undefined,
        { message: 'Guardrail tripwire triggered', data: { guardrail: 'no', type: 'output_guardrail' } },
      ]);
      expect(recorder.spans.map(({ type }) => type)).toEqual(['task', 'agent', 'turn', 'guardrail']);
    });
  });

  describe(`a tool output that an output guardrail blocks (${form})`, () => {
    const blocked = async (
      options: RunOptions,
      steps: ModelStep[] = [[text('let me see'), call()]],
      more: DeskOptions = {},
    ): Promise<{ error: unknown; session: PlainSession; agent: Agent }> => {
      const session = new PlainSession();
      const agent = desk(steps, {
        guardrails: [judge('fine', false, { saw: 'secret' }), judge('no_leaks', true, { saw: 'secret' })],
        behavior: 'stop_on_first_tool',
        ...more,
      });
      return { error: await rejection(runForm(agent, 'Hi', { session, ...options })), session, agent };
    };
    const own = 'Not shown.';

    it.each<[string, RunOptions['outputGuardrailBlockedMessage'], string]>([
      ['no text of the run', undefined, WITHHELD],
      ['a text', own, own],
      ['a function', ({ guardrailName, agent }) => `${guardrailName} of ${agent.name}`, 'no_leaks of A'],
      [
        'a function that throws',
        () => {
          throw new Error('x');
        },
        WITHHELD,
      ],
      ['a function that gives nothing', () => undefined, WITHHELD],
      ['a function that gives an empty text', () => '', WITHHELD],
      ['a function that gives a promise', (() => Promise.reject(new Error('later'))) as never, WITHHELD],
    ])(
      'is nowhere, with %s [RUN#26, RUN-218, RUN-922, RUN-923, RUN-924]',
      async (_, outputGuardrailBlockedMessage, shown) => {
        const { error, session } = await blocked({ outputGuardrailBlockedMessage });
        expect(error).toBeInstanceOf(OutputGuardrailTripwireTriggered);
        expect(session.items).toEqual([
          user('Hi'),
          {
            type: 'function_call',
            call_id: 'c1',
            name: 't',
            arguments: '{"id":"c1"}',
            status: 'completed',
          },
          { type: 'function_call_output', call_id: 'c1', output: shown },
        ]);
        expect((error as OutputGuardrailTripwireTriggered).guardrailResult).toMatchObject({
          agentOutput: shown,
          output: { tripwireTriggered: true, outputInfo: null },
        });
      },
    );

    it('leaves nothing of itself on the error: no run data, no state, no cause [RUN-925, RUN-1806]', async () => {
      const { error } = await blocked({});
      expect([getRunErrorDetails(error), getRunErrorState(error), (error as Error).cause]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      const { guardrailResult } = error as OutputGuardrailTripwireTriggered;
      const { agent: _, ...result } = guardrailResult;
      expect(`${String((error as Error).stack)}${JSON.stringify([error, result])}`).not.toContain('secret');
    });

    it('leaves accepted turns as they are [RUN-921, RUN-1605]', async () => {
      const session = new PlainSession();
      const effects: string[] = [];
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([call('look', 'c0'), call('t', 'c1')]),
        tools: [
          effectTool('look', effects, { result: () => 'first' }),
          effectTool('t', effects, { result: () => 'secret' }),
        ],
        toolUseBehavior: { stopAtToolNames: ['t'] },
        outputGuardrails: [judge('no', true)],
      });
      await rejection(runForm(agent, 'Hi', { session }));
      expect(session.items.map((item) => (item as { output?: unknown }).output)).toEqual([
        undefined,
        undefined,
        'first',
        undefined,
        WITHHELD,
      ]);
    });

    it('beside what cannot be rebuilt takes the whole response with it, and nothing of earlier turns [RUN#27, RUN-923, RUN-924]', async () => {
      const effects: string[] = [];
      const tools = [effectTool('look', effects), effectTool('t', effects, { result: () => 'secret' })];
      const session = new PlainSession();
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([
          [reasoning('first'), toolCall('look', { id: '0' }, { callId: 'c0' })],
          [reasoning('secret thought'), call()],
        ]),
        tools,
        toolUseBehavior: { stopAtToolNames: ['t'] },
        outputGuardrails: [judge('no', true)],
      });
      const error = await rejection(runForm(agent, 'Hi', { session }));
      expect(error).toBeInstanceOf(OutputGuardrailTripwireTriggered);
      expect(effects).toEqual(['look 0', 't c1']);
      expect(session.kinds).toBe('u reasoning fc fco');
      expect(JSON.stringify(session.items)).not.toContain('secret');
    });

    it('whose session write fails is owed without data; the guardrail stays the error [RUN-921, RUN-927]', async () => {
      configureLogging({ sink: () => {} });
      const session = new PlainSession();
      session.faults.push(undefined, 'before');
      const agent = desk([call()], { guardrails: [judge('no', true)], behavior: 'stop_on_first_tool' });
      expect(await rejection(runForm(agent, 'Hi', { session }))).toBeInstanceOf(OutputGuardrailTripwireTriggered);
      expect(session.kinds).toBe('u');
    });
  });

  describe(`a pass that ends the run with a tool output (${form})`, () => {
    it.each([false, true])(
      'is told of and stored after the verdict: trips %s [RUN#95, RUN-1306, STATE-219, STATE-220]',
      async (trips) => {
        const session = new PlainSession();
        const agent = desk([[call('t', 'c1'), call('g', 'c2')]], {
          guardrails: [judge('o', trips)],
          behavior: 'stop_on_first_tool',
        });
        const paused = await runForm(agent, 'Hi', { session });
        expect([paused.status, session.kinds]).toEqual(['interrupted', 'u']);
        const state = paused.toState();
        state.approve(state.interruptions[0] as never);
        const outcome = await runForm(agent, state, { session }).then(
          (result) => result.finalOutput,
          (error: unknown) => (error instanceof OutputGuardrailTripwireTriggered ? 'trip' : error),
        );
        expect(outcome).toBe(trips ? 'trip' : 'secret');
        expect(session.kinds).toBe('u fc fc fco fco');
        const outputs = session.items.flatMap((item) => (item as { output?: unknown }).output ?? []);
        expect(outputs).toEqual(trips ? [WITHHELD, WITHHELD] : ['secret', 'secret']);
      },
    );
  });
});

describe('what a stream shows of a blocked tool output', () => {
  it('is the rebuilt pair and nothing else, in each place where the turn stands [RUN-922, RUN-923, RUN-924, RUN-927]', async () => {
    const asked = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 't', arguments: '{"id":"c1"}' };
    const say = (id: string) => ({
      type: 'message',
      id,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'The secret is near.', annotations: [] }],
    });
    const session = new PlainSession();
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([exactly(say('m1'), { ...asked, note: 'secret' }, say('m2')), 'next']),
      tools: [effectTool('t', [], { result: () => 'secret' })],
      toolUseBehavior: 'stop_on_first_tool',
    });
    const stream = runStreamed(agent, 'Hi', { session, outputGuardrails: [judge('no', true)] });
    await rejection(readAll(stream));
    const pair = [asked, { type: 'function_call_output', call_id: 'c1', output: WITHHELD }];
    expect(rawOf(stream.newItems)).toEqual(pair);
    expect(stream.rawResponses.map(({ output }) => output)).toEqual([[asked]]);
    expect(session.items).toEqual([user('Hi'), ...pair]);
    expect(stream.toInputList()).toEqual([user('Hi'), ...pair]);
    const json = stream.toState().toJSON() as unknown as Record<string, { output: unknown; raw_item: unknown }[]>;
    expect(json['model_responses']?.map(({ output }) => output)).toEqual([[asked]]);
    expect(json['last_model_response']).toMatchObject({ output: [asked] });
    for (const list of ['generated_items', 'session_items'])
      expect(json[list]?.map(({ raw_item: raw }) => raw)).toEqual(pair);
    await run(agent, 'And now?', { session });
    expect((agent.model as ScriptedModel).calls[1]?.request.input).toEqual([user('Hi'), ...pair, user('And now?')]);
  });

  it('leaves everything of earlier turns as it was: items, responses, what guardrails said [RUN-921]', async () => {
    const guarded = (name: string, value: string, behavior: ToolGuardrailFunctionOutput['behavior']) =>
      tool({
        name,
        parameters: z.object({ id: z.string() }),
        execute: () => value,
        inputGuardrails: [
          { name: 'in', execute: () => ({ behavior: { type: 'allow' }, outputInfo: `in of ${name}` }) },
        ],
        outputGuardrails: [{ name: 'out', execute: () => ({ behavior, outputInfo: { saw: value } }) }],
      });
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([[text('Looking.'), call('look', 'c0')], call('peek', 'c1'), call('t', 'c2')]),
      tools: [
        guarded('look', 'first', { type: 'allow' }),
        guarded('peek', 'second', { type: 'reject_content', message: 'not shown' }),
        guarded('t', 'secret', { type: 'allow' }),
      ],
      toolUseBehavior: { stopAtToolNames: ['t'] },
    });
    const shown = (): unknown[][] => [
      [...stream.newItems],
      [...stream.rawResponses],
      [...stream.toolInputGuardrailResults],
      [...stream.toolOutputGuardrailResults],
    ];
    let before: unknown[][] = [];
    const stream = runStreamed(agent, 'Hi', {
      outputGuardrails: [judge('no', true)],
      hooks: { onTurnEnd: (_, { turn }) => void (turn === 2 && (before = shown())) },
    });
    await rejection(readAll(stream));
    expect(before.map((list) => list.length)).toEqual([5, 2, 2, 2]);
    const texts = JSON.stringify(before);
    const after = shown();
    before.forEach((list, index) => {
      const kept = after[index]?.slice(0, list.length);
      expect(kept).toEqual(list);
      expect(kept?.every((member, place) => member === list[place])).toBe(true);
    });
    expect(JSON.stringify(before)).toBe(texts);
    expect(after.map((list) => list.length)).toEqual([7, 3, 3, 3]);
    expect(stream.toolOutputGuardrailResults[2]?.output).toEqual({ behavior: { type: 'allow' }, outputInfo: WITHHELD });
  });

  it('beside reasoning is nothing of the response: items, raw response, state [RUN#27, RUN-921, RUN-923, RUN-924]', async () => {
    const steps = [
      [reasoning('first'), call('g', 'c0')],
      [reasoning('secret thought'), call()],
    ];
    const agent = desk(steps, { guardrails: [judge('no', true)], behavior: { stopAtToolNames: ['t'] } });
    const paused = runStreamed(agent, 'Hi');
    await readAll(paused);
    const state = paused.toState();
    state.reject(state.interruptions[0] as never, { message: 'not now' });
    const stream = runStreamed(agent, state);
    expect(await rejection(readAll(stream))).toBeInstanceOf(OutputGuardrailTripwireTriggered);
    expect(stream.newItems.map(({ type }) => type)).toEqual([
      'reasoning_item',
      'tool_call_item',
      'tool_approval_item',
      'tool_call_output_item',
    ]);
    expect(stream.rawResponses).toEqual(paused.rawResponses);
    expect(stream.toState().toString()).not.toContain('secret');
  });

  it('is without it: members, state and later events [RUN#26, RUN-925, RUN-926, RUN-927]', async () => {
    const records = logged({ level: 'debug' });
    const recorder = new InMemoryTraceProcessor();
    setTraceProcessors([recorder]);
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([call()]),
      tools: [
        tool({
          name: 't',
          parameters: z.object({ id: z.string() }),
          execute: () => ({ value: 'secret' }),
          customDataExtractor: () => ({ kept: 'secret' }),
          outputGuardrails: [
            { name: 'passes', execute: () => ({ behavior: { type: 'allow' }, outputInfo: 'saw secret' }) },
            {
              name: 'rewrites',
              execute: () => ({ behavior: { type: 'reject_content', message: 'still secret' }, outputInfo: 'secret' }),
            },
          ],
        }),
      ],
      toolUseBehavior: 'stop_on_first_tool',
      outputGuardrails: [judge('no', true, 'saw secret')],
    });
    const stream = runStreamed(agent, 'Hi');
    expect(stream.newItems).toEqual([]);
    await rejection(readAll(stream));
    expect(kindsOf(rawOf(stream.newItems))).toBe('fc fco');
    expect(
      JSON.stringify([stream.newItems, stream.rawResponses, stream.toState(), stream.toInputList()]),
    ).not.toContain('secret');
    expect(stream.rawResponses.map(({ output }) => kindsOf(output))).toEqual(['fc']);
    expect(stream.toState().toJSON()['last_processed_response']).toBeNull();
    expect(stream.toolOutputGuardrailResults).toEqual([
      { guardrail: { name: 'passes' }, output: { behavior: { type: 'allow' }, outputInfo: WITHHELD } },
      {
        guardrail: { name: 'rewrites' },
        output: { behavior: { type: 'reject_content', message: WITHHELD }, outputInfo: WITHHELD },
      },
    ]);
    expect(stream.outputGuardrailResults).toEqual([
      {
        guardrail: { name: 'no' },
        agent,
        agentOutput: WITHHELD,
        output: { tripwireTriggered: true, outputInfo: null },
      },
    ]);
    expect(JSON.stringify(records)).not.toContain('secret');
    const later = recorder.spans.filter(({ type }) => type === 'guardrail' || type === 'agent');
    expect(JSON.stringify(later.map((span) => [span.spanData, span.details, span.error]))).not.toContain('secret');
  });

  it.each([false, true])(
    'a resumed pass: item events after the verdict, none after a trip (%s) [RUN#95, RUN-1306]',
    async (trips) => {
      const agent = desk([[call('t', 'c1'), call('g', 'c2')]], {
        guardrails: [judge('o', trips)],
        behavior: 'stop_on_first_tool',
      });
      const paused = runStreamed(agent, 'Hi');
      for await (const _ of paused);
      const state = paused.toState();
      state.approve(state.interruptions[0] as never);
      const stream = runStreamed(agent, state);
      const names: string[] = [];
      try {
        for await (const event of stream) names.push(...namesOf([event]));
      } catch {
        // The trip.
      }
      expect(names).toEqual(trips ? ['agent A'] : ['agent A', 'tool_output']);
    },
  );

  it.each([false, true])(
    'a fresh turn that a tool ends: item events before the verdict, end hooks before them, the session behind it (trips: %s) [RUN-401, RUN-911, RUN-609]',
    async (trips) => {
      const log: string[] = [];
      const session = new PlainSession();
      const execute = async (): Promise<{ tripwireTriggered: boolean }> => {
        await idle();
        log.push(`judged, stored: ${session.kinds}`);
        return { tripwireTriggered: trips };
      };
      const agent = desk([call()], { guardrails: [{ name: 'o', execute }], behavior: 'stop_on_first_tool' });
      const hooks = { onAgentEnd: () => void log.push('onAgentEnd') };
      const stream = runStreamed(agent, 'Hi', { session, hooks });
      const read = async (): Promise<void> => {
        for await (const event of stream) log.push(...namesOf([event]));
      };
      await read().catch(() => undefined);
      expect(stream.error instanceof OutputGuardrailTripwireTriggered).toBe(trips);
      expect(log).toEqual(['agent A', 'R', 'tool_called', 'onAgentEnd', 'tool_output', 'judged, stored: u']);
      expect([stream.status, session.kinds]).toEqual([trips ? 'failed' : 'completed', 'u fc fco']);
    },
  );

  it('cancelled while output guardrails judge: they are told, nothing is stored [RUN-914, RUN-1412]', async () => {
    const session = new PlainSession();
    let told = false;
    let judging = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      judging = resolve;
    });
    const hangs: OutputGuardrail = {
      name: 'hangs',
      execute: ({ signal }) => {
        signal.addEventListener('abort', () => (told = true));
        judging();
        return new Promise(() => {});
      },
    };
    const stream = runStreamed(desk(['done'], { guardrails: [hangs] }), 'Hi', { session });
    await asked;
    stream.cancel();
    expect(await rejection(stream.completed)).toBeInstanceOf(RunAbortedError);
    expect([told, stream.status, stream.finalOutput, session.kinds]).toEqual([true, 'cancelled', undefined, 'u']);
  });
});

bothForms((runForm, form) => {
  describe.each(['no session', 'a session'])(`an abort while output guardrails judge (${form}, %s)`, (kept) => {
    it('leaves no final output, in the state neither: a resume asks them again [RUN-914, RUN-512]', async () => {
      const abort = new AbortController();
      const session = kept === 'a session' ? new PlainSession() : undefined;
      let asked = 0;
      const hangs: OutputGuardrail = {
        name: 'hangs',
        execute: () => {
          asked += 1;
          if (asked > 1) return { tripwireTriggered: false, outputInfo: undefined };
          abort.abort();
          return new Promise(() => {});
        },
      };
      const agent = desk(['done', 'done'], { guardrails: [hangs] });
      const error = await rejection(runForm(agent, 'Hi', { signal: abort.signal, ...(session && { session }) }));
      expect(error).toBeInstanceOf(RunAbortedError);
      expect(session?.kinds ?? 'u').toBe('u');
      const { state } = error as RunAbortedError;
      expect(state?.currentStep?.type).not.toBe('final_output');
      expect(JSON.stringify(state?.toJSON()['current_step'])).not.toContain('final_output');
      const result = await runForm(agent, state as never, session ? { session } : {});
      expect([result.status, result.finalOutput, asked]).toEqual(['completed', 'done', 2]);
      expect(session?.kinds ?? 'u m').toBe('u m');
    });
  });
});

describe('output guardrails in both forms', () => {
  const cases: readonly [string, () => AnyAgent][] = [
    ['accept', () => desk([call(), 'done'], { guardrails: [judge('o', false)] })],
    ['trip', () => desk([call(), 'done'], { guardrails: [judge('o', true)] })],
    ['throw', () => desk(['done'], { guardrails: [{ name: 'bad', execute: () => Promise.reject(new Error('x')) }] })],
    ['block', () => desk([call()], { guardrails: [judge('o', true)], behavior: 'stop_on_first_tool' })],
  ];
  it.each(cases)('%s: both forms agree in everything [RUN-002]', async (_, make) => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session }) => ({ agent: make(), input: 'Hi', options: { hooks, session: session('s') } }),
    });
    expect(plain.writes[0]).toEqual([user('Hi')]);
  });
});
