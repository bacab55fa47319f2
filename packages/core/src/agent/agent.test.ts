import { afterEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import * as zm from 'zod/mini';
import type { Model } from '../models/model.ts';
import { UserError } from '../base/errors.ts';
import { RunContext } from '../state/context.ts';
import { Agent, agentInternals } from './agent.ts';
import { resolveInstructions } from './instructions.ts';
import { tool } from './tool.ts';

const find = tool({ name: 'find', execute: () => 1 });
const model = { getResponse: () => {}, streamResponse: () => {} } as unknown as Model;

afterEach(() => vi.unstubAllEnvs());

describe('construction of an agent', () => {
  test('has its defaults', () => {
    expect(new Agent({ name: 'Desk' })).toMatchObject({
      name: 'Desk',
      id: undefined,
      instructions: undefined,
      tools: [],
      model: undefined,
      outputType: 'text',
      hooks: undefined,
      toolUseBehavior: 'run_llm_again',
      resetToolChoice: true,
    });
  });

  test.each<[unknown, RegExp]>([
    [undefined, /not undefined/],
    ['Desk', /not a string/],
    [{}, /`name` takes a string, not undefined/],
    [{ name: 7 }, /`name` takes a string, not 7/],
    [{ name: '' }, /`name` is empty/],
  ])('needs a name: %o [TOOL-A1]', (options, message) => {
    expect(() => new Agent(options as never)).toThrow(UserError);
    expect(() => new Agent(options as never)).toThrow(message);
  });

  test.each<[string, object]>([
    ['id', { id: 7 }],
    ['id', { id: '' }],
    ['instructions', { instructions: 7 }],
    ['instructions', { instructions: null }],
    ['tools', { tools: find }],
    ['tools', { tools: null }],
    ['tools[1]', { tools: [find, { name: 'x' }] }],
    ['model', { model: {} }],
    ['model', { model: 7 }],
    ['modelSettings', { modelSettings: null }],
    ['outputType', { outputType: 'json' }],
    ['outputType', { outputType: { type: 'object' } }],
    ['hooks', { hooks: 'x' }],
    ['toolUseBehavior', { toolUseBehavior: 'stop' }],
    ['toolUseBehavior', { toolUseBehavior: { stopAtToolNames: 'x' } }],
    ['resetToolChoice', { resetToolChoice: 'no' }],
    ['resetToolChoice', { resetToolChoice: null }],
  ])('names the agent and the field: %s %o [TOOL-A2] [TOOL-A21]', (field, options) => {
    expect(() => new Agent({ name: 'x', ...options })).toThrow(UserError);
    expect(() => new Agent({ name: 'x', ...options })).toThrow('agent x');
    expect(() => new Agent({ name: 'x', ...options })).toThrow(field);
  });

  test('tells the four forms of toolUseBehavior [TOOL-X20]', () => {
    expect(() => new Agent({ name: 'x', toolUseBehavior: 'stop' as never })).toThrow(
      /'run_llm_again', 'stop_on_first_tool', \{ stopAtToolNames: \[…\] \} or a function/,
    );
    expect(() => new Agent({ name: 'x', toolUseBehavior: { stopAtToolName: ['a'] } as never })).toThrow(
      /'stopAtToolName'.*'stopAtToolNames'/,
    );
  });

  test('refuses unknown options', () => {
    expect(() => new Agent({ name: 'x', instruction: 'y' } as never)).toThrow(
      /'instruction' of agent x.*'instructions'/,
    );
  });

  test('refuses an output type that only validates, with the remedy [TOOL-A26]', () => {
    expect(() => new Agent({ name: 'x', outputType: zm.object({ n: zm.number() }) as never })).toThrow(
      /^agent x: outputType: .*z\.toJSONSchema/,
    );
  });

  test('takes undefined as not given', () => {
    expect(new Agent({ name: 'x', tools: undefined, model: undefined, resetToolChoice: undefined })).toMatchObject({
      tools: [],
      resetToolChoice: true,
    });
  });

  test('keeps the given array; what is pushed to it counts [TOOL-A3]', () => {
    const tools = [find];
    const agent = new Agent({ name: 'x', tools });
    expect(agent.tools).toBe(tools);
    expect(new Agent({ name: 'a' }).tools).not.toBe(new Agent({ name: 'b' }).tools);
  });
});

test('instanceof knows subclasses, agents of other copies and no look-alikes [TOOL-A6]', async () => {
  class Desk extends Agent<unknown, string> {
    readonly extra = 1;
  }
  const desk = new Desk({ name: 'd' });
  expect(desk).toBeInstanceOf(Agent);
  expect(desk).toBeInstanceOf(Desk);
  expect(desk.extra).toBe(1);
  expect(new Agent({ name: 'd' })).not.toBeInstanceOf(Desk);
  vi.resetModules();
  const other = await import('./agent.ts');
  expect(other.Agent).not.toBe(Agent);
  const foreign = new other.Agent({ name: 'f' });
  expect(foreign).toBeInstanceOf(Agent);
  expect(desk).toBeInstanceOf(other.Agent);
  expect(Object.assign({}, desk)).not.toBeInstanceOf(Agent);
});

describe('clone', () => {
  test('is shallow: what is not overridden is the same object [TOOL-A4] [TOOL-A23]', () => {
    const source = new Agent({
      name: 'a',
      id: 'i',
      instructions: () => 'x',
      tools: [find],
      model,
      modelSettings: { temperature: 0, metadata: { a: 'b' } },
      outputType: z.object({ n: z.number() }),
      hooks: { onStart: () => {} },
      toolUseBehavior: { stopAtToolNames: ['find'] },
      resetToolChoice: false,
    });
    const copy = source.clone({});
    expect(copy).not.toBe(source);
    expect(copy).toBeInstanceOf(Agent);
    for (const key of [
      'name',
      'id',
      'instructions',
      'tools',
      'model',
      'modelSettings',
      'outputType',
      'hooks',
      'toolUseBehavior',
      'resetToolChoice',
    ] as const)
      expect(copy[key]).toBe(source[key]);
    expect(source.clone({ name: 'b', tools: [] })).toMatchObject({ name: 'b', tools: [], resetToolChoice: false });
    expect(source.tools).toEqual([find]);
  });

  test('checks overrides, null is a wrong value', () => {
    const source = new Agent({ name: 'a' });
    expect(() => source.clone({ tool: [] } as never)).toThrow(/'tool' of agent a: clone/);
    expect(() => source.clone({ modelSettings: null } as never)).toThrow(UserError);
    expect(() => source.clone({ tools: null } as never)).toThrow(UserError);
  });

  test('takes settings over only when they were given [TOOL-A5] [MODEL-303]', () => {
    expect(new Agent({ name: 'a', model: 'gpt-5' }).clone({ model: 'gpt-5.1' }).modelSettings).toEqual({
      reasoning: { effort: 'none' },
      verbosity: 'low',
    });
    const explicit = new Agent({
      name: 'a',
      model: 'gpt-5',
      modelSettings: { reasoning: { effort: 'low' }, verbosity: 'low' },
    });
    expect(explicit.clone({ model: 'gpt-5.1' }).modelSettings).toEqual({
      reasoning: { effort: 'low' },
      verbosity: 'low',
    });
    expect(explicit.clone({ modelSettings: { store: true } }).modelSettings).toEqual({ store: true });
    expect(agentInternals(new Agent({ name: 'a' }).clone({ name: 'b' })).settings).toBeUndefined();
  });
});

describe('model settings of an agent', () => {
  test('without its own are the defaults of the model’s name, read when asked [TOOL-A13] [TOOL-A14]', () => {
    const agent = new Agent({ name: 'a' });
    expect(agent.modelSettings).toEqual({ reasoning: { effort: 'none' }, verbosity: 'low' });
    vi.stubEnv('OPENAI_DEFAULT_MODEL', 'gpt-4.1');
    expect(agent.modelSettings).toEqual({});
    expect(new Agent({ name: 'a', model: 'gpt-5' }).modelSettings).toEqual({
      reasoning: { effort: 'low' },
      verbosity: 'low',
    });
    expect(new Agent({ name: 'a', model }).modelSettings).toEqual({});
  });

  test('are a copy of what was given [MODEL-201] [TOOL-A18]', () => {
    const given = { metadata: { a: 'b' } };
    const agent = new Agent({ name: 'a', modelSettings: given });
    given.metadata.a = 'c';
    expect(agent.modelSettings).toEqual({ metadata: { a: 'b' } });
    expect(agentInternals(agent).settings).toBe(agent.modelSettings);
    expect(Object.isFrozen(agent.modelSettings)).toBe(true);
  });

  test('name the agent when they are wrong', () => {
    expect(() => new Agent({ name: 'a', modelSettings: { temprature: 1 } as never })).toThrow(
      /agent a: modelSettings: unknown temprature.*temperature/,
    );
  });
});

describe('instructions', () => {
  const ctx = new RunContext(undefined);

  test('are called with exactly the context and the agent itself [TOOL-A7]', async () => {
    const instructions = vi.fn<(...args: unknown[]) => Promise<string>>(async () => 'Be brief.');
    const agent = new Agent({ name: 'a', instructions });
    expect(await resolveInstructions(agent, ctx)).toBe('Be brief.');
    expect(instructions.mock.calls).toEqual([[ctx, agent]]);
    expect(instructions.mock.calls[0]?.[1]).toBe(agent);
  });

  test('may take fewer arguments, not more than two required ones [TOOL-A7]', async () => {
    expect(await resolveInstructions(new Agent({ name: 'a', instructions: () => 'x' }), ctx)).toBe('x');
    expect(() => new Agent({ name: 'a', instructions: ((_a: 1, _b: 1, _c: 1) => 'x') as never })).toThrow(
      /requires 3 arguments/,
    );
    expect(new Agent({ name: 'a', instructions: ((_a: 1, _b: 1, _c = 1) => 'x') as never }).name).toBe('a');
  });

  test('must be a string [TOOL-A7]', async () => {
    await expect(
      resolveInstructions(new Agent({ name: 'a', instructions: (() => undefined) as never }), ctx),
    ).rejects.toThrow(/agent a: `instructions` must return a string/);
  });

  test('that are missing give nothing, empty ones are sent empty [TOOL-A8]', async () => {
    expect(await resolveInstructions(new Agent({ name: 'a' }), ctx)).toBeUndefined();
    expect(await resolveInstructions(new Agent({ name: 'a', instructions: '' }), ctx)).toBe('');
  });

  test('that throw give that very error [TOOL-A22]', async () => {
    const error = new Error('x');
    const throwing = new Agent({
      name: 'a',
      instructions: () => {
        throw error;
      },
    });
    await expect(resolveInstructions(throwing, ctx)).rejects.toBe(error);
  });
});
