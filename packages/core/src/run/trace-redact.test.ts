import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  createSpan,
  createTrace,
  defineModel,
  getCurrentSpan,
  run,
  tool,
  toUsage,
  withSpan,
} from '../index.ts';
import type { Model, RunOptions, RunResult, Span } from '../index.ts';
import { OpenAIResponsesModel } from '../openai/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { FakeOpenAI, InMemoryTraceProcessor, refusal, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { configureTracing, setTraceProcessors } from '../tracing.ts';
import type { RedactField } from '../tracing.ts';

/** Stands in everything that somebody said. */
const MARK = 'MARK';

let recorder: InMemoryTraceProcessor;
/** All spans as they stood whenever a processor was told of one. */
let seen: string[];
let fields: string[];

beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  seen = [];
  fields = [];
  const live: Span[] = [];
  const look = (): void => {
    for (const span of live) seen.push(JSON.stringify([span.toJSON(), span.details, span.spanData, span.error]));
  };
  setTraceProcessors([
    recorder,
    {
      onSpanStart: (span) => {
        live.push(span);
        look();
      },
      onSpanEnd: look,
    },
  ]);
});
afterEach(() => resetDefaults());

const masked = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll(MARK, 'masked')) as unknown;
/** Notes each call, as `type.field agent/tool`. */
const masking = ({ spanType, field, agentName = '', toolName }: RedactField, value: unknown): unknown => {
  fields.push(`${spanType}.${field} ${agentName}${toolName === undefined ? '' : `/${toolName}`}`);
  return masked(value);
};

const lookup = (failureErrorFunction?: null | (() => string), execute: () => unknown = () => `${MARK} paid`) =>
  tool({ name: 'lookup', parameters: z.object({ id: z.string() }), failureErrorFunction, execute });
const gated = () =>
  tool({ name: 'refund', parameters: z.object({ id: z.string() }), needsApproval: true, execute: () => 'refunded' });
const fails = (): never => {
  throw new Error(`${MARK} boom`);
};
const call = toolCall('lookup', { id: MARK }, { callId: 'c1' });
const desk = (steps: ModelStep[], ...tools: ReturnType<typeof lookup>[]): Agent =>
  new Agent({
    name: 'Triage',
    instructions: `${MARK} instructions`,
    model: new ScriptedModel(steps, { trace: true }),
    modelSettings: { metadata: { customer: MARK } },
    tools,
  });

type Go = (agent: Agent<unknown, unknown>, input: string | RunResult, options: RunOptions) => Promise<RunResult>;
const generation = ['generation.input Triage', 'generation.modelConfig.metadata Triage', 'generation.output Triage'];
const failedGeneration = [...generation.slice(0, 2), 'generation.error Triage'];
const begin = 'agent.input Triage';
const end = 'agent.finalOutput Triage';
const used = ['function.input Triage/lookup', 'function.output Triage/lookup'];

/** What each kind of run sends through the redaction, in this order. */
const scenarios: Record<
  string,
  { readonly play: (go: Go, options: RunOptions) => Promise<unknown>; fields: string[] }
> = {
  'a run with a tool': {
    play: (go, options) => go(desk([call, `${MARK} done`], lookup()), MARK, options),
    fields: [begin, ...generation, ...used, ...generation, end],
  },
  'a failure that the tool answers': {
    play: (go, options) =>
      go(
        desk(
          [call, 'done'],
          lookup(() => `${MARK} sorry`, fails),
        ),
        MARK,
        options,
      ),
    fields: [begin, ...generation, used[0] ?? '', 'function.error Triage/lookup', used[1] ?? '', ...generation, end],
  },
  'a failure of the run': {
    play: (go, options) => go(desk([call], lookup(null, fails)), MARK, options),
    fields: [begin, ...generation, used[0] ?? '', 'function.error Triage/lookup', 'agent.error Triage'],
  },
  'a rejection': {
    play: async (go, options) => {
      const agent = desk([toolCall('refund', { id: MARK }), 'done'], gated());
      const state = (await go(agent, MARK, options)).toState();
      for (const item of state.interruptions) state.reject(item, { message: `${MARK} no` });
      fields.length = 0;
      return await run(agent, state, options as never);
    },
    fields: [
      'function.input Triage/refund',
      'function.output Triage/refund',
      'function.error Triage/refund',
      begin,
      ...generation,
      end,
    ],
  },
  'a failing model': {
    play: (go, options) => go(desk([new Error(`${MARK} down`)]), MARK, options),
    fields: [begin, ...failedGeneration, 'agent.error Triage'],
  },
  'a refusal': {
    play: (go, options) => go(desk([[refusal(`${MARK} no`)]]), MARK, options),
    fields: [begin, ...generation, 'agent.error Triage'],
  },
  'an output that does not fit': {
    play: (go, options) => {
      configureLogging({ dontLogModelData: false });
      const model = new ScriptedModel([text(`{"n": "${MARK}"}`)], { trace: true });
      const outputType = z.object({ n: z.number() });
      return go(new Agent<unknown, unknown>({ name: 'Triage', model, outputType }), MARK, options);
    },
    fields: [begin, 'generation.input Triage', 'generation.output Triage', 'turn.error Triage'],
  },
  'a failing filter': {
    play: (go, options) => go(desk(['x']), MARK, { ...options, callModelInputFilter: fails }),
    fields: [begin, 'turn.error Triage', 'agent.error Triage'],
  },
  'spans of a user inside a tool': {
    play: (go, options) => {
      const execute = (): unknown =>
        withSpan({ type: 'custom', name: 'load', data: { row: MARK } }, () => {
          throw Object.assign(new Error(`${MARK} lost`), { data: { row: MARK } });
        });
      return go(
        desk(
          [call, 'done'],
          lookup(() => 'sorry', execute),
        ),
        MARK,
        options,
      );
    },
    fields: [
      begin,
      ...generation,
      used[0] ?? '',
      'custom.data Triage/lookup',
      'custom.error Triage/lookup',
      'custom.error.data Triage/lookup',
      'custom.data Triage/lookup',
      'function.error Triage/lookup',
      used[1] ?? '',
      ...generation,
      end,
    ],
  },
};

bothForms((runForm, form) => {
  describe(`traceRedact (${form})`, () => {
    const go: Go = async (agent, input, options) => (await runForm(agent, input as string, options)) as RunResult;

    it.each(Object.keys(scenarios))(
      'sees every sensitive field of %s once, and nobody sees it before [TRACE-E15, E16]',
      async (name) => {
        const scenario = scenarios[name];
        await scenario?.play(go, { traceRedact: masking }).catch(() => undefined);
        expect(fields).toEqual(scenario?.fields);
        expect(seen.filter((record) => record.includes(MARK))).toEqual([]);
        expect(seen.some((record) => record.includes('masked'))).toBe(true);
      },
    );

    it.each(Object.keys(scenarios))(
      'leaves nothing of %s where it drops everything, or throws [TRACE-E15]',
      async (name) => {
        const lines: string[] = [];
        configureLogging({ sink: ({ message, data }) => lines.push(`${message} ${JSON.stringify(data)}`) });
        await scenarios[name]?.play(go, { traceRedact: () => undefined }).catch(() => undefined);
        const dropped = recorder.tree().length;
        await scenarios[name]?.play(go, { traceRedact: fails }).catch(() => undefined);
        expect(recorder.tree().length).toBeGreaterThan(dropped);
        expect(seen.filter((record) => record.includes(MARK))).toEqual([]);
        const failures = lines.filter((line) => line.startsWith('traceRedact failed'));
        // Once per run, without its text.
        expect(failures).toEqual(Array(name === 'a rejection' ? 2 : 1).fill('traceRedact failed (Error). undefined'));
      },
    );

    it('sees request and response of the Responses API, and what the service said of its failure [TRACE-E15]', async () => {
      const fake = new FakeOpenAI({ steps: [`${MARK} hi`] });
      const client = await fake.client({ maxRetries: 0 });
      const agent = new Agent({ name: 'Triage', model: new OpenAIResponsesModel('gpt-5.6-luna', { client }) });
      await runForm(agent, MARK, { traceRedact: masking });
      expect(fields).toEqual([begin, 'response.input Triage', 'response.response Triage', end]);
      const span = recorder.spans.find((each) => each.type === 'response');
      expect(span?.spanData).toMatchObject({ input: [{ content: 'masked' }], response: { id: expect.any(String) } });
      fields.length = 0;
      fake.inject({ kind: 'status', status: 400, body: { error: { message: `${MARK} is bad` } } });
      await runForm(agent, MARK, { traceRedact: masking }).catch(() => undefined);
      expect(fields).toEqual([begin, 'response.input Triage', 'response.error Triage', 'agent.error Triage']);
      expect(seen.filter((record) => record.includes(MARK))).toEqual([]);
      fields.length = 0;
      const drops = {
        traceRedact: ({ field }: RedactField, value: unknown) => (field === 'response' ? undefined : value),
      };
      await runForm(agent, 'again', drops);
      expect(recorder.spans.findLast((each) => each.type === 'response')?.toJSON()).toMatchObject({
        span_data: { response_id: null, usage: { requests: 1 } },
      });
    });

    it('has nothing to see without sensitive data but what users put on spans of their own [TRACE-E11, E16]', async () => {
      for (const name of ['a run with a tool', 'a failure of the run', 'spans of a user inside a tool'])
        await scenarios[name]
          ?.play(go, { traceRedact: masking, traceIncludeSensitiveData: false })
          .catch(() => undefined);
      expect([...new Set(fields)]).toEqual(['custom.data Triage/lookup']);
      expect(seen.filter((record) => record.includes(MARK))).toEqual([]);
    });

    it('is asked of spans that a model or tool made itself, whatever their type [TRACE-E15]', async () => {
      const answer: Model['getResponse'] = async ({ traceParent }) => {
        const span = createSpan({ type: 'generation', model: 'own', input: [MARK] }, { parent: traceParent }).start();
        span.spanData.output = [MARK];
        span.finish();
        return { output: [text('hi')], usage: toUsage() };
      };
      const agent = new Agent({ name: 'Triage', model: defineModel({ getResponse: answer }) });
      await runForm(agent, MARK, { traceRedact: masking });
      expect(fields).toEqual([begin, 'generation.input Triage', 'generation.output Triage', end]);
      expect(seen.filter((record) => record.includes(MARK))).toEqual([]);
    });

    it('is asked of every member of a span type of the user [TRACE-E16]', async () => {
      const execute = (): string => {
        createSpan({ type: 'retrieval', query: MARK, rows: 3 } as never)
          .start()
          .finish();
        return 'ok';
      };
      await runForm(desk([call, 'done'], lookup(undefined, execute)), 'go', { traceRedact: masking });
      expect(fields).toContain('retrieval.query Triage/lookup');
      expect(seen.some((record) => record.includes('"query":"masked"'))).toBe(true);
    });

    it('keeps payloads of models from spans that are not ours, which it could not reach [TRACE-E15]', async () => {
      const spans: Record<string, unknown>[] = [];
      const trace = createTrace('ours');
      configureTracing({
        provider: {
          createTrace: () => trace,
          createSpan: (init, options) => foreignSpan(init, options?.parent, spans) as never,
        },
      });
      await runForm(desk([call, `${MARK} done`], lookup()), MARK, { traceRedact: masking });
      expect(JSON.stringify(spans)).not.toContain(MARK);
      expect(spans.find(({ type }) => type === 'function')).toMatchObject({
        spanData: { input: '{"id":"masked"}', output: 'masked paid' },
      });
      expect(spans.find(({ type }) => type === 'generation')).not.toHaveProperty('spanData.input');
    });
  });
});

/** A span of another maker. */
function foreignSpan(init: object, parent: unknown, spans: Record<string, unknown>[]): unknown {
  const { type, ...spanData } = init as { type: string };
  const trace = (parent as { trace?: unknown }).trace ?? parent;
  const span = {
    type,
    spanId: `span_${spans.length}`,
    spanData,
    details: {},
    parent,
    trace,
    isNoop: false,
    start: () => span,
    finish: () => {},
    setError: () => {},
  };
  spans.push({ type, spanData });
  return span;
}

it('knows the agent and the tool that a span belongs to', async () => {
  const names: RedactField[] = [];
  const execute = (): string => {
    createSpan({ type: 'custom', name: 'c' }, { parent: getCurrentSpan() }).start().finish();
    return 'ok';
  };
  await run(desk([call, 'done'], lookup(undefined, execute)), 'go', {
    traceRedact: (field, value) => (names.push(field), value),
  });
  expect(names.filter(({ spanType }) => spanType === 'custom')).toEqual([
    { spanType: 'custom', field: 'data', agentName: 'Triage', toolName: 'lookup' },
    { spanType: 'custom', field: 'data', agentName: 'Triage', toolName: 'lookup' },
  ]);
});
