import { context, trace as api } from '@opentelemetry/api';
import { Agent, run, RunState, tool } from '@agents/core';
import { bothForms, resetDefaults, toolCall } from '@agents/core/testing';
import { configureTracing } from '@agents/core/tracing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { OTelTraceOptions } from '../src/index.ts';
import { followContexts, idOf, parentId, scripted, settled, statusOf, Telemetry, traceIdOf } from './kit.ts';

const HOUR = 3_600_000;
let now: number;
let restore: () => void;
/** One for each process that a run goes through. */
let processes: Telemetry[];

beforeEach(() => {
  now = Date.now();
  processes = [];
  restore = followContexts();
});
afterEach(async () => {
  restore();
  resetDefaults();
  for (const each of processes) await each.close();
});

/** What a new process has: nothing of the one before. */
function start(options: OTelTraceOptions = {}): Telemetry {
  resetDefaults();
  configureTracing({ clock: { now: () => now, monotonic: () => now } });
  const telemetry = new Telemetry(options);
  processes.push(telemetry);
  return telemetry.use();
}

const refund = tool({
  name: 'refund',
  parameters: z.object({ id: z.string() }),
  needsApproval: true,
  execute: () => 'refunded',
});
const agent = (): Agent =>
  new Agent({
    name: 'Desk',
    model: scripted([toolCall('refund', { id: '7' }, { callId: 'call_1' })], 'done'),
    tools: [refund],
  });
/** In the second process: its model has no more to say than the end. */
const later = (): Agent => new Agent({ name: 'Desk', model: scripted('done'), tools: [refund] });

function approved(state: RunState): RunState {
  for (const item of state.interruptions) state.approve(item);
  return state;
}

const root = 'invoke_workflow Agent workflow';
const linksOf = (span: { links: readonly { context: { spanId: string }; attributes?: object }[] }): unknown[] =>
  span.links.map((link) => [link.context.spanId, link.attributes]);
const resumeLink = (spanId: string): unknown[] => [[spanId, { 'agents.link.kind': 'resume' }]];

function pair<T>([first, second]: readonly T[]): [T, T] {
  if (first === undefined || second === undefined) throw new Error('There are not two of them.');
  return [first, second];
}

bothForms((runForm, form) => {
  describe(`a paused run (${form})`, () => {
    it('ends its root, and goes on under it in the same process, linked to the agent that paused [TRACE-O18, O20, T6]', async () => {
      const otel = start();
      const desk = agent();
      const state = (await runForm(desk, 'go')).toState();
      expect(settled(otel.span(root).attributes)).toMatchObject({ 'agents.run.interrupted': true });
      expect(statusOf(otel.span(root))).toBe('UNSET');
      await runForm(desk, approved(state));
      const [first, second] = pair(otel.named('invoke_agent Desk'));
      expect(otel.named(root)).toHaveLength(1);
      expect([first, second].map(parentId)).toEqual([idOf(otel.span(root)), idOf(otel.span(root))]);
      expect(linksOf(second)).toEqual(resumeLink(idOf(first)));
    });

    it('goes on as one trace in another process, from what its state keeps [TRACE-O18, T7, T57]', async () => {
      const before = start();
      const text = JSON.stringify((await runForm(agent(), 'go')).toState());
      const paused = before.span('invoke_agent Desk');
      const kept = JSON.parse(text) as { trace: { otel: unknown } };
      expect(kept.trace.otel).toEqual({
        traceparent: `00-${traceIdOf(paused)}-${idOf(before.span(root))}-01`,
        interrupted: `00-${traceIdOf(paused)}-${idOf(paused)}-01`,
        paused_at: new Date(now).toISOString(),
      });
      const after = start();
      now += HOUR;
      const desk = later();
      await runForm(desk, approved(await RunState.fromString(desk, text)));
      const resumed = after.span(root);
      expect([traceIdOf(resumed), parentId(resumed)]).toEqual([traceIdOf(paused), idOf(before.span(root))]);
      expect(linksOf(resumed)).toEqual(resumeLink(idOf(paused)));
      expect(after.tree()).toBe(
        [root, '  invoke_agent Desk', '    execute_tool refund', '    chat scripted'].join('\n'),
      );
      expect(resumed.attributes['agents.run.interrupted']).toBeUndefined();
    });

    it('that waited too long starts a new trace with a link, in another process and in its own [TRACE-O19, T57]', async () => {
      const before = start();
      const desk = agent();
      const state = (await runForm(desk, 'go')).toState();
      const text = JSON.stringify(state);
      const paused = before.span('invoke_agent Desk');
      now += HOUR + 1;
      await runForm(desk, approved(state));
      const [, own] = pair(before.named(root));
      const after = start();
      const other = later();
      await runForm(other, approved(await RunState.fromString(other, text)));
      for (const resumed of [own, after.span(root)]) {
        expect(traceIdOf(resumed)).not.toBe(traceIdOf(paused));
        expect(parentId(resumed)).toBeUndefined();
        expect(linksOf(resumed)).toEqual(resumeLink(idOf(paused)));
        expect(resumed.endTime[0]).toBeGreaterThan(0);
      }
      const [, agentAgain] = pair(before.named('invoke_agent Desk'));
      expect(parentId(agentAgain)).toBe(idOf(own));
    });

    it('of a short limit, and of a state without a carrier, starts anew [TRACE-O19]', async () => {
      const before = start();
      const text = JSON.stringify((await runForm(agent(), 'go')).toState());
      now += 11;
      const short = start({ resumeMaxAgeMs: 10 });
      const desk = later();
      await runForm(desk, approved(await RunState.fromString(desk, text)));
      expect(traceIdOf(short.span(root))).not.toBe(traceIdOf(before.span(root)));
      const { trace, ...rest } = JSON.parse(text) as { trace: { otel?: unknown } };
      delete trace.otel;
      const without = start();
      const again = later();
      await runForm(again, approved(await RunState.fromString(again, JSON.stringify({ ...rest, trace }))));
      expect(parentId(without.span(root))).toBeUndefined();
      expect(without.span(root).links).toEqual([]);
    });

    it('that nobody sampled stays so [TRACE-O19]', async () => {
      start();
      const unsampled = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7', traceFlags: 0 };
      const text = await context.with(api.setSpanContext(context.active(), unsampled), async () =>
        JSON.stringify((await runForm(agent(), 'go')).toState()),
      );
      const after = start();
      const desk = later();
      await runForm(desk, approved(await RunState.fromString(desk, text)));
      expect(after.spans).toEqual([]);
    });

    it('pauses inside an agent tool: the link is to the outermost agent, and three segments are siblings', async () => {
      const otel = start();
      const expert = new Agent({
        name: 'Expert',
        model: scripted(
          [toolCall('refund', { id: '7' }, { callId: 'call_2' })],
          [toolCall('refund', { id: '8' }, { callId: 'call_3' })],
          'paid',
        ),
        tools: [refund],
      });
      const desk = new Agent({
        name: 'Desk',
        model: scripted([toolCall('ask', { input: 'go' }, { callId: 'call_1' })], 'done'),
        tools: [expert.asTool({ toolName: 'ask' })],
      });
      let result = await runForm(desk, 'go');
      result = await runForm(desk, approved(result.toState()));
      await runForm(desk, approved(result.toState()));
      const segments = otel.named('invoke_agent Desk');
      expect(segments.map(parentId)).toEqual(segments.map(() => idOf(otel.span(root))));
      const [first, second, third] = segments.map(idOf);
      expect(segments.flatMap(linksOf)).toEqual([...resumeLink(first ?? ''), ...resumeLink(second ?? '')]);
      expect(third).toBeDefined();
    });

    it('keeps to the caller where there is no root span', async () => {
      const otel = start({ workflowSpan: false });
      const tracer = otel.tracers.getTracer('application');
      const desk = agent();
      await tracer.startActiveSpan('server', async (server) => {
        const state = (await runForm(desk, 'go')).toState();
        await runForm(desk, approved(state));
        server.end();
      });
      const agents = otel.named('invoke_agent Desk');
      expect(agents.map(parentId)).toEqual([idOf(otel.span('server')), idOf(otel.span('server'))]);
    });
  });
});

describe('carriers of others', () => {
  it.each([
    ['nothing of it is known', {}],
    ['no W3C text', { traceparent: 'x' }],
    ['an invalid id', { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` }],
  ])('are passed over: %s', async (_what, otel) => {
    start();
    const state = JSON.parse(JSON.stringify((await run(agent(), 'go')).toState())) as { trace: { otel: unknown } };
    state.trace.otel = otel;
    const after = start();
    const desk = later();
    await run(desk, approved(await RunState.fromString(desk, JSON.stringify(state))));
    expect(parentId(after.span(root))).toBeUndefined();
  });

  it('keep the state of the vendor', async () => {
    start();
    const state = JSON.parse(JSON.stringify((await run(agent(), 'go')).toState())) as { trace: { otel: unknown } };
    state.trace.otel = { traceparent: `00-${'a'.repeat(32)}-00f067aa0ba902b7-01`, tracestate: 'vendor=1' };
    const after = start();
    const desk = later();
    await run(desk, approved(await RunState.fromString(desk, JSON.stringify(state))));
    const resumed = after.span(root);
    expect([traceIdOf(resumed), resumed.spanContext().traceState?.serialize()]).toEqual(['a'.repeat(32), 'vendor=1']);
  });
});
