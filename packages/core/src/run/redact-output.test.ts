import { describe, expect, it } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { toUsage } from '../base/usage.ts';
import { HandoffCallItem, MessageOutputItem, ReasoningItem, ToolCallItem, ToolCallOutputItem } from '../items/items.ts';
import type { RunItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import { redactResponse, redactToolVerdict, redactVerdict } from './redact-output.ts';

const agent = new Agent({ name: 'A' });
const response: ModelResponse = {
  output: [],
  usage: toUsage({ inputTokens: 3 }),
  responseId: 'resp_1',
  requestId: 'req_1',
  rawUsage: { secret: 1 },
};
const callItem = (id: string, more: object = {}): ToolCallItem =>
  new ToolCallItem(agent, { type: 'function_call', call_id: id, name: 't', arguments: '{"x":1}', ...more } as never, {
    title: 'T',
    toolOrigin: { type: 'function' },
    originalArguments: 'secret',
  });
const outputItem = (id: string, more: object = {}): ToolCallOutputItem =>
  new ToolCallOutputItem(agent, { type: 'function_call_output', call_id: id, output: 'secret', ...more } as never, {
    output: { value: 'secret' },
    customData: { note: 'secret' },
  });
const message = new MessageOutputItem(agent, {
  type: 'message',
  id: 'm',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'secret', annotations: [] }],
});
const raws = (items: readonly RunItem[]): unknown[] => items.map(({ rawItem }) => rawItem);

describe('a response whose tool output is blocked', () => {
  it('is rebuilt from an allow-list of members, pairs in their order, messages dropped [RUN-922, RUN-923, RUN-924]', () => {
    const more = {
      id: 'fc_1',
      namespace: 'crm',
      status: 'in_progress',
      caller: { type: 'direct', secret: 1 },
      secret: 'x',
    };
    const items = [
      message,
      callItem('c1', more),
      callItem('c2', { status: 'odd', id: 7 }),
      outputItem('c1', { id: 'o1', status: 'completed', caller: { type: 'direct' }, secret: 'x' }),
      outputItem('c2', { output: [{ type: 'input_text', text: 'secret' }] }),
    ];
    const redacted = redactResponse(items, response, 'hidden');
    const call1 = {
      type: 'function_call',
      name: 't',
      arguments: '{"x":1}',
      call_id: 'c1',
      id: 'fc_1',
      namespace: 'crm',
      status: 'in_progress',
      caller: { type: 'direct' },
    };
    const call2 = { type: 'function_call', name: 't', arguments: '{"x":1}', call_id: 'c2' };
    expect(raws(redacted.items)).toEqual([
      call1,
      call2,
      {
        type: 'function_call_output',
        call_id: 'c1',
        output: 'hidden',
        id: 'o1',
        status: 'completed',
        caller: { type: 'direct' },
      },
      { type: 'function_call_output', call_id: 'c2', output: 'hidden' },
    ]);
    expect(redacted.response).toEqual({
      output: [call1, call2],
      usage: response.usage,
      responseId: 'resp_1',
      requestId: 'req_1',
    });
    expect(JSON.stringify([redacted, redacted.items.map((item) => item.toJSON())])).not.toContain('secret');
  });

  const reasoning = new ReasoningItem(agent, { type: 'reasoning', id: 'rs', summary: [] });
  const pair = [callItem('c1'), outputItem('c1')];
  it.each<[string, readonly RunItem[]]>([
    ['reasoning', [reasoning, ...pair]],
    ['a call without output', [...pair, callItem('c2')]],
    ['an output without call', [...pair, outputItem('c2')]],
    ['an output before its call', [outputItem('c1'), callItem('c1')]],
    ['a call twice', [callItem('c1'), ...pair]],
    ['an output twice', [...pair, outputItem('c1')]],
    ['a call of a program', [callItem('c1', { caller: { type: 'program', caller_id: 'p' } }), outputItem('c1')]],
    ['an output of a program', [callItem('c1'), outputItem('c1', { caller: { type: 'program' } })]],
    ['a call of the provider', [...pair, new ToolCallItem(agent, { type: 'web_search_call', id: 'w' } as never)]],
    ['an output of another kind', [callItem('c1'), outputItem('c1', { type: 'shell_call_output' })]],
    [
      'a handoff',
      [...pair, new HandoffCallItem(agent, { type: 'function_call', call_id: 'h', name: 'x', arguments: '' })],
    ],
    ['a call without a name', [callItem('c1', { name: undefined }), outputItem('c1')]],
    ['messages alone', [message]],
  ])('leaves nothing of a response with %s [RUN-923, RUN-924]', (_, items) => {
    expect(redactResponse(items, response, 'hidden')).toEqual({ items: [], response: undefined });
  });

  it('leaves of verdicts whether they let it pass [RUN-925, RUN-926]', () => {
    const guardrail = { name: 'g' };
    expect(
      redactVerdict(
        { guardrail, agent, agentOutput: 'secret', output: { tripwireTriggered: false, outputInfo: 'secret' } },
        'hidden',
      ),
    ).toEqual({ guardrail, agent, agentOutput: 'hidden', output: { tripwireTriggered: false, outputInfo: null } });
    expect(
      redactToolVerdict({ guardrail, output: { behavior: { type: 'allow' }, outputInfo: 'secret' } }, 'hidden'),
    ).toEqual({ guardrail, output: { behavior: { type: 'allow' }, outputInfo: 'hidden' } });
    expect(
      redactToolVerdict({ guardrail, output: { behavior: { type: 'reject_content', message: 'secret' } } }, 'hidden'),
    ).toEqual({ guardrail, output: { behavior: { type: 'reject_content', message: 'hidden' }, outputInfo: 'hidden' } });
  });
});
