import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dedupeInput, inputToList, itemDigest, toInputItem, withoutReasoningId } from './convert.ts';
import type { AgentInputItem } from './items.ts';

/** Wire objects of tests: kinds and members beyond the types of `openai` included. */
const wire = (item: Record<string, unknown>): AgentInputItem => item as unknown as AgentInputItem;

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}

describe('toInputItem', () => {
  test.each([
    'function_call',
    'function_call_output',
    'custom_tool_call',
    'custom_tool_call_output',
    'computer_call_output',
    'shell_call',
    'shell_call_output',
    'apply_patch_call',
    'apply_patch_call_output',
    'tool_search_call',
    'tool_search_output',
    'compaction',
  ])(
    'created_by goes from %s, other unknown members stay, the original is not changed [RUN-1102] [MODEL-910]',
    (type) => {
      const raw = deepFreeze({ type, id: 'x_1', created_by: 'server', brand_new: { created_by: 'me' } });
      expect(toInputItem(raw)).toEqual({ type, id: 'x_1', brand_new: { created_by: 'me' } });
    },
  );

  test('chunks of a shell output lose created_by too, and the output what only this side knows [RUN-1102] [MODEL-910]', () => {
    const raw = deepFreeze({
      type: 'shell_call_output',
      call_id: 'c1',
      status: 'completed',
      shell_output: [1],
      provider_data: {},
      output: [{ stdout: 'a', created_by: 'server' }, { stdout: 'b' }, 'odd'],
    });
    expect(toInputItem(raw)).toEqual({
      type: 'shell_call_output',
      call_id: 'c1',
      output: [{ stdout: 'a' }, { stdout: 'b' }, 'odd'],
    });
  });

  test('a null status and members of the SDK go, another status stays [RUN-1102]', () => {
    const raw = {
      type: 'function_call',
      status: null,
      _agents_tool_title: 't',
      _agents_tool_description: 'd',
      name: 'f',
    };
    expect(toInputItem(raw)).toEqual({ type: 'function_call', name: 'f' });
    expect(toInputItem({ type: 'shell_call', status: 'completed' })).toEqual({
      type: 'shell_call',
      status: 'completed',
    });
  });

  test('without anything to remove it is still a new object with the same parts [RUN-1102]', () => {
    const raw = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] };
    const converted = toInputItem(raw);
    expect(converted).not.toBe(raw);
    expect(converted).toEqual(raw);
    expect((converted as typeof raw).content).toBe(raw.content);
  });

  test('a member named __proto__ stays a member', () => {
    const raw: unknown = JSON.parse('{"type":"message","__proto__":{"polluted":true}}');
    const converted = toInputItem(raw) as unknown as Record<string, unknown>;
    expect(Object.keys(converted)).toEqual(['type', '__proto__']);
    expect(converted['polluted']).toBeUndefined();
  });
});

describe('withoutReasoningId', () => {
  test('takes the id of reasoning items and touches nothing else [RUN-251] [RUN-253]', () => {
    const reasoning = deepFreeze(wire({ type: 'reasoning', id: 'rs_1', summary: [] }));
    expect(withoutReasoningId(reasoning)).toEqual({ type: 'reasoning', summary: [] });
    const call = wire({ type: 'function_call', id: 'fc_1' });
    expect(withoutReasoningId(call)).toBe(call);
  });
});

test('a string is one message of the user, a list a new list of the same items [RUN-227]', () => {
  expect(JSON.stringify(inputToList('hi'))).toBe('[{"content":"hi","role":"user"}]');
  const input = [wire({ role: 'user', content: 'x' })];
  expect(inputToList(input)).not.toBe(input);
  expect(inputToList(input)[0]).toBe(input[0]);
});

describe('dedupeInput', () => {
  const item = (type: string, ids: Record<string, unknown>, v: number) => wire({ type, ...ids, v });

  test('calls, reasoning and approval requests stay where they came first, with the newest content [RUN-224] [SESS-075]', () => {
    for (const [type, ids] of [
      ['function_call', { call_id: 'c' }],
      ['program', { call_id: 'c' }],
      ['web_search_call', { id: 'ws' }],
      ['reasoning', { id: 'rs' }],
      ['mcp_approval_request', { id: 'mr' }],
    ] as const) {
      const other = item('function_call', { call_id: 'other' }, 0);
      expect(dedupeInput([item(type, ids, 1), other, item(type, ids, 2)])).toEqual([item(type, ids, 2), other]);
    }
  });

  test('outputs and other items stand where they came last [RUN-224] [SESS-075]', () => {
    for (const [type, ids] of [
      ['function_call_output', { call_id: 'c' }],
      ['mcp_approval_response', { approval_request_id: 'mr' }],
      ['compaction', { id: 'cmp' }],
      ['of_another_maker', { call_id: 'c' }],
      ['of_another_maker', { id: '__fake_id__', call_id: 'c', approval_request_id: 'other' }],
    ] as const) {
      const other = item('function_call', { call_id: 'other' }, 0);
      expect(dedupeInput([item(type, ids, 1), other, item(type, ids, 2)])).toEqual([other, item(type, ids, 2)]);
    }
  });

  test('messages, items with a role and items with the placeholder id are never merged [RUN-224] [SESS-075]', () => {
    const list = [
      wire({ type: 'message', id: 'm', role: 'assistant' }),
      wire({ type: 'message', id: 'm', role: 'assistant' }),
      wire({ role: 'user', content: 'x' }),
      wire({ role: 'user', content: 'x' }),
      item('reasoning', { id: '__fake_id__' }, 1),
      item('reasoning', { id: '__fake_id__' }, 2),
    ];
    expect(dedupeInput(list)).toBe(list);
  });

  test('a call and its output, and equal ids of different kinds, are different items [RUN-224] [SESS-075]', () => {
    const list = [
      item('function_call', { call_id: 'c', id: 'x' }, 1),
      item('function_call_output', { call_id: 'c', id: 'x' }, 2),
      item('custom_tool_call', { call_id: 'c' }, 3),
      item('function_call', { call_id: 'd', id: 'x' }, 4),
    ];
    expect(dedupeInput(list)).toBe(list);
  });

  test('a call with the placeholder id still counts by its call id [SESS-075]', () => {
    const twice = [
      item('function_call', { call_id: 'c', id: '__fake_id__' }, 1),
      item('function_call', { call_id: 'c', id: 'fc' }, 2),
    ];
    expect(dedupeInput(twice)).toEqual([twice[1]]);
  });

  test('what is left has no repeats, nothing is invented and no identity is lost', () => {
    const element = fc.record({
      type: fc.constantFrom('function_call', 'function_call_output', 'reasoning', 'message', 'compaction'),
      call_id: fc.constantFrom('a', 'b', undefined),
      id: fc.constantFrom('a', 'b', '__fake_id__', undefined),
      v: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(element, { maxLength: 12 }), (elements) => {
        const list = elements.map(wire);
        const out = dedupeInput(list);
        expect(out.every((one) => list.includes(one))).toBe(true);
        expect(dedupeInput(out)).toBe(out);
        expect(out.filter(({ type }) => type === 'message')).toEqual(list.filter(({ type }) => type === 'message'));
        const kinds = (items: readonly AgentInputItem[]) => new Set(items.map(({ type }) => type));
        expect(kinds(out)).toEqual(kinds(list));
      }),
    );
  });
});

describe('itemDigest', () => {
  const both = (item: Record<string, unknown>) => [itemDigest(wire(item), 'raw'), itemDigest(wire(item), 'normalized')];

  test('the forms tell a stored assistant message from a normalized one', () => {
    expect(both({ role: 'assistant', content: 'x', status: 'completed' })).toEqual([
      '8d56c6328e68c8e845aeb24cddc062660fbc2de878578b681c8f4008397627dc',
      '0604baf835939add81cf0c161405c2953ea59e6a43a51e18610319f362b14c34',
    ]);
  });

  test.each([
    [{ role: 'user', content: 'héllo 😀' }, '7e50cdfa28e66f86f18b29a8541c891b6383990103aefc7189c63219a010dcf7'],
    [
      { type: 'function_call_output', call_id: 'call_1', output: 'done' },
      '3773b60a1db6bc427152cec4a91844089d45c90a1ac0e7483ee82e524bc481a8',
    ],
  ])('other items have one digest in both forms (%#)', (item, digest) => {
    expect(both(item)).toEqual([digest, digest]);
    expect(both({ ...item, created_by: 's', _agents_tool_title: 't', _agents_tool_description: 'd' })).toEqual([
      digest,
      digest,
    ]);
  });

  test('neither member order nor a member named like one of Object counts for anything', () => {
    expect(both({ b: 1, a: 2 })).toEqual(both({ a: 2, b: 1 }));
    expect(both({ a: 2, toString: 1 })).not.toEqual(both({ a: 2 }));
  });

  test('digests that the Python SDK wrote into states are those of the same items here [STATE-316]', () => {
    const state = (name: string) =>
      JSON.parse(readFileSync(new URL(`../../test/fixtures/python/${name}.json`, import.meta.url), 'utf8')) as {
        pending_session_write: { before: string[] };
        session_items: { raw_item: Record<string, unknown> }[];
        nested_history_owned_session_item_refs: { index: number; digest: string }[];
      };
    const tail = [
      {
        type: 'function_call',
        id: 'fc_b2',
        call_id: 'call_b2',
        name: 'lookup_order',
        arguments: '{"order_id":7}',
        status: 'completed',
      },
      {
        type: 'function_call_output',
        call_id: 'call_b2',
        output: "{'order_id': 7, 'total': 12.5, 'note': 'Grüße 😊'}",
      },
    ];
    expect(state('b6_pending_write_append_failed').pending_session_write.before).toEqual(
      tail.map((item) => itemDigest(wire(item), 'raw')),
    );

    const nested = state('d3_nested_history_then_interrupted');
    const [ref] = nested.nested_history_owned_session_item_refs;
    expect(itemDigest(wire(nested.session_items[ref?.index ?? -1]?.raw_item ?? {}), 'normalized')).toBe(ref?.digest);
  });
});
