import { describe, expect, it } from 'vitest';
import { Agent } from '../agent/agent.ts';
import type { HandoffInputData, HandoffInputFilter, HandoffInputPatch } from '../agent/handoff.ts';
import { UserError } from '../base/errors.ts';
import {
  HandoffCallItem,
  HandoffOutputItem,
  InputItem,
  McpApprovalRequestItem,
  McpApprovalResponseItem,
  McpListToolsItem,
  MessageOutputItem,
  ReasoningItem,
  ToolCallItem,
  ToolCallOutputItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
} from '../items/items.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { locateForwarded } from '../run/handoff-history.ts';
import { forwardedOf, mergePatch } from '../run/handoff-patch.ts';
import { RunContext } from '../state/context.ts';
import { ToolApprovalItem } from '../state/decisions.ts';
import {
  composeHandoffFilters,
  keepLastMessages,
  nestHandoffHistory,
  promptWithHandoffInstructions,
  RECOMMENDED_PROMPT_PREFIX,
  removeAllTools,
} from './index.ts';

const desk = new Agent({ name: 'Desk' });
const context = new RunContext<unknown>(undefined);

const message = (text: string): MessageOutputItem =>
  new MessageOutputItem(desk, {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [] }],
    status: 'completed',
    id: `m_${text}`,
  });
const said = (content: string): InputItem =>
  new InputItem(desk, { role: 'user', content }, { inputId: '0'.repeat(32) });
const call = (id: string): ToolCallItem =>
  new ToolCallItem(desk, { type: 'function_call', name: 'f', call_id: id, arguments: '{}' });
const output = (id: string): ToolCallOutputItem =>
  new ToolCallOutputItem(desk, { type: 'function_call_output', call_id: id, output: 'o' }, { output: 'o' });
const reasoning = (id: string): ReasoningItem => new ReasoningItem(desk, { type: 'reasoning', id, summary: [] });
const transfer: RunItem[] = [
  new HandoffCallItem(desk, { type: 'function_call', name: 'transfer_to_b', call_id: 't', arguments: '{}' }),
  new HandoffOutputItem(
    desk,
    { type: 'function_call_output', call_id: 't', output: '{"assistant": "B"}' },
    { sourceAgent: desk, targetAgent: desk },
  ),
];

const data = (given: Partial<HandoffInputData>): HandoffInputData => ({
  inputHistory: [],
  preHandoffItems: [],
  newItems: [],
  inputItems: undefined,
  context,
  ...given,
});
const filtered = async (filter: HandoffInputFilter, given: Partial<HandoffInputData>): Promise<HandoffInputPatch> =>
  filter(data(given));

describe('removeAllTools', () => {
  const wire = (type: string): never => ({ type, id: 'i', call_id: 'c' }) as never;
  const ofTools: RunItem[] = [
    ...transfer,
    call('1'),
    output('1'),
    reasoning('r'),
    new ToolApprovalItem(desk, call('2').rawItem, { toolName: 'f' }),
    new ToolSearchCallItem(desk, wire('tool_search_call')),
    new ToolSearchOutputItem(desk, wire('tool_search_output')),
    new McpListToolsItem(desk, wire('mcp_list_tools')),
    new McpApprovalRequestItem(desk, wire('mcp_approval_request')),
    new McpApprovalResponseItem(desk, wire('mcp_approval_response')),
    new InputItem(desk, wire('function_call_output'), { inputId: '0'.repeat(32) }),
  ];
  const kept = [said('q'), message('a')];

  it('leaves messages alone in the lists of items, and changes nothing that it was given [TOOL-HO24]', async () => {
    const mixed = [...ofTools.slice(0, 4), ...kept, ...ofTools.slice(4)];
    const given = data({ inputHistory: 'q', preHandoffItems: mixed, newItems: mixed, inputItems: mixed });
    const before = structuredClone(mixed.map(({ rawItem }) => rawItem));
    const patch = await removeAllTools(given);
    expect(patch).toEqual({ inputHistory: 'q', preHandoffItems: kept, newItems: kept, inputItems: kept });
    expect(patch.newItems?.[1]).toBe(kept[1]);
    expect(given.newItems).toBe(mixed);
    expect(mixed.map(({ rawItem }) => rawItem)).toEqual(before);
    expect((await filtered(removeAllTools, {})).inputItems).toBeUndefined();
  });

  it('leaves out of the history everything that tools made or the model thought [TOOL-HO24]', async () => {
    const calls = ['function', 'computer', 'custom_tool', 'shell', 'local_shell', 'apply_patch'];
    const types = [
      ...calls.flatMap((kind) => [`${kind}_call`, `${kind}_call_output`]),
      'file_search_call',
      'web_search_call',
      'code_interpreter_call',
      'image_generation_call',
      'hosted_tool_call',
      'tool_search_call',
      'tool_search_output',
      'reasoning',
      'program',
      'program_output',
      'mcp_call',
      'mcp_list_tools',
      'mcp_approval_request',
      'mcp_approval_response',
    ];
    const stays: AgentInputItem[] = [
      { role: 'user', content: 'a function_call' },
      { type: 'message', role: 'user', content: 'b' },
      { type: 'compaction', id: 'c', encrypted_content: 'x' },
      { type: 'item_reference', id: 'm' },
    ];
    const history = [stays[0], ...types.map(wire), ...stays.slice(1)] as AgentInputItem[];
    const { inputHistory } = await filtered(removeAllTools, { inputHistory: history });
    expect(inputHistory).toEqual(stays);
    expect(history).toHaveLength(types.length + 4);
  });
});

describe('keepLastMessages', () => {
  it('hides what came before the last messages of the conversation, and leaves this turn alone [TOOL-HO26]', async () => {
    const pre = [call('1'), output('1'), message('b'), said('c'), call('2'), output('2'), message('d')];
    const given = { inputHistory: 'a', preHandoffItems: pre, newItems: [message('e'), ...transfer] };
    expect(await filtered(keepLastMessages(2), given)).toEqual({ inputHistory: [], preHandoffItems: pre.slice(3) });
    expect(await filtered(keepLastMessages(3), given)).toEqual({ inputHistory: [], preHandoffItems: pre.slice(2) });
    // All of it, and the text is the same text.
    for (const count of [4, 5])
      expect(await filtered(keepLastMessages(count), given)).toEqual({ inputHistory: 'a', preHandoffItems: pre });
    expect(await filtered(keepLastMessages(0), given)).toEqual({ inputHistory: [], preHandoffItems: [] });
  });

  it('counts messages of a history that is a list, by their role [TOOL-HO26]', async () => {
    const inputHistory: AgentInputItem[] = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      call('1').rawItem,
      output('1').rawItem,
      { type: 'message', role: 'developer', content: 'c' },
    ];
    const patch = await filtered(keepLastMessages(2), { inputHistory });
    expect(patch.inputHistory).toEqual(inputHistory.slice(1));
    expect((patch.inputHistory as unknown[])[0]).toBe(inputHistory[1]);
    expect((await filtered(keepLastMessages(1), { inputHistory })).inputHistory).toEqual(inputHistory.slice(4));
    expect(inputHistory).toHaveLength(5);
  });

  it('keeps no output without its call, and the reasoning that led to a message [TOOL-HO26]', async () => {
    const pre = [
      said('a'),
      reasoning('r1'),
      call('1'),
      reasoning('r2'),
      message('b'),
      output('1'),
      call('2'),
      output('2'),
    ];
    const patch = await filtered(keepLastMessages(1), { preHandoffItems: pre });
    expect(patch.preHandoffItems).toEqual([pre[3], pre[4], pre[6], pre[7]]);
    const thought = { preHandoffItems: [said('a'), reasoning('r')] };
    expect((await filtered(keepLastMessages(0), thought)).preHandoffItems).toEqual([]);
  });

  it.each([-1, 1.5, Number.NaN, '3', undefined])('takes no count of %s [TOOL-HO26]', (count) => {
    expect(() => keepLastMessages(count as number)).toThrow(UserError);
    expect(() => keepLastMessages(count as number)).toThrow(
      'keepLastMessages: `count` must be an integer of at least 0',
    );
  });
});

describe('nestHandoffHistory', () => {
  const given = { inputHistory: 'q', newItems: [message('a'), ...transfer] };

  it('gives the summary of the run option, with the items that it took over [TOOL-HO27]', async () => {
    const patch = await filtered(nestHandoffHistory(), given);
    const [first, second] = patch.inputHistory as AgentInputItem[];
    expect(patch).toMatchObject({ preHandoffItems: [], inputItems: [] });
    expect(patch).not.toHaveProperty('newItems');
    expect(first).toMatchObject({ role: 'assistant', content: expect.stringContaining('\n1. user: q\n') as string });
    expect(second).toEqual(given.newItems[0]?.rawItem);
    expect(forwardedOf(patch)).toEqual([{ item: given.newItems[0], input: second, index: 1 }]);
  });

  it('takes a mapper and markers of its own [TOOL-HO34, HO35]', async () => {
    const markers = { start: '<past>', end: '</past>' };
    const [first] = (await filtered(nestHandoffHistory({ markers }), given)).inputHistory as unknown as {
      content: string;
    }[];
    expect(first?.content).toMatch(/:\n<past>\n1\. user: q\n<\/past>$/);
    const mapped = await filtered(nestHandoffHistory({ historyMapper: (items) => items.slice(0, 1) }), given);
    expect(mapped.inputHistory).toEqual([{ content: 'q', role: 'user' }]);
    expect(forwardedOf(mapped)).toEqual([]);
  });

  it.each<[unknown, string]>([
    [{ mapper: () => [] }, "Unknown option 'mapper' of nestHandoffHistory"],
    [{ historyMapper: 5 }, "Option 'historyMapper' of nestHandoffHistory must be a function"],
    [{ markers: { start: '', end: 'x' } }, "Marker 'start'"],
    [{ markers: { start: 'x', ende: 'x' } }, "Did you mean 'end'?"],
    ['x', 'Options of nestHandoffHistory must be an object'],
  ])('refuses %j [TOOL-Z11, HO35]', (options, text) => {
    expect(() => nestHandoffHistory(options as never)).toThrow(UserError);
    expect(() => nestHandoffHistory(options as never)).toThrow(text);
  });
});

describe('composeHandoffFilters', () => {
  const given = { inputHistory: 'q', preHandoffItems: [message('p')], newItems: [message('a'), ...transfer] };

  it('asks each for what the ones before left, in their order, and gives what changed [TOOL-HO26]', async () => {
    const seen: HandoffInputData[] = [];
    const note = said('note');
    const patch = await filtered(
      composeHandoffFilters(
        async (all) => {
          seen.push(all);
          await Promise.resolve();
          return { preHandoffItems: [], inputHistory: undefined };
        },
        (all) => {
          seen.push(all);
          return { ...all, inputItems: [...all.newItems, note] };
        },
        (all) => {
          seen.push(all);
          return {};
        },
      ),
      given,
    );
    expect(seen.map(({ preHandoffItems }) => preHandoffItems.length)).toEqual([1, 0, 0]);
    expect(seen.map(({ inputItems }) => inputItems?.length)).toEqual([undefined, undefined, 4]);
    expect(seen.map((all) => all.context === context)).toEqual([true, true, true]);
    expect(patch).toEqual({ preHandoffItems: [], inputItems: [...given.newItems, note] });
  });

  it('works with the ready-made ones; none changes nothing [TOOL-HO24, HO26, HO27]', async () => {
    expect(await filtered(composeHandoffFilters(), given)).toEqual({});
    const both = await filtered(composeHandoffFilters(removeAllTools, nestHandoffHistory()), given);
    expect(both.newItems).toEqual([given.newItems[0]]);
    expect(both.inputHistory).toHaveLength(2);
    expect(both.inputHistory?.[1]).toEqual(given.newItems[0]?.rawItem);
  });

  it('still says which input came from items when filters around it build lists anew [TOOL-HO36, HO37]', async () => {
    const note: AgentInputItem = { role: 'system', content: 'Be quick.' };
    const patch = await filtered(
      composeHandoffFilters(
        (all) => ({ newItems: [...all.newItems] }),
        nestHandoffHistory(),
        (all) => ({ inputHistory: [note, ...(all.inputHistory as AgentInputItem[])] }),
        (all) => ({ ...all, inputHistory: structuredClone(all.inputHistory) }),
      ),
      given,
    );
    const located = locateForwarded(patch.inputHistory ?? [], forwardedOf(patch));
    expect(located.map(({ item, index }) => [item, index])).toEqual([[given.newItems[0], 2]]);
    const without = await filtered(
      composeHandoffFilters(nestHandoffHistory(), (all) => ({
        inputHistory: all.inputHistory.slice(0, 1) as AgentInputItem[],
      })),
      given,
    );
    expect(locateForwarded(without.inputHistory ?? [], forwardedOf(without))).toEqual([]);
  });

  it('names the filter that is none or returns no patch; errors pass [TOOL-HO21, HO49]', async () => {
    expect(() => composeHandoffFilters(removeAllTools, 'x' as never)).toThrow('composeHandoffFilters: filter 1');
    const bad = composeHandoffFilters(removeAllTools, (() => undefined) as never);
    await expect(filtered(bad, given)).rejects.toThrow(UserError);
    await expect(filtered(bad, given)).rejects.toThrow('What filter 1 of composeHandoffFilters returns');
    const failure = new Error('no');
    await expect(
      filtered(
        composeHandoffFilters(() => {
          throw failure;
        }),
        given,
      ),
    ).rejects.toBe(failure);
  });
});

describe('what a filter returns', () => {
  const given = data({ inputHistory: 'q', preHandoffItems: [message('p')], newItems: transfer });

  it('changes what it names, and nothing else: context is ignored [TOOL-HO20]', () => {
    expect(mergePatch(given, {}, 'it')).toEqual(given);
    const merged = mergePatch(given, { newItems: [], inputHistory: undefined, context: 1 }, 'it');
    expect(merged).toEqual({ ...given, newItems: [] });
    expect(mergePatch(given, { ...given, inputItems: [] }, 'it')).toEqual({ ...given, inputItems: [] });
    expect(mergePatch(given, { inputHistory: '' }, 'it').inputHistory).toBe('');
  });

  it.each<[unknown, string]>([
    [undefined, 'must be a plain object with what to change ({} for nothing), not undefined'],
    [null, 'not null'],
    [[], 'not an array'],
    ['x', 'not a string'],
    [new Map(), 'not an object'],
    [{ newItems: null }, 'As `newItems`, it returned null where an array of run items belongs'],
    [{ inputItems: [{ role: 'user', content: 'x' }] }, 'As `inputItems`, it returned an object as item 0'],
    // oxlint-disable-next-line no-sparse-arrays -- a hole is what is tested
    [{ preHandoffItems: [,] }, 'As `preHandoffItems`, it returned undefined as item 0'],
    [{ input: [] }, "What it returns has the unknown member 'input'"],
    [{ inputHistory: 5 }, 'As `inputHistory`, it returned 5'],
    [{ inputHistory: ['x'] }, 'As `inputHistory`, it returned a string as item 0'],
  ])('must be a patch: %j is none [TOOL-HO21]', (patch, text) => {
    expect(() => mergePatch(given, patch, 'it')).toThrow(UserError);
    expect(() => mergePatch(given, patch, 'it')).toThrow(text);
  });
});

describe('the prompt', () => {
  it('tells of the other agents and of silent transfers, then gives the instructions [TOOL-HO25]', () => {
    expect(RECOMMENDED_PROMPT_PREFIX).toMatch(/^# System context\n/);
    for (const said of [
      'several AI agents',
      'instructions and tools',
      'transfer_to_<agent_name>',
      'silently',
      'Never mention',
    ])
      expect(RECOMMENDED_PROMPT_PREFIX).toContain(said);
    expect(promptWithHandoffInstructions('Be kind.')).toBe(`${RECOMMENDED_PROMPT_PREFIX}\n\nBe kind.`);
    expect(() => promptWithHandoffInstructions(undefined as never)).toThrow(UserError);
  });
});
