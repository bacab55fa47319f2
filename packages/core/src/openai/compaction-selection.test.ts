import { describe, expect, it } from 'vitest';
import type { AgentInputItem } from '../items/items.ts';
import { exchangeDigest } from '../sessions/compaction-hook.ts';
import { item, said, talk } from '../../test/compaction-kit.ts';
import { user } from '../../test/run-kit.ts';
import { isComplete, seenSuffix } from './compaction-selection.ts';

describe('what the model saw of a history', () => {
  const reasoning = item({ type: 'reasoning', id: 'rs_1', summary: [] });
  const { id: _, ...bare } = reasoning as { id: string };
  /** Of a run whose policy leaves the ids of reasoning out, or not. */
  const seen = (
    stored: readonly AgentInputItem[],
    exchange: readonly AgentInputItem[],
    reasoningItemIdPolicy: 'omit' | null = null,
  ) => {
    const itemDigests = exchange.map((one) => exchangeDigest(one, null, undefined));
    const evidence = { itemDigests, reasoningItemIdPolicy, generation: undefined, signal: undefined };
    return seenSuffix(stored, evidence, undefined);
  };

  it('passes over what only the model saw, and uses each entry once [SESS-320]', () => {
    const [asked, first, second] = talk(2) as [AgentInputItem, AgentInputItem, AgentInputItem];
    expect(seen([asked, first], [user('only'), asked, said('only'), first, said('only')]).stored).toEqual([
      asked,
      first,
    ]);
    expect(seen([first, first], [asked, first]).stored).toEqual([first]);
    // In order: `first` was seen, but before `asked`.
    expect(seen([first, asked, second], [asked, first, second]).stored).toEqual([asked, second]);
    expect(seen([asked, first], [asked, second]).stored).toEqual([]);
  });

  it('takes an item as it is or with the policy applied, in the form that matched [SESS-320]', () => {
    expect(seen([reasoning], [reasoning], 'omit').seen).toEqual([reasoning]);
    expect(seen([reasoning], [item(bare)], 'omit').seen).toEqual([bare]);
    expect(seen([reasoning], [item(bare)], 'omit').stored).toEqual([reasoning]);
    expect(seen([reasoning], [item(bare)]).stored).toEqual([]);
  });
});

describe('a selection', () => {
  const call = item({ type: 'function_call', call_id: 'c', name: 't', arguments: '{}' });
  const output = item({ type: 'function_call_output', call_id: 'c', output: 'ok' });
  const program = item({ type: 'program', call_id: 'p' });
  const done = item({ type: 'program_output', call_id: 'p', output: 'ok' });
  const request = (id: string) =>
    item({ type: 'mcp_approval_request', id, name: 'n', arguments: '{}', server_label: 's' });
  const response = (id: string) => item({ type: 'mcp_approval_response', approval_request_id: id, approve: true });

  it.each([
    ['a call without output', [call]],
    ['an output without call', [output]],
    ['a program without output', [program]],
    ['the output of no program', [done]],
    ['a request without response', [request('r')]],
    ['a response without request', [response('r')]],
    ['a request and the response to another', [request('r'), response('q')]],
    ['two responses to one request', [request('r'), response('r'), response('r')]],
    ['two requests, of which one is answered twice', [request('r'), request('q'), response('q'), response('q')]],
  ])('with %s is not complete [SESS-324]', (_, items) => {
    expect(isComplete([user('q'), ...items, said('a')])).toBe(false);
  });

  it('with pairs alone is complete [SESS-324]', () => {
    expect(isComplete([call, output, program, done, request('r'), request('q'), response('q'), response('r')])).toBe(
      true,
    );
  });
});
