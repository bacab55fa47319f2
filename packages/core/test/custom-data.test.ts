import { afterEach, describe, expect, it } from 'vitest';
import { Agent, getRunErrorDetails, getRunErrorState, RunState, tool, toolOutput, UserError } from '../src/index.ts';
import type { RunOptions, ToolCustomDataContext, ToolOptions } from '../src/index.ts';
import { addCustomData, ToolCallOutputItem } from '../src/items/items.ts';
import { bothForms } from '../src/testing/forms.ts';
import { reasoning, ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { idle, PlainSession, rejection } from './run-kit.ts';
import { runStreamed } from '../src/run/run.ts';

afterEach(() => resetDefaults());

type Options = Partial<ToolOptions<undefined, unknown, unknown>>;
const note = (options: Options) => tool({ name: 'note', execute: () => 'noted', ...options });
const agentOf = (options: Options, model = new ScriptedModel([toolCall('note', {}, { callId: 'c1' }), 'done'])) => ({
  agent: new Agent({ name: 'A', tools: [note(options)], model }),
  model,
});
const dataOf = (items: readonly object[]): unknown[] =>
  items.flatMap((item) => (item instanceof ToolCallOutputItem ? [item.customData] : []));

bothForms((run, form) => {
  describe(`custom data of an output (${form})`, () => {
    it('is asked for after the output is committed and before the end hooks, with call, value and wire item [TOOL-R11, TOOL-R14]', async () => {
      const seen: ToolCustomDataContext[] = [];
      const log: unknown[] = [];
      const value = [toolOutput.text('noted')];
      const { agent } = agentOf({
        execute: () => value,
        customDataExtractor: async (data) => {
          await idle(1);
          seen.push(data);
          return { ms: 5 };
        },
      });
      const hooks: RunOptions['hooks'] = {
        onToolEnd: (ctx) => void log.push(seen.length, seen[0]?.context === ctx),
      };
      const result = await run(agent, 'hi', { hooks });
      expect(log).toEqual([1, true]);
      expect(seen[0]?.output).toBe(value);
      expect(seen[0]?.rawItem).toEqual(result.newItems[1]?.rawItem);
      expect(seen[0]?.context.toolCallId).toBe('c1');
      expect(dataOf(result.newItems)).toEqual([{ ms: 5 }]);
    });

    it('reaches neither model nor session, and survives JSON [TOOL-R11]', async () => {
      const model = new ScriptedModel([[reasoning('hm'), toolCall('note'), toolCall('gated')], 'done']);
      const facts = { 'x9-secret': [1, 'a', null, { b: true }], empty: {} };
      const gated = tool({ name: 'gated', needsApproval: true, execute: () => 'ok' });
      const agent = new Agent({ name: 'A', tools: [note({ customDataExtractor: () => facts }), gated], model });
      const session = new PlainSession();
      const paused = await run(agent, 'hi', { session });
      const state = await RunState.fromString(agent, paused.toState().toString());
      expect(dataOf(state.newItems)).toEqual([facts]);
      for (const item of state.interruptions) state.approve(item);
      const result = await run(agent, state, { session });
      expect(dataOf(result.newItems)).toEqual([facts, undefined]);
      expect(
        JSON.stringify([model.calls.map((call) => call.request), session.items, result.toInputList()]),
      ).not.toContain('x9-secret');
    });

    it('cannot be changed through what the extractor holds, nor the item through it [TOOL-R14]', async () => {
      const facts = { list: [1] };
      const thrown: unknown[] = [];
      const { agent, model } = agentOf({
        execute: () => [toolOutput.text('noted')],
        customDataExtractor: ({ rawItem }) => {
          for (const change of [
            () => void ((rawItem as { call_id: string }).call_id = 'c9'),
            () => void (rawItem as { output: object[] }).output.push({}),
          ])
            try {
              change();
            } catch (error) {
              thrown.push(error);
            }
          return facts;
        },
      });
      const result = await run(agent, 'hi');
      facts.list.push(2);
      expect(thrown).toEqual([expect.any(TypeError), expect.any(TypeError)]);
      expect(dataOf(result.newItems)).toEqual([{ list: [1] }]);
      expect(model.calls[1]?.request.input[2]).toEqual({
        type: 'function_call_output',
        call_id: 'c1',
        output: [{ type: 'input_text', text: 'noted' }],
      });
    });

    it.each<[string, unknown]>([
      ['nothing', undefined],
      ['null', null],
      ['an empty object', {}],
      ['members without values', { a: undefined }],
    ])('is absent after %s [TOOL-R12]', async (_, given) => {
      const { agent } = agentOf({ customDataExtractor: () => given as never });
      const result = await run(agent, 'hi');
      expect(dataOf(result.newItems)).toEqual([undefined]);
      expect(result.toState().toString()).not.toContain('custom_data');
    });

    const cycle: Record<string, unknown> = {};
    cycle['self'] = { cycle };
    const deep = JSON.parse(`${'{"a":'.repeat(150)}1${'}'.repeat(150)}`) as unknown;
    it.each<[string, unknown, RegExp]>([
      ['a list', [1], /plain object or nothing, not an array/],
      ['a text', 'x9-secret', /plain object or nothing, not a string/],
      ['an instance of a class', new Map(), /plain object or nothing/],
      ['a number that is none', { a: Number.NaN }, /JSON-compatible/],
      ['a big integer', { a: [1n] }, /JSON-compatible/],
      ['a function', { a: () => 'x9-secret' }, /JSON-compatible/],
      ['a hole in a list', { a: [undefined] }, /JSON-compatible/],
      ['a date', { a: new Date(0) }, /JSON-compatible.*instance of a class/],
      ['a key that is no string', { [Symbol('s')]: 1 }, /JSON-compatible.*key/],
      ['a cycle', cycle, /JSON-compatible.*itself/],
      ['what is too deep for a state', deep, /JSON-compatible.*100 levels/],
    ])('must be plain JSON, so not %s [TOOL-R12]', async (_, given, message) => {
      const { agent } = agentOf({ customDataExtractor: () => given as never });
      const error = await rejection(run(agent, 'hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).toContain('tool note');
      expect((error as Error).message).not.toContain('x9-secret');
      // The output is done: it is kept, and no resume repeats the body.
      expect(getRunErrorDetails(error)?.newItems.map((item) => item.type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
      ]);
    });

    it('the same value twice is no cycle; `__proto__` is data [TOOL-R12]', async () => {
      const shared = { a: 1 };
      const facts = JSON.parse('{"__proto__":{"x":1}}') as Record<string, unknown>;
      const { agent } = agentOf({ customDataExtractor: () => ({ b: shared, c: shared, d: facts }) as never });
      const [data] = dataOf((await run(agent, 'hi')).newItems) as [{ d: object }];
      expect(data).toMatchObject({ b: { a: 1 }, c: { a: 1 } });
      expect(Object.keys(data.d)).toEqual(['__proto__']);
    });

    it('is asked for once: a resume after its failure does not ask again [STATE-211, TOOL-Y15]', async () => {
      let asked = 0;
      let bodies = 0;
      const ends: unknown[] = [];
      const cause = new Error('no facts');
      const { agent, model } = agentOf({
        execute: () => ++bodies,
        customDataExtractor: () => {
          asked += 1;
          throw cause;
        },
      });
      const hooks: RunOptions['hooks'] = { onToolEnd: () => void ends.push('end') };
      const error = await rejection(run(agent, 'hi', { hooks }));
      expect(error).toBe(cause);
      const result = await run(agent, getRunErrorState(error) as RunState, { hooks });
      expect([result.finalOutput, asked, bodies, ends]).toEqual(['done', 1, 1, []]);
      expect(model.calls).toHaveLength(2);
    });

    it('is taken from failures that became a text, not from rejected and unknown calls [TOOL-F23]', async () => {
      const facts = ({ output }: ToolCustomDataContext) => ({ output: output as string });
      const failing = note({ execute: () => Promise.reject(new Error('x')), customDataExtractor: facts });
      const late = note({ timeoutMs: 5, execute: () => new Promise(() => {}), customDataExtractor: facts });
      const gated = tool({ name: 'gated', needsApproval: true, execute: () => 1, customDataExtractor: facts });
      const model = new ScriptedModel([
        [toolCall('note'), toolCall('late'), toolCall('gated'), toolCall('ghost')],
        'done',
      ]);
      const agent = new Agent({ name: 'A', tools: [failing, late.copyWith({ name: 'late' }), gated], model });
      const result = await run(agent, 'hi', {
        toolNotFoundBehavior: 'return_error_to_model',
        onApproval: () => ({ type: 'reject' }),
      });
      expect(dataOf(result.newItems)).toEqual([
        { output: 'An error occurred while running the tool. Please try again.' },
        { output: "Tool 'late' timed out after 0.005 seconds." },
        undefined,
        undefined,
      ]);
    });
  });
});

describe('custom data', () => {
  it('is on the item when its event is delivered [RUN-1309]', async () => {
    const { agent } = agentOf({ customDataExtractor: () => ({ a: 1 }) });
    const stream = runStreamed(agent, 'hi');
    const data: unknown[] = [];
    for await (const event of stream)
      if (event.type === 'run_item_stream_event' && event.name === 'tool_output') data.push(...dataOf([event.item]));
    expect(data).toEqual([{ a: 1 }]);
  });

  it('is laid over what the item has already, by key [TOOL-R13]', () => {
    const raw = { type: 'function_call_output', call_id: 'c1', output: '' } as const;
    const item = new ToolCallOutputItem(new Agent({ name: 'A' }), raw, { output: '', customData: { own: 1, both: 1 } });
    addCustomData(item, { both: 2, user: 2 });
    expect(item.customData).toEqual({ own: 1, both: 2, user: 2 });
  });
});
