import { afterEach, describe, expect, it, vi } from 'vitest';
import { getLogger } from '../base/logger.ts';
import type { ModelSettings } from '../models/model.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { modelRequest } from '../testing/request.ts';
import { OpenAIProvider, OpenAIResponsesModel } from './index.ts';
import { clientLog } from './client-log.ts';
import { logged } from '../../test/run-kit.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  resetDefaults();
});

describe('the environment', () => {
  it('gives key, organization, project, base URL and model where nothing else does [MODEL-304]', async () => {
    const fake = new FakeOpenAI({ apiKeys: ['sk-env'] });
    await using server = await fake.listen();
    vi.stubEnv('OPENAI_API_KEY', 'sk-env');
    vi.stubEnv('OPENAI_ORG_ID', 'org-env');
    vi.stubEnv('OPENAI_PROJECT_ID', 'proj-env');
    vi.stubEnv('OPENAI_BASE_URL', server.baseURL);
    vi.stubEnv('OPENAI_DEFAULT_MODEL', 'GPT-5.6-Sol');
    await (await new OpenAIProvider().getModel()).getResponse(modelRequest());
    expect(fake.requests[0]).toMatchObject({
      headers: { authorization: 'Bearer ***', 'openai-organization': 'org-env', 'openai-project': 'proj-env' },
      body: { model: 'gpt-5.6-sol' },
    });
    vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:9/nowhere');
    const given = new OpenAIProvider({ baseURL: server.baseURL, organization: 'org-own', project: 'proj-own' });
    await (await given.getModel('m')).getResponse(modelRequest());
    expect(fake.requests[1]).toMatchObject({
      headers: { 'openai-organization': 'org-own', 'openai-project': 'proj-own' },
      body: { model: 'm' },
    });
  });

  it.each([
    [undefined, true],
    ['1', true],
    ['TRUE', true],
    ['true', true],
    ['0', false],
    ['yes', false],
    ['', false],
  ] as const)('says by %s whether logs have no data: %s [MODEL-304]', (value, redacts) => {
    vi.stubEnv('OPENAI_AGENTS_DONT_LOG_MODEL_DATA', value);
    vi.stubEnv('OPENAI_AGENTS_DONT_LOG_TOOL_DATA', value);
    resetDefaults();
    expect([getLogger().dontLogModelData, getLogger().dontLogToolData]).toEqual([redacts, redacts]);
  });
});

describe('lines of a client that we made', () => {
  it.each([
    ['with a key', { apiKey: 'test' }],
    ['of an own machine, without one', {}],
  ])('go where all lines go, and show nothing of an answer that is broken: %s [MODEL-931, 933]', async (_, key) => {
    vi.stubEnv('OPENAI_API_KEY', undefined);
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const fake = new FakeOpenAI({ steps: ['secret answer'] });
    await using server = await fake.listen();
    fake.inject({ kind: 'malformed', afterEvents: 2 });
    const records = logged({ level: 'debug', dontLogModelData: true });
    const model = await new OpenAIProvider({ baseURL: server.baseURL, ...key }).getModel('m');
    const reading = (async () => {
      for await (const _ of model.streamResponse(modelRequest()));
    })();
    await expect(reading).rejects.toBeInstanceOf(SyntaxError);
    // Whatever else is going on in this process may print and log.
    expect(JSON.stringify(print.mock.calls)).not.toMatch(/parse|secret/i);
    const lines = records.filter(({ level, logger }) => level === 'error' && logger === 'openai.agents.models');
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines)
      expect(line).toEqual({
        level: 'error',
        logger: 'openai.agents.models',
        message: 'The openai client logged a line. Its text is redacted.',
        data: undefined,
      });
  });

  it('have their text where logs may have model data; what the client says of requests is left to the models', () => {
    const records = logged({ level: 'debug', dontLogModelData: false });
    clientLog.error('Could not parse', 'chunk');
    clientLog.warn('OPENAI_LOG was set to "x"');
    clientLog.info();
    clientLog.debug();
    expect(records.map(({ level, data }) => [level, data])).toEqual([
      ['error', ['Could not parse', 'chunk']],
      ['warn', ['OPENAI_LOG was set to "x"']],
    ]);
  });
});

describe('settings that the Responses API does not have', () => {
  const settings: ModelSettings = { frequencyPenalty: 0, presencePenalty: 1, temperature: 0.5, includeUsage: true };

  it('are left out with one warning for each, and nothing is sent in their place [MODEL-212]', async () => {
    const fake = new FakeOpenAI();
    const records = logged({ level: 'debug', dontLogModelData: true });
    const model = new OpenAIResponsesModel('m', { client: await fake.client() });
    for (let i = 0; i < 2; i += 1) {
      await model.getResponse(modelRequest({ modelSettings: settings }));
      for await (const _ of model.streamResponse(modelRequest({ modelSettings: settings })));
    }
    const warnings = records.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(warnings).toEqual([
      expect.stringMatching(/no frequencyPenalty.* m\.$/),
      expect.stringMatching(/no presencePenalty.* m\.$/),
    ]);
    const { body } = model.buildRequest(modelRequest({ modelSettings: settings }));
    expect(body).toEqual(model.buildRequest(modelRequest({ modelSettings: { temperature: 0.5 } })).body);
    await new OpenAIResponsesModel('m', { client: await fake.client() }).getResponse(
      modelRequest({ modelSettings: settings }),
    );
    expect(records.filter(({ level }) => level === 'warn')).toHaveLength(4);
  });

  it('are told once by all models of a provider, which runs ask for anew in each turn [MODEL-212]', async () => {
    const fake = new FakeOpenAI();
    const records = logged({ level: 'debug', dontLogModelData: true });
    const provider = new OpenAIProvider({ client: await fake.client() });
    for (const name of ['a', 'a', 'b'])
      await (await provider.getModel(name)).getResponse(modelRequest({ modelSettings: { presencePenalty: 1 } }));
    expect(records.filter(({ level }) => level === 'warn')).toHaveLength(2);
    await (await provider.getModel('c')).getResponse(modelRequest({ modelSettings: { presencePenalty: null } }));
    expect(records.filter(({ level }) => level === 'warn')).toHaveLength(2);
  });
});
