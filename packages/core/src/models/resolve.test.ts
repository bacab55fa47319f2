import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { resetAll } from '../base/reset.ts';
import type { Model } from './model.ts';
import { setDefaultModelProvider } from './provider.ts';
import { resolveModel } from './resolve.ts';

const model = (): Model => ({
  getResponse: vi.fn<Model['getResponse']>(),
  streamResponse: vi.fn<Model['streamResponse']>(),
});
afterEach(resetAll);

describe('resolveModel', () => {
  it("takes the run's model, else the agent's, else the provider's default; objects pass no provider [MODEL-103] [RUN-201]", async () => {
    const [own, agents] = [model(), model()];
    const getModel = vi.fn<(name?: string) => Model>(() => own);
    const provider = { getModel };
    expect(resolveModel({ runModel: own, provider, agent: { model: agents } })).toBe(own);
    expect(resolveModel({ provider, agent: { model: agents } })).toBe(agents);
    expect(getModel).not.toHaveBeenCalled();
    for (const [runModel, agentModel] of [
      ['run', agents],
      ['run', 'agent'],
      [undefined, 'agent'],
      [undefined, undefined],
    ] as const)
      expect(await resolveModel({ runModel, provider, agent: { model: agentModel } })).toBe(own);
    expect(getModel.mock.calls).toEqual([['run'], ['run'], ['agent'], [undefined]]);
  });

  it('waits for a provider that answers later, and passes its error on [MODEL-104] [RUN-203]', async () => {
    const found = model();
    expect(await resolveModel({ provider: { getModel: async () => found }, agent: { model: 'x' } })).toBe(found);
    const failing = { getModel: () => Promise.reject(new RangeError('down')) };
    await expect(resolveModel({ provider: failing, agent: { model: 'x' } })).rejects.toBeInstanceOf(RangeError);
  });

  it('names provider and model where the provider gives none', async () => {
    class Cupboard {
      getModel(): Model {
        return null as never;
      }
    }
    expect(() => resolveModel({ provider: new Cupboard(), agent: { model: 'gpt-x' } })).toThrow(
      "Cupboard gave no model when asked for the model 'gpt-x'",
    );
    await expect(
      resolveModel({ provider: { getModel: async () => undefined as never }, agent: { model: undefined } }),
    ).rejects.toThrow('its default model');
  });

  it('asks the default provider of the process, until the defaults are reset', async () => {
    const own = model();
    setDefaultModelProvider({ getModel: () => own });
    expect(resolveModel({ agent: { model: 'x' } })).toBe(own);
    expect(() => setDefaultModelProvider({} as never)).toThrow('getModel');
    resetAll();
    expect(await resolveModel({ agent: { model: 'x' } })).not.toBe(own);
  });
});

describe('the openai package', () => {
  it('is loaded when a name first goes to OpenAI, and not before [MODEL#81]', { timeout: 60_000 }, async () => {
    const script = `
      import { registerHooks } from 'node:module';
      const loaded = [];
      registerHooks({ resolve(specifier, context, next) { const found = next(specifier, context); if (/node_modules\\/openai\\//.test(found.url)) loaded.push(specifier); return found; } });
      const { resolveModel } = await import('./src/models/resolve.ts');
      await import('./src/testing/index.ts');
      await resolveModel({ agent: { model: { getResponse() {}, streamResponse() {} } } });
      const before = loaded.length;
      const found = await resolveModel({ agent: { model: 'gpt-5.6-luna' } });
      console.log(JSON.stringify({ before, after: loaded.includes('openai'), kind: found.constructor.name }));
    `;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '--conditions=source', '-e', script],
      { cwd: new URL('../..', import.meta.url) },
    );
    expect(JSON.parse(stdout)).toEqual({ before: 0, after: true, kind: 'OpenAIResponsesModel' });
  });
});
