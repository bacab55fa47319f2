import { Agent, run, tool, withTrace } from '@agents/core';
import { resetDefaults, toolCall } from '@agents/core/testing';
import { createSpan } from '@agents/core/tracing';
import type { SpanInit, SpanType } from '@agents/core/tracing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { kindName, scripted, settled, Telemetry } from './kit.ts';

let otel: Telemetry;

beforeEach(() => {
  resetDefaults();
  otel = new Telemetry({ captureContent: true }).use();
});
afterEach(async () => {
  resetDefaults();
  await otel.close();
});

describe('spans that no run of ours makes', () => {
  it.each<[SpanInit<SpanType>, string, string, object]>([
    [
      { type: 'mcp_tools', server: 'files', result: ['read', 'write'] },
      'tools/list',
      'CLIENT',
      { 'mcp.method.name': 'tools/list', 'agents.mcp.server': 'files', 'agents.mcp.tool_count': 2 },
    ],
    [
      { type: 'transcription', model: 'whisper' },
      'transcription whisper',
      'CLIENT',
      { 'gen_ai.operation.name': 'transcription', 'gen_ai.request.model': 'whisper' },
    ],
    [
      { type: 'speech', model: 'tts' },
      'speech tts',
      'CLIENT',
      { 'gen_ai.operation.name': 'speech', 'gen_ai.request.model': 'tts' },
    ],
    [{ type: 'speech_group' }, 'speech_group', 'INTERNAL', {}],
    [{ type: 'custom', name: 'rank', data: { rows: 3 } }, 'rank', 'INTERNAL', { 'agents.custom.data': '{"rows":3}' }],
    [
      // A type of the user's own; declared for all of the workspace it would be everybody's.
      { type: 'retrieval', name: 'orders', hits: 3 } as never,
      'retrieval orders',
      'INTERNAL',
      { 'agents.custom.data': '{"name":"orders","hits":3}' },
    ],
    [
      { type: 'function', name: 'files.read', mcpData: { server: 'files' } },
      'execute_tool files.read',
      'INTERNAL',
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'files.read',
        'gen_ai.tool.type': 'function',
        'mcp.method.name': 'tools/call',
        'agents.mcp.server': 'files',
      },
    ],
  ])('%j', (init, name, kind, attributes) => {
    withTrace('t', () => createSpan(init).start().finish(), { groupId: 'g' });
    const span = otel.span(name);
    expect(kindName(span)).toBe(kind);
    expect(settled(span.attributes)).toEqual({
      ...attributes,
      'agents.span_type': init.type,
      'agents.group_id': 'g',
    });
  });
});

describe('several runs of one trace', () => {
  it('that paused and went on leave a root that is not interrupted [TRACE-O20, R9]', async () => {
    const refund = tool({ name: 'refund', parameters: z.object({}), needsApproval: true, execute: () => 'ok' });
    const agent = new Agent({ name: 'Desk', model: scripted(toolCall('refund', {}), 'done'), tools: [refund] });
    await withTrace('Conversation', async () => {
      const state = (await run(agent, 'go')).toState();
      for (const item of state.interruptions) state.approve(item);
      await run(agent, state);
    });
    const { attributes } = otel.span('invoke_workflow Conversation');
    expect(attributes['agents.run.interrupted']).toBeUndefined();
    expect(otel.named('invoke_agent Desk')).toHaveLength(2);
  });

  it('show what the first agent got and what the last one said [TRACE-O27]', async () => {
    await withTrace('Conversation', async () => {
      await run(new Agent({ name: 'A', model: scripted('one') }), 'first');
      await run(new Agent({ name: 'B', model: scripted('two') }), 'second');
    });
    const { attributes } = otel.span('invoke_workflow Conversation');
    expect(attributes['gen_ai.input.messages']).toContain('first');
    expect(attributes['gen_ai.output.messages']).toContain('two');
  });

  it('name the session as the conversation, before the group [TRACE-O38]', async () => {
    const { MemorySession } = await import('@agents/core/session');
    const session = new MemorySession('session-1');
    await run(new Agent({ name: 'A', model: scripted('one') }), 'first', { session, groupId: 'g' });
    expect(otel.span('chat scripted').attributes['gen_ai.conversation.id']).toBe('session-1');
    expect(otel.span('invoke_agent A').attributes['gen_ai.conversation.id']).toBe('session-1');
  });
});
