import { afterEach, describe, expect, it, vi } from 'vitest';
import { Agent, run, setDefaultModelProvider, UserError } from '../index.ts';
import type { Model, ModelProvider } from '../index.ts';
import { getDefaultModelProvider } from '../models/provider.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { FakeOpenAI, ScriptedModel } from '../testing/index.ts';
import { MultiProvider, OpenAIProvider, setOpenAIDefaults } from './index.ts';

afterEach(() => resetDefaults());

/** Notes what it is asked for. */
class Notes implements ModelProvider {
  readonly asked: (string | undefined)[] = [];
  readonly closed: () => void;
  readonly failure: Error | undefined;
  readonly #model: Model;

  constructor(options: { closed?: () => void; failure?: Error; model?: Model } = {}) {
    this.closed = options.closed ?? ((): void => {});
    this.failure = options.failure;
    this.#model = options.model ?? new ScriptedModel();
  }

  getModel(name?: string): Model {
    this.asked.push(name);
    return this.#model;
  }

  async close(): Promise<void> {
    this.closed();
    if (this.failure) throw this.failure;
  }
}

describe('MultiProvider', () => {
  it('sends names without a prefix, and the prefix openai, to OpenAI; what is registered gets what follows its prefix [MODEL-310]', async () => {
    const openai = new Notes();
    const my = new Notes();
    const provider = new MultiProvider({ openai, providers: { my } });
    for (const name of [undefined, 'gpt-4.1', 'openai/x', 'openai/a/b', 'my/x', 'my/a/b', 'my/'])
      await provider.getModel(name);
    expect(openai.asked).toEqual([undefined, 'gpt-4.1', 'x', 'a/b']);
    expect(my.asked).toEqual(['x', 'a/b', '']);
    const own = new Notes();
    await new MultiProvider({ openai, providers: { openai: own } }).getModel('openai/x');
    expect([own.asked, openai.asked.length]).toEqual([['x'], 4]);
  });

  it('refuses an unknown prefix and says how to register one, or sends the whole name to OpenAI when told to [MODEL-310, 312]', async () => {
    const openai = new Notes();
    const error = await new MultiProvider({ openai }).getModel('openrouter/a/b').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).toContain("'openrouter'");
    expect((error as Error).message).toContain('new MultiProvider({ providers: { openrouter: provider } })');
    await new MultiProvider({ openai, unknownPrefix: 'model_id' }).getModel('openrouter/a/b');
    expect(openai.asked).toEqual(['openrouter/a/b']);
  });

  it('takes a provider for what it can do, however empty it looks [MODEL-310]', async () => {
    const model = new ScriptedModel();
    const empty = Object.assign(() => {}, {}) as unknown as ModelProvider;
    const falsy = { getModel: () => model, valueOf: () => 0, toString: () => '', length: 0 };
    expect(await new MultiProvider({ providers: { my: falsy }, openai: new Notes() }).getModel('my/x')).toBe(model);
    expect(() => new MultiProvider({ providers: { my: empty } })).toThrow('providers.my');
  });

  it('checks its options when it is made [MODEL-311]', () => {
    expect(() => new MultiProvider({ unknownPrefix: 'ignore' as never })).toThrow("'error' or 'model_id'");
    expect(() => new MultiProvider({ provider: {} } as never)).toThrow("Did you mean 'providers'?");
    expect(() => new MultiProvider({ openai: { baseUrl: 'x' } as never })).toThrow("Did you mean 'baseURL'?");
  });

  it('closes each provider once, whatever others do, and then throws the first failure [MODEL-311]', async () => {
    const closed = vi.fn<() => void>();
    const first = new Error('first');
    const twice = new Notes({ closed, failure: first });
    const last = new Notes({ closed, failure: new Error('last') });
    const providers: Record<string, ModelProvider> = { a: twice, b: twice, c: last };
    const provider = new MultiProvider({ providers, openai: new Notes({ closed }) });
    await expect(provider.close()).rejects.toBe(first);
    expect(closed).toHaveBeenCalledTimes(3);
    const abort = new DOMException('stop', 'AbortError');
    const aborting = new MultiProvider({ providers: { a: new Notes({ failure: abort }), b: last } });
    await expect(aborting.close()).rejects.toBe(abort);
    expect(closed).toHaveBeenCalledTimes(3);
  });

  it('is what runs use that name no provider: prefixes go nowhere there [MODEL-313]', async () => {
    const fake = new FakeOpenAI({ steps: ['one', 'two'] });
    setOpenAIDefaults({ client: await fake.client() });
    const agent = new Agent({ name: 'A' });
    expect((await run(agent, 'go', { model: 'openai/gpt-4.1' })).finalOutput).toBe('one');
    expect(fake.requests[0]?.body).toMatchObject({ model: 'gpt-4.1' });
    await expect(run(agent, 'go', { model: 'other/x' })).rejects.toThrow("'other'");
    expect((await run(agent, 'go', { model: 'gpt-4.1' })).finalOutput).toBe('two');
    expect(fake.requests).toHaveLength(2);
    const own = new Notes({ model: new ScriptedModel(['mine']) });
    setDefaultModelProvider(own);
    expect((await run(agent, 'go', { model: 'other/x' })).finalOutput).toBe('mine');
    expect(own.asked).toEqual(['other/x']);
  });
});

it('closing may be repeated, and leaves a client and providers of others alone [MODEL-109]', async () => {
  const fake = new FakeOpenAI({ steps: ['hi'] });
  const closed = vi.fn<() => void>();
  const client = Object.assign(await fake.client(), { close: closed, [Symbol.dispose]: closed });
  const provider = new OpenAIProvider({ client });
  const model = await provider.getModel('m');
  await provider.close();
  await provider.close();
  await provider[Symbol.asyncDispose]();
  expect((await run(new Agent({ name: 'A', model }), 'go')).finalOutput).toBe('hi');
  const several = new MultiProvider({ openai: { client } });
  await several.close();
  await several.close();
  const own = new Notes({ closed, model: new ScriptedModel(['a']) });
  await run(new Agent({ name: 'A', model: 'x' }), 'go', { modelProvider: own });
  setDefaultModelProvider(own);
  setDefaultModelProvider(undefined);
  expect(closed).not.toHaveBeenCalled();
  expect(getDefaultModelProvider()).not.toBe(own);
});
