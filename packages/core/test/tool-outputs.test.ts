import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, RunState, tool, toolOutput } from '../src/index.ts';
import type { RunOptions } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { setTraceProcessors } from '../src/tracing.ts';
import { PlainSession } from './run-kit.ts';

let recorder: InMemoryTraceProcessor;

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(() => resetDefaults());

/** A tool that gives the value of that index. */
const giving = (values: readonly unknown[], options: { needsApproval?: boolean } = {}) =>
  tool({
    name: 'give',
    parameters: z.object({ index: z.int() }),
    ...options,
    execute: ({ index }) => values[index],
  });
const callsFor = (values: readonly unknown[]) => values.map((_, index) => toolCall('give', { index }));

function outputsIn(model: ScriptedModel): unknown[] {
  const input = model.calls.at(-1)?.request.input ?? [];
  return input.flatMap((item) => (item.type === 'function_call_output' ? [item.output] : []));
}

const image = { type: 'image', image_url: 'https://example.com/a.png' };

bothForms((run, form) => {
  describe(`what a tool gives (${form})`, () => {
    const values = [
      [toolOutput.text('a'), toolOutput.image('https://example.com/a.png', { detail: 'low' })],
      [toolOutput.text('a'), 3],
      [],
      undefined,
      { a: 1 },
      toolOutput.file('https://example.com/a.pdf', { filename: 'a.pdf' }),
    ];
    const wire = [
      [
        { type: 'input_text', text: 'a' },
        { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' },
      ],
      '[{"type":"text","text":"a"},3]',
      '[]',
      '',
      '{"a":1}',
      [{ type: 'input_file', file_url: 'https://example.com/a.pdf', filename: 'a.pdf' }],
    ];

    it('goes to the model as parts where it is nothing else, as text where not [TOOL-AC48, TOOL-AC49, TOOL-AC50, RUN-1107]', async () => {
      const model = new ScriptedModel([callsFor(values), 'ok']);
      const session = new PlainSession();
      const result = await run(new Agent({ name: 'A', tools: [giving(values)], model }), 'hi', { session });
      expect(outputsIn(model)).toEqual(wire);
      const items = result.newItems.filter((item) => item.type === 'tool_call_output_item');
      expect(items.map((item) => item.output)).toEqual(values);
      expect(items.map((item) => item.output)[0]).toBe(values[0]);
      expect(items.map((item) => item.rawItem)).toEqual(
        wire.map((output) => ({ type: 'function_call_output', call_id: expect.any(String), output })),
      );
      expect(session.items.filter(({ type }) => type === 'function_call_output')).toEqual(
        items.map((item) => item.rawItem),
      );
    });

    it('is the same for the model after a pause and JSON [RUN-1107]', async () => {
      const model = new ScriptedModel([[...callsFor(values), toolCall('gated')], 'ok']);
      const gated = tool({ name: 'gated', needsApproval: true, execute: () => [toolOutput.text('b')] });
      const agent = new Agent({ name: 'A', tools: [giving(values), gated], model });
      const paused = await run(agent, 'hi');
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      await run(agent, state);
      expect(outputsIn(model)).toEqual([...wire, [{ type: 'input_text', text: 'b' }]]);
    });

    it('does not change when the tool goes on changing its value [TOOL-R10]', async () => {
      const value = [toolOutput.text('before')];
      const hooks: RunOptions['hooks'] = {
        onToolEnd: () => {
          for (const part of value) part.text = 'after';
          value.push(toolOutput.text('more'));
        },
      };
      const model = new ScriptedModel([callsFor([value]), 'ok']);
      await run(new Agent({ name: 'A', tools: [giving([value])], model }), 'hi', { hooks });
      expect(outputsIn(model)).toEqual([[{ type: 'input_text', text: 'before' }]]);
    });

    it.each<[string, unknown, unknown]>([
      ['a text', 'saved', 'saved'],
      ['a value', { id: 7 }, '{"id":7}'],
      ['nothing', undefined, ''],
      ['null', null, 'null'],
      ['parts', [image], JSON.stringify([image])],
    ])('is the final output as text of a text agent: %s [TOOL-O14]', async (_, value, text) => {
      const tools = [giving([value])];
      const model = new ScriptedModel([callsFor([value])]);
      const agent = new Agent({ name: 'A', tools, model, toolUseBehavior: 'stop_on_first_tool' });
      expect((await run(agent, 'hi')).finalOutput).toBe(text);
    });

    it('is the final output of a structured agent as it is, not validated [TOOL-O14]', async () => {
      const value = { anything: new Map([['a', 1]]) };
      const agent = new Agent({
        name: 'A',
        outputType: z.object({ stars: z.int() }),
        tools: [giving([value])],
        model: new ScriptedModel([callsFor([value])]),
        toolUseBehavior: 'stop_on_first_tool',
      });
      expect((await run(agent, 'hi')).finalOutput).toBe(value);
    });

    it('is shown in its span as on the wire, long data by its size [TRACE-S7]', async () => {
      const value = [toolOutput.text('a'), toolOutput.image(new Uint8Array(3000))];
      const model = new ScriptedModel([callsFor([value, { temp: 21 }]), 'ok']);
      await run(new Agent({ name: 'A', tools: [giving([value, { temp: 21 }])], model }), 'hi');
      expect(recorder.spans.flatMap((span) => (span.type === 'function' ? [span.spanData.output] : []))).toEqual([
        [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', image_url: '<image, 3000 bytes>' },
        ],
        { temp: 21 },
      ]);
    });
  });
});
