import { expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, MemorySession, tool } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { toolOutputTrimmer } from './index.ts';

const long = 'A very long report. '.repeat(100);

bothForms((runForm, form) => {
  it(`shortens the long output of the first of three turns in the request, and nowhere else (${form}) [TOOL-AC84, T8]`, async () => {
    const report = tool({ name: 'report', description: 'Reports', parameters: z.object({}), execute: () => long });
    const model = new ScriptedModel([
      toolCall('report'),
      'one',
      toolCall('report'),
      'two',
      toolCall('report'),
      'three',
    ]);
    const agent = new Agent({ name: 'Desk', model, tools: [report] });
    const session = new MemorySession();
    const options = { session, callModelInputFilter: toolOutputTrimmer({ maxOutputChars: 100, previewChars: 20 }) };
    for (const input of ['first', 'second', 'third']) {
      const result = await runForm(agent, input, options);
      const outputs = result.newItems.filter((item) => item.type === 'tool_call_output_item');
      expect(outputs.map(({ output }) => output)).toEqual([long]);
    }
    const sent = model.calls.at(-1)?.request.input as { type?: string; output?: string }[];
    expect(sent.filter(({ type }) => type === 'function_call_output').map(({ output }) => output)).toEqual([
      '[Trimmed: report output — 2000 chars → 20 char preview]\nA very long report. ...',
      long,
      long,
    ]);
    const stored = (await session.getItems()) as { type?: string; output?: string }[];
    expect(stored.filter(({ type }) => type === 'function_call_output').map(({ output }) => output)).toEqual([
      long,
      long,
      long,
    ]);
  });
});
