import { describe, expect, test, vi } from 'vitest';
import { RunContext } from '../state/context.ts';
import { Agent } from './agent.ts';
import type { AnyAgent } from './agent.ts';
import { enabledHandoffs, enabledTools } from './enabled.ts';
import { handoff } from './handoff.ts';
import { tool } from './tool.ts';
import type { FunctionTool, IsEnabled } from './tool.ts';

const ctx = new RunContext({ beta: true });
const make = (name: string, isEnabled?: IsEnabled<unknown>): FunctionTool =>
  tool({ name, isEnabled, execute: () => name });
const agentOf = (...tools: FunctionTool[]): AnyAgent => new Agent({ name: 'Desk', tools });
describe('the tools of a turn', () => {
  test('are those that are enabled, in their order [TOOL-A12] [TOOL-F31]', async () => {
    const [a, b, c, d] = [make('a'), make('b', false), make('c', async () => true), make('d', () => false)];
    expect(await enabledTools(agentOf(a, b, c, d), ctx)).toEqual([a, c]);
  });

  test('predicates get the context and the agent itself [TOOL-F31]', async () => {
    const isEnabled = vi.fn<() => boolean>(() => true);
    const agent = agentOf(make('a', isEnabled));
    await enabledTools(agent, ctx);
    expect(isEnabled.mock.calls).toEqual([[ctx, agent]]);
  });

  test('are a snapshot: what a predicate changes in the list counts next turn [TOOL-A11]', async () => {
    const agent = new Agent({ name: 'Desk' });
    const names = async (): Promise<string[]> => (await enabledTools(agent, ctx)).map(({ name }) => name);
    let rebuilt = false;
    const rebuild = (): boolean => {
      if (!rebuilt) agent.tools.splice(0, 1, make('later'), make('last'));
      return (rebuilt = true);
    };
    agent.tools.push(make('first'), make('second', rebuild));
    expect(await names()).toEqual(['first', 'second']);
    expect(await names()).toEqual(['later', 'last', 'second']);
  });

  test('all predicates start at once; the first failure counts, the others are not forgotten [TOOL-A12] [TOOL-A24]', async () => {
    const unhandled = vi.fn<() => void>();
    process.on('unhandledRejection', unhandled);
    const started: string[] = [];
    const slow = make('slow', async () => {
      started.push('slow');
      await new Promise((resolve) => setTimeout(resolve, 5));
      throw new Error('late');
    });
    const first = new Error('first');
    const failing = make('failing', () => {
      started.push('failing');
      throw first;
    });
    await expect(enabledTools(agentOf(slow, failing), ctx)).rejects.toBe(first);
    expect(started).toEqual(['slow', 'failing']);
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test('must be tools, also those pushed later', () => {
    const agent = agentOf();
    agent.tools.push({ name: 'x' } as never);
    expect(() => enabledTools(agent, ctx)).toThrow(/agent Desk: tools\[0\]/);
  });
});

describe('the handoffs of a turn', () => {
  const noWarning = (name: string): never => {
    throw new Error(`warned about ${name}`);
  };
  const target = (name: string): Agent => new Agent({ name });

  test('are those that are enabled, in their order, plain agents as `handoff(agent)` [TOOL-HO6] [TOOL-HO8]', async () => {
    const late = handoff(target('Late'), { isEnabled: async () => true });
    const off = handoff(target('Off'), { isEnabled: false });
    const agent = new Agent({ name: 'Desk', handoffs: [target('Billing'), off, late] });
    const found = await enabledHandoffs(agent, ctx, noWarning);
    expect(found.map(({ toolName }) => toolName)).toEqual(['transfer_to_billing', 'transfer_to_late']);
    expect(found[1]).toBe(late);
    expect(found[0]).toMatchObject({ agentName: 'Billing', strictJsonSchema: true, inputFilter: undefined });
  });

  test('a plain agent is derived afresh, so that a later name shows [TOOL-HO6]', async () => {
    const billing = target('Billing');
    const agent = new Agent({ name: 'Desk', handoffs: [billing] });
    Object.assign(billing, { name: 'Money', handoffDescription: 'Pays.' });
    const [found] = await enabledHandoffs(agent, ctx, noWarning);
    expect([found?.toolName, found?.toolDescription]).toEqual([
      'transfer_to_money',
      'Handoff to the Money agent to handle the request. Pays.',
    ]);
  });

  test('all predicates are asked at once, with the context and the agent [TOOL-HO8]', async () => {
    const first = new Error('first');
    const isEnabled = vi.fn<() => boolean>(() => true);
    const slow = handoff(target('Slow'), { isEnabled: () => new Promise<boolean>(() => {}) });
    const failing = handoff(target('Failing'), { isEnabled: () => Promise.reject(first) });
    const agent = new Agent({ name: 'Desk', handoffs: [slow, failing, handoff(target('B'), { isEnabled })] });
    await expect(enabledHandoffs(agent, ctx, noWarning)).rejects.toBe(first);
    expect(isEnabled.mock.calls).toEqual([[ctx, agent]]);
  });

  test('a plain agent whose name lost characters is warned about [TOOL-HO1] [TOOL-HO46]', () => {
    const warn = vi.fn<(name: string, text: string) => void>();
    void enabledHandoffs(new Agent({ name: 'Desk', handoffs: [target('Straße #1')] }), ctx, warn);
    expect(warn.mock.calls[0]?.[0]).toBe('transfer_to_stra_e__1');
    expect(warn.mock.calls[0]?.[1]).not.toContain('Straße');
  });

  test('must be agents or handoffs, also those pushed later', () => {
    const agent = agentOf();
    agent.handoffs.push({ toolName: 'x' } as never);
    expect(() => enabledHandoffs(agent, ctx, noWarning)).toThrow(/agent Desk: handoffs\[0\]/);
  });
});
