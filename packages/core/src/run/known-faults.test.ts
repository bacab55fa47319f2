import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, run, RunAbortedError, runStreamed, RunState, tool, UserError } from '../index.ts';
import type { AgentInputItem, AnyAgent, MessageOutputItem, RunResult, RunStreamEvent, ToolContext } from '../index.ts';
import { OpenAIResponsesModel } from '../openai/index.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, idle, kindsOf, namesOf, PlainSession, readAll, rejection, user } from '../../test/run-kit.ts';

// Faults that users met in other SDKs, each by the symptom that they saw.

/** A state as another process would have it. */
const after = async (agent: AnyAgent, result: Pick<RunResult, 'toState'>): Promise<RunState> =>
  await RunState.fromString(agent as Agent, result.toState().toString());

const outputs = (items: readonly AgentInputItem[] | undefined): [string, unknown][] =>
  (items ?? []).flatMap((item): [string, unknown][] =>
    item.type === 'function_call_output' ? [[String(item.call_id), item.output]] : [],
  );

const textOf = (item: MessageOutputItem): string =>
  item.rawItem.content.map((part) => (part.type === 'output_text' ? part.text : '')).join('');

const gated = (log: string[] = []): { agent: Agent; model: ScriptedModel } => {
  const model = new ScriptedModel([
    [toolCall('g', { id: '1' }, { callId: 'c1' }), toolCall('g', { id: '2' }, { callId: 'c2' })],
    'done',
  ]);
  return { agent: new Agent({ name: 'A', model, tools: [effectTool('g', log, { needsApproval: true })] }), model };
};

describe('streams', () => {
  it('tell of a call before its tool has run [IL-116]', async () => {
    const log: string[] = [];
    const slow = tool({
      name: 't',
      execute: async () => {
        await idle(10);
        log.push('tool ends');
        return 'ok';
      },
    });
    const stream = runStreamed(
      new Agent({ name: 'A', model: new ScriptedModel([toolCall('t'), 'done']), tools: [slow] }),
      'x',
    );
    for await (const event of stream) if (event.type === 'run_item_stream_event') log.push(event.name);
    expect(log).toEqual(['tool_called', 'tool ends', 'tool_output', 'message_output_created']);
  });

  it('tell of items in the order of the model: reasoning is not behind the calls that it led to [IL-117]', async () => {
    const output = [reasoning('a'), toolCall('t'), reasoning('b'), toolCall('t')];
    const agent = new Agent({ name: 'A', model: new ScriptedModel([output, 'done']), tools: [effectTool('t', [])] });
    const names = namesOf(await readAll(runStreamed(agent, 'x')));
    expect(names.slice(2, 6)).toEqual([
      'reasoning_item_created',
      'tool_called',
      'reasoning_item_created',
      'tool_called',
    ]);
  });

  it.each(['cancel', 'signal', 'leaving'] as const)(
    'can be left while a tool runs: by %s the reader is free at once, and the tool is told [IL-118]',
    async (how) => {
      const controller = new AbortController();
      let begun: () => void = () => undefined;
      const running = new Promise<void>((resolve) => (begun = resolve));
      let told: boolean | undefined;
      let finish: () => void = () => undefined;
      const endless = tool({
        name: 't',
        execute: (_args, { signal }) =>
          new Promise<string>((resolve, reject) => {
            finish = () => resolve('ok');
            signal.addEventListener('abort', () => ((told = true), reject(new Error('stopped'))));
            begun();
          }),
      });
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('t'), 'done']), tools: [endless] });
      const stream = runStreamed(agent, 'x', { signal: controller.signal });
      const reader = stream[Symbol.asyncIterator]();
      const reading = (async () => {
        const seen: RunStreamEvent[] = [];
        for (;;) {
          const { done, value } = await reader.next();
          if (done) return seen;
          seen.push(value);
        }
      })();
      await running;
      if (how === 'cancel') stream.cancel();
      else if (how === 'signal') controller.abort();
      else await reader.return?.();
      expect(namesOf(await reading).at(-1)).toBe('tool_called');
      await idle();
      // Leaving is no abort: the run goes on for whoever waits for its end.
      expect(told).toBe(how === 'leaving' ? undefined : true);
      finish();
      const end = await stream.completed.catch((error: unknown) => error);
      expect(end instanceof RunAbortedError).toBe(how !== 'leaving');
    },
  );

  it('do not send the next request while their reader still looks at the turn that it wants to be the last [IL-120]', async () => {
    const model = new ScriptedModel([toolCall('t'), toolCall('t'), 'done']);
    const stream = runStreamed(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'x');
    for await (const event of stream) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (event.type === 'run_item_stream_event' && event.name === 'tool_output') stream.cancel({ mode: 'after_turn' });
    }
    expect(model.calls).toHaveLength(1);
  });

  it('that were cancelled complete behind the clean-up of their tools [IL-128]', async () => {
    const log: string[] = [];
    let begun: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (begun = resolve));
    const careful = tool({
      name: 't',
      execute: async (_args, { signal }: ToolContext) => {
        begun();
        try {
          await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
        } finally {
          await new Promise((resolve) => setTimeout(resolve, 30));
          log.push('cleaned up');
        }
      },
    });
    const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('t')]), tools: [careful] });
    const stream = runStreamed(agent, 'x', { hooks: { onRunEnd: () => void log.push('run ends') } });
    await running;
    stream.cancel();
    await rejection(stream.completed);
    log.push('completed');
    expect(log).toEqual(['cleaned up', 'run ends', 'completed']);
  });

  it('tell of a rejected call with an output event, with its call id [IL-100]', async () => {
    const { agent } = gated();
    const state = await after(agent, await run(agent, 'x'));
    for (const item of state.interruptions) state.reject(item);
    const events = await readAll(runStreamed(agent, state));
    const ids = events.flatMap((event) =>
      event.type === 'run_item_stream_event' && event.name === 'tool_output' ? [event.item.callId] : [],
    );
    expect(ids).toEqual(['c1', 'c2']);
  });
});

describe('streams of one response', () => {
  const answer = [{ ...reasoning('hm'), id: 'rs_1' }, text('one two three'), text('four five')];

  it.each(['a model of the program', 'the Responses API'] as const)(
    'of %s: each text delta names the message that it belongs to [IL-127]',
    async (which) => {
      const client = await new FakeOpenAI({ steps: [answer] }).client({ maxRetries: 0 });
      const model =
        which === 'the Responses API'
          ? new OpenAIResponsesModel('gpt-5.6-luna', { client })
          : new ScriptedModel([answer], { chunk: 'word' });
      const texts = new Map<string, string>();
      const messages = new Map<string | undefined, string>();
      for await (const event of runStreamed(new Agent({ name: 'A', model }), 'x')) {
        if (event.type === 'raw_response_event' && event.data.type === 'response.output_text.delta')
          texts.set(event.data.item_id, (texts.get(event.data.item_id) ?? '') + event.data.delta);
        else if (event.type === 'run_item_stream_event' && event.name === 'message_output_created')
          messages.set(event.item.rawItem.id, textOf(event.item));
      }
      expect([...texts.values()]).toEqual(['one two three', 'four five']);
      expect(texts).toEqual(messages);
    },
  );
});

describe('a run that is going', () => {
  it.each(['onToolEnd', 'onLlmStart'] as const)(
    'can be written down (%s), so that after a crash another process goes on and no tool runs again [IL-091]',
    async (moment) => {
      const effects: string[] = [];
      const step = (id: string): ModelStep => [toolCall('t', { id }, { callId: id })];
      const agent = (...steps: readonly ModelStep[]): Agent =>
        new Agent({ name: 'A', model: new ScriptedModel(steps), tools: [effectTool('t', effects)] });
      let saved = '';
      const save = (): void => {
        if (effects.length === 0) return;
        saved = stream.toState().toString();
        stream.cancel();
      };
      const stream = runStreamed(agent(step('a'), step('b'), 'never said'), 'x', { hooks: { [moment]: save } });
      await rejection(stream.completed);
      const other = agent(step('b'), 'done');
      const result = await run(other, await RunState.fromString(other, saved));
      expect([result.finalOutput, effects]).toEqual(['done', ['t a', 't b']]);
      expect(kindsOf(result.toInputList())).toBe('u fc fco fc fco m');
    },
  );
});

bothForms((runForm, form) => {
  describe(`approvals (${form})`, () => {
    it('stop a streamed run as a plain one: the tool has not run, the waiting calls are there [IL-059]', async () => {
      const log: string[] = [];
      const { agent } = gated(log);
      const result = await runForm(agent, 'x');
      expect([result.status, result.interruptions.length, log]).toEqual(['interrupted', 2, []]);
      expect((await after(agent, result)).interruptions).toHaveLength(2);
    });

    it('give the model the reviewer`s own words, and one output per call that is never empty [IL-072, IL-099]', async () => {
      const { agent, model } = gated();
      const state = await after(agent, await runForm(agent, 'x'));
      const [first, second] = state.interruptions;
      if (first) state.reject(first, { message: 'not on a Friday' });
      if (second) state.reject(second);
      await runForm(agent, await RunState.fromString(agent, state.toString()));
      expect(outputs(model.calls[1]?.request.input)).toEqual([
        ['c1', 'not on a Friday'],
        ['c2', 'Tool execution was not approved.'],
      ]);
    });

    it('do not let a call through whose arguments no policy could read [IL-074]', async () => {
      const log: string[] = [];
      let asked = 0;
      const t = tool({
        name: 't',
        parameters: z.object({ id: z.string() }),
        needsApproval: () => ((asked += 1), false),
        execute: () => (log.push('ran'), 'ok'),
      });
      const model = new ScriptedModel([toolCall('t', '{bad'), 'done']);
      const result = await runForm(new Agent({ name: 'A', model, tools: [t] }), 'x');
      expect([result.status, log, asked]).toEqual(['completed', [], 0]);
      expect(outputs(model.calls[1]?.request.input)).toHaveLength(1);
    });

    it('do not read a decision out of a malformed state [IL-075]', async () => {
      const { agent } = gated();
      const state = (await runForm(agent, 'x')).toState();
      for (const item of state.interruptions) state.reject(item);
      const json = JSON.parse(state.toString()) as {
        context: { function_tool_approvals: { decision: Record<string, unknown> }[] };
      };
      const [entry] = json.context.function_tool_approvals;
      for (const rejected of ['c2', { c2: true }, 5]) {
        if (entry) entry.decision['rejected'] = rejected;
        const error = await rejection(RunState.fromString(agent, JSON.stringify(json)));
        expect(error).toMatchObject({ name: 'UserError', code: 'approval_record_invalid' });
      }
    });

    it('hold when the resume brings a new context, which the tool sees [IL-077]', async () => {
      const seen: unknown[] = [];
      const t = tool({
        name: 't',
        needsApproval: true,
        execute: (_args, ctx: ToolContext<{ who: string }>) => (seen.push(ctx.context.who), 'ok'),
      });
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('t'), 'done']), tools: [t] });
      const first = await runForm(agent, 'x', { context: { who: 'old' } });
      const state = await RunState.fromString(agent, first.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state, { context: { who: 'new' } });
      expect(seen).toEqual(['new']);
    });

    it('of two calls go each to its own, decided in any order, one process after the other [IL-096]', async () => {
      const log: string[] = [];
      const { agent, model } = gated(log);
      let state = await after(agent, await runForm(agent, 'x'));
      const second = state.interruptions.find((item) => item.callId === 'c2');
      if (second) state.approve(second);
      const between = await runForm(agent, state);
      expect([between.status, log]).toEqual(['interrupted', ['g 2']]);
      state = await after(agent, between);
      const first = state.interruptions.find((item) => item.callId === 'c1');
      if (first) state.reject(first, { message: 'no' });
      await runForm(agent, state);
      expect(log).toEqual(['g 2']);
      expect(Object.fromEntries(outputs(model.calls[1]?.request.input))).toEqual({ c1: 'no', c2: 'g ok' });
    });

    it('show the same four facts of every waiting call [IL-092]', async () => {
      const { agent } = gated();
      const restored = await after(agent, await runForm(agent, 'x'));
      for (const { name, callId, arguments: args, agent: owner } of restored.interruptions)
        expect([name, callId, JSON.parse(args ?? ''), owner.name]).toEqual(['g', callId, { id: callId.slice(1) }, 'A']);
    });

    it('are not carried over to a tool that clashes with another one by now [IL-076]', async () => {
      const log: string[] = [];
      const { agent } = gated(log);
      const state = await after(agent, await runForm(agent, 'x'));
      for (const item of state.interruptions) state.approve(item);
      agent.tools.push(effectTool('g', log));
      const error = await rejection(runForm(agent, state, { toolNameCollisionPolicy: 'error' }));
      expect([error instanceof UserError, log]).toEqual([true, []]);
    });
  });

  describe(`model input (${form})`, () => {
    const pair = (id: string): AgentInputItem[] => [
      { type: 'function_call', call_id: id, name: 't', arguments: '{}' },
      { type: 'function_call_output', call_id: id, output: 'ok' },
    ];

    it('has no reasoning whose call was dropped [IL-142]', async () => {
      const thought = reasoning('r') as AgentInputItem;
      const [call] = pair('a');
      const session = new PlainSession('s', [user('old'), thought, ...(call ? [call] : [])]);
      const model = new ScriptedModel(['done']);
      await runForm(new Agent({ name: 'A', model }), 'new', { session });
      expect(kindsOf(model.calls[0]?.request.input ?? [])).toBe('u u');
    });

    it('keeps a call before its output when both come twice [IL-143]', async () => {
      const model = new ScriptedModel(['done']);
      await runForm(new Agent({ name: 'A', model }), [user('x'), ...pair('a'), text('m') as never, ...pair('a')]);
      expect(kindsOf(model.calls[0]?.request.input ?? [])).toBe('u fc m fco');
    });

    it('has the encrypted reasoning of a provider that stores nothing, asked for and given back [IL-141]', async () => {
      const thought = { ...reasoning('r'), id: 'rs_1', encrypted_content: 'gAAAA' };
      const fake = new FakeOpenAI({ steps: [[thought, toolCall('t', {}, { callId: 'c' })], 'done'] });
      const agent = new Agent({
        name: 'A',
        model: new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client({ maxRetries: 0 }) }),
        modelSettings: { store: false, responseInclude: ['reasoning.encrypted_content'] },
        tools: [effectTool('t', [])],
      });
      await runForm(agent, 'x');
      const [first, second] = fake.requests.map(({ body }) => body as { readonly input: readonly object[] });
      expect(first).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
      expect(kindsOf(second?.input ?? [])).toBe('u reasoning fc fco');
      expect(second?.input[1]).toMatchObject({ id: 'rs_1', encrypted_content: 'gAAAA' });
    });
  });
});

it('a state that waits on nothing new is what a second process gets too: the same texts, the same calls [IL-093, STATE-150]', async () => {
  const steps: ModelStep[] = [toolCall('g', {}, { callId: 'c' }), 'done'];
  const agent = new Agent({
    name: 'A',
    model: new ScriptedModel(steps),
    tools: [effectTool('g', [], { needsApproval: true })],
  });
  const result = await run(agent, 'x');
  const restored = await RunState.fromString(agent, result.toState().toString());
  expect(restored.newItems.map((item) => item.toJSON())).toEqual(result.newItems.map((item) => item.toJSON()));
  expect(restored.toInputList()).toEqual(result.toInputList());
});
