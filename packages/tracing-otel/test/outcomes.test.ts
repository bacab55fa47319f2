import { Agent, handoff, runStreamed, tool, withSpan, withTrace } from '@agents/core';
import { bothForms, resetDefaults, toolCall } from '@agents/core/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { followContexts, gate, scripted, statusOf, Telemetry } from './kit.ts';

let otel: Telemetry;
let restore: () => void;

beforeEach(() => {
  resetDefaults();
  restore = followContexts();
  otel = new Telemetry().use();
});
afterEach(async () => {
  restore();
  resetDefaults();
  await otel.close();
});

/** Status, its text, and the type of the error. */
function outcome(name: string): unknown[] {
  const span = otel.span(name);
  return [statusOf(span), span.status.message, span.attributes['error.type']];
}

const call = toolCall('lookup', { id: '7' }, { callId: 'call_1' });
const broken = (failureErrorFunction?: null | (() => string)): ReturnType<typeof tool> =>
  tool({
    name: 'lookup',
    parameters: z.object({ id: z.string() }),
    failureErrorFunction,
    execute: () => {
      throw new RangeError('MARK');
    },
  }) as never;

bothForms((runForm, form) => {
  describe(`what went wrong (${form})`, () => {
    it('in a tool whose failure the model was told is on the tool alone [TRACE-O21, O23, T25]', async () => {
      await runForm(new Agent({ name: 'Desk', model: scripted(call, 'done'), tools: [broken()] }), 'go');
      expect(outcome('execute_tool lookup')).toEqual(['ERROR', 'Error running tool (non-fatal)', 'RangeError']);
      expect(otel.span('execute_tool lookup').attributes['agents.tool.outcome']).toBe('error_handled');
      expect(outcome('invoke_agent Desk')).toEqual(['UNSET', undefined, undefined]);
    });

    it('in a tool that fails the run is on tool and agent, with the exception as an event [TRACE-O21, O25, T26]', async () => {
      const agent = new Agent({ name: 'Desk', model: scripted(call), tools: [broken(null)] });
      await expect(runForm(agent, 'go')).rejects.toBeInstanceOf(Error);
      expect(outcome('execute_tool lookup')).toEqual(['ERROR', 'Error running tool', 'error_running_tool']);
      expect(outcome('invoke_agent Desk').slice(0, 2)).toEqual(['ERROR', 'Error in agent run']);
      const events = otel.span('execute_tool lookup').events.map(({ name, attributes }) => [name, attributes]);
      expect(events).toEqual([['exception', { 'exception.type': 'error_running_tool' }]]);
      expect(
        JSON.stringify(otel.spans.map(({ attributes, status, events: all }) => [attributes, status, all])),
      ).not.toContain('MARK');
    });

    it('shows texts of exceptions with content only, and stack traces never [TRACE-O21, O25]', async () => {
      otel = new Telemetry({ captureContent: true }).use();
      const agent = new Agent({ name: 'Desk', model: scripted(call), tools: [broken(null)] });
      await expect(runForm(agent, 'go')).rejects.toBeInstanceOf(Error);
      const [event] = otel.span('execute_tool lookup').events;
      expect(event?.attributes?.['exception.message']).toContain('MARK');
      expect(event?.attributes?.['exception.stacktrace']).toBeUndefined();
    });

    it.each(['approve', 'reject'] as const)(
      'is not a call that waits, nor one that people %s [TRACE-O22, T27, T28]',
      async (decide) => {
        const refund = tool({ name: 'refund', parameters: z.object({}), needsApproval: true, execute: () => 'ok' });
        const agent = new Agent({ name: 'Desk', model: scripted(toolCall('refund', {}), 'done'), tools: [refund] });
        const state = (await runForm(agent, 'go')).toState();
        for (const item of state.interruptions) state[decide](item);
        await runForm(agent, state);
        const calls = otel.named('execute_tool refund');
        expect(calls.map(({ attributes }) => attributes['agents.tool.approval'])).toEqual([
          'pending',
          decide === 'approve' ? 'approved' : 'rejected',
        ]);
        expect(calls.map(({ attributes }) => attributes['agents.tool.outcome'])).toEqual([
          'interrupted',
          decide === 'approve' ? 'ok' : 'rejected',
        ]);
        expect(calls.map(statusOf)).toEqual(['UNSET', 'UNSET']);
        expect(calls.flatMap(({ attributes }) => attributes['error.type'] ?? [])).toEqual([]);
      },
    );

    it('is the agent, not the guardrail, when one trips [TRACE-O22, T22]', async () => {
      const trips = { name: 'no_pii', execute: () => ({ outputInfo: {}, tripwireTriggered: true }) };
      const agent = new Agent({ name: 'Desk', model: scripted('x'), outputGuardrails: [trips] });
      await expect(runForm(agent, 'go')).rejects.toBeInstanceOf(Error);
      expect(outcome('invoke_agent Desk')).toEqual(['ERROR', 'Guardrail tripwire triggered', 'guardrail_tripwire']);
      expect(outcome('guardrail no_pii')).toEqual(['UNSET', undefined, undefined]);
      expect(otel.span('guardrail no_pii').attributes).toMatchObject({
        'agents.guardrail.triggered': true,
        'agents.guardrail.stage': 'output',
      });
    });

    it('is not that the model asked for two agents [TRACE-O22]', async () => {
      const [b, c] = ['B', 'C'].map((name) => new Agent({ name, model: scripted('done') })) as [Agent, Agent];
      const model = scripted([toolCall('transfer_to_b', {}), toolCall('transfer_to_c', {})]);
      await runForm(new Agent({ name: 'A', model, handoffs: [handoff(b), handoff(c)] }), 'go');
      expect(outcome('execute_tool transfer_to_b')).toEqual(['UNSET', undefined, undefined]);
    });

    it('of the run is on the agent: too many turns, a tool that nobody has [TRACE-O21, T24]', async () => {
      const lookup = tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: () => 'paid' });
      await expect(
        runForm(new Agent({ name: 'Desk', model: scripted(call), tools: [lookup] }), 'go', { maxTurns: 1 }),
      ).rejects.toBeInstanceOf(Error);
      expect(outcome('invoke_agent Desk')).toEqual(['ERROR', 'Max turns exceeded', 'MaxTurnsExceededError']);
      await expect(runForm(new Agent({ name: 'Other', model: scripted(call) }), 'go')).rejects.toBeInstanceOf(Error);
      expect(outcome('invoke_agent Other')).toEqual(['ERROR', 'Tool not found', 'tool_not_found']);
      const told = new Agent({ name: 'Told', model: scripted(call, 'done') });
      await runForm(told, 'go', { toolNotFoundBehavior: 'return_error_to_model' });
      expect(outcome('invoke_agent Told')).toEqual(['UNSET', undefined, undefined]);
    });
  });
});

bothForms((runForm, form) => {
  describe(`a run that shows no data (${form})`, () => {
    const secret = 'MARK';
    const options = { traceIncludeSensitiveData: false } as const;
    const asked = toolCall('lookup', { id: secret }, { callId: 'call_1' });
    const made = (more: object, ...steps: Parameters<typeof scripted>): Agent =>
      new Agent({ name: 'Desk', instructions: secret, model: scripted(...steps), ...more });
    const runs: Readonly<Record<string, () => Promise<unknown>>> = {
      'a tool and an answer': () => runForm(made({ tools: [working] }, asked, `${secret} done`), secret, options),
      'a tool that fails the run': () => runForm(made({ tools: [broken(null)] }, asked), secret, options),
      'a tool whose failure is told': () =>
        runForm(made({ tools: [broken(() => secret)] }, asked, 'x'), secret, options),
      'a failing model': () => runForm(made({}, new RangeError(secret)), secret, options),
      'a rejection with a text': async () => {
        const gated = tool({
          name: 'lookup',
          parameters: z.object({ id: z.string() }),
          needsApproval: true,
          execute: () => secret,
        });
        const agent = made({ tools: [gated] }, asked, 'x');
        const state = (await runForm(agent, secret, options)).toState();
        for (const item of state.interruptions) state.reject(item, { message: secret });
        await runForm(agent, state, options);
      },
      'a guardrail with its finding': () => {
        const trips = { name: 'g', execute: () => ({ outputInfo: { secret }, tripwireTriggered: true }) };
        return runForm(made({ outputGuardrails: [trips] }, secret), secret, options);
      },
    };
    const working = tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: () => secret });

    it.each(Object.entries(runs))(
      'has none in any attribute, status or event: %s [TRACE-O27, T9]',
      async (_name, go) => {
        otel = new Telemetry({ captureContent: true, taskAndTurnSpans: true }).use();
        await go().catch(() => {});
        expect(otel.spans.length).toBeGreaterThan(2);
        const shown = otel.spans.map(({ name, attributes, status, events, links }) => [
          name,
          attributes,
          status,
          events.map((event) => event.attributes),
          links.map((link) => link.attributes),
        ]);
        expect(JSON.stringify(shown)).not.toContain(secret);
        expect(JSON.stringify([...(await otel.metrics()).values()].map((metric) => metric.dataPoints))).not.toContain(
          secret,
        );
      },
    );
  });
});

describe('what went wrong', () => {
  it('is nothing where the user cancelled [TRACE-O22]', async () => {
    const running = gate();
    const wait = tool({
      name: 'wait',
      parameters: z.object({}),
      execute: () => {
        running.open();
        return new Promise(() => {});
      },
    });
    const stream = runStreamed(new Agent({ name: 'Desk', model: scripted(toolCall('wait', {})), tools: [wait] }), 'go');
    await running.opened;
    stream.cancel();
    await stream.completed.catch(() => {});
    expect(outcome('execute_tool wait')).toEqual(['UNSET', undefined, 'cancelled']);
    expect(outcome('invoke_agent Desk')).toEqual(['UNSET', undefined, 'cancelled']);
  });

  it("in the user's own span has a type, and its text with content only [TRACE-O21]", () => {
    const fail = (): unknown =>
      withTrace('t', () =>
        withSpan({ type: 'custom', name: 'rank' }, () => {
          throw new Error('MARK');
        }),
      );
    expect(fail).toThrow('MARK');
    expect(outcome('rank')).toEqual(['ERROR', undefined, '_OTHER']);
    otel = new Telemetry({ captureContent: true }).use();
    expect(fail).toThrow('MARK');
    expect(outcome('rank')).toEqual(['ERROR', 'MARK', '_OTHER']);
  });
});
