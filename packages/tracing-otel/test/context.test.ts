import { context, propagation, ROOT_CONTEXT, trace as api, TraceFlags } from '@opentelemetry/api';
import type { Tracer } from '@opentelemetry/api';
import { W3CBaggagePropagator, W3CTraceContextPropagator, CompositePropagator } from '@opentelemetry/core';
import { Agent, run, runStreamed, tool, withSpan, withTrace } from '@agents/core';
import { bothForms, resetDefaults, toolCall } from '@agents/core/testing';
import {
  bindTraceContext,
  getTraceContext,
  injectTraceHeaders,
  setTraceProcessors,
  withRemoteTraceContext,
} from '@agents/core/tracing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { followContexts, gate, idOf, parentId, scripted, Telemetry, traceIdOf } from './kit.ts';

let otel: Telemetry;
/** Of the application: what its own code and its instrumentations make. */
let tracer: Tracer;
let restore: () => void;

beforeEach(() => {
  resetDefaults();
  restore = followContexts();
  otel = new Telemetry().use();
  tracer = otel.tracers.getTracer('application');
});
afterEach(async () => {
  restore();
  resetDefaults();
  propagation.disable();
  await otel.close();
});

const step = (name: string): void => tracer.startActiveSpan(name, (span) => span.end());

function desk(execute: (id: string) => unknown, ...calls: string[]): Agent {
  const lookup = tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: ({ id }) => execute(id) });
  const asked = calls.map((id) => toolCall('lookup', { id }, { callId: `call_${id}` }));
  return new Agent({ name: 'Desk', model: scripted(asked, 'done'), tools: [lookup] });
}

bothForms((runForm, form) => {
  describe(`OpenTelemetry's active span (${form})`, () => {
    it('of a call inside a tool is the span of that tool, also with parallel tools [TRACE-O4, O40, T4]', async () => {
      await runForm(
        desk(
          async (id) => {
            await new Promise((resolve) => setTimeout(resolve, id === '1' ? 5 : 1));
            step(`GET ${id}`);
          },
          '1',
          '2',
          '3',
        ),
        'go',
      );
      for (const id of ['1', '2', '3']) {
        const parent = otel.spans.find((span) => idOf(span) === parentId(otel.span(`GET ${id}`)));
        expect(parent?.name).toBe('execute_tool lookup');
        expect(parent?.attributes['gen_ai.tool.call.id']).toBe(`call_${id}`);
      }
    });

    it('is that of the guardrail and the model call while their code runs [TRACE-O4]', async () => {
      const agent = new Agent({
        name: 'Desk',
        model: scripted(() => (step('in model'), 'done')),
        inputGuardrails: [
          {
            name: 'g',
            runInParallel: false,
            execute: () => (step('in guardrail'), { outputInfo: {}, tripwireTriggered: false }),
          },
        ],
        instructions: () => (step('in instructions'), 'Be kind.'),
      });
      await runForm(agent, 'go');
      const around = (name: string): string | undefined =>
        otel.spans.find((span) => idOf(span) === parentId(otel.span(name)))?.name;
      expect(['in guardrail', 'in instructions', 'in model'].map(around)).toEqual([
        'guardrail g',
        'invoke_agent Desk',
        'chat scripted',
      ]);
    });

    it('at the call is the parent of the run, whose baggage its tools see [TRACE-O1, O4, O42, T5]', async () => {
      const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
      let seen: string | undefined;
      await tracer.startActiveSpan('POST /chat', async (server) => {
        await context.with(propagation.setBaggage(context.active(), baggage), () =>
          runForm(
            desk(() => {
              seen = propagation.getActiveBaggage()?.getEntry('tenant')?.value;
            }, '1'),
            'go',
          ),
        );
        server.end();
      });
      const root = otel.span('invoke_workflow Agent workflow');
      expect(parentId(root)).toBe(idOf(otel.span('POST /chat')));
      expect(new Set(otel.spans.map(traceIdOf)).size).toBe(1);
      expect(seen).toBe('acme');
    });

    it("goes through the user's own span between a tool and a run inside it [TRACE-O3, O39]", async () => {
      const expert = new Agent({ name: 'Expert', model: scripted('paid') });
      await runForm(
        desk(
          () =>
            tracer.startActiveSpan('step', async (span) => {
              await run(expert, 'go');
              span.end();
            }),
          '1',
        ),
        'go',
      );
      expect(otel.tree()).toBe(
        [
          'invoke_workflow Agent workflow',
          '  invoke_agent Desk',
          '    chat scripted',
          '    execute_tool lookup',
          '      step',
          '        invoke_agent Expert',
          '          chat scripted',
          '    chat scripted',
        ].join('\n'),
      );
    });

    it('a trace inside a tool is a workflow under it, and the outer run goes on where it was [IL-112]', async () => {
      await runForm(
        desk(() => {
          withTrace('inner', () => withSpan({ type: 'custom', name: 'work' }, () => step('inside')));
          step('behind');
        }, '1'),
        'go',
      );
      const around = (name: string): string | undefined =>
        otel.spans.find((span) => idOf(span) === parentId(otel.span(name)))?.name;
      expect(['invoke_workflow inner', 'work', 'inside', 'behind'].map(around)).toEqual([
        'execute_tool lookup',
        'invoke_workflow inner',
        'work',
        'execute_tool lookup',
      ]);
      expect(otel.tree()).toMatch(/^invoke_workflow Agent workflow\n {2}invoke_agent Desk\n/);
    });

    it('has the right tree without a context manager [TRACE-O6]', async () => {
      restore();
      await runForm(
        desk(() => step('GET'), '1', '2'),
        'go',
      );
      expect(otel.tree()).toBe(
        [
          'invoke_workflow Agent workflow',
          '  invoke_agent Desk',
          '    chat scripted',
          '    execute_tool lookup',
          '    execute_tool lookup',
          '    chat scripted',
          'GET',
          'GET',
        ].join('\n'),
      );
    });

    it('without a root span has agents directly under the caller [TRACE-O2]', async () => {
      otel = new Telemetry({ workflowSpan: false }).use();
      tracer = otel.tracers.getTracer('application');
      const expert = new Agent({ name: 'Expert', model: scripted('paid') });
      const agent = new Agent({
        name: 'Desk',
        model: scripted([toolCall('expert', { input: 'go' })], 'done'),
        tools: [expert.asTool({ toolName: 'expert' })],
      });
      await tracer.startActiveSpan('server', async (span) => {
        await runForm(agent, 'go');
        span.end();
      });
      expect(otel.tree()).toBe(
        [
          'server',
          '  invoke_agent Desk',
          '    chat scripted',
          '    execute_tool expert',
          '      invoke_agent Expert',
          '        chat scripted',
          '    chat scripted',
        ].join('\n'),
      );
    });

    it('of two processors is that of the last one; each has its own tree [TRACE-O17]', async () => {
      const other = new Telemetry();
      setTraceProcessors([otel.processor, other.processor]);
      const seen: (string | undefined)[] = [];
      await runForm(
        desk(() => {
          seen.push(api.getActiveSpan()?.spanContext().spanId);
          withTrace('inner', () => withSpan({ type: 'custom', name: 'work' }, () => {}));
        }, '1'),
        'go',
      );
      expect(seen).toEqual([idOf(other.span('execute_tool lookup'))]);
      expect(otel.tree()).toBe(other.tree());
      expect(otel.tree()).toContain('    execute_tool lookup\n      invoke_workflow inner\n        work');
      await other.close();
    });

    it('goes on in another process from the headers of a call, in the format of the propagator [TRACE-O7, T62]', async () => {
      propagation.setGlobalPropagator(
        new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
      );
      let headers: Record<string, string> = {};
      let sent: ReturnType<typeof getTraceContext>;
      await runForm(
        desk(() => {
          headers = injectTraceHeaders({ accept: '*/*' });
          sent = getTraceContext();
        }, '1'),
        'go',
      );
      const toolSpan = otel.span('execute_tool lookup');
      const traceparent = `00-${traceIdOf(toolSpan)}-${idOf(toolSpan)}-01`;
      expect(headers).toEqual({ accept: '*/*', traceparent });
      expect(sent?.headers).toEqual({ traceparent });
      const worker = new Telemetry();
      setTraceProcessors([worker.processor]);
      await withRemoteTraceContext(JSON.stringify(sent), () =>
        runForm(new Agent({ name: 'W', model: scripted('x') }), 'go'),
      );
      expect(worker.tree()).toBe('invoke_agent W\n  chat scripted');
      const agent = worker.span('invoke_agent W');
      expect([traceIdOf(agent), parentId(agent)]).toEqual([traceIdOf(toolSpan), idOf(toolSpan)]);
      expect(agent.links).toEqual([]);
      await worker.close();
    });
  });
});

describe('streams', () => {
  it("leave the consumer its own active span, and tools the run's [TRACE-O5]", async () => {
    const seen = new Set<unknown>();
    await tracer.startActiveSpan('consumer', async (consumer) => {
      const stream = await tracer.startActiveSpan('caller', (caller) => {
        const started = runStreamed(
          desk(() => step('GET'), '1'),
          'go',
        );
        caller.end();
        return Promise.resolve(started);
      });
      for await (const _ of stream) seen.add(api.getActiveSpan());
      consumer.end();
      expect([...seen]).toEqual([consumer]);
    });
    expect(parentId(otel.span('GET'))).toBe(idOf(otel.span('execute_tool lookup')));
    expect(parentId(otel.span('invoke_workflow Agent workflow'))).toBe(idOf(otel.span('caller')));
  });

  it('that are left end all spans, and the model call says so [TRACE-O41]', async () => {
    const stream = runStreamed(
      new Agent({ name: 'Desk', model: scripted({ output: 'a long answer', delayMs: 0 }) }),
      'go',
    );
    for await (const event of stream) if (event.type === 'raw_response_event') stream.cancel();
    await stream.completed.catch(() => {});
    expect(otel.span('chat scripted').attributes).toMatchObject({ 'agents.stream.abandoned': true });
    expect(otel.tree()).toBe('invoke_workflow Agent workflow\n  invoke_agent Desk\n    chat scripted');
  });
});

describe('callbacks that are called later', () => {
  it('run under the span that they were bound in, whatever is active there', async () => {
    const late: (() => void)[] = [];
    await run(
      desk(() => void late.push(bindTraceContext(() => step('late'))), '1'),
      'go',
    );
    await tracer.startActiveSpan('other request', (span) => {
      for (const call of late) call();
      span.end();
      return Promise.resolve();
    });
    expect(parentId(otel.span('late'))).toBe(idOf(otel.span('execute_tool lookup')));
  });

  it('make spans after the end of the run, under what is ended [TRACE-O14]', async () => {
    const later = gate();
    let late: Promise<void> | undefined;
    await run(
      desk(() => {
        late = later.opened.then(() => withSpan({ type: 'custom', name: 'late' }, () => {}));
      }, '1'),
      'go',
    );
    later.open();
    await late;
    expect(parentId(otel.span('late'))).toBe(idOf(otel.span('execute_tool lookup')));
  });
});

describe('sampling', () => {
  it('keeps the context of what the caller did not sample', async () => {
    const parent = {
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      spanId: '00f067aa0ba902b7',
      traceFlags: TraceFlags.NONE,
    };
    let inTool: number | undefined;
    await context.with(api.setSpanContext(ROOT_CONTEXT, parent), () =>
      run(
        desk(() => (inTool = api.getActiveSpan()?.spanContext().traceFlags), '1'),
        'go',
      ),
    );
    expect(inTool).toBe(TraceFlags.NONE);
    expect(otel.spans).toEqual([]);
  });
});
