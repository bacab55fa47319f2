import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { handoff, Handoff } from '../agent/handoff.ts';
import { getDefaultModel } from '../agent/model-defaults.ts';
import { tool } from '../agent/tool.ts';
import type { ModelRequest, ModelSettings } from '../models/model.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { modelRequest } from '../testing/request.ts';
import { OpenAIProvider } from './provider.ts';
import { buildResponsesRequest } from './request.ts';
import { OpenAIResponsesModel } from './responses-model.ts';

const listTasks = tool({
  name: 'list_tasks',
  description: 'Tasks by day',
  parameters: {
    type: 'object',
    properties: { day: { type: 'string' } },
    required: ['day'],
    additionalProperties: false,
  },
  execute: () => [],
});

function build(request: Partial<ModelRequest>, stream = false): ReturnType<typeof buildResponsesRequest> {
  return buildResponsesRequest('gpt-5.6-luna', modelRequest(request), stream);
}
const body = (settings: ModelSettings, request: Partial<ModelRequest> = {}): Record<string, unknown> =>
  build({ ...request, modelSettings: settings }).body;

describe('buildResponsesRequest', () => {
  it('makes the body of the specification [MODEL-501, 505, 510]', () => {
    const request = {
      systemInstructions: 'Be brief.',
      input: [{ role: 'user' as const, content: 'What is due today?' }],
      tools: [listTasks as never],
      modelSettings: {
        toolChoice: 'auto',
        parallelToolCalls: false,
        reasoning: { effort: 'none' as const },
        verbosity: 'low' as const,
        extraArgs: { prompt_cache_key: 'agents-sdk:session:5f0c2d' },
      },
      outputSchema: { name: 'final_output', schema: { type: 'object' }, strict: true },
    };
    const expected = {
      model: 'gpt-5.6-luna',
      instructions: 'Be brief.',
      input: [{ role: 'user', content: 'What is due today?' }],
      tools: [
        {
          type: 'function',
          name: 'list_tasks',
          description: 'Tasks by day',
          parameters: {
            type: 'object',
            properties: { day: { type: 'string' } },
            required: ['day'],
            additionalProperties: false,
          },
          strict: true,
        },
      ],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      reasoning: { effort: 'none' },
      text: {
        verbosity: 'low',
        format: { type: 'json_schema', name: 'final_output', schema: { type: 'object' }, strict: true },
      },
      prompt_cache_key: 'agents-sdk:session:5f0c2d',
      stream: true,
    };
    expect(build(request, true).body).toEqual(expected);
    expect(JSON.stringify(build(request, true))).toBe(JSON.stringify(build(request, true)));
  });

  it('shares nothing with tools, settings and items [MODEL-501]', () => {
    const first = body({ metadata: { a: '1' } }, { tools: [listTasks] });
    (first['tools'] as { name: string }[])[0]!.name = 'changed'; // the tool is there: it was sent
    (first['metadata'] as Record<string, string>)['a'] = '2';
    expect(body({ metadata: { a: '1' } }, { tools: [listTasks as never] })).toMatchObject({
      tools: [{ name: 'list_tasks' }],
      metadata: { a: '1' },
    });
  });

  it('sends each setting in the wire words, and only those that are set [MODEL-505, 508, 509]', () => {
    expect(body({})).toEqual({ model: 'gpt-5.6-luna', input: [{ role: 'user', content: 'Hello' }], tools: [] });
    expect(
      body({
        temperature: 0,
        topP: 0.5,
        maxTokens: 9,
        truncation: 'auto',
        store: false,
        promptCacheRetention: '24h',
        promptCacheOptions: { mode: 'explicit' },
        reasoning: {},
        contextManagement: [{ type: 'compaction' }],
        topLogprobs: 0,
        responseInclude: ['x', 'message.output_text.logprobs', 'x'],
        frequencyPenalty: 1,
      }),
    ).toMatchObject({
      temperature: 0,
      top_p: 0.5,
      max_output_tokens: 9,
      truncation: 'auto',
      store: false,
      prompt_cache_retention: '24h',
      prompt_cache_options: { mode: 'explicit' },
      reasoning: {},
      context_management: [{ type: 'compaction' }],
      top_logprobs: 0,
      include: ['x', 'message.output_text.logprobs'],
    });
    expect(body({ frequencyPenalty: 1 })).not.toHaveProperty('frequency_penalty');
    expect(body({ verbosity: 'low' })['text']).toEqual({ verbosity: 'low' });
    expect(() => body({ responseInclude: [1] as never })).toThrow('responseInclude');
  });

  it('sends 0 of topLogprobs, with what it needs to be included, and an empty reasoning as it is [MODEL-509, 505]', () => {
    const { body } = buildResponsesRequest(
      'm',
      modelRequest({ modelSettings: { topLogprobs: 0, reasoning: {} } }),
      false,
    );
    expect(body).toMatchObject({ top_logprobs: 0, include: ['message.output_text.logprobs'], reasoning: {} });
  });

  it('sends handoffs as functions behind all tools; they count as tools for the settings [MODEL-211, 525] [TOOL-HO7]', () => {
    const billing = handoff(new Agent({ name: 'Billing', handoffDescription: 'Money.' }));
    const request = { tools: [listTasks as never], handoffs: [billing] };
    expect(body({}, request)['tools']).toEqual([
      expect.objectContaining({ name: 'list_tasks' }),
      {
        type: 'function',
        name: 'transfer_to_billing',
        description: 'Handoff to the Billing agent to handle the request. Money.',
        parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
        strict: true,
      },
    ]);
    const alone = body({ parallelToolCalls: false, toolChoice: 'transfer_to_billing' }, { handoffs: [billing] });
    expect(alone).toMatchObject({
      parallel_tool_calls: false,
      tool_choice: { type: 'function', name: 'transfer_to_billing' },
    });
  });

  it.each([true, false])('says of tools, handoffs and the answer whether they are strict: %s [TOOL-HO7]', (strict) => {
    const schema = { type: 'object', properties: {}, required: [], additionalProperties: false } as const;
    const made = tool({ name: 't', parameters: schema, strict, execute: () => '' });
    const escalate = new Handoff({
      toolName: 'escalate',
      toolDescription: 'To a senior.',
      inputJsonSchema: schema,
      strictJsonSchema: strict,
      agentName: 'Senior',
      onInvokeHandoff: () => new Agent({ name: 'Senior' }),
    });
    const sent = body(
      {},
      { tools: [made], handoffs: [escalate], outputSchema: { name: 'final_output', schema, strict } },
    );
    expect(sent['tools']).toMatchObject([
      { name: 't', strict },
      { type: 'function', name: 'escalate', description: 'To a senior.', parameters: schema, strict },
    ]);
    expect(sent['text']).toMatchObject({ format: { name: 'final_output', strict } });
  });

  it('tells who may call a tool and what it returns, where that was said; provider data lies over it [TOOL-F4, F7, F8]', () => {
    const base = { name: 't', execute: () => ({}) };
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const sent = (made: ReturnType<typeof tool>): unknown => body({}, { tools: [made as never] })['tools'];
    expect(Object.keys((sent(tool(base)) as [object])[0])).toEqual([
      'type',
      'name',
      'description',
      'parameters',
      'strict',
    ]);
    const both = tool({ ...base, allowedCallers: ['direct', 'programmatic'], outputSchema });
    expect(sent(both as never)).toMatchObject([
      { allowed_callers: ['direct', 'programmatic'], output_schema: { ...outputSchema, additionalProperties: false } },
    ]);
    expect(sent(tool({ ...base, allowedCallers: ['direct'] }))).not.toMatchObject([{ allowed_callers: [] }]);
    expect(sent(both.copyWith({ providerData: { allowed_callers: ['programmatic'] } }) as never)).toMatchObject([
      { allowed_callers: ['programmatic'] },
    ]);
  });

  it('leaves parallelToolCalls out where there is no tool [MODEL-211] [MODEL#38]', () => {
    expect(body({ parallelToolCalls: true })).not.toHaveProperty('parallel_tool_calls');
    expect(body({ parallelToolCalls: true }, { tools: [listTasks as never] })).toHaveProperty(
      'parallel_tool_calls',
      true,
    );
  });

  it('sends a prompt template in its wire form, and leaves out what it has of its own [MODEL-507, MODEL-508, MODEL-211, MODEL-526]', () => {
    const prompt = { id: 'pmpt_1' };
    const settings: ModelSettings = { toolChoice: 'required', parallelToolCalls: true };
    const bare = body(settings, { prompt });
    expect(bare).toEqual({
      model: 'gpt-5.6-luna',
      input: [{ role: 'user', content: 'Hello' }],
      prompt: { id: 'pmpt_1', version: null, variables: null },
      tool_choice: 'required',
      parallel_tool_calls: true,
    });
    expect(body({ toolChoice: 'list_tasks' }, { prompt })).not.toHaveProperty('tool_choice');
    expect(body({ toolChoice: 'auto' }, { prompt })).toHaveProperty('tool_choice', 'auto');
    const own = body({ toolChoice: 'list_tasks' }, { prompt, tools: [listTasks] });
    expect(own).toMatchObject({
      tools: [{ name: 'list_tasks' }],
      tool_choice: { type: 'function', name: 'list_tasks' },
    });
  });

  it('copies the variables of a prompt, and takes content for them [TOOL-A9]', () => {
    const variables = { city: 'Kyiv', photo: { type: 'input_image' as const, file_id: 'f1', detail: 'auto' as const } };
    const { prompt } = body({}, { prompt: { id: 'pmpt_1', version: '3', variables } });
    expect(prompt).toEqual({ id: 'pmpt_1', version: '3', variables });
    expect((prompt as { variables: object }).variables).not.toBe(variables);
    expect(() => body({ extraArgs: { prompt: { id: 'x' } } }, { prompt: { id: 'pmpt_1' } })).toThrow(
      /collides.*prompt/,
    );
  });

  it('leaves the model to a prompt template where nobody named one [MODEL-507] [MODEL#29] [MODEL#30]', async () => {
    const provider = new OpenAIProvider({ apiKey: 'k' });
    const request = modelRequest({ prompt: { id: 'pmpt_1' } });
    const sent = async (name?: string): Promise<unknown> =>
      ((await provider.getModel(name)) as OpenAIResponsesModel).buildRequest(request).body['model'];
    expect(await sent()).toBeUndefined();
    expect(await sent('gpt-5.6-luna')).toBe('gpt-5.6-luna');
    expect(new OpenAIResponsesModel('gpt-4.1').buildRequest(request).body['model']).toBe('gpt-4.1');
    const plain = (await provider.getModel()) as OpenAIResponsesModel;
    expect(plain.buildRequest(modelRequest()).body['model']).toBe(getDefaultModel());
  });

  it('turns tool choices into their wire form, and refuses those that reach no tool [MODEL-525, 526]', () => {
    const choice = (toolChoice: ModelSettings['toolChoice']): unknown =>
      body({ toolChoice }, { tools: [listTasks] })['tool_choice'];
    expect(
      ['auto', 'none', 'required', 'list_tasks', 'web_search', { serverLabel: 's', name: 'n' }].map((value) =>
        choice(value),
      ),
    ).toEqual([
      'auto',
      'none',
      'required',
      { type: 'function', name: 'list_tasks' },
      { type: 'web_search' },
      { type: 'mcp', server_label: 's', name: 'n' },
    ]);
    expect(() => choice('missing')).toThrow("'missing', but the agent's tools are: list_tasks");
    expect(() => body({ toolChoice: 'required' })).toThrow('none that is enabled');
    expect(body({ toolChoice: 'required', extraBody: { tools: [{ type: 'web_search' }] } })['tool_choice']).toBe(
      'required',
    );
    expect(body({ toolChoice: 'none' })['tool_choice']).toBe('none');
  });

  it('refuses extraArgs that collide with what is set, and lets them replace what is not or is only implied [MODEL-511] [MODEL#34]', () => {
    expect(() => body({ temperature: 0.5, topP: 1, extraArgs: { top_p: 0, temperature: 1 } })).toThrow(
      'temperature, top_p',
    );
    expect(body({ extraArgs: { temperature: 1, service_tier: 'flex', nothing: undefined } })).toMatchObject({
      temperature: 1,
      service_tier: 'flex',
    });
    const implied = {
      reasoning: { effort: 'none' as const },
      verbosity: 'low' as const,
      extraArgs: { reasoning: { effort: 'high' }, text: { verbosity: 'high' } },
    };
    expect(() => body(implied)).toThrow('reasoning, text');
    expect(body(implied, { implicitSettings: ['reasoning', 'verbosity'] })).toMatchObject({
      reasoning: { effort: 'high' },
      text: { verbosity: 'high' },
    });
    const schema = { name: 'x', schema: {}, strict: true };
    expect(() => body(implied, { implicitSettings: ['reasoning', 'verbosity'], outputSchema: schema })).toThrow(
      'already: text.',
    );
    expect(() => body({ extraArgs: { stream: true, extra_body: {} } })).toThrow('extra_body, stream');
  });

  it('makes request options of timeout, idempotency_key, headers and query, and adds none that is unset [MODEL-511, 512, 513]', () => {
    const { options, body: sent } = build({
      modelSettings: {
        extraArgs: { timeout: 1.5, idempotency_key: 'k' },
        extraHeaders: { 'user-agent': 'x', 'X-A': null },
        extraQuery: { q: 1 },
      },
      attempt: { number: 1, owner: {}, disableProviderRetries: true },
    });
    expect(options).toEqual({
      timeout: 1500,
      idempotencyKey: 'k',
      headers: { 'user-agent': 'x', 'X-A': null },
      query: { q: 1 },
      maxRetries: 0,
    });
    expect(sent).not.toHaveProperty('timeout');
    expect(Object.keys(build({}).options)).toEqual(['headers']);
    expect(build({}).options['headers']).toEqual({ 'User-Agent': expect.stringMatching(/^Agents\/TypeScript \d/u) });
    expect(() => build({ modelSettings: { extraArgs: { timeout: 'soon' } } })).toThrow('seconds');
  });

  it('replaces and removes headers of the client on the wire [MODEL-512] [MODEL#35]', async () => {
    const fake = new FakeOpenAI({ steps: ['ok', 'ok'] });
    const model = new OpenAIResponsesModel('gpt-5.6-luna', {
      client: await fake.client({ defaultHeaders: { 'X-A': 'default' } }),
    });
    await model.getResponse(modelRequest());
    await model.getResponse(
      modelRequest({ modelSettings: { extraHeaders: { 'user-agent': 'x', 'X-A': null }, extraQuery: { q: 'v' } } }),
    );
    expect(fake.requests[0]?.headers).toMatchObject({
      'x-a': 'default',
      'user-agent': expect.stringContaining('Agents/TypeScript'),
    });
    expect(fake.requests[1]?.headers['user-agent']).toBe('x');
    expect(fake.requests[1]?.headers).not.toHaveProperty('x-a');
    expect(fake.requests[1]?.query).toEqual({ q: 'v' });
  });

  it('merges extraBody over the body, but not the stream flag [MODEL-512] [MODEL#36]', async () => {
    const fake = new FakeOpenAI({ steps: ['ok'], strict: false });
    const model = new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client() });
    await model.getResponse(
      modelRequest({ modelSettings: { temperature: 1, extraBody: { stream: true, foo: 1, temperature: 0 } } }),
    );
    expect(fake.requests[0]?.body).toMatchObject({ foo: 1, temperature: 0 });
    expect(fake.requests[0]?.body).not.toHaveProperty('stream');
  });

  it('makes lists of iterables, and names the path of what JSON cannot hold [MODEL-502]', () => {
    expect(
      build({ input: [{ role: 'user', content: new Set([{ type: 'input_text', text: 'a' }]) }] as never }).body[
        'input'
      ],
    ).toEqual([{ role: 'user', content: [{ type: 'input_text', text: 'a' }] }]);
    expect(() =>
      build({ input: [{ role: 'user', content: [{ type: 'input_text', text: () => 1 }] }] as never }),
    ).toThrow('input[0].content[0].text is a function');
  });

  it('names the version of the package', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect((build({}).options['headers'] as Record<string, string>)['User-Agent']).toBe(`Agents/TypeScript ${version}`);
  });
});
