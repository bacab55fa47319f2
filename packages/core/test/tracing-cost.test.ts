import { Session } from 'node:inspector/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent, MemorySession } from '../src/index.ts';
import type { RunOptions } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { ScriptedModel, toolCall } from '../src/testing/index.ts';
import { addTraceProcessor, setTracingDisabled } from '../src/tracing.ts';
import { effectTool } from './run-kit.ts';

beforeEach(resetDefaults);
afterEach(resetDefaults);

/** How often each function of the tracing core is called while `work` runs; the engine itself counts. */
async function callsDuring(work: () => Promise<unknown>): Promise<ReadonlyMap<string, number>> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.takePreciseCoverage');
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const calls = new Map<string, number>();
    for (const { url, functions } of result) {
      const file = /\/core\/src\/(tracing\/[\w-]+|models\/traced-input|run\/function-span|run\/spans)\.ts/.exec(
        url,
      )?.[1];
      for (const { functionName, ranges } of file === undefined ? [] : functions)
        calls.set(functionName, (calls.get(functionName) ?? 0) + (ranges[0]?.count ?? 0));
    }
    return calls;
  } finally {
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
  }
}

/** Constructors of what a traced run is made of, what draws ids and reads clocks, and what copies data for spans. */
const MADE = [
  'LiveSpan',
  'LiveTrace',
  'TraceTime',
  'FunctionSpan',
  'GuardrailSpan',
  'generateSpanId',
  'generateTraceId',
];
const COPIED = ['tracedInput', 'redactData', 'dataOf', 'traceRecordOf', 'jsonSafe', 'spanDataToWire'];

bothForms((runForm, form) => {
  describe(`a run (${form})`, () => {
    const play = async (options: RunOptions = {}): Promise<void> => {
      const model = new ScriptedModel([toolCall('lookup', {}), 'done'], { trace: true });
      const agent = new Agent({ name: 'A', model, tools: [effectTool('lookup', [])] });
      await runForm(agent, 'hi', { session: new MemorySession(), ...options });
    };
    const counted = async (options?: RunOptions): Promise<Record<string, number>> => {
      // What is loaded with the first run is loaded.
      await play();
      const calls = await callsDuring(() => play(options));
      expect(calls.size).toBeGreaterThan(0);
      return Object.fromEntries([...MADE, ...COPIED].map((name) => [name, calls.get(name) ?? 0]));
    };
    const none = Object.fromEntries([...MADE, ...COPIED].map((name) => [name, 0]));

    it('makes no span, no id and no copy with tracing switched off for the process [TRACE-P10, P14]', async () => {
      addTraceProcessor({});
      setTracingDisabled(true);
      // What a state keeps of the trace is asked once, and is nothing.
      expect(await counted()).toEqual({ ...none, traceRecordOf: 1 });
    });

    it('makes none with tracing switched off for itself [TRACE-N23, P14]', async () => {
      addTraceProcessor({});
      expect(await counted({ tracingDisabled: true })).toEqual({ ...none, traceRecordOf: 1 });
    });

    it('makes a trace with an id and nothing else where nobody listens [TRACE-P14, T16, D-14]', async () => {
      expect(await counted()).toEqual({ ...none, LiveTrace: 1, generateTraceId: 1, traceRecordOf: 1 });
    });

    it('makes all of it where somebody does: the count is right', async () => {
      addTraceProcessor({});
      // Task, agent, two turns, two model calls and a function.
      expect(await counted()).toMatchObject({
        LiveSpan: 7,
        LiveTrace: 1,
        generateSpanId: 7,
        FunctionSpan: 1,
        TraceTime: 1,
      });
    });
  });
});
