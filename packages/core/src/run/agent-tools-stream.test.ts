import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent, configureLogging, defineModel } from '../index.ts';
import type { AgentToolOptions, RunStreamEvent } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, idle, logged, namesOf, rejection, unhandledDuring } from '../../test/run-kit.ts';

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

type OnStream = NonNullable<AgentToolOptions<unknown, string, undefined>['onStream']>;
const ask = (callId = 'out') => toolCall('expert', { input: 'q' }, { callId });
const outputOf = (m: ScriptedModel): unknown =>
  (m.calls[1]?.request.input.at(-1) as { output?: unknown } | undefined)?.output;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function streamed(onStream: OnStream, inner: ScriptedModel, options: object = {}) {
  const outer = new ScriptedModel([ask(), 'done']);
  const expert = new Agent({ name: 'Expert', model: inner, tools: [effectTool('t', [])] });
  const desk = new Agent({
    name: 'Desk',
    model: outer,
    tools: [expert.asTool({ toolName: 'expert', onStream, ...options })],
  });
  return { desk, outer };
}

/** So many events of text, each in a turn of the event loop of its own when `paced`. */
const long = (events: number, paced: boolean): ModelStep => ({
  output: [text('x'.repeat(events))],
  chunk: 1,
  ...(paced && { delayMs: 0 }),
});

bothForms((runForm, form) => {
  describe(`onStream of an agent tool (${form})`, () => {
    it('gets all events in order before the tool returns, and slows nothing [TOOL-AC63, AT13, IL-126]', async () => {
      const seen: RunStreamEvent[] = [];
      const calls = new Set<unknown>();
      const log: string[] = [];
      const inner = new ScriptedModel([
        toolCall('t', {}, { callId: 't' }),
        () => {
          log.push(`model after ${seen.length}`);
          return 'r';
        },
      ]);
      const { desk, outer } = streamed(async ({ event, toolCall: call }) => {
        await wait(2);
        seen.push(event);
        calls.add(call);
        if (seen.length === 3) throw new Error('x');
      }, inner);
      const lines = logged({ level: 'error' });
      const result = await runForm(desk, 'hi', {
        hooks: { onToolEnd: () => void log.push(`end after ${seen.length}`) },
      });
      expect(namesOf(seen)).toEqual(['agent Expert', 'R', 'tool_called', 'tool_output', 'R', 'message_output_created']);
      expect(log).toEqual([expect.stringMatching(/^model after [01]$/), `end after ${seen.length}`]);
      expect([...calls]).toMatchObject([{ call_id: 'out', name: 'expert' }]);
      expect(inner.calls.every((call) => call.stream)).toBe(true);
      expect(lines).toHaveLength(1);
      expect([result.finalOutput, outputOf(outer)]).toEqual(['done', 'r']);
    });

    it('gets what there was of a stream that fails, before the failure [TOOL-AT13]', async () => {
      const seen: RunStreamEvent[] = [];
      const { desk, outer } = streamed(
        async ({ event }) => {
          await wait(1);
          seen.push(event);
        },
        new ScriptedModel([{ output: 'some text', chunk: 'word', error: new Error('down'), failAfterEvents: 4 }]),
        { failureErrorFunction: (_: unknown, error: Error) => `${error.message} after ${seen.length}` },
      );
      await runForm(desk, 'hi');
      expect(outputOf(outer)).toBe('down after 5');
    });

    it.each([
      ['that never settles', true],
      ['that never settles, of a model that lets nothing else run', false],
    ])('ends the call when a handler %s is too far behind [TOOL-AC101, AT35]', async (_, paced) => {
      let handled = 0;
      const { desk, outer } = streamed(
        () => {
          handled += 1;
          return new Promise(() => undefined);
        },
        new ScriptedModel([long(1100, paced)]),
        { failureErrorFunction: (__: unknown, error: Error) => `${error.name}: ${error.message}` },
      );
      const result = await runForm(desk, 'hi');
      expect(outputOf(outer)).toMatch(/^UserError: .*onStream.* 1024 events/);
      expect([result.finalOutput, handled]).toEqual(['done', 1]);
    });

    it('with `eventBufferLimit` holds the nested model back until the handler is done, however slow it is [TOOL-AT35, RUN-1410]', async () => {
      let handled = 0;
      let most = 0;
      let taken = 0;
      const inner = new ScriptedModel([long(1500, false)]);
      const model = defineModel({
        async *streamResponse(request) {
          for await (const event of inner.streamResponse(request)) {
            taken += 1;
            yield event;
          }
        },
      });
      const { desk, outer } = streamed(
        async () => {
          handled += 1;
          await idle(1);
          most = Math.max(most, taken - handled);
        },
        inner,
        { run: { eventBufferLimit: 5, model } },
      );
      await runForm(desk, 'hi');
      expect(outputOf(outer)).toHaveLength(1500);
      expect(handled).toBeGreaterThan(1500);
      expect(most).toBeLessThanOrEqual(7);
    });

    it('held back by a handler that never takes an event, ends with the run [TOOL-AT35, AT13, RUN-512]', async () => {
      const abort = new AbortController();
      const { desk } = streamed(
        () => {
          setImmediate(() => abort.abort());
          return new Promise(() => undefined);
        },
        new ScriptedModel([long(50, true)]),
        { run: { eventBufferLimit: 1 } },
      );
      const unhandled = await unhandledDuring(async () => {
        expect(await rejection(runForm(desk, 'hi', { signal: abort.signal }))).toMatchObject({ name: 'AbortError' });
      });
      expect(unhandled).toEqual([]);
    });

    it('goes on with a handler that keeps up, however many events there are [TOOL-AT35]', async () => {
      let handled = 0;
      const { desk, outer } = streamed(
        async () => {
          await Promise.resolve();
          handled += 1;
        },
        new ScriptedModel([long(3000, false)]),
      );
      await runForm(desk, 'hi');
      expect(outputOf(outer)).toHaveLength(3000);
      expect(handled).toBeGreaterThan(3000);
    });

    it('is not waited for when the run is aborted [TOOL-AT13, RUN-512]', async () => {
      const abort = new AbortController();
      const { desk } = streamed(
        () => {
          abort.abort();
          return new Promise(() => undefined);
        },
        new ScriptedModel([long(3, true)]),
      );
      const unhandled = await unhandledDuring(async () => {
        expect(await rejection(runForm(desk, 'hi', { signal: abort.signal }))).toMatchObject({ name: 'AbortError' });
      });
      expect(unhandled).toEqual([]);
    });

    it('that throws a cancellation ends nothing [IL-121]', async () => {
      const { desk, outer } = streamed(
        () => {
          throw new DOMException('stop', 'AbortError');
        },
        new ScriptedModel(['r']),
      );
      expect((await runForm(desk, 'hi')).finalOutput).toBe('done');
      expect(outputOf(outer)).toBe('r');
    });

    it('tells at every level which call an event belongs to [IL-126, TOOL-AT15]', async () => {
      const seen: string[] = [];
      const listen: OnStream = ({ event, agent, toolCall: call }) => {
        if (event.type === 'run_item_stream_event') seen.push(`${call.call_id} ${agent.name} ${event.name}`);
      };
      const inner = new Agent({ name: 'Inner', model: new ScriptedModel(['r']) });
      const middle = new Agent({
        name: 'Middle',
        model: new ScriptedModel([toolCall('inner', { input: 'q' }, { callId: 'm' }), 'm']),
        tools: [inner.asTool({ onStream: listen })],
      });
      const desk = new Agent({
        name: 'Desk',
        model: new ScriptedModel([toolCall('middle', { input: 'q' }, { callId: 'o' }), 'done']),
        tools: [middle.asTool({ onStream: listen })],
      });
      await runForm(desk, 'hi');
      expect(seen).toEqual([
        'o Middle tool_called',
        'm Inner message_output_created',
        'o Middle tool_output',
        'o Middle message_output_created',
      ]);
    });

    it('gets events of each part of a run that paused once [STATE-220, IL-126]', async () => {
      const seen: RunStreamEvent[] = [];
      const inner = new ScriptedModel([toolCall('rm', {}, { callId: 'in' }), 'r']);
      const expert = new Agent({
        name: 'Expert',
        model: inner,
        tools: [effectTool('rm', [], { needsApproval: true })],
      });
      const outer = new ScriptedModel([ask(), 'done']);
      const tools = [expert.asTool({ toolName: 'expert', onStream: ({ event }) => void seen.push(event) })];
      const desk = new Agent({ name: 'Desk', model: outer, tools });
      const first = await runForm(desk, 'hi');
      expect(namesOf(seen.splice(0))).toEqual(['agent Expert', 'R', 'tool_called', 'tool_approval_requested']);
      const state = first.toState();
      for (const item of state.interruptions) state.approve(item);
      expect((await runForm(desk, state)).finalOutput).toBe('done');
      expect(namesOf(seen)).toEqual(['agent Expert', 'tool_output', 'R', 'message_output_created']);
    });
  });
});
