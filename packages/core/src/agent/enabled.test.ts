import { afterEach, describe, expect, test, vi } from 'vitest';
import { UserError } from '../base/errors.ts';
import { configureLogging } from '../base/logger.ts';
import { RunContext } from '../state/context.ts';
import { Agent } from './agent.ts';
import type { AnyAgent } from './agent.ts';
import { enabledTools } from './enabled.ts';
import { tool } from './tool.ts';
import type { FunctionTool, IsEnabled } from './tool.ts';

const ctx = new RunContext({ beta: true });
const make = (name: string, isEnabled?: IsEnabled<unknown>): FunctionTool =>
  tool({ name, isEnabled, execute: () => name });
const agentOf = (...tools: FunctionTool[]): AnyAgent => new Agent({ name: 'Desk', tools });
const noWarning = (name: string): never => {
  throw new Error(`warned about ${name}`);
};

afterEach(() => configureLogging({ dontLogToolData: true }));

describe('the tools of a turn', () => {
  test('are those that are enabled, in their order [TOOL-A12] [TOOL-F31]', async () => {
    const [a, b, c, d] = [make('a'), make('b', false), make('c', async () => true), make('d', () => false)];
    expect(await enabledTools(agentOf(a, b, c, d), ctx, 'error', noWarning)).toEqual([a, c]);
  });

  test('predicates get the context and the agent itself [TOOL-F31]', async () => {
    const isEnabled = vi.fn<() => boolean>(() => true);
    const agent = agentOf(make('a', isEnabled));
    await enabledTools(agent, ctx, 'warn', noWarning);
    expect(isEnabled.mock.calls).toEqual([[ctx, agent]]);
  });

  test('are a snapshot: what a predicate changes in the list counts next turn [TOOL-A11]', async () => {
    const agent = new Agent({ name: 'Desk' });
    const names = async (): Promise<string[]> =>
      (await enabledTools(agent, ctx, 'warn', noWarning)).map(({ name }) => name);
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
    await expect(enabledTools(agentOf(slow, failing), ctx, 'warn', noWarning)).rejects.toBe(first);
    expect(started).toEqual(['slow', 'failing']);
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test('must be tools, also those pushed later', () => {
    const agent = agentOf();
    agent.tools.push({ name: 'x' } as never);
    expect(() => enabledTools(agent, ctx, 'warn', noWarning)).toThrow(/agent Desk: tools\[0\]/);
  });
});

describe('several tools of one name', () => {
  test('the last wins with one warning that shows no names of the user [TOOL-I2] [TOOL-I4] [TOOL-I5] [TOOL-I10]', async () => {
    const [first, second, other] = [make('a'), make('a'), make('b')];
    const warn = vi.fn<(name: string, text: string) => void>();
    expect(await enabledTools(agentOf(first, other, second), ctx, 'warn', warn)).toEqual([other, second]);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toBe('a');
    expect(warn.mock.calls[0]?.[1]).not.toMatch(/Desk|name a/);
    configureLogging({ dontLogToolData: false });
    await enabledTools(agentOf(first, second), ctx, 'warn', warn);
    expect(warn.mock.calls[1]?.[1]).toMatch(/agent Desk .*name a;.*`name`/);
  });

  test('are refused under `error`, with agent, kind, name and the option that renames [TOOL-I2] [TOOL-I5]', () => {
    const clash = () => enabledTools(agentOf(make('a'), make('b'), make('a')), ctx, 'error', noWarning);
    expect(clash).toThrow(UserError);
    expect(clash).toThrow(/agent Desk: .*tool and tool.*: a\..*`name`/);
  });

  test('count only while they are enabled [TOOL-I7] [TOOL-I13]', async () => {
    const kept = make('a');
    expect(await enabledTools(agentOf(kept, make('a', false)), ctx, 'error', noWarning)).toEqual([kept]);
  });
});
