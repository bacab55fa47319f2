import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { Agent, handoff, run, RunAbortedError, RunContext, tool, UserError } from '../index.ts';
import type { RunOptions } from '../index.ts';
import { OpenAIProvider } from '../openai/index.ts';
import { FakeOpenAI, InMemoryTraceProcessor, resetDefaults, ScriptedModel } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import { inspectAgentRequest } from './index.ts';

afterEach(resetDefaults);

interface My {
  readonly isAdmin: boolean;
}

const refund = tool({
  name: 'refund',
  description: 'Refunds',
  parameters: z.object({ id: z.string(), note: z.string().optional() }),
  isEnabled: (ctx: RunContext<My>) => ctx.context.isAdmin,
  execute: () => 'x',
});
const lookup = tool({ name: 'lookup', description: 'Looks up', parameters: z.object({}), execute: () => 'x' });
const billing = new Agent({ name: 'Billing', handoffDescription: 'Money' });
const secret = new Agent({ name: 'Secret' });
const triage = new Agent({
  name: 'Triage',
  instructions: (ctx: RunContext<My>) => `Admin: ${ctx.context.isAdmin}`,
  tools: [refund, lookup],
  handoffs: [billing, handoff(secret, { isEnabled: false })],
  outputType: z.object({ ok: z.boolean() }),
  modelSettings: { toolChoice: 'lookup' },
});

describe('the request of an agent', () => {
  it('is told without a model call: instructions, enabled tools, handoffs last, choice and schema [TOOL-Z4]', async () => {
    const view = await inspectAgentRequest(triage, { context: { isAdmin: false } });
    expect(view).toEqual({
      instructions: 'Admin: false',
      prompt: undefined,
      tools: [
        expect.objectContaining({ type: 'function', name: 'lookup', strict: true }),
        {
          type: 'function',
          name: 'transfer_to_billing',
          description: 'Handoff to the Billing agent to handle the request. Money',
          parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
          strict: true,
        },
      ],
      toolChoice: { type: 'function', name: 'lookup' },
      outputSchema: {
        type: 'object',
        properties: { ok: { type: 'boolean' } },
        required: ['ok'],
        additionalProperties: false,
      },
    });
    const admin = await inspectAgentRequest(triage, { context: new RunContext<My>({ isAdmin: true }) });
    expect(admin.tools.map(({ name }) => name)).toEqual(['refund', 'lookup', 'transfer_to_billing']);
  });

  it('is what the OpenAI API gets, member by member [TOOL-Z4]', async () => {
    const fake = new FakeOpenAI({ steps: ['{"ok":true}'] });
    const options: RunOptions<My> & { context: My } = {
      context: { isAdmin: true },
      modelSettings: { toolChoice: 'required', verbosity: 'low' },
    };
    await run(triage, 'Hi', { ...options, modelProvider: new OpenAIProvider({ client: await fake.client() }) });
    const sent = fake.requests[0]?.body as Record<string, unknown>;
    const view = await inspectAgentRequest(triage, options);
    expect({
      instructions: sent['instructions'],
      prompt: sent['prompt'],
      tools: sent['tools'],
      toolChoice: sent['tool_choice'],
      outputSchema: (sent['text'] as { format: { schema: unknown } }).format.schema,
    }).toEqual(view);
    expect(view.toolChoice).toBe('required');
  });

  it('has the prompt template; its tools and instructions are not ours to tell [TOOL-Z4]', async () => {
    const agent = new Agent({ name: 'A', prompt: { id: 'pmpt_1', variables: { city: 'Rome' } } });
    expect(await inspectAgentRequest(agent)).toEqual({
      instructions: undefined,
      prompt: { id: 'pmpt_1', version: null, variables: { city: 'Rome' } },
      tools: [],
      toolChoice: undefined,
      outputSchema: undefined,
    });
  });

  it('touches no session, hook, guardrail, filter, trace or model, and needs no key [TOOL-Z4]', async () => {
    vi.stubEnv('OPENAI_API_KEY', undefined);
    const traces = new InMemoryTraceProcessor();
    setTraceProcessors([traces]);
    const touched: string[] = [];
    const touch = (what: string) => (): never => {
      touched.push(what);
      throw new Error(what);
    };
    const model = new ScriptedModel([]);
    const session = {
      getItems: touch('get'),
      addItems: touch('add'),
      popItem: touch('pop'),
      clearSession: touch('clear'),
    };
    const hooks = { onRunStart: touch('run start'), onAgentStart: touch('start'), onLlmStart: touch('llm') };
    const agent = new Agent({ name: 'A', model: 'gpt-5', hooks: { onStart: touch('own start') } });
    const options: RunOptions = {
      session: { sessionId: 's', ...session },
      hooks,
      callModelInputFilter: touch('filter'),
      inputGuardrails: [{ name: 'g', execute: touch('guardrail') }],
      modelProvider: { getModel: touch('provider') },
    };
    await inspectAgentRequest(agent, options);
    await inspectAgentRequest(agent, { ...options, model });
    expect(touched).toEqual([]);
    expect(model.calls).toEqual([]);
    expect(traces.traces).toEqual([]);
    vi.unstubAllEnvs();
  });

  it('fails as a run would: wrong options, a choice without a tool, functions that throw [TOOL-Z4, Z11]', async () => {
    const agent = new Agent({ name: 'A' });
    await expect(inspectAgentRequest({ name: 'A' } as never)).rejects.toThrow('must be an Agent, not an object');
    await expect(inspectAgentRequest(agent, { maxTurn: 3 } as never)).rejects.toThrow(
      "Unknown option 'maxTurn' of inspectAgentRequest. Did you mean 'maxTurns'?",
    );
    await expect(inspectAgentRequest(agent, { modelSettings: { toolChoice: 'nope' } })).rejects.toThrow(UserError);
    const failure = new Error('no');
    const failing = new Agent({ name: 'A', instructions: () => Promise.reject(failure) });
    await expect(inspectAgentRequest(failing)).rejects.toBe(failure);
    await expect(inspectAgentRequest(agent, { signal: AbortSignal.abort() })).rejects.toThrow(RunAbortedError);
  });
});
