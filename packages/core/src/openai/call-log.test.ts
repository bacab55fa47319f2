import { afterEach, expect, it } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { callModel } from '../models/call.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { modelRequest } from '../testing/request.ts';
import { OpenAIResponsesModel } from './responses-model.ts';

afterEach(resetAll);

/** The log of a plain, a streamed and a failed call. */
async function linesOf(dontLogModelData: boolean): Promise<string> {
  const lines: string[] = [];
  configureLogging({ level: 'debug', dontLogModelData, sink: (record) => lines.push(JSON.stringify(record)) });
  const fake = new FakeOpenAI({
    steps: ['the answer', 'the answer', { status: 400, body: { error: { message: 'echo of the prompt' } } }],
  });
  const client = await fake.client({
    apiKey: 'sk-secret',
    maxRetries: 0,
    logLevel: 'off',
    defaultHeaders: { 'x-own': 'header value' },
  });
  const model = new OpenAIResponsesModel('m', { client });
  await model.getResponse(modelRequest('the prompt'));
  await callModel(model, modelRequest('the prompt'), () => {});
  await model.getResponse(modelRequest('the prompt')).catch(() => {});
  return lines.join('\n');
}

it('tells by default that calls started and ended, and nothing of their data [MODEL-930, 931, 933]', async () => {
  const log = await linesOf(true);
  expect(log.match(/Calling the Responses API/gu)).toHaveLength(3);
  expect(log.match(/The Responses API answered/gu)).toHaveLength(2);
  expect(log).toContain('Error details are redacted');
  for (const secret of ['the prompt', 'the answer', 'echo', 'sk-secret', 'header value', 'fake.invalid'])
    expect(log).not.toContain(secret);
});

it('has request, answer, error text and request id with model-data logging, but no key, header or URL [MODEL-930, 931, 933]', async () => {
  const log = await linesOf(false);
  for (const shown of ['the prompt', 'the answer', 'echo of the prompt', 'req_0003']) expect(log).toContain(shown);
  for (const secret of ['sk-secret', 'header value', 'fake.invalid']) expect(log).not.toContain(secret);
});
