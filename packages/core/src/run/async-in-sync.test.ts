import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  flushTraces,
  getLogger,
  jsonSchema,
  outputSchema,
  RunState,
  run,
  setTraceProcessors,
  tool,
  UserError,
} from '../index.ts';
import type { Model, Span, TraceProcessor } from '../index.ts';
import { BatchTraceProcessor, ConsoleTraceProcessor, configureTracing, registerSpanType } from '../tracing.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, idle, logged, rejection, resultOf, unhandledDuring } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

/** What an async function gives that a synchronous callback was asked for. */
const later = (async () => {
  await idle(1);
  throw new Error('later');
}) as () => never;

const desk = (): Agent =>
  new Agent({
    name: 'A',
    model: new ScriptedModel([toolCall('t', { id: '1' }), 'done']),
    tools: [effectTool('t', [])],
  });

bothForms((runForm, form) => {
  describe(`an async function in place of a synchronous callback (${form})`, () => {
    it('as traceRedact shows nothing and says so once; the run is as without [TRACE-E15]', async () => {
      const records = logged();
      const spans: string[] = [];
      setTraceProcessors([{ onSpanEnd: (span: Span) => void spans.push(JSON.stringify(span)) }]);
      const seen = await unhandledDuring(async () => {
        const result = await resultOf(runForm(desk(), 'secret', { traceRedact: later }));
        expect(result.finalOutput).toBe('done');
        await idle(3);
      });
      expect(seen).toEqual([]);
      expect(spans.length).toBeGreaterThan(0);
      expect(spans.join()).not.toContain('secret');
      expect(records.filter(({ message }) => message.includes('traceRedact'))).toHaveLength(1);
    });

    it('of what traces are made with costs no run [TRACE-P4, TRACE-A6, TRACE-R12]', async () => {
      logged();
      const processor: TraceProcessor = { carrierKey: 'x', getCarrier: later, onTraceStart: later, onSpanEnd: later };
      const seen = await unhandledDuring(async () => {
        configureTracing({
          ids: { traceId: later, spanId: later, groupId: later },
          clock: { now: later, monotonic: later },
        });
        setTraceProcessors([
          processor,
          new BatchTraceProcessor({ export: async () => {} }, { filter: later, waitUntil: later }),
          new ConsoleTraceProcessor({ log: later }),
          new ConsoleTraceProcessor({ format: 'json', log: later }),
        ]);
        expect((await resultOf(runForm(desk(), 'go'))).finalOutput).toBe('done');
        configureTracing({ ids: null, clock: null, provider: { createTrace: later, createSpan: later } });
        expect((await resultOf(runForm(desk(), 'go'))).finalOutput).toBe('done');
        await flushTraces();
        await idle(3);
      });
      expect(seen).toEqual([]);
    });

    it('of a model is no answer [MODEL-101]', async () => {
      const model: Model = new ScriptedModel(['done']);
      model.supportsDefaultPromptCacheKey = later;
      const seen = await unhandledDuring(async () => {
        const result = await resultOf(runForm(new Agent({ name: 'A', model }), 'go'));
        expect(result.toState().toString()).not.toContain('agents-sdk:');
        await idle(3);
      });
      expect(seen).toEqual([]);
    });

    it('of a schema is refused as a mistake of the program, for arguments and outputs [TOOL-F17, TOOL-O10]', async () => {
      const handWritten = jsonSchema(
        { type: 'object', properties: {}, additionalProperties: false },
        { validate: later },
      );
      const agents = [
        new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('s', {})]),
          tools: [tool({ name: 's', parameters: handWritten, execute: () => 1 })],
        }),
        new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('s', { a: 1 })]),
          tools: [tool({ name: 's', parameters: z.object({ a: z.number().refine(later) }), execute: () => 1 })],
        }),
        new Agent({
          name: 'A',
          model: new ScriptedModel(['{"x":1}']),
          outputType: z.object({ x: z.number().refine(later) }),
        }),
        new Agent({
          name: 'A',
          model: new ScriptedModel(['{"x":1}']),
          outputType: {
            name: 'own',
            strict: true,
            jsonSchema: () => outputSchema(z.object({ x: z.number() })).jsonSchema(),
            validateJson: later,
          },
        }),
      ];
      const seen = await unhandledDuring(async () => {
        for (const agent of agents) {
          const error = await rejection((async () => await resultOf(runForm(agent as Agent, 'go')))());
          expect(error).toBeInstanceOf(UserError);
          expect((error as Error).message).toMatch(/asynchronously|at once/);
        }
        await idle(3);
      });
      expect(seen).toEqual([]);
    });
  });
});

describe('an async function in place of a synchronous callback', () => {
  it('that writes or reads the context of a state is refused by name [STATE-381, STATE-382, STATE-385]', async () => {
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([toolCall('t', { id: '1' })]),
      tools: [effectTool('t', [], { needsApproval: true })],
    });
    const seen = await unhandledDuring(async () => {
      const state = (await run(agent, 'go', { context: { a: 1 } })).toState();
      expect(() => state.toString({ contextSerializer: later })).toThrow(/contextSerializer must answer at once/);
      const text = state.toString();
      const error = await rejection(RunState.fromString(agent, text, { contextDeserializer: later }));
      expect(error).toMatchObject({ code: 'context_deserializer_failed' });
      expect((error as Error).message).toContain('contextDeserializer must answer at once');
      const other = (
        await run(agent, 'go', { model: new ScriptedModel(['x']), context: { a: { toJSON: later } } })
      ).toState();
      expect(() => other.toString()).toThrow(/toJSON gives a promise/);
      await idle(3);
    });
    expect(seen).toEqual([]);
  });

  it('that takes log lines or writes spans ends no process [RUN-1905, TRACE-P4]', async () => {
    const seen = await unhandledDuring(async () => {
      const thenable = Object.fromEntries([
        // oxlint-disable-next-line unicorn/no-thenable -- what others may hand in
        ['then', (_done: unknown, fail: (error: Error) => void) => fail(new Error('later'))],
      ]);
      for (const sink of [later, () => thenable as never]) {
        configureLogging({ sink });
        getLogger().warn('x');
      }
      logged();
      registerSpanType('own' as never, later as never);
      setTraceProcessors([{ onSpanEnd: (span: Span) => void JSON.stringify(span) }]);
      await run(desk(), 'go');
      await idle(3);
    });
    expect(seen).toEqual([]);
  });
});
