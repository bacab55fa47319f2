import { describe, expect, it } from 'vitest';
import { Content } from './content.ts';

const content = new Content(32_768);
const partsOf = (item: unknown): unknown => {
  const [message] = JSON.parse(content.messages([item]) ?? '[]') as { role: string; parts: unknown[] }[];
  return [message?.role, message?.parts];
};

describe('items of a conversation as parts [TRACE-O30]', () => {
  it.each([
    [{ role: 'user', content: 'Hi' }, 'user', [{ type: 'text', content: 'Hi' }]],
    [{ role: 'developer', content: 'Be kind.' }, 'system', [{ type: 'text', content: 'Be kind.' }]],
    [
      {
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'a' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      'assistant',
      [
        { type: 'text', content: 'a' },
        { type: 'text', content: 'no' },
      ],
    ],
    [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'look' }], encrypted_content: 'x' },
      'assistant',
      [{ type: 'reasoning', content: 'look' }],
    ],
    [
      { type: 'function_call', call_id: 'c1', name: 'lookup', arguments: '{"id":7}' },
      'assistant',
      [{ type: 'tool_call', id: 'c1', name: 'lookup', arguments: { id: 7 } }],
    ],
    [
      { type: 'function_call', call_id: 'c1', name: 'lookup', arguments: '{"id"' },
      'assistant',
      [{ type: 'tool_call', id: 'c1', name: 'lookup', arguments: '{"id"' }],
    ],
    [
      { type: 'custom_tool_call', call_id: 'c1', name: 'sql', input: 'select 1' },
      'assistant',
      [{ type: 'tool_call', id: 'c1', name: 'sql', arguments: 'select 1' }],
    ],
    [
      { type: 'computer_call', call_id: 'c1', action: { type: 'click', x: 1 } },
      'assistant',
      [{ type: 'tool_call', id: 'c1', name: 'computer', arguments: { type: 'click', x: 1 } }],
    ],
    [
      { type: 'function_call_output', call_id: 'c1', output: 'paid' },
      'tool',
      [{ type: 'tool_call_response', id: 'c1', response: 'paid' }],
    ],
    [
      {
        type: 'function_call_output',
        call_id: 'c1',
        output: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }],
      },
      'tool',
      [
        {
          type: 'tool_call_response',
          id: 'c1',
          response: [{ type: 'blob', modality: 'image', mime_type: 'image/png' }],
        },
      ],
    ],
    [
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
      'assistant',
      [
        {
          type: 'server_tool_call',
          id: 'ws_1',
          name: 'web_search',
          server_tool_call: { type: 'web_search', action: { type: 'search', query: 'q' } },
        },
      ],
    ],
    [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: 'https://acme.test/a.png' },
          { type: 'input_file', file_id: 'f1' },
        ],
      },
      'user',
      [
        { type: 'uri', modality: 'image', uri: 'https://acme.test/a.png' },
        { type: 'file', modality: 'document', file_id: 'f1' },
      ],
    ],
    [{ type: 'compaction', id: 'x', encrypted_content: 'y' }, 'assistant', [{ type: 'compaction' }]],
    [
      { role: 'tool', tool_call_id: 'c1', content: 'paid' },
      'tool',
      [{ type: 'tool_call_response', id: 'c1', response: 'paid' }],
    ],
    [
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', function: { name: 'lookup', arguments: '{}' } }] },
      'assistant',
      [{ type: 'tool_call', id: 'c1', name: 'lookup', arguments: {} }],
    ],
  ])('%j', (item, role, parts) => {
    expect(partsOf(item)).toEqual([role, parts]);
  });

  it('joins what one answer consists of', () => {
    const text = content.messages([
      { role: 'user', content: 'Hi' },
      { type: 'reasoning', summary: [{ text: 'look' }] },
      { type: 'function_call', call_id: 'c1', name: 'lookup', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'paid' },
    ]);
    expect((JSON.parse(text ?? '') as { role: string }[]).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
  });
});

describe('long texts [TRACE-O29, T53]', () => {
  it('are cut one by one, so that the whole still parses', () => {
    const short = new Content(4);
    const text = short.messages([
      { role: 'user', content: '0123456789' },
      { type: 'function_call', call_id: 'call_1', name: 'lookup', arguments: '{"note":"0123456789","n":7}' },
    ]);
    expect(JSON.parse(text ?? '')).toEqual([
      { role: 'user', parts: [{ type: 'text', content: '0123… [truncated 6]' }] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: 'call_1', name: 'lookup', arguments: { note: '0123… [truncated 6]', n: 7 } }],
      },
    ]);
  });

  it('are not cut inside a character', () => {
    expect(JSON.parse(new Content(2).value('a😀b') ?? '')).toBe('a… [truncated 3]');
  });

  it('that are data URLs are never shown, wherever they stand', () => {
    const data = `data:image/png;base64,${'A'.repeat(100)}`;
    expect(content.value({ deep: [data] })).toBe('{"deep":["data:image/png,… [truncated 122]"]}');
    expect(content.messages([{ role: 'user', content: [{ type: 'input_image', image_url: data }] }])).not.toContain(
      'AAAA',
    );
  });

  it('that hold JSON are that, others are texts; what has no JSON is left out', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    expect(['{"a":1}', 'paid', '{"a"', 7n, cycle, null].map((value) => content.value(value))).toEqual([
      '{"a":1}',
      '"paid"',
      '"{\\"a\\""',
      '"7"',
      undefined,
      undefined,
    ]);
  });
});
