import { afterEach, describe, expect, it } from 'vitest';
import {
  Agent,
  getRunErrorDetails,
  getRunErrorState,
  ModelTimeoutError,
  run,
  Runner,
  runStreamed,
  UserError,
} from '../index.ts';
import type { Model, RunState, Span } from '../index.ts';
import { OpenAIResponsesModel } from '../openai/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { FakeOpenAI, InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import { effectTool, PlainSession, readAll, rejection } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const hangs = { delayMs: 60_000 };
const desk = (model: Model, timeoutMs = 40): Agent =>
  new Agent({ name: 'A', model, modelSettings: { timeoutMs }, tools: [effectTool('lookup', [])] });
const record = (): InMemoryTraceProcessor => {
  const recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
  return recorder;
};
const modelSpan = ({ spans }: InMemoryTraceProcessor): Span | undefined =>
  spans.find((span) => span.type === 'response' || span.type === 'generation');

describe('a model call that takes too long', () => {
  it('fails the run; it counts as a request, earlier turns are stored, and the state goes on [MODEL-840]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session }) => ({
        agent: desk(new ScriptedModel([toolCall('lookup', { id: '7' }), hangs])),
        input: 'go',
        options: { hooks, session: session('s') },
      }),
    });
    expect(plain.error).toBeInstanceOf(ModelTimeoutError);
    expect(plain.error).toMatchObject({ code: 'model_timeout', timeoutMs: 40 });
    expect(plain.log.slice(-2)).toEqual(['llmStart A - 3', 'runEnd failed']);
    expect(plain.writes).toHaveLength(2);
    const details = getRunErrorDetails(plain.error);
    expect([details?.newItems.length, details?.context.usage.requests]).toEqual([2, 2]);
    const session = new PlainSession();
    const agent = desk(new ScriptedModel([toolCall('lookup', {}), hangs, 'done']));
    const error = await rejection(run(agent, 'go', { session }));
    const result = await run(agent, getRunErrorState(error) as RunState, { session });
    expect([result.finalOutput, session.kinds]).toEqual(['done', 'u fc fco m']);
  });

  bothForms((runForm, form) => {
    it(`has its error on the span, with the text of the timeout (${form}) [TRACE-E8] [MODEL-844]`, async () => {
      const fake = new FakeOpenAI();
      const client = await fake.client({ maxRetries: 0 });
      for (const includesData of [true, false]) {
        fake.inject({ kind: 'hang' });
        const recorder = record();
        const agent = desk(new OpenAIResponsesModel('gpt-5.6-luna', { client }));
        const error = await rejection(runForm(agent, 'go', { traceIncludeSensitiveData: includesData }));
        expect(error).toBeInstanceOf(ModelTimeoutError);
        const text = includesData ? (error as Error).message : 'Error details are redacted.';
        const message = form === 'plain' ? 'Error getting response' : 'Error streaming response';
        expect(modelSpan(recorder)?.error).toEqual({ message, data: { error: text } });
      }
      const recorder = record();
      const error = await rejection(runForm(desk(new ScriptedModel([hangs], { trace: true })), 'go'));
      expect(modelSpan(recorder)?.error).toEqual({
        message: 'Error',
        data: { name: 'ModelTimeoutError', message: (error as Error).message },
      });
    });

    it(`has its error on the span also when the model does not stop (${form}) [MODEL-844]`, async () => {
      const recorder = record();
      const scripted = new ScriptedModel([hangs], { trace: true });
      // It never hears of the abort.
      const deaf: Model = {
        getResponse: ({ signal: _, ...request }) => scripted.getResponse(request),
        streamResponse: ({ signal: _, ...request }) => scripted.streamResponse(request),
      };
      const error = await rejection(runForm(desk(deaf), 'go'));
      expect(error).toBeInstanceOf(ModelTimeoutError);
      expect(modelSpan(recorder)).toMatchObject({ error: { data: { error: (error as Error).message } } });
      expect(modelSpan(recorder)?.endTimeMs).toBeDefined();
    });
  });

  it('is none for a reader who takes longer than the model may [MODEL-843] [MODEL#24]', async () => {
    const agent = desk(new ScriptedModel([{ output: 'one two three', chunk: 'word', delayMs: 0 }]), 150);
    const stream = runStreamed(agent, 'go');
    let events = 0;
    for await (const event of stream) {
      if (event.type === 'raw_response_event' && events++ < 3) await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect((await stream.completed).finalOutput).toBe('one two three');
  });

  it('is bounded per call: tools and other turns take the time that they take [MODEL-840]', async () => {
    const slow = { delayMs: 30 };
    const model = new ScriptedModel([
      { output: [toolCall('wait', {})], ...slow },
      { output: [toolCall('wait', {})], ...slow },
      { output: 'done', ...slow },
    ]);
    const wait = effectTool('wait', [], { result: () => new Promise((resolve) => setTimeout(resolve, 120, 'ok')) });
    const agent = new Agent({ name: 'A', model, tools: [wait] });
    const result = await run(agent, 'go', { modelSettings: { timeoutMs: 100 } });
    expect(result.finalOutput).toBe('done');
  });
});

it('delivers what a stream gave before its time was over as long as it is read [MODEL-840]', async () => {
  const steps = [{ output: 'one two three four', chunk: 'word' as const, delayMs: 0 }];
  const model = new ScriptedModel(steps);
  const halts: Model = {
    getResponse: (request) => model.getResponse(request),
    async *streamResponse(request) {
      for await (const event of model.streamResponse(request)) {
        yield event;
        if (event.type === 'response.output_text.delta') await new Promise(() => {});
      }
    },
  };
  // Long enough for its first words on a machine that is busy with other things.
  const stream = runStreamed(desk(halts, 400), 'go');
  const types: string[] = [];
  const error = await rejection(
    (async () => {
      for await (const event of stream) if (event.type === 'raw_response_event') types.push(event.data.type);
    })(),
  );
  expect([error instanceof ModelTimeoutError, types.at(-1)]).toEqual([true, 'response.output_text.delta']);
  expect(stream.status).toBe('failed');
});

it('`timeoutMs` is a finite number above 0, looked at when settings are given; that of the run wins, null clears it [MODEL-203, 204, 207]', async () => {
  for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never]) {
    expect(() => new Agent({ name: 'A', modelSettings: { timeoutMs } })).toThrow(UserError);
    expect(() => new Runner({ modelSettings: { timeoutMs } })).toThrow(
      'timeoutMs must be a finite number above 0 or null',
    );
    expect(() => runStreamed(new Agent({ name: 'A' }), 'go', { modelSettings: { timeoutMs } })).toThrow(UserError);
  }
  const slow = { output: 'done', delayMs: 60 };
  const result = await run(desk(new ScriptedModel([slow]), 20), 'go', { modelSettings: { timeoutMs: null } });
  expect(result.finalOutput).toBe('done');
  await expect(
    run(desk(new ScriptedModel([slow]), 60_000), 'go', { modelSettings: { timeoutMs: 20 } }),
  ).rejects.toMatchObject({ timeoutMs: 20 });
});

it('tells a reader who comes after a failure or an end was delivered that there is no more [RUN-1421]', async () => {
  const failed = runStreamed(desk(new ScriptedModel([hangs])), 'go');
  expect(await rejection(readAll(failed))).toBeInstanceOf(ModelTimeoutError);
  expect(await readAll(failed)).toEqual([]);
  const ended = runStreamed(desk(new ScriptedModel([{ output: 'done', delayMs: 0 }]), 60_000), 'go');
  expect(await readAll(ended)).not.toEqual([]);
  expect(await readAll(ended)).toEqual([]);
});
