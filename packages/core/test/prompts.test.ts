import { afterEach, describe, expect, it, test } from 'vitest';
import { Agent, getDefaultModelSettings, RunContext, UserError } from '../src/index.ts';
import type { AgentOptions, Prompt, RunOptions } from '../src/index.ts';
import { OpenAIProvider } from '../src/openai/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { FakeOpenAI, ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { effectTool, idle, rejection, unhandledDuring } from './run-kit.ts';

afterEach(() => resetDefaults());

describe('the prompt of an agent', () => {
  test.each<[string, unknown, RegExp]>([
    ['text', 'pmpt_1', /agent A: the field `prompt` takes .*string `id`.* not a string/],
    ['null', null, /agent A: the field `prompt`.* not null/],
    ['an object without id', { version: '1' }, /agent A: the field `prompt` takes/],
    ['an empty id', { id: '' }, /'id' of agent A: prompt/],
    ['a version that is no text', { id: 'p', version: 1 }, /'version' of agent A: prompt/],
    ['an unknown member', { id: 'p', variable: {} }, /'variable' of agent A: prompt.*'variables'/],
  ])('is not %s [TOOL-A9]', (_, prompt, message) => {
    expect(() => new Agent({ name: 'A', prompt: prompt as Prompt })).toThrow(UserError);
    expect(() => new Agent({ name: 'A', prompt: prompt as Prompt })).toThrow(message);
  });

  test('is kept by a clone unless it is given another [TOOL-A4]', () => {
    const prompt = { id: 'p1' };
    const agent = new Agent({ name: 'A', prompt });
    expect(agent.prompt).toBe(prompt);
    expect(agent.clone({}).prompt).toBe(prompt);
    expect(agent.clone({ prompt: { id: 'p2' } }).prompt).toEqual({ id: 'p2' });
    expect(new Agent({ name: 'A' }).prompt).toBeUndefined();
  });
});

bothForms((run, form) => {
  const twoTurns = () => new ScriptedModel([toolCall('t'), 'done']);
  const agentOf = (options: Partial<AgentOptions>) =>
    new Agent({ name: 'A', tools: [effectTool('t', [])], ...options });
  const promptsOf = (model: ScriptedModel) => model.calls.map(({ request }) => request.prompt);

  describe(`prompts (${form})`, () => {
    it('go with each request; without one there is none [TOOL-A9]', async () => {
      const model = twoTurns();
      const prompt: Prompt = { id: 'p1', variables: { city: 'Kyiv' } };
      await run(agentOf({ prompt, model }), 'hi');
      expect(promptsOf(model)).toEqual([prompt, prompt]);
      const plain = twoTurns();
      await run(agentOf({ model: plain }), 'hi');
      for (const { request } of plain.calls) expect(request).not.toHaveProperty('prompt');
    });

    it('are chosen once per turn by a function of context and agent [TOOL-A9]', async () => {
      const model = twoTurns();
      const seen: unknown[] = [];
      const agent: Agent = agentOf({
        model,
        prompt: async (args) => {
          await idle(1);
          seen.push(Object.keys(args), args.context instanceof RunContext, args.agent === agent);
          return { id: `p${seen.length / 3}` };
        },
      });
      await run(agent, 'hi', { context: { user: 'x' } });
      expect(seen).toEqual([['context', 'agent'], true, true, ['context', 'agent'], true, true]);
      expect(promptsOf(model)).toEqual([{ id: 'p1' }, { id: 'p2' }]);
    });

    it.each<[string, unknown]>([
      ['nothing', undefined],
      ['a text', 'p1'],
      ['an object without id', { version: '1' }],
      ['an id that is no text', { id: 7 }],
    ])('that are none fail the run before the model is asked: %s [TOOL-A9]', async (_, given) => {
      const model = twoTurns();
      const error = await rejection(run(agentOf({ model, prompt: () => given as Prompt }), 'hi'));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/agent A: a dynamic `prompt` must return a prompt/);
      expect(model.calls).toEqual([]);
    });

    it('of a function have known members only [TOOL-A9, TOOL-Z11]', async () => {
      const prompt = () => ({ id: 'p1', variable: {} }) as Prompt;
      const error = await rejection(run(agentOf({ model: twoTurns(), prompt }), 'hi'));
      expect((error as Error).message).toMatch(/'variable' of agent A: the result of .*'variables'/);
    });

    it('are resolved together with the instructions [TOOL-A10]', async () => {
      const log: string[] = [];
      const slow = async (name: string): Promise<string> => {
        log.push(`${name} begins`);
        await idle(2);
        log.push(`${name} ends`);
        return name;
      };
      const model = new ScriptedModel(['done']);
      const agent = agentOf({
        model,
        instructions: () => slow('instructions'),
        prompt: async () => ({ id: await slow('prompt') }),
      });
      await run(agent, 'hi');
      expect(log).toEqual(['instructions begins', 'prompt begins', 'instructions ends', 'prompt ends']);
      expect(model.calls[0]?.request).toMatchObject({ systemInstructions: 'instructions', prompt: { id: 'prompt' } });
    });

    it.each(['instructions', 'prompt'])('fail with the first error when %s fail first [TOOL-A10]', async (which) => {
      const first = new Error('first');
      const fail = async (name: string): Promise<never> => {
        await idle(name === which ? 1 : 4);
        throw name === which ? first : new Error('second');
      };
      const model = new ScriptedModel(['done']);
      const unhandled = await unhandledDuring(async () => {
        const agent = agentOf({ model, instructions: () => fail('instructions'), prompt: () => fail('prompt') });
        expect(await rejection(run(agent, 'hi'))).toBe(first);
        await idle(5);
      });
      expect([unhandled, model.calls]).toEqual([[], []]);
    });

    it('of the provider’s default model bring their own: no model, no tools, no implied settings are sent [TOOL-A16, MODEL-507]', async () => {
      const api = new FakeOpenAI({ steps: ['ok', 'ok', 'ok', 'ok'] });
      const client = await api.client();
      const sent = async (agent: AgentOptions, options: RunOptions = {}): Promise<unknown> => {
        await run(new Agent(agent), 'hi', { ...options, modelProvider: new OpenAIProvider({ client }) });
        return api.requests.at(-1)?.body;
      };
      const prompt = { id: 'p1', version: '2' };
      const wire = { prompt: { id: 'p1', version: '2', variables: null } };
      const input = [{ role: 'user', content: 'hi' }];
      const common = form === 'streamed' ? { input, stream: true } : { input };
      expect(await sent({ name: 'A', prompt })).toEqual({ ...common, ...wire });
      expect(await sent({ name: 'A', prompt, model: 'gpt-4.1' })).toMatchObject({ ...wire, model: 'gpt-4.1' });
      expect(await sent({ name: 'A', prompt }, { model: 'gpt-5.4' })).toMatchObject({
        ...wire,
        model: 'gpt-5.4',
        reasoning: getDefaultModelSettings('gpt-5.4').reasoning,
      });
      expect(await sent({ name: 'A', prompt, tools: [effectTool('t', [])] })).toMatchObject({
        ...wire,
        tools: [{ name: 't' }],
      });
    });
  });
});
