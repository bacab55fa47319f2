import { afterEach, expect, it, vi } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { ConsoleTraceProcessor } from './console.ts';
import { createSpan, createTrace } from './create.ts';
import { addDetails } from './lifecycle.ts';
import { addTraceProcessor } from './processors.ts';
import { configureTracing, shutdownTracing } from './provider.ts';
import { startRunTrace } from './run-trace.ts';
import type { RunTraceOrigin } from './run-trace.ts';
import { withSpan, withTrace } from './with.ts';
import type { Span, Trace } from './types.ts';

afterEach(() => {
  vi.restoreAllMocks();
  resetAll();
});

/** Fixed ids, and a clock that is moved by hand. */
function fixed(): { ms: number } {
  const clock = { ms: 0 };
  let spans = 0;
  let traces = 0;
  configureTracing({
    clock: { now: () => Date.UTC(2026, 2, 1, 9), monotonic: () => clock.ms },
    ids: { traceId: () => `trace_${++traces}`, spanId: () => `span_${++spans}`, groupId: () => 'group_1' },
  });
  return clock;
}

function print(format?: 'tree' | 'json'): string[] {
  const lines: string[] = [];
  addTraceProcessor(new ConsoleTraceProcessor({ ...(format && { format }), log: (text) => lines.push(text) }));
  return lines;
}

const showData = (): void => configureLogging({ dontLogModelData: false, dontLogToolData: false, sink: () => {} });

/** A run whose tool fails. */
function failingRun(clock: { ms: number }): void {
  const usage = { inputTokens: 80, outputTokens: 12, cachedInputTokens: 0, cacheWriteInputTokens: 0 };
  const run = startRunTrace({ workflowName: 'Refund desk', groupId: 'thread-secret' });
  const begin = <T extends Span>(span: T, ms: number): T => {
    span.start();
    clock.ms += ms;
    return span;
  };
  const task = begin(run.span({ type: 'task', name: run.workflowName }, run.parent), 1);
  const agent = begin(run.span({ type: 'agent', name: 'Triage' }, task), 1);
  const turn = begin(run.span({ type: 'turn', turn: 1, agentName: 'Triage', usage }, agent), 1);
  const model = begin(
    run.span(
      {
        type: 'generation',
        model: 'gpt-5',
        input: ['secret prompt'],
        output: ['secret answer'],
        usage: { input_tokens: 80, output_tokens: 12 },
      },
      turn,
    ),
    412.4,
  );
  model.finish();
  const call = begin(
    run.span({ type: 'function', name: 'lookup_order', input: 'secret argument', output: 'secret output' }, turn),
    2.25,
  );
  call.setError({
    message: 'Error running tool (non-fatal)',
    data: { tool_name: 'lookup_order', error: 'secret failure' },
  });
  call.finish();
  const waiting = begin(run.span({ type: 'function', name: 'refund' }, turn), 1000);
  addDetails(waiting, { approval: 'pending' });
  for (const span of [waiting, turn, agent, task]) span.finish();
  run.finish();
}

it('prints each trace as a tree with times, tokens and errors [TRACE-B15, T73]', () => {
  const clock = fixed();
  const lines = print();
  showData();
  failingRun(clock);
  expect(lines).toEqual([
    `trace Refund desk · 1.42 s · trace_1
└─ task Refund desk · 1.42 s
   └─ agent Triage · 1.42 s
      └─ turn 1 · 1.42 s · 80 in, 12 out
         ├─ generation gpt-5 · 412 ms · 80 in, 12 out
         ├─ function lookup_order · 2.3 ms · ✗ Error running tool (non-fatal): secret failure
         └─ function refund · 1.00 s · waits for approval
tokens: 92 (80 in, 12 out) · slowest step: function refund (1.00 s) · failed: function lookup_order`,
  ]);
});

it('prints names and counts only under the log policy, which is the default [TRACE-B15, T73, E14]', () => {
  for (const format of ['tree', 'json'] as const) {
    resetAll();
    const clock = fixed();
    const lines = print(format);
    failingRun(clock);
    withTrace(
      't',
      () => {
        expect(() =>
          withSpan({ type: 'custom', name: 'c', data: { mine: 'secret' } }, () => {
            throw new Error('secret');
          }),
        ).toThrow('secret');
      },
      { metadata: { tenant: 'secret' } },
    );
    const text = lines.join('\n');
    expect(text).not.toContain('secret');
    for (const shown of ['lookup_order', 'Error running tool (non-fatal)', 'Triage']) expect(text).toContain(shown);
    expect(text).toContain(format === 'tree' ? '✗ Error' : '"error":{"message":"Error","data":null}');
    expect(text).toContain(format === 'tree' ? '80 in, 12 out' : '"input_tokens":80');
  }
});

it('prints one wire record a line as JSON: a trace at its start, a span at its end [TRACE-B15, T73]', () => {
  const clock = fixed();
  const lines = print('json');
  showData();
  const records: unknown[] = [];
  addTraceProcessor({
    onTraceStart: (trace: Trace) => void records.push(trace.toJSON()),
    onSpanEnd: (span: Span) => void records.push(span.toJSON()),
  });
  failingRun(clock);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(records);
  expect(lines.join('')).not.toContain('\n');
  expect(records).toHaveLength(7);
});

it('prints a resumed run as a tree of its own, the same in the process of the pause and in another one', () => {
  const clock = fixed();
  const lines = print();
  const segment = (stored?: RunTraceOrigin['stored']): void => {
    const run = startRunTrace({}, { stored });
    const task = run.span({ type: 'task', name: 'Agent workflow' }, run.parent).start();
    run.span({ type: 'agent', name: 'A' }, task).start().finish();
    clock.ms += 12;
    task.finish();
    run.finish();
  };
  segment();
  for (const traceId of ['trace_1', 'trace_of_another_process']) {
    segment({ traceId, workflowName: 'Agent workflow', extra: {} });
    expect(lines.at(-1)).toBe(
      `trace Agent workflow (continued) · 12 ms · ${traceId}\n└─ task Agent workflow · 12 ms\n   └─ agent A · 0.0 ms`,
    );
  }
  expect(lines).toHaveLength(3);
});

it('shows a rejected call as rejected, not as an error', () => {
  fixed();
  const lines = print();
  showData();
  const span = createSpan({ type: 'function', name: 'refund' }, { parent: createTrace('t').start() }).start();
  addDetails(span, { approval: 'rejected', outcome: 'rejected' });
  span.setError({ message: 'Too late.', data: { error: 'Tool execution for call_1 was manually rejected by user.' } });
  span.finish();
  span.trace.finish();
  expect(span.error).toBeDefined();
  expect(lines).toEqual(['trace t · 0.0 ms · trace_1\n└─ function refund · 0.0 ms · rejected']);
});

it('prints what did not come to an end at the shutdown, and nothing after it', async () => {
  fixed();
  const lines = print();
  const trace = createTrace('t').start();
  createSpan({ type: 'custom', name: 'done' }, { parent: trace }).start().finish();
  await shutdownTracing();
  trace.finish();
  expect(lines).toEqual(['trace t · trace_1\n└─ custom done · 0.0 ms']);
});

it('keeps a bounded number of spans of trees that never end', () => {
  fixed();
  const lines: string[] = [];
  const processor = new ConsoleTraceProcessor({ log: (text) => lines.push(text) });
  addTraceProcessor({});
  const trace = createTrace('t').start();
  const parent = createSpan({ type: 'custom', name: 'never ends' }, { parent: trace });
  const child = createSpan({ type: 'custom', name: 'c' }, { parent }).start();
  for (let i = 0; i < 10_001; i++) processor.onSpanEnd(child);
  expect(lines).toHaveLength(1);
});

it('lets no name or error text break the tree or the terminal', () => {
  fixed();
  const lines = print();
  showData();
  withTrace('a\nb', () =>
    withSpan({ type: 'custom', name: 'c\r\u001b[31md' }, (span) => span.setError({ message: 'e\nf' })),
  );
  expect(lines).toEqual(['trace a b · 0.0 ms · trace_1\n└─ custom c [31md · 0.0 ms · ✗ e f\nfailed: custom c [31md']);
});

it('writes to the console by default, and survives an output that is closed [TRACE-P18]', () => {
  fixed();
  const write = vi.spyOn(console, 'log').mockImplementation(() => {});
  addTraceProcessor(new ConsoleTraceProcessor());
  withTrace('t', () => {});
  expect(write).toHaveBeenCalledTimes(1);
  configureLogging({ sink: () => {} });
  write.mockImplementation(() => {
    throw new Error('EPIPE');
  });
  expect(() => withTrace('t', () => {})).not.toThrow();
});

it('colours the tree at a terminal only, unless NO_COLOR is set', () => {
  fixed();
  const write = vi.spyOn(console, 'log').mockImplementation(() => {});
  const { stdout } = process;
  const wasTTY = stdout.isTTY;
  try {
    stdout.isTTY = true;
    vi.stubEnv('NO_COLOR', '');
    addTraceProcessor(new ConsoleTraceProcessor());
    vi.stubEnv('NO_COLOR', '1');
    addTraceProcessor(new ConsoleTraceProcessor());
  } finally {
    stdout.isTTY = wasTTY;
    vi.unstubAllEnvs();
  }
  withTrace('t', () => {});
  expect(write.mock.calls.map(([text]) => (text as string).includes('\u001b['))).toEqual([true, false]);
});

it('refuses unknown options', () => {
  expect(() => new ConsoleTraceProcessor({ format: 'xml' as never })).toThrow(
    "Option 'format' of ConsoleTraceProcessor must be 'tree' or 'json'",
  );
  expect(() => new ConsoleTraceProcessor({ colour: true } as never)).toThrow(
    "Unknown option 'colour' of ConsoleTraceProcessor.",
  );
});
