import { env } from 'node:process';
import { context, metrics as metricsApi, trace as api } from '@opentelemetry/api';
import type { Attributes, TracerProvider } from '@opentelemetry/api';
import { AlwaysOffSampler, SamplingDecision } from '@opentelemetry/sdk-trace-base';
import { Agent, configureLogging, run, tool } from '@agents/core';
import type { Span, Trace } from '@agents/core/tracing';
import { bothForms, resetDefaults, toolCall, traceProcessorContract } from '@agents/core/testing';
import {
  createSpan,
  createTrace,
  flushTraces,
  setTraceProcessors,
  shutdownTracing,
  withTrace,
} from '@agents/core/tracing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { enableOTelTracing, OTelTraceProcessor } from '../src/index.ts';
import type { OTelTraceOptions } from '../src/index.ts';
import { followContexts, scripted, settled, Telemetry } from './kit.ts';

let otel: Telemetry;
let restore: () => void;
let logs: string[];
const CAPTURE = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

beforeEach(() => {
  resetDefaults();
  logs = [];
  configureLogging({ level: 'info', sink: ({ message }) => void logs.push(message) });
  restore = followContexts();
  otel = new Telemetry().use();
});
afterEach(async () => {
  restore();
  resetDefaults();
  delete env[CAPTURE];
  await otel.close();
});

const lookup = (execute: (id: string) => unknown = () => 'paid'): ReturnType<typeof tool> =>
  tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: ({ id }) => execute(id) }) as never;
const desk = (...more: Parameters<typeof scripted>): Agent =>
  new Agent({
    name: 'Desk',
    model: scripted(toolCall('lookup', { id: '7' }, { callId: 'call_1' }), ...more, 'done'),
    tools: [lookup()],
  });

describe('the contract of trace processors', () => {
  // A hundred thousand spans: those of the SDK would take longer than everything else here.
  const make = (): OTelTraceProcessor =>
    new OTelTraceProcessor({ tracerProvider: lightProvider(), metrics: false, captureContent: true });
  it.for(traceProcessorContract(make))('$title [TRACE-P6, O12, O14]', async (contractCase) => {
    await expect(contractCase.run()).resolves.toBeUndefined();
  });
});

bothForms((runForm, form) => {
  describe(`mapAttributes (${form})`, () => {
    it('renames, removes and adds, at the start of a span too [TRACE-O46, T74]', async () => {
      const atStart: Attributes[] = [];
      otel = new Telemetry({
        sampler: {
          shouldSample: (_context, _traceId, _name, _kind, attributes) => {
            atStart.push(attributes);
            return { decision: SamplingDecision.RECORD_AND_SAMPLED };
          },
          toString: () => 'seen',
        },
        mapAttributes: ({ 'gen_ai.agent.name': name, ...others }, item) => ({
          ...others,
          'vendor.agent': name,
          'gen_ai.tool.description': undefined,
          'vendor.type': item.type,
        }),
      }).use();
      await runForm(desk(), 'go');
      const attributes = settled(otel.span('execute_tool lookup').attributes);
      expect(attributes).toMatchObject({ 'vendor.agent': 'Desk', 'vendor.type': 'function' });
      expect(attributes).not.toHaveProperty('gen_ai.agent.name');
      expect(atStart.map((each) => [each['vendor.type'], 'gen_ai.agent.name' in each])).toContainEqual([
        'agent',
        false,
      ]);
      expect(atStart).toHaveLength(otel.spans.length);
    });

    it('that throws costs the content, and one line of the log [TRACE-O46, T74]', async () => {
      otel = new Telemetry({
        captureContent: true,
        mapAttributes: () => {
          throw new Error('MARK');
        },
      }).use();
      const { finalOutput } = await runForm(desk(), 'go');
      expect(finalOutput).toBe('done');
      const attributes = otel.span('execute_tool lookup').attributes;
      expect(attributes['gen_ai.tool.call.id']).toBe('call_1');
      expect(
        otel.spans.flatMap((span) =>
          Object.keys(span.attributes).filter((name) => /messages|arguments|result|definitions/.test(name)),
        ),
      ).toEqual([]);
      expect(logs.filter((line) => line.includes('mapAttributes'))).toHaveLength(1);
      expect(logs.join()).not.toContain('MARK');
    });
  });

  describe(`what nobody sampled (${form})`, () => {
    it('has no spans and no conversions; context and metrics are there [TRACE-O10, T56]', async () => {
      otel = new Telemetry({ sampler: new AlwaysOffSampler(), captureContent: true }).use();
      let flags: number | undefined;
      const watched = new Agent({
        name: 'Desk',
        model: scripted(toolCall('lookup', { id: '7' }), 'done'),
        tools: [
          lookup(() => {
            flags = api.getActiveSpan()?.spanContext().traceFlags;
            // Would throw if it was made JSON.
            return { toJSON: () => expect.unreachable() };
          }),
        ],
      });
      await runForm(watched, 'go', { traceRedact: (_field, value) => value });
      expect([otel.spans.length, flags]).toEqual([0, 0]);
      const all = await otel.metrics();
      expect(all.get('gen_ai.client.inference.duration')?.dataPoints).toHaveLength(1);
      expect(all.get('gen_ai.execute_tool.duration')?.dataPoints).toHaveLength(1);
    });
  });

  describe(`metrics (${form})`, () => {
    it('count tokens once, calls per agent, and time everything [TRACE-O34, O35, O36]', async () => {
      await runForm(desk(), 'go', { groupId: 'g' });
      const all = await otel.metrics();
      expect([...all.keys()].toSorted()).toEqual(
        [
          'gen_ai.client.inference.duration',
          'gen_ai.client.inference.operation.input_tokens',
          'gen_ai.client.inference.operation.output_tokens',
          ...(form === 'streamed' ? ['gen_ai.client.inference.time_to_first_chunk'] : []),
          'gen_ai.client.inference.usage.cache_read.input_tokens',
          'gen_ai.client.inference.usage.cache_write.input_tokens',
          'gen_ai.client.inference.usage.input_tokens',
          'gen_ai.client.inference.usage.output_tokens',
          'gen_ai.client.inference.usage.reasoning.output_tokens',
          'gen_ai.execute_tool.duration',
          'gen_ai.invoke_agent.duration',
          'gen_ai.invoke_agent.inference_calls',
          'gen_ai.invoke_agent.tool_calls',
        ].toSorted(),
      );
      const points = (name: string): unknown =>
        all
          .get(name)
          ?.dataPoints.map(({ attributes, value }) => [
            attributes,
            typeof value === 'number' ? value : [value.count, value.sum],
          ]);
      const model = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'scripted' };
      expect(points('gen_ai.client.inference.usage.input_tokens')).toEqual([
        [{ ...model, 'gen_ai.token.modality': 'unknown' }, 160],
      ]);
      expect(points('gen_ai.client.inference.operation.output_tokens')).toEqual([[model, [2, 24]]]);
      expect(points('gen_ai.invoke_agent.inference_calls')).toEqual([
        [{ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Desk' }, [1, 2]],
      ]);
      expect(points('gen_ai.invoke_agent.tool_calls')).toMatchObject([[{}, [1, 1]]]);
      expect(points('gen_ai.execute_tool.duration')).toMatchObject([
        [{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'lookup' }, [1, expect.any(Number)]],
      ]);
      expect(points('gen_ai.invoke_agent.duration')).toMatchObject([
        [{ 'gen_ai.operation.name': 'invoke_agent' }, [1, expect.any(Number)]],
        [{ 'gen_ai.operation.name': 'invoke_workflow' }, [1, expect.any(Number)]],
      ]);
      const duration = all.get('gen_ai.client.inference.duration');
      expect(duration?.descriptor.unit).toBe('s');
      expect(JSON.stringify(duration?.dataPoints)).toContain(
        '"boundaries":[0.01,0.02,0.04,0.08,0.16,0.32,0.64,1.28,2.56,5.12,10.24,20.48,40.96,81.92]',
      );
      expect(
        JSON.stringify([...all.values()].map(({ dataPoints }) => dataPoints.map(({ attributes }) => attributes))),
      ).not.toMatch(/trace_|span_|"g"/);
    });

    it('of a failed call have its type, and no tokens [TRACE-O35]', async () => {
      await expect(
        runForm(new Agent({ name: 'Desk', model: scripted(new RangeError('down')) }), 'go'),
      ).rejects.toBeInstanceOf(Error);
      const all = await otel.metrics();
      expect(all.get('gen_ai.client.inference.duration')?.dataPoints[0]?.attributes).toMatchObject({
        'error.type': 'RangeError',
      });
      expect(all.get('gen_ai.client.inference.usage.input_tokens')?.dataPoints[0]?.value).toBe(0);
    });
  });
});

describe('metrics', () => {
  it('know a thousand names of agents; more are one [TRACE-O34]', async () => {
    otel = new Telemetry({ tracerProvider: api.getTracerProvider() }).use();
    withTrace('t', () => {
      for (let i = 0; i < 1100; i++)
        createSpan({ type: 'function', name: `tool_${i}` })
          .start()
          .finish();
    });
    const points = (await otel.metrics()).get('gen_ai.execute_tool.duration')?.dataPoints ?? [];
    const names = points.map(({ attributes }) => attributes['gen_ai.tool.name']);
    expect([names.length, names.includes('_other'), names.includes('tool_999')]).toEqual([1001, true, true]);
  });

  it('can be switched off', async () => {
    otel = new Telemetry({ metrics: false }).use();
    await run(desk(), 'go');
    expect((await otel.metrics()).size).toBe(0);
  });
});

describe('without an SDK', () => {
  it('no attribute is computed and nothing is kept [TRACE-O11]', async () => {
    const processor = new OTelTraceProcessor({ captureContent: true, mapAttributes: () => expect.unreachable() });
    /** Whoever reads what a span is about fails. */
    const closed = (item: object): never =>
      new Proxy(item, {
        get: (target, name) => {
          if (name === 'parent' || name === 'trace' || name === 'type') return Reflect.get(target, name) as unknown;
          throw new Error(`${String(name)} was read`);
        },
      }) as never;
    const trace = closed({ type: 'trace' });
    const span = closed({ type: 'function', parent: trace, trace });
    processor.onTraceStart(trace);
    processor.onSpanStart(span);
    expect(processor.bind(span, () => 7)).toBe(7);
    processor.onSpanEnd(span);
    processor.onTraceEnd(trace);
    setTraceProcessors([processor]);
    const { finalOutput } = await run(desk(), 'go');
    expect(finalOutput).toBe('done');
  });

  it('spans come as soon as one is registered, without another set-up [TRACE-O11]', async () => {
    const processor = new OTelTraceProcessor();
    setTraceProcessors([processor]);
    await run(desk(), 'go');
    api.setGlobalTracerProvider(otel.tracers);
    try {
      await run(desk(), 'go');
      expect(otel.named('invoke_workflow Agent workflow')).toHaveLength(1);
    } finally {
      api.disable();
      metricsApi.disable();
    }
  });
});

describe('content', () => {
  it.each([
    [undefined, false],
    ['', false],
    [' ', false],
    ['NO_CONTENT', false],
    ['no_content', false],
    ['False', false],
    ['true', true],
    ['SPAN_ONLY', true],
  ])('by the environment %j: %s [TRACE-O26]', async (value, shown) => {
    if (value !== undefined) env[CAPTURE] = value;
    await run(desk(), 'MARK');
    expect(JSON.stringify(otel.span('chat scripted', 0).attributes).includes('MARK')).toBe(shown);
  });

  it('by the option, whatever the environment says; the environment is read when first needed [TRACE-O26]', async () => {
    otel = new Telemetry({ captureContent: false }).use();
    env[CAPTURE] = 'true';
    await run(desk(), 'MARK');
    expect(JSON.stringify(otel.spans.map(({ attributes }) => attributes))).not.toContain('MARK');
  });
});

describe('open spans', () => {
  it('that nobody ends are bounded: the oldest end as leaked, the rest at the shutdown [TRACE-O12, O13]', async () => {
    otel = new Telemetry({ maxOpenItems: 3 }).use();
    const trace = createTrace('t').start();
    for (const name of ['a', 'b', 'c', 'd']) createSpan({ type: 'custom', name }, { parent: trace }).start();
    expect(otel.spans.map((span) => [span.name, span.attributes['agents.leaked']])).toEqual([
      ['invoke_workflow t', true],
      ['a', true],
    ]);
    await shutdownTracing();
    expect(otel.spans.slice(2).map((span) => [span.name, span.attributes['error.type']])).toEqual([
      ['b', 'shutdown'],
      ['c', 'shutdown'],
      ['d', 'shutdown'],
    ]);
    // The provider is its owner's.
    otel.tracers.getTracer('application').startSpan('still there').end();
    expect(otel.spans.at(-1)?.name).toBe('still there');
  });

  it('twenty thousand of which some never end leave no more than the limit [TRACE-O12, T61]', () => {
    const open = new Set<object>();
    const provider = lightProvider(open);
    const processor = new OTelTraceProcessor({ tracerProvider: provider, metrics: false, maxOpenItems: 100 });
    const spans = 20_000;
    const trace = { type: 'trace', traceId: 't', name: 't', metadata: {} } as unknown as Trace;
    processor.onTraceStart(trace);
    for (let i = 0; i < spans; i++) {
      const span = {
        type: 'custom',
        spanId: `s${i}`,
        trace,
        parent: trace,
        spanData: { name: 'x' },
        details: {},
      } as unknown as Span;
      processor.onSpanStart(span);
      if (i % 1000 !== 0) processor.onSpanEnd(span);
    }
    expect(open.size).toBeLessThanOrEqual(100);
  });
});

/** Spans that hold nothing; `open` gets those that have not ended. */
function lightProvider(open: Set<object> = new Set()): TracerProvider {
  const startSpan = (): never => {
    const span = {
      end: () => void open.delete(span),
      isRecording: () => true,
      setAttribute: () => {},
      setAttributes: () => {},
      setStatus: () => {},
      recordException: () => {},
      updateName: () => {},
      spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }),
    };
    open.add(span);
    return span as never;
  };
  return { getTracer: () => ({ startSpan, startActiveSpan: () => expect.unreachable() }) };
}

describe('an SDK that fails', () => {
  it('changes no run; what is inside goes under what is around; it is logged once [TRACE-O43]', async () => {
    const tracer = otel.tracers.getTracer('t');
    const provider: TracerProvider = {
      getTracer: () => ({
        startSpan: (name, ...others) => {
          if (name.startsWith('execute_tool')) throw new Error('MARK');
          return tracer.startSpan(name, ...others);
        },
        startActiveSpan: () => expect.unreachable(),
      }),
    };
    setTraceProcessors([new OTelTraceProcessor({ tracerProvider: provider, metrics: false })]);
    const agent = desk();
    const { finalOutput } = await run(agent, 'go');
    expect(finalOutput).toBe('done');
    expect(otel.tree()).toBe(
      'invoke_workflow Agent workflow\n  invoke_agent Desk\n    chat scripted\n    chat scripted',
    );
    expect(logs.filter((line) => line.includes('onSpanStart'))).toHaveLength(1);
  });
});

describe('options', () => {
  it.each<[OTelTraceOptions, string]>([
    [
      { captureContents: true } as never,
      "Unknown option 'captureContents' of OTelTraceProcessor. Did you mean 'captureContent'?",
    ],
    [{ maxOpenItems: 0 }, "Option 'maxOpenItems' of OTelTraceProcessor must be an integer of at least 1, not 0."],
    [
      { modelSpans: 'none' as never },
      "Option 'modelSpans' of OTelTraceProcessor must be 'emit' or 'external', not a string.",
    ],
  ])('that are wrong are refused: %j', (options, message) => {
    expect(() => new OTelTraceProcessor(options)).toThrow(message);
  });

  it('enableOTelTracing adds one processor, until the shutdown', async () => {
    setTraceProcessors([]);
    const first = enableOTelTracing({ tracerProvider: otel.tracers, metrics: false });
    expect(enableOTelTracing()).toBe(first);
    await run(desk(), 'go');
    await flushTraces();
    expect(otel.named('invoke_workflow Agent workflow')).toHaveLength(1);
    await shutdownTracing();
    const second = enableOTelTracing({ tracerProvider: otel.tracers, metrics: false });
    expect(second).not.toBe(first);
    await run(desk(), 'go');
    expect(otel.named('invoke_workflow Agent workflow')).toHaveLength(2);
    await shutdownTracing();
    expect(context.active()).toBeDefined();
  });
});
