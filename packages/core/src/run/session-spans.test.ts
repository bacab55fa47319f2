import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent, getCurrentSpan, MemorySession } from '../index.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { Session } from '../sessions/contract.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import type { Span } from '../tracing.ts';
import { currentPlace } from '../../test/current-place.ts';
import { effectTool, rejection } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(resetDefaults);

const agent = (...steps: ConstructorParameters<typeof ScriptedModel>[0][]): Agent =>
  new Agent({ name: 'A', model: new ScriptedModel(steps.flat() as string[]), tools: [effectTool('lookup', [])] });
const sessionSpans = (): Span<'custom'>[] =>
  recorder.spans.filter((span): span is Span<'custom'> => span.type === 'custom');
const shown = (): unknown[] => sessionSpans().map(({ spanData }) => [spanData.name, spanData.data]);

bothForms((runForm, form) => {
  describe(`calls of a session in a trace (${form})`, () => {
    it('are custom spans under the task, with the id of the session and how many items came or went [TRACE-N21]', async () => {
      const session = new MemorySession('s1', { items: [{ role: 'user', content: 'before' }] });
      await runForm(agent([toolCall('lookup', {}), 'done']), 'hi', { session, traceSessionSpans: true });
      expect(shown()).toEqual([
        ['session.load', { session_id: 's1', items: 1 }],
        ['session.save', { session_id: 's1', items: 1 }],
        ['session.save', { session_id: 's1', items: 2 }],
        ['session.save', { session_id: 's1', items: 1 }],
      ]);
      const task = recorder.spans.find(({ type }) => type === 'task');
      for (const span of sessionSpans()) {
        expect(span.parent).toBe(task);
        expect([span.error, span.endTimeMs === undefined]).toEqual([undefined, false]);
      }
    });

    it('have a span for a compaction that the run asks for, and none where it is put off [TRACE-N21]', async () => {
      const asked: object[] = [];
      const session = Object.assign(new MemorySession('s1'), {
        runCompaction: async (options: object) => {
          asked.push(options);
          return undefined;
        },
        deferCompaction: async () => undefined,
      });
      await runForm(agent([toolCall('lookup', {}), 'done']), 'hi', { session, traceSessionSpans: true });
      expect(asked).toHaveLength(1);
      expect(shown().slice(-2)).toEqual([
        ['session.save', { session_id: 's1', items: 1 }],
        ['session.compact', { session_id: 's1', items: null }],
      ]);
    });

    it('hang on the trace where tasks have no span, and show no id without sensitive data [TRACE-N21, E11]', async () => {
      const options = { traceTaskAndTurnSpans: false, traceIncludeSensitiveData: false, traceSessionSpans: true };
      await runForm(agent(['done']), 'hi', { session: new MemorySession('secret'), ...options });
      expect(sessionSpans().map(({ parentId }) => parentId)).toEqual([undefined, undefined, undefined]);
      expect(JSON.stringify(recorder.spans.map((span) => span.toJSON()))).not.toContain('secret');
    });

    it('have no span by default, and run in the scope of the task [TRACE-N21, C6]', async () => {
      const seen: string[] = [];
      const session = watched(() => seen.push(currentPlace()));
      await runForm(agent(['done']), 'hi', { session });
      expect(sessionSpans()).toEqual([]);
      expect(new Set(seen)).toEqual(new Set(['task']));
    });

    it('run in the scope of their own span, which tells what failed them; the run fails with the same error [TRACE-N21, N16, E4]', async () => {
      const seen: string[] = [];
      const failure = new Error('marker-71');
      const session = watched(() => {
        const span = getCurrentSpan();
        if (span?.type === 'custom') seen.push(`${span.spanData.name} in ${currentPlace()}`);
        throw failure;
      });
      const options = { session, traceSessionSpans: true };
      expect(await rejection(runForm(agent(['done']), 'hi', options))).toBe(failure);
      expect(seen).toEqual(['session.load in custom']);
      expect(sessionSpans()[0]?.error).toEqual({ message: 'Error in session', data: { error: 'marker-71' } });
      await rejection(runForm(agent(['done']), 'hi', { ...options, traceIncludeSensitiveData: false }));
      expect(sessionSpans()[1]?.error?.data).toEqual({ error: 'Error details are redacted.' });
      expect(recorder.spans.every(({ endTimeMs }) => endTimeMs !== undefined)).toBe(true);
    });
  });
});

/** A session of somebody else's. */
function watched(onCall: () => void): Session {
  const items: AgentInputItem[] = [];
  return {
    sessionId: 'mine',
    getItems: async () => {
      onCall();
      return [...items];
    },
    addItems: async (added) => {
      onCall();
      items.push(...added);
    },
    popItem: async () => items.pop(),
    clearSession: async () => {},
  };
}
