import { expect, test } from 'vitest';
import { completedBy, invocationOf } from './invocation.ts';

test('outputs name the call that they end, by its id and never by their own', () => {
  expect(completedBy({ type: 'function_call_output', id: 'o', call_id: 'c', output: '' })).toEqual({
    type: 'function_call',
    callId: 'c',
  });
  expect(completedBy({ type: 'function_call_output', id: 'o', output: '' })).toBeUndefined();
  expect(completedBy({ type: 'mcp_approval_response', id: 'o', approval_request_id: 'r', approve: true })).toEqual({
    type: 'mcp_approval_request',
    callId: 'r',
  });
  expect(completedBy({ type: 'toString' })).toBeUndefined();
  expect(invocationOf({ type: 'function_call', call_id: '' })).toEqual({ type: 'function_call', callId: undefined });
  expect(invocationOf({ type: 'web_search_call', id: 'w' })).toBeUndefined();
});
