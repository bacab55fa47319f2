import { afterEach, describe, expect, it, vi } from 'vitest';
import { resetAll } from '../base/reset.ts';
import { MissingCredentialsError, UserError } from '../base/errors.ts';
import { getDefaultModelProvider } from '../models/provider.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { modelRequest } from '../testing/request.ts';
import { setOpenAIDefaults } from './defaults.ts';
import { OpenAIProvider } from './provider.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  resetAll();
});

describe('OpenAIProvider', () => {
  it('refuses a client together with options of one, an empty string included [MODEL-305]', async () => {
    const client = await new FakeOpenAI().client();
    expect(() => new OpenAIProvider({ client, organization: '' })).toThrow(
      /apiKey, baseURL, webSocket.baseURL, organization and project/u,
    );
    for (const option of ['apiKey', 'baseURL', 'organization', 'project'] as const)
      for (const value of ['x', '']) expect(() => new OpenAIProvider({ client, [option]: value })).toThrow(UserError);
    expect(() => new OpenAIProvider({ baseUrl: 'x' } as never)).toThrow("Did you mean 'baseURL'?");
    expect(() => new OpenAIProvider({ client: {} as never })).toThrow('a client of the openai package');
  });

  it('refuses names of transports and APIs that it does not have, before any request [MODEL-307]', () => {
    for (const option of ['transport', 'api'])
      for (const make of [
        () => new OpenAIProvider({ [option]: 'carrier-pigeon' }),
        () => setOpenAIDefaults({ [option]: 'carrier-pigeon' }),
      ]) {
        expect(make).toThrow(UserError);
        expect(make).toThrow(`'${option}'`);
      }
  });

  it('gives models of a name, else of OPENAI_DEFAULT_MODEL in lower case [MODEL-301] [MODEL#39]', async () => {
    vi.stubEnv('OPENAI_DEFAULT_MODEL', ' GPT-5.6-SOL ');
    const fake = new FakeOpenAI();
    await using provider = new OpenAIProvider({ client: await fake.client() });
    await (await provider.getModel()).getResponse(modelRequest());
    await (await provider.getModel('gpt-4.1')).getResponse(modelRequest());
    expect(fake.requests.map((request) => (request.body as { model: string }).model)).toEqual([
      'gpt-5.6-sol',
      'gpt-4.1',
    ]);
    for (const unset of ['', '  ', undefined]) {
      vi.stubEnv('OPENAI_DEFAULT_MODEL', unset);
      await (await provider.getModel()).getResponse(modelRequest());
      expect(fake.requests.at(-1)?.body).toMatchObject({ model: 'gpt-5.6-luna' });
    }
  });

  it('makes its client when a model is first asked for, with the environment of that moment [MODEL-306]', async () => {
    const fake = new FakeOpenAI({ apiKeys: ['sk-later'] });
    await using server = await fake.listen();
    vi.stubEnv('OPENAI_API_KEY', 'sk-earlier');
    vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:9/nowhere');
    const providers = [new OpenAIProvider(), new OpenAIProvider({ organization: 'org' })];
    vi.stubEnv('OPENAI_API_KEY', 'sk-later');
    vi.stubEnv('OPENAI_BASE_URL', server.baseURL);
    for (const provider of providers) await (await provider.getModel('m')).getResponse(modelRequest());
    vi.stubEnv('OPENAI_API_KEY', 'sk-latest');
    for (const provider of providers) await (await provider.getModel('m')).getResponse(modelRequest());
    expect(fake.requests).toHaveLength(4);
  });

  it('has a client of its own for any option, whatever the default one is [MODEL-306]', async () => {
    const fake = new FakeOpenAI();
    const elsewhere = new FakeOpenAI();
    await using server = await fake.listen();
    setOpenAIDefaults({ client: await elsewhere.client() });
    vi.stubEnv('OPENAI_API_KEY', 'sk-env');
    vi.stubEnv('OPENAI_BASE_URL', server.baseURL);
    for (const options of [{ organization: 'o' }, { project: 'p' }, { apiKey: 'k' }, { baseURL: server.baseURL }])
      await (await new OpenAIProvider(options).getModel('m')).getResponse(modelRequest());
    expect([fake.requests.length, elsewhere.requests.length]).toEqual([4, 0]);
  });

  it('fails at the first request without a key, and tells three ways on [MODEL-315]', async () => {
    vi.stubEnv('OPENAI_API_KEY', '');
    vi.stubEnv('OPENAI_BASE_URL', '');
    const model = await new OpenAIProvider().getModel('gpt-5.6-luna');
    const error = await model.getResponse(modelRequest()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(MissingCredentialsError);
    expect(error).toMatchObject({
      code: 'missing_credentials',
      message: expect.stringMatching(/OPENAI_API_KEY.*provider.*OfflineModel/su),
    });
    await expect(model.streamResponse(modelRequest()).next()).rejects.toBeInstanceOf(MissingCredentialsError);
  });

  it('needs no key for servers of this machine [MODEL-1306]', async () => {
    vi.stubEnv('OPENAI_API_KEY', '');
    const fake = new FakeOpenAI({ steps: ['Hi.'] });
    await using server = await fake.listen();
    vi.stubEnv('OPENAI_BASE_URL', server.baseURL);
    const response = await (await new OpenAIProvider().getModel('any')).getResponse(modelRequest());
    expect(response.output).toMatchObject([{ content: [{ text: 'Hi.' }] }]);
  });

  it('uses the default client while it has no options of its own, and a changed default counts for the shared provider [MODEL-306, 313]', async () => {
    const first = new FakeOpenAI();
    const second = new FakeOpenAI();
    setOpenAIDefaults({ client: await first.client() });
    const shared = getDefaultModelProvider();
    await (await shared.getModel('m')).getResponse(modelRequest());
    setOpenAIDefaults({ client: await second.client() });
    await (await shared.getModel('m')).getResponse(modelRequest());
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
    setOpenAIDefaults({ client: null });
    vi.stubEnv('OPENAI_API_KEY', '');
    vi.stubEnv('OPENAI_BASE_URL', '');
    await expect((await shared.getModel('m')).getResponse(modelRequest())).rejects.toMatchObject({
      code: 'missing_credentials',
    });
  });

  it('sends the key that it was given, else the default one', async () => {
    const fake = new FakeOpenAI({ apiKeys: ['sk-own'] });
    await using server = await fake.listen();
    setOpenAIDefaults({ apiKey: 'sk-default' });
    const own = await new OpenAIProvider({ apiKey: 'sk-own', baseURL: server.baseURL }).getModel('m');
    await own.getResponse(modelRequest());
    const other = await new OpenAIProvider({ baseURL: server.baseURL }).getModel('m');
    await expect(other.getResponse(modelRequest())).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect(fake.requests[0]?.headers['authorization']).toBe('Bearer ***');
  });
});
