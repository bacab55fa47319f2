import { afterEach, describe, expect, test, vi } from 'vitest';
import { UserError } from '../base/errors.ts';
import { configureLogging } from '../base/logger.ts';
import { Agent } from './agent.ts';
import { onePerName } from './collisions.ts';
import type { Callables, ToolNameCollisionPolicy } from './collisions.ts';
import { handoff, Handoff } from './handoff.ts';
import { tool } from './tool.ts';
import type { FunctionTool } from './tool.ts';

type Warn = (name: string, text: string) => void;

const make = (name: string): FunctionTool<never> => tool({ name, execute: () => name });
const to = (name: string, toolNameOverride?: string): Handoff<never> =>
  handoff(new Agent({ name }), { toolNameOverride }) as Handoff<never>;
const noWarning = (name: string): never => {
  throw new Error(`warned about ${name}`);
};
const choose = (
  tools: readonly FunctionTool<never>[],
  handoffs: readonly Handoff<never>[],
  policy: ToolNameCollisionPolicy,
  warn: Warn = noWarning,
): Callables => onePerName({ tools, handoffs }, 'Desk', policy, warn);

afterEach(() => configureLogging({ dontLogToolData: true }));

describe('several tools of one name', () => {
  test('the last wins with one warning that shows no names of the user [TOOL-I2] [TOOL-I4] [TOOL-I5] [TOOL-I10]', () => {
    const [first, second, other] = [make('a'), make('a'), make('b')];
    const warn = vi.fn<Warn>();
    expect(choose([first, other, second], [], 'warn', warn).tools).toEqual([other, second]);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toBe('a');
    expect(warn.mock.calls[0]?.[1]).not.toMatch(/Desk|: a/);
    configureLogging({ dontLogToolData: false });
    choose([first, second], [], 'warn', warn);
    expect(warn.mock.calls[1]?.[1]).toMatch(/agent Desk: a.*`name`/);
  });

  test('are refused under `error`, with agent, kind, name and the option that renames [TOOL-I2] [TOOL-I5]', () => {
    const clash = () => choose([make('a'), make('b'), make('a')], [], 'error');
    expect(clash).toThrow(UserError);
    expect(clash).toThrow(/agent Desk: .*tool and tool.*: a\..*`name`/);
  });

  test('names that differ are left alone', () => {
    const [tools, handoffs] = [[make('a'), make('b')], [to('B')]];
    expect(choose(tools, handoffs, 'error')).toEqual({ tools, handoffs });
  });
});

describe('a handoff and a tool of one name', () => {
  test('the handoff wins with a warning, and the model is sent it alone [TOOL-I3] [TOOL-I4] [TOOL-I5]', () => {
    const warn = vi.fn<Warn>();
    const [taken, other, target] = [make('transfer_to_b'), make('look'), to('B')];
    expect(choose([taken, other], [target], 'warn', warn)).toEqual({ tools: [other], handoffs: [target] });
    expect(warn.mock.calls.map(([name]) => name)).toEqual(['transfer_to_b']);
    expect(warn.mock.calls[0]?.[1]).toMatch(/toolNameOverride/);
    expect(warn.mock.calls[0]?.[1]).not.toMatch(/Desk|transfer_to_b/);
  });

  test('are refused under `error`, with both owners and the options that rename [TOOL-I3] [TOOL-I5] [TOOL-HO51]', () => {
    const clash = () => choose([make('transfer_to_b')], [to('B')], 'error');
    expect(clash).toThrow(UserError);
    expect(clash).toThrow(/agent Desk: .*handoff and tool/);
    expect(clash).toThrow(/the handoff to agent B and the tool transfer_to_b/);
    expect(clash).toThrow(/`name`.*`toolNameOverride`/);
  });
});

describe('two handoffs of one name', () => {
  test('the last wins [TOOL-I3]', () => {
    const warn = vi.fn<Warn>();
    const [first, second] = [to('B'), to('C', 'transfer_to_b')];
    expect(choose([], [first, second], 'warn', warn).handoffs).toEqual([second]);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test('are refused under `error`; a name that was chosen is named as such [TOOL-I3] [TOOL-I9]', () => {
    const own = new Handoff<never>({
      toolName: 'transfer_to_b',
      toolDescription: '',
      agentName: 'Either',
      onInvokeHandoff: () => new Agent({ name: 'B' }),
    });
    const clash = () => choose([], [to('B'), to('C', 'transfer_to_b'), own], 'error');
    expect(clash).toThrow(/the handoff to agent B and the handoff transfer_to_b to C and .* to Either/);
    expect(clash).toThrow(/handoff and handoff.*`toolNameOverride`/);
  });
});
