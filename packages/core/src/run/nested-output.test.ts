import { describe, expect, it } from 'vitest';
import { Agent } from '../index.ts';
import { MessageOutputItem, ReasoningItem, ToolCallOutputItem } from '../items/items.ts';
import type { RunItem } from '../items/items.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import { effectTool } from '../../test/run-kit.ts';
import { agentToolOutput } from './nested-output.ts';
import type { AgentToolResult } from './result.ts';

const agent = new Agent({ name: 'Expert' });
const message = (...texts: readonly string[]): RunItem =>
  new MessageOutputItem(agent, {
    type: 'message',
    id: 'm',
    role: 'assistant',
    status: 'completed',
    content: texts.map((part) => ({ type: 'output_text' as const, text: part, annotations: [] })),
  });
const output = (value: unknown): RunItem =>
  new ToolCallOutputItem(
    agent,
    { type: 'function_call_output', call_id: 'c', output: String(value) },
    { output: value },
  );
const thought = new ReasoningItem(agent, { type: 'reasoning', id: 'r', summary: [] });

const given = async (finalOutput: unknown, newItems: readonly RunItem[], judged = 0): Promise<unknown> =>
  await agentToolOutput(
    {
      finalOutput,
      newItems,
      outputGuardrailResults: Array.from({ length: judged }, () => ({})),
    } as unknown as AgentToolResult,
    undefined,
  );

describe('what an agent tool gives of its run', () => {
  it.each<[string, unknown, readonly RunItem[], unknown]>([
    [
      'its final output, whatever came before or behind',
      'answer',
      [message('old'), output('o'), message('new')],
      'answer',
    ],
    ['objects as JSON', { n: [1] }, [message('m')], '{"n":[1]}'],
    ['what is false or zero as it is', 0, [message('m')], 0],
    ['the newest of several messages', '', [message('first'), message('second'), message('third')], 'third'],
    ['the newest of several outputs of tools', '', [output('first'), output('second')], 'second'],
    ['an output that came behind a message', '', [message('said'), output('found')], 'found'],
    ['a message that came behind an output', '', [output('found'), message('said')], 'said'],
    ['the one before an empty message', '', [message('kept'), message(''), message('', '')], 'kept'],
    ['all parts of the message', undefined, [message('one ', 'text'), thought], 'one text'],
    ['the one before outputs that are no text, or empty', null, [output('kept'), output({ a: 1 }), output('')], 'kept'],
    ['an empty final output where nothing said anything', '', [thought, output(7), message('')], ''],
    ['the final output as it is where there are no items', undefined, [], undefined],
  ])('is %s [TOOL-AT10]', async (_, finalOutput, items, expected) => {
    expect(await given(finalOutput, items)).toEqual(expected);
  });

  it('is the final output that guardrails judged, empty too: they judged no earlier item [TOOL-AT10]', async () => {
    expect(await given('', [message('unjudged')], 1)).toBe('');
    expect(await given({ n: 1 }, [message('unjudged')], 2)).toBe('{"n":1}');
  });
});

bothForms((runForm, form) => {
  it(`the newest text of a run without an answer is what the outer model reads (${form}) [TOOL-AT10]`, async () => {
    const inner = new ScriptedModel([
      [text('Looking.'), toolCall('t', { id: '1' }, { callId: 'c1' })],
      toolCall('t', { id: '2' }, { callId: 'c2' }),
      text(''),
    ]);
    const tools = [effectTool('t', [], { result: (id) => `found ${id}` })];
    const outer = new ScriptedModel([toolCall('expert', { input: 'q' }), 'done']);
    const expert = new Agent({ name: 'Expert', model: inner, tools });
    const desk = new Agent({ name: 'Desk', model: outer, tools: [expert.asTool({ toolName: 'expert' })] });
    await runForm(desk, 'hi');
    expect(outer.calls[1]?.request.input.at(-1)).toMatchObject({ output: 'found 2' });
  });
});
