import { bothForms, resetDefaults } from '@agents/core/testing';
import { configureLogging } from '@agents/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { main as inTerminal } from '../src/trace-console.ts';
import { main as onDashboard } from '../src/trace-openai.ts';

beforeEach(() => {
  resetDefaults();
  configureLogging({ level: 'silent' });
  // Whatever key this machine has: no test asks a service.
  vi.stubEnv('OPENAI_API_KEY', '');
});
afterEach(() => {
  vi.unstubAllEnvs();
  resetDefaults();
});

bothForms((runForm, form) => {
  describe(`traces (${form})`, () => {
    it('in the terminal: a tree, and below it the tokens, the slowest step and the failing call', async () => {
      const texts: string[] = [];
      expect(await inTerminal(runForm, (text) => void texts.push(text))).toBe('The 120 € are on their way.');
      expect(texts).toHaveLength(1);
      const lines = texts.join('\n').split('\n');
      const shown = lines.map((line) => line.replace(/ · [\d.]+ m?s/u, '').replace(/ · trace_\w+/u, ''));
      expect(shown.slice(0, 14)).toEqual([
        'trace Refund desk',
        '└─ task Refund desk · 600 in, 75 out',
        '   ├─ agent Triage',
        '   │  ├─ turn 1 · 120 in, 15 out',
        '   │  │  ├─ generation scripted · 120 in, 15 out',
        '   │  │  └─ function lookup_order · ✗ Error running tool (non-fatal)',
        '   │  ├─ turn 2 · 120 in, 15 out',
        '   │  │  ├─ generation scripted · 120 in, 15 out',
        '   │  │  └─ function lookup_order',
        '   │  └─ turn 3 · 120 in, 15 out',
        '   │     ├─ generation scripted · 120 in, 15 out',
        '   │     └─ handoff Triage → Refunds',
        '   └─ agent Refunds',
        '      ├─ turn 4 · 120 in, 15 out',
      ]);
      expect(lines.slice(-2).join(' · ')).toMatch(
        /^tokens: 675 \(600 in, 75 out\) · slowest step: function refund_order \([\d.]+ m?s\) · failed: function lookup_order$/u,
      );
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
    });

    it('on the dashboard: two runs in one trace, every record taken', async () => {
      const { traceId, stats, records = [] } = await onDashboard(runForm);
      expect(stats).toMatchObject({ queued: 0, dropped: 0, failed: 0, exported: records.length });
      const [trace, ...spans] = records;
      expect(trace).toEqual({
        object: 'trace',
        id: traceId,
        workflow_name: 'Refund desk',
        group_id: 'thread-981',
        metadata: { tenant: 'acme', attempt: '1' },
      });
      expect(new Set(spans.map((span) => span['trace_id']))).toEqual(new Set([traceId]));
      const names = spans.map((span) => (span['span_data'] as { name?: string }).name);
      expect(names.filter((name) => name === 'task')).toHaveLength(2);
      expect(names.filter((name) => name === 'lookup_order')).toHaveLength(4);
    });
  });
});
