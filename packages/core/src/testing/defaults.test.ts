import { afterEach, expect, it, vi } from 'vitest';
import {
  Agent,
  addTraceProcessor,
  configureLogging,
  createTrace,
  getCurrentSpan,
  getLogger,
  run,
  setDefaultModelProvider,
  setTracingDisabled,
  setTraceProcessors,
  withTrace,
} from '../index.ts';
import type { LogRecord } from '../index.ts';
import { setOpenAIDefaults } from '../openai/index.ts';
import { configureTracing, createSpan, getTraceProvider, registerSpanType, shutdownTracing } from '../tracing.ts';
import { bothForms, FakeOpenAI, InMemoryTraceProcessor, resetDefaults, ScriptedModel, toolCall } from './index.ts';
import { effectTool } from '../../test/run-kit.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  resetDefaults();
});

const hi = (): Agent => new Agent({ name: 'A', model: new ScriptedModel(['hi'], { trace: true }) });

it('resetDefaults undoes every setting of the process: a run is as in a fresh one [MODEL-317] [MODEL#95]', async () => {
  vi.stubEnv('OPENAI_API_KEY', '');
  vi.stubEnv('OPENAI_BASE_URL', '');
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const records: LogRecord[] = [];
  const events: string[] = [];
  const fake = new FakeOpenAI({ steps: ['from the default client'] });
  const provider = { getModel: () => new ScriptedModel(['from the default provider']) };

  configureLogging({
    level: 'debug',
    sink: (record) => void records.push(record),
    dontLogModelData: false,
    dontLogToolData: false,
  });
  setOpenAIDefaults({ client: await fake.client(), apiKey: 'sk-test' });
  expect((await run(new Agent({ name: 'A', model: 'm' }), 'go')).finalOutput).toBe('from the default client');
  setDefaultModelProvider(provider);
  expect((await run(new Agent({ name: 'A', model: 'm' }), 'go')).finalOutput).toBe('from the default provider');
  const remove = addTraceProcessor({ onTraceStart: () => void events.push('trace') });
  setTraceProcessors([new InMemoryTraceProcessor(), { onTraceStart: () => void events.push('trace') }]);
  configureTracing({
    ids: { traceId: () => 'trace_own', spanId: () => 'span_own', groupId: () => 'group_own' },
    clock: { now: () => 1, monotonic: () => 1 },
    storage: { getStore: () => undefined, run: (_, fn) => fn() },
    provider: { createTrace: () => createTrace('own'), createSpan: (init) => createSpan(init) },
  });
  registerSpanType('retrieval' as never, () => ({ kept: true }));
  setTracingDisabled(true);
  await shutdownTracing();
  records.length = 0;

  resetDefaults();
  remove();

  expect([getLogger().dontLogModelData, getLogger().dontLogToolData]).toEqual([true, true]);
  getLogger().debug('not at this level');
  getLogger().warn('to the console');
  expect([records, warn.mock.calls]).toEqual([[], [['[openai.agents] to the console']]]);
  await expect(run(new Agent({ name: 'A', model: 'm' }), 'go')).rejects.toMatchObject({ code: 'missing_credentials' });
  expect(fake.requests).toHaveLength(1);
  const recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
  await run(hi(), 'go');
  expect(events).toEqual([]);
  const [trace] = recorder.traces;
  expect(trace?.traceId).toMatch(/^trace_[0-9a-f]{32}$/);
  expect(trace?.startTimeMs).toBeGreaterThan(1e12);
  expect(recorder.spans.map((span) => span.type)).toEqual(['task', 'agent', 'turn', 'generation']);
  expect(await withTrace('t', async () => getCurrentSpan() === undefined && getTraceProvider() !== undefined)).toBe(
    true,
  );
  const custom = createSpan({ type: 'retrieval', rows: 1 } as never, { parent: createTrace('x').start() });
  expect(custom.toJSON()?.span_data).toEqual({ type: 'retrieval', rows: 1 });
});

bothForms((runForm, form) => {
  const outcomes: Record<string, unknown>[] = [];

  it(`bothForms gives both the same result, over a pause too; the stream is read to its end (${form}) [MODEL#94, MODEL-1112]`, async () => {
    const effects: string[] = [];
    const model = new ScriptedModel([toolCall('refund', { id: '1' }), 'done']);
    const agent = new Agent({ name: 'A', model, tools: [effectTool('refund', effects, { needsApproval: true })] });
    const first = await runForm(agent, 'go');
    expect([first.status, first.interruptions.length, effects]).toEqual(['interrupted', 1, []]);
    const state = first.toState();
    for (const item of state.interruptions) state.approve(item);
    const second = await runForm(agent, state);
    expect(model.calls.map((call) => call.stream)).toEqual(Array(2).fill(form === 'streamed'));
    expect(second).not.toHaveProperty('streamEvents');
    outcomes.push({
      status: second.status,
      output: second.finalOutput,
      items: second.newItems.map((item) => [item.type, item.rawItem]),
      usage: second.context.usage,
      effects,
    });
    const failing = new Agent({ name: 'A', model: new ScriptedModel([new RangeError('down')]) });
    await expect(runForm(failing, 'go')).rejects.toThrow(new RangeError('down'));
    expect(outcomes.every((outcome) => JSON.stringify(outcome) === JSON.stringify(outcomes[0]))).toBe(true);
  });
});
