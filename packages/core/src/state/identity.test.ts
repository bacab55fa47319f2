import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from '../base/digest.ts';
import { CanonicalText, canonicalJson } from '../base/json-encode.ts';
import { canonicalizeJsonText } from '../base/json-text.ts';
import { callIdentity, ScopeDigests, storedIdentity } from './identity.ts';
import type { CallIdentity } from './identity.ts';
import type { ToolLookupKey } from './record.ts';

const call = (over: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: 'function_call',
  call_id: 'c1',
  name: 'refund',
  arguments: '{"a":1,"b":[2,null]}',
  ...over,
});
const digests = (identity: CallIdentity | undefined): (string | undefined)[] => [
  identity?.approvalScope,
  identity?.fingerprint,
];
const known = (raw: object): CallIdentity => {
  const identity = callIdentity(raw);
  if (identity === undefined) throw new Error('uncanonical');
  return identity;
};
/** The same call, so compared by digests. */
const stored = (raw: object): CallIdentity => {
  const { type, callId, approvalScope, fingerprint } = known(raw);
  return storedIdentity({ type, callId, approvalScope, fingerprint });
};

describe('digests are those of Python', () => {
  const vectors: [string, object, Parameters<typeof callIdentity>[2], string, string | undefined][] = [
    [
      'a function',
      call({ name: 'lookup_account', arguments: '{"account_id":"account-1"}' }),
      {},
      '73dc418185c1335b2f8ae49c817524e389e0f47c666a4578a8fb9d921756bbd4',
      '1f6f2dba51c70f18ab8f13f23bc34068e31ce849b6d7323575a0a99b7303a356',
    ],
    [
      'floats and non-ASCII',
      call({ name: 'refund_order', arguments: '{"order_id":7,"note":"é","ratio":1.0}' }),
      {},
      '4e140fb1f4ad47a9286469a92fa9afa640cf7416670dc43eefb0c5766f201356',
      '73c90c5e4667ef487528d6acb1c497b6f610f521ea4093485a34318087f4dac3',
    ],
    [
      'a namespace',
      call({ name: 'refund_order', namespace: 'crm' }),
      {},
      'a1274d9d245d157137f06c7cc54d661c46f1aaa58f6bd727cbd586d3804cef7f',
      undefined,
    ],
    [
      'a handoff',
      call({ name: 'transfer_to_billing' }),
      { role: 'handoff' },
      '7b37a993c63ff0d0582c23679fd3a2bdeb2ab999469cde9c875343b340ab3eb7',
      undefined,
    ],
    [
      'a hosted request',
      { type: 'mcp_approval_request', id: 'm1', name: 'lookup_account', server_label: 'crm', arguments: '{"id":1}' },
      {},
      '0de2c6c3d56b400c973f498cd0cccdff9cb17d465a4a3ba80151f1182b869a79',
      '05aec1101fbda15b55aff3240194c503f2421ebb2d728b05ec890e59c2640d7d',
    ],
    [
      'a shell call',
      { type: 'shell_call', call_id: 's1', action: { commands: ['ls -la'] } },
      { toolName: 'shell' },
      '3134c0d12a8e46ae3a19e3873c59518d72e4de8d3319e3db106c909ed43b11bd',
      '22712871ff487039ac2b0cb83f35e05f73a4d267710717790b39f9efed3ee86a',
    ],
    // Rows of the fixtures e7 and g4.
    [
      'a shell call with null members',
      {
        type: 'shell_call',
        id: 'sh_1',
        call_id: 's1',
        action: { commands: ['ls -la'], max_output_length: null, timeout_ms: 1000 },
        environment: null,
        status: 'completed',
      },
      { toolName: 'shell' },
      '3134c0d12a8e46ae3a19e3873c59518d72e4de8d3319e3db106c909ed43b11bd',
      '74f1be60bf1085a4f9eb9251aad60b1a0858923fae33112b1aa64073ca6ac5cc',
    ],
    [
      'a patch',
      { type: 'apply_patch_call', call_id: 'p1', operation: { diff: '+hi', path: 'a.txt', type: 'create_file' } },
      { toolName: 'apply_patch' },
      'f65c6abf0a696bbacadf390466e4310fe7eb4f47b7cb80f2c5b664be7316040c',
      'a011904b080290bc26bc723dc1a15ab478f9072e75c2f8b3817228d42c01fcc5',
    ],
    [
      'a custom tool',
      { type: 'custom_tool_call', call_id: 'k1', name: 'sql', input: 'select 1' },
      {},
      '775057712013a723746bb58796a8335427f20d4e5208a9b9a3c6a26c7cf5326b',
      '0e0711ee491fc532bf9739441cbc2eb8ce7a6efd0f736574f5a1b6652dcf13b4',
    ],
    [
      'a deferred tool',
      call({ name: 'deferred_tool', namespace: 'deferred_tool', arguments: '{"x":1}' }),
      {},
      '6f9c54049476f53ecdeb399833edff53051b1872aedfee998d4c8a20a999283a',
      'f06175cf819d14c1056d7d41107b4634cac80f06f2c3f00fa0cd01d02d787288',
    ],
  ];
  test.each(vectors)('%s', (_name, raw, options, scope, fingerprint) => {
    const identity = callIdentity(raw, undefined, options);
    expect(identity?.approvalScope).toBe(scope);
    expect(identity?.fingerprint).toMatch(fingerprint ?? /^[0-9a-f]{64}$/);
  });
});

test('the text of a plain call is that of the general form, and calls of one tool share the digest of their scope', () => {
  const names = fc.oneof(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom('a"b', 'é', 'x.y'));
  const texts = fc.oneof(
    fc.json(),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('{"b":1,"a":1.0}', '{"a":{"c":"\\n\u007f"}}', '{"a":1,"a":2}', '{"a" : "x"}', '{"a":"x"', '"'),
  );
  const keys = fc.oneof(
    fc.record({ kind: fc.constantFrom('bare', 'deferred_top_level'), name: names }),
    fc.record({ kind: fc.constant('namespaced'), namespace: names, name: names }),
  ) as fc.Arbitrary<ToolLookupKey>;
  const roles = fc.constantFrom(undefined, 'handoff' as const);
  fc.assert(
    fc.property(fc.array(fc.tuple(texts, keys, roles), { minLength: 1, maxLength: 4 }), (calls) => {
      const scopes = new ScopeDigests();
      for (const [text, key, role] of calls) {
        const identity = callIdentity(call({ arguments: text }), key, { role });
        const names = key.kind === 'namespaced' ? [key.namespace, key.name] : [key.name];
        const scope = sha256Hex(
          canonicalJson({
            type: 'function_call',
            ...(role && { invocation_role: role }),
            tool_lookup_key: [key.kind, ...names],
          }) ?? '',
        );
        const canonical = canonicalizeJsonText(text);
        const fingerprint = sha256Hex(
          canonicalJson({
            approval_scope: scope,
            type: 'function_call',
            arguments: canonical === undefined ? text : new CanonicalText(canonical),
          }) ?? '',
        );
        expect(digests(identity?.shareScope(scopes))).toEqual([scope, fingerprint]);
        expect(digests(callIdentity(call({ arguments: text }), key, { role }))).toEqual([scope, fingerprint]);
      }
    }),
  );
});

describe('what counts', () => {
  test('blanks, key order and provider metadata do not', () => {
    const base = call();
    for (const same of [
      call({ arguments: ' { "b": [2, null], "a": 1 } ' }),
      call({ id: 'fc_2', status: 'completed', created_by: 'x', caller: null }),
    ]) {
      expect(known(same).equals(known(base))).toBe(true);
      expect(digests(known(same))).toEqual(digests(known(base)));
    }
  });

  test('null arguments differ from absent ones, numbers by how they are written', () => {
    const texts = [
      '{}',
      '{"a":null}',
      '{"a":1}',
      '{"a":1.0}',
      '{"a":12345678901234567890}',
      '{"a":12345678901234567891}',
      'no json',
      '"no json"',
    ];
    const seen = new Set(texts.map((text) => known(call({ arguments: text })).fingerprint));
    // Text that is no JSON counts as the same string in quotes does.
    expect(seen.size).toBe(texts.length - 1);
  });

  test('pending safety checks do, a null member of an action does not', () => {
    const computer = (more: object): object => ({
      type: 'computer_call',
      call_id: 'x',
      action: { type: 'click', x: 1 },
      ...more,
    });
    expect(known(computer({ pending_safety_checks: [{ id: 's' }] })).equals(known(computer({})))).toBe(false);
    expect(known(computer({ action: { type: 'click', x: 1, y: null } })).equals(known(computer({})))).toBe(true);
  });

  test('a handoff and a function of one name and id are different calls [STATE-169]', () => {
    expect(callIdentity(call(), undefined, { role: 'handoff' })?.equals(known(call()))).toBe(false);
  });

  test('the tool that a call resolved to decides, not its raw names', () => {
    expect(callIdentity(call(), { kind: 'namespaced', namespace: 'crm', name: 'refund' })?.equals(known(call()))).toBe(
      false,
    );
  });

  test('an identity of a snapshot equals the call that it was made of, and no other', () => {
    expect(known(call()).equals(stored(call()))).toBe(true);
    expect(stored(call()).equals(known(call({ arguments: '{"b":[2,null],"a":1}' })))).toBe(true);
    for (const other of [
      call({ arguments: '{"a":2}' }),
      call({ call_id: 'c2' }),
      call({ name: 'other' }),
      call({ namespace: 'crm' }),
      call({ caller: { type: 'program', caller_id: 'p' } }),
    ]) {
      expect(known(other).equals(stored(call()))).toBe(false);
      expect(known(other).equals(known(call()))).toBe(false);
    }
  });
});

describe('uncanonical', () => {
  const cases: [string, object][] = [
    ['no id', call({ call_id: '' })],
    ['no name', call({ name: '' })],
    ['no arguments', call({ arguments: undefined })],
    ['a lone surrogate', call({ arguments: '{"a":"\ud800"}' })],
    ['an escaped lone surrogate', call({ arguments: String.raw`{"a":"\ud800"}` })],
    ['a lone surrogate in another member', call({ caller: { type: 'program', caller_id: '\ud800' } })],
    ['a lone surrogate in the name', call({ name: 'a\udc00' })],
    ['a custom call without input', { type: 'custom_tool_call', call_id: 'c', name: 'sql' }],
    ['a shell call without action', { type: 'shell_call', call_id: 'c' }],
    ['a patch without operation', { type: 'apply_patch_call', call_id: 'c' }],
    ['a request without server', { type: 'mcp_approval_request', id: 'r', name: 'x', arguments: '{}' }],
    [
      'a wrapped request with an empty inner id',
      {
        type: 'hosted_tool_call',
        id: 'outer',
        call_id: 'outer',
        provider_data: { type: 'mcp_approval_request', id: '', name: 'x', server_label: 's', arguments: '{}' },
      },
    ],
    ['an output', { type: 'function_call_output', call_id: 'c', output: 'x' }],
    ['a message', { type: 'message', content: [] }],
  ];
  test.each(cases)('%s', (_name, raw) => {
    expect(callIdentity(raw)).toBeUndefined();
  });

  test('a pair of surrogates, written or escaped, is text like any other', () => {
    expect(
      known(call({ arguments: '{"a":"😀"}' })).equals(known(call({ arguments: String.raw`{"a":"\ud83d\ude00"}` }))),
    ).toBe(true);
  });

  test('a wrapped request without inner id takes the outer one, and the outer name', () => {
    const inner = { type: 'mcp_approval_request', server_label: 's', arguments: '{}' };
    const wrapped = callIdentity({
      type: 'hosted_tool_call',
      id: 'i',
      call_id: 'outer',
      name: 'x',
      provider_data: inner,
    });
    expect(wrapped?.callId).toBe('outer');
    expect(wrapped?.equals(known({ ...inner, id: 'outer', name: 'x' }))).toBe(true);
  });
});

describe('ledger rows that the Python SDK wrote', () => {
  type Row = { type: string; approval_scope: string; fingerprint: string };
  type Wire = { type: string; id?: string; call_id?: string };
  type State = { context: { tool_invocations?: Record<string, Row> }; model_responses: { output: Wire[] }[] };
  const folder = new URL('../../test/fixtures/python/', import.meta.url);
  const files = ['', '0.22.0/', '0.22.3/', '0.23.1/'].flatMap((release) =>
    readdirSync(new URL(release, folder))
      .filter((name) => name.endsWith('.json'))
      .map((name) => release + name),
  );
  const native: Record<string, string> = { shell_call: 'shell', apply_patch_call: 'apply_patch' };

  const rows = files.flatMap((file) => {
    const state = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as State;
    const calls = state.model_responses.flatMap(({ output }) => output);
    return Object.entries(state.context.tool_invocations ?? {}).map(([id, row]) => ({
      file,
      id,
      row,
      call: calls.find((item) => (item.call_id ?? item.id) === id),
    }));
  });

  test('are there', () => {
    expect(rows.filter(({ call }) => call !== undefined).length).toBeGreaterThan(60);
  });

  test.each(rows.filter(({ call }) => call !== undefined))('$file $id', ({ row, call }) => {
    const toolName = native[row.type];
    const plain = callIdentity(call, undefined, { toolName });
    const handoff = callIdentity(call, undefined, { role: 'handoff' });
    const identity = plain?.approvalScope === row.approval_scope ? plain : handoff;
    expect({
      type: identity?.type,
      approval_scope: identity?.approvalScope,
      fingerprint: identity?.fingerprint,
    }).toEqual({
      type: row.type,
      approval_scope: row.approval_scope,
      fingerprint: row.fingerprint,
    });
  });
});
