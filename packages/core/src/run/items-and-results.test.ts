import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  getRunErrorState,
  ModelBehaviorError,
  run,
  RunContext,
  runStreamed,
  RunState,
  streamEventToJSON,
  tool,
  toUsage,
  UserError,
} from '../index.ts';
import type { AgentInputItem, ResponseStreamEvent, RunResult, ToolCallItem, Usage } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import {
  effectTool,
  exactly,
  idle,
  kindsOf,
  logged,
  PlainSession,
  readAll,
  rejection,
  scriptedDesk,
  user,
} from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const approved = async (result: RunResult): Promise<RunState> => {
  const state = result.toState();
  for (const item of state.interruptions) state.approve(item);
  return state;
};

/** One output of each kind that leaves no work here, and what it becomes. */
const kinds: readonly (readonly [wire: object, item: string])[] = [
  [reasoning('hm'), 'reasoning_item'],
  [{ type: 'file_search_call', id: 'fs', status: 'completed', queries: ['q'], results: null }, 'tool_call_item'],
  [{ type: 'web_search_call', id: 'ws', status: 'completed', action: { type: 'search' } }, 'tool_call_item'],
  [{ type: 'mcp_call', id: 'mcp', name: 'm', server_label: 's', arguments: '{}' }, 'tool_call_item'],
  [{ type: 'image_generation_call', id: 'ig', status: 'completed', result: '' }, 'tool_call_item'],
  [{ type: 'code_interpreter_call', id: 'ci', status: 'completed', code: '1', container_id: 'k' }, 'tool_call_item'],
  [{ type: 'shell_call_output', id: 'so', call_id: 'sc', output: [], created_by: 'x' }, 'tool_call_output_item'],
  [{ type: 'mcp_list_tools', id: 'ml', server_label: 's', tools: [] }, 'mcp_list_tools_item'],
  [{ type: 'tool_search_call', id: 'tc', status: 'completed', arguments: { q: 1 } }, 'tool_search_call_item'],
  [{ type: 'tool_search_output', id: 'to', status: 'completed', tools: [{ n: 1 }] }, 'tool_search_output_item'],
  [{ type: 'compaction', id: 'cm', encrypted_content: 'e' }, 'compaction_item'],
  [toolCall('t', {}, { callId: 'c1' }), 'tool_call_item'],
  [text('done'), 'message_output_item'],
];

describe('what a response becomes', () => {
  it('is one item per output, in its order and as received; local results follow [RUN-404, RUN-410, RUN-1111]', async () => {
    const wire = kinds.map(([raw]) => raw);
    const { plain } = await symmetry({
      setUp: () => ({ agent: scriptedDesk(exactly(...wire), 'end').agent, input: 'go' }),
    });
    expect(plain.result?.newItems.map((item) => item.type)).toEqual([
      ...kinds.map(([, type]) => type),
      'tool_call_output_item',
      'message_output_item',
    ]);
    plain.result?.newItems.slice(0, wire.length).forEach((item, index) => expect(item.rawItem).toEqual(wire[index]));
  });

  it('leaves out what nobody knows, with one warning per run that names the type [RUN-404, RUN-1904]', async () => {
    const records = logged();
    const odd = { type: 'hologram_call', id: 'h', secret: 'x' };
    const { agent } = scriptedDesk(exactly(odd, odd, toolCall('t', {}, { callId: 'c1' })), exactly(odd, text('done')));
    const result = await run(agent, 'go');
    expect(kindsOf(result.toInputList())).toBe('u fc fco m');
    expect(records.map(({ level, message }) => [level, message.includes('hologram_call')])).toEqual([['warn', true]]);
    expect(JSON.stringify(records)).not.toContain('secret');
  });

  it.each([
    { type: 'computer_call', call_id: 'c', id: 'i', action: { type: 'wait' }, pending_safety_checks: [] },
    { type: 'shell_call', call_id: 'c', id: 'i', action: { commands: ['ls'] } },
    { type: 'local_shell_call', call_id: 'c', id: 'i', action: { type: 'exec', command: ['ls'], env: {} } },
    { type: 'apply_patch_call', call_id: 'c', id: 'i', operation: { type: 'delete_file', path: 'p' } },
    { type: 'custom_tool_call', call_id: 'c', id: 'i', name: 'x', input: 'secret' },
    { type: 'mcp_approval_request', id: 'i', name: 'x', server_label: 's', arguments: '{}' },
    { type: 'program', call_id: 'c', id: 'i', code: 'secret', fingerprint: 'f' },
  ])(
    'is an error for a $type when the agent has no such tool, whatever becomes of unknown functions [RUN-407]',
    async (wire) => {
      for (const toolNotFoundBehavior of ['raise_error', 'return_error_to_model'] as const) {
        const effects: string[] = [];
        const model = new ScriptedModel([exactly(toolCall('t', {}, { callId: 'c1' }), wire)]);
        const agent = new Agent({ name: 'A', model, tools: [effectTool('t', effects)] });
        const error = await rejection(run(agent, 'go', { toolNotFoundBehavior }));
        expect(error).toBeInstanceOf(ModelBehaviorError);
        expect((error as Error).message).toMatch(new RegExp(`${wire.type}.*agent A`));
        expect((error as Error).message).not.toContain('secret');
        expect(effects).toEqual([]);
      }
    },
  );

  it('treats a function call that a program owns, of a tool that lets it, like any other; conversions drop created_by, the raw item keeps all [RUN-405, RUN-1111, RUN-1102]', async () => {
    const owned = {
      ...toolCall('t', { id: '7' }, { callId: 'c1' }),
      caller: { type: 'program', caller_id: 'p1' },
      created_by: 'the provider',
    };
    const { plain } = await symmetry({
      setUp: ({ session }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([exactly(owned), 'done']),
          tools: [effectTool('t', []).copyWith({ allowedCallers: ['programmatic'] })],
        }),
        input: 'go',
        options: { session: session('s') },
      }),
    });
    const [call] = plain.result?.newItems ?? [];
    expect(call?.rawItem).toEqual(owned);
    const converted = { ...owned, created_by: undefined };
    expect(plain.result?.toInputList()[1]).toEqual(converted);
    expect(plain.result?.toInputList()[1]).not.toHaveProperty('created_by');
    expect(plain.writes[1]?.[0]).not.toHaveProperty('created_by');
    expect(plain.result?.toInputList()[2]).toMatchObject({ call_id: 'c1', output: 't ok' });
  });

  it('keeps what the model sees apart from what people see: a decided call waits in the one list only [RUN-302, RUN-503]', async () => {
    const { agent } = scriptedDesk(toolCall('g', {}, { callId: 'c1' }), 'done');
    const result = await run(agent, await approved(await run(agent, 'go')));
    const json = result.toState().toJSON() as unknown as Record<string, { type: string }[]>;
    const types = (key: string): string[] => (json[key] ?? []).map((item) => item.type);
    expect(types('session_items')).toEqual([
      'tool_call_item',
      'tool_approval_item',
      'tool_call_output_item',
      'message_output_item',
    ]);
    expect(types('generated_items')).toEqual(['tool_call_item', 'tool_call_output_item', 'message_output_item']);
    expect(result.newItems).toHaveLength(4);
  });
});

bothForms((runForm, form) => {
  describe(`responses (${form})`, () => {
    it('tell id, request id and, when asked for, the provider`s usage; nothing of it changes the run [RUN-1109, RUN-1203, MODEL-430]', async () => {
      const rawUsage = { prompt_tokens: 3, odd: { deep: [1] } };
      const play = async (preserveRawUsage: boolean) => {
        const { agent } = scriptedDesk(
          { output: [toolCall('t')], responseId: 'r1', requestId: 'req_1', rawUsage },
          { output: 'done', responseId: null },
        );
        return await runForm(agent, 'go', { modelSettings: { preserveRawUsage } });
      };
      const result = await play(true);
      expect(result.rawResponses.map(({ responseId, requestId }) => [responseId, requestId])).toEqual([
        ['r1', 'req_1'],
        [undefined, undefined],
      ]);
      expect(result.rawResponses[0]?.rawUsage).toEqual(rawUsage);
      expect(result.rawResponses[0]?.rawUsage).not.toBe(rawUsage);
      expect(result.rawResponses[1]?.rawUsage).toBeUndefined();
      const without = await play(false);
      expect(without.rawResponses[0]?.rawUsage).toBeUndefined();
      expect(without.toInputList()).toEqual(result.toInputList());
    });

    it('give the last id; none when the last one has none, and none without responses [RUN-1208]', async () => {
      const ids = async (...given: (string | null)[]): Promise<string | undefined> => {
        const steps = given.map((responseId, index) => ({
          output: index === given.length - 1 ? [text('done')] : [toolCall('t')],
          responseId,
        }));
        return (await runForm(scriptedDesk(...steps).agent, 'go')).lastResponseId;
      };
      expect([await ids('r1', 'r2'), await ids('r1', null), await ids(null, 'r2')]).toEqual(['r2', undefined, 'r2']);
      const refused = await rejection(runForm(scriptedDesk().agent, 'go', { maxTurns: 0 }));
      expect(getRunErrorState(refused)?.toJSON()['model_responses']).toEqual([]);
    });
  });

  describe(`usage (${form})`, () => {
    it('counts each response once, before onLlmEnd; details that are missing or null count as nothing [RUN-1002, RUN#77, RUN-1001]', async () => {
      const odd = { inputTokens: 5, outputTokens: 2, totalTokens: 7, inputTokensDetails: null } as unknown as Usage;
      const several = { requests: 3 } as Usage;
      const { agent } = scriptedDesk(
        { output: [toolCall('t')], usage: odd },
        { output: [toolCall('t')], usage: several },
        { output: 'done', usage: { requests: 1, inputTokens: 1, totalTokens: 1 } },
      );
      const seen: number[][] = [];
      const result = await runForm(agent, 'go', {
        hooks: { onLlmEnd: ({ usage }) => void seen.push([usage.requests, usage.totalTokens]) },
      });
      expect(seen).toEqual([
        [1, 7],
        [4, 7],
        [5, 8],
      ]);
      const none = { cachedTokens: 0, cacheWriteTokens: 0 };
      expect(result.context.usage).toEqual({
        ...toUsage({ requests: 5, inputTokens: 6, outputTokens: 2, totalTokens: 8 }),
        // One entry per response that stands for one request with tokens.
        requestUsageEntries: [
          {
            inputTokens: 5,
            outputTokens: 2,
            totalTokens: 7,
            inputTokensDetails: none,
            outputTokensDetails: { reasoningTokens: 0 },
          },
          {
            inputTokens: 1,
            outputTokens: 0,
            totalTokens: 1,
            inputTokensDetails: none,
            outputTokensDetails: { reasoningTokens: 0 },
          },
        ],
      });
    });

    it('of two states of one result is their own [RUN#77, RUN-1005, IL-132]', async () => {
      const { agent } = scriptedDesk(toolCall('g', {}, { callId: 'c' }), 'one', 'two');
      const paused = await runForm(agent, 'go');
      const [first, second] = [await approved(paused), await approved(paused)];
      const done = await runForm(agent, first);
      expect([done.context.usage.requests, second.usage.requests, paused.context.usage.requests]).toEqual([2, 1, 1]);
      expect((await runForm(agent, second)).context.usage.requests).toBe(2);
    });
  });

  describe(`a result (${form})`, () => {
    it('has every item and response of the run, earlier segments included, in order [RUN-1202, RUN-1203]', async () => {
      const { agent } = scriptedDesk(toolCall('t'), toolCall('g'), 'done');
      const first = await runForm(agent, 'go');
      const second = await runForm(agent, await approved(first));
      expect(second.newItems.map((item) => item.type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'tool_call_item',
        'tool_approval_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
      first.newItems.forEach((item, index) => expect(second.newItems[index]).toBe(item));
      expect(second.rawResponses.slice(0, 2)).toEqual(first.rawResponses);
      expect(second.rawResponses).toHaveLength(3);
      expect([second.currentTurn, first.newItems.length]).toEqual([3, 4]);
    });

    it('names the agent that ran last, which takes the next turn with the same context [RUN-1207]', async () => {
      const model = new ScriptedModel(['one', 'two']);
      const agent = new Agent({
        name: 'A',
        model,
        instructions: (ctx: RunContext<{ who: string }>) => `Serve ${ctx.context.who}.`,
      });
      const context = { who: 'Ana' };
      const result = await runForm(agent, 'go', { context });
      expect(result.lastAgent).toBe(agent);
      const next = await run(result.lastAgent, [...result.toInputList(), user('and?')], { context });
      expect(next.finalOutput).toBe('two');
      const { agent: waiting } = scriptedDesk(toolCall('g'));
      expect((await runForm(waiting, 'go')).lastAgent).toBe(waiting);
    });

    it('has no interruptions where nothing waits, and the live context of the run [RUN-1211, RUN-1212]', async () => {
      const contexts: unknown[] = [];
      const value = { n: 1 };
      const { agent } = scriptedDesk('done');
      const result = await runForm(agent, 'go', {
        context: value,
        hooks: { onRunStart: (ctx) => void contexts.push(ctx) },
      });
      expect(result.interruptions).toEqual([]);
      expect(result.context).toBe(contexts[0]);
      expect(result.context).toBeInstanceOf(RunContext);
      expect(result.context.context).toBe(value);
      expect(result.context.usage.requests).toBe(1);
      const paused = await runForm(scriptedDesk(toolCall('g', {}, { callId: 'c' })).agent, 'go');
      expect(paused.interruptions.map((item) => item.callId)).toEqual(['c']);
    });

    it('gives replay lists without changing anything; another mode is refused by name [RUN-1217, RUN-1218, RUN-1219, RUN-1222]', async () => {
      const { agent } = scriptedDesk(toolCall('g'), 'done');
      const paused = await runForm(agent, 'go');
      // Waiting calls are no input.
      expect(kindsOf(paused.toInputList())).toBe('u fc');
      const result = await runForm(agent, await approved(paused));
      const raw = result.newItems.map((item) => item.rawItem);
      const before = structuredClone(raw);
      const list = result.toInputList();
      expect(list[0]).toEqual({ content: 'go', role: 'user' });
      expect(kindsOf(list)).toBe('u fc fco m');
      expect(result.toInputList({ mode: 'normalized' })).toEqual(list);
      expect(result.toInputList({ mode: 'preserve_all' })).toEqual(list);
      (list as unknown[]).length = 0;
      (result.toInputList()[1] as unknown as Record<string, unknown>)['name'] = 'other';
      expect(kindsOf(result.toInputList())).toBe('u fc fco m');
      expect(raw).toEqual(before);
      expect(result.input).toBe('go');
      for (const mode of ['all', null, 5]) {
        expect(() => result.toInputList({ mode } as never)).toThrow(UserError);
        expect(() => result.toInputList({ mode } as never)).toThrow(/'preserve_all' or 'normalized'/);
      }
    });

    it('tells its class, agent, output with type and counts, and dumps no agent [RUN-1214, RUN-1216]', async () => {
      const named = async (output: ModelStep, outputType?: z.ZodType): Promise<string> => {
        const agent = new Agent<unknown, unknown>({
          name: 'A',
          instructions: 'private words',
          model: new ScriptedModel([toolCall('t'), output]),
          tools: [effectTool('t', [])],
          ...(outputType ? { outputType } : {}),
        });
        const result = await runForm(agent, 'go');
        expect(inspect(result)).toBe(String(result));
        return String(result);
      };
      const lines = (await named('hi')).split('\n');
      expect(lines).toEqual([
        'RunResult: completed',
        '- last agent: A',
        '- final output: hi (string)',
        '- 3 new item(s), 2 raw response(s), 0 interruption(s)',
        '- 0 input and 0 output guardrail result(s)',
      ]);
      expect(await named('{"n":1}', z.object({ n: z.number() }))).toContain('- final output: {"n":1} (object)');
      const paused = String(await runForm(scriptedDesk(toolCall('g')).agent, 'go'));
      expect(paused).toMatch(/RunResult: interrupted[^]*final output: none[^]*1 interruption/);
      expect(paused).not.toContain('private');
      // A tool's value that ends the run may be what JSON cannot write.
      const odd = new Agent<unknown, unknown>({
        name: 'A',
        model: new ScriptedModel([toolCall('big')]),
        tools: [tool({ name: 'big', execute: () => ({ n: 1n }) })],
        toolUseBehavior: 'stop_on_first_tool',
        outputType: z.object({ n: z.number() }),
      });
      expect(String(await runForm(odd, 'go'))).toContain('- final output: (object)');
    });
  });
});

describe('a stream', () => {
  it('tells also its turn and whether it is over [RUN-1214]', async () => {
    const { agent } = scriptedDesk(toolCall('t'), 'done');
    const stream = runStreamed(agent, 'go', { maxTurns: null });
    expect(String(stream).split('\n')).toEqual([
      'RunResultStreaming: running',
      '- last agent: A',
      '- final output: none',
      '- 0 new item(s), 0 raw response(s), 0 interruption(s)',
      '- 0 input and 0 output guardrail result(s)',
      '- turn 0 of any number, not complete',
    ]);
    await stream.completed;
    expect(String(stream)).toContain('- final output: done (string)');
    expect(String(stream)).toContain('- turn 2 of any number, complete');
  });

  it('shows in its replay list what is there while it runs [RUN-1222, RUN-1406]', async () => {
    const stream = runStreamed(scriptedDesk(toolCall('t'), 'done').agent, 'go');
    const lists: string[] = [];
    for await (const event of stream)
      if (event.type === 'run_item_stream_event') lists.push(kindsOf(stream.toInputList()));
    expect(lists.slice(0, 2)).toEqual(['u', 'u fc fco']);
    expect(kindsOf(stream.toInputList())).toBe('u fc fco m');
  });

  it('has usage that grows when a response is complete, in the end that of the plain form [RUN-1003, RUN-003, IL-123]', async () => {
    const steps = (): ModelStep[] => [
      { output: [toolCall('t')], usage: { inputTokens: 3, totalTokens: 3 }, delayMs: 0 },
      { output: [text('done')], usage: { inputTokens: 4, totalTokens: 4 }, delayMs: 0, chunk: 1 },
    ];
    const stream = runStreamed(scriptedDesk(...steps()).agent, 'go');
    const seen: Record<string, number[]> = {};
    for await (const event of stream) {
      if (event.type !== 'raw_response_event') continue;
      (seen[event.data.type] ??= []).push(stream.context.usage.totalTokens);
    }
    expect(seen['response.created']).toEqual([0, 3]);
    expect(seen['response.output_text.delta']).toEqual([3, 3, 3, 3]);
    const plain = await run(scriptedDesk(...steps()).agent, 'go');
    expect(stream.context.usage).toEqual(plain.context.usage);
    expect(plain.context.usage.totalTokens).toBe(7);
  });

  it('leaves out of raw events as JSON what repeats the request [RUN-1312]', () => {
    const response = { id: 'resp_1', output: [], instructions: 'SECRET', tools: [{ type: 'function' }], model: 'm' };
    const data = { type: 'response.completed', sequence_number: 3, response } as unknown as ResponseStreamEvent;
    expect(streamEventToJSON({ type: 'raw_response_event', data })).toEqual({
      type: 'raw_response_event',
      data: { type: 'response.completed', sequence_number: 3, response: { id: 'resp_1', output: [], model: 'm' } },
    });
    expect(response.instructions).toBe('SECRET');
    const delta = { type: 'response.output_text.delta', delta: 'x' } as unknown as ResponseStreamEvent;
    expect(streamEventToJSON({ type: 'raw_response_event', data: delta })['data']).toBe(delta);
  });

  it('gives events as JSON for browsers: agents by their names, no cycles, and nothing that JSON cannot hold [RUN-1312, RUN-1110]', async () => {
    const odd = tool({ name: 'odd', execute: () => ({ n: 1n, self: new Map([[1, 2]]) }) });
    const model = new ScriptedModel([toolCall('odd', {}, { callId: 'c9' }), toolCall('g', {}, { callId: 'c2' })]);
    const agent = new Agent({ name: 'A', model, tools: [odd, effectTool('g', [], { needsApproval: true })] });
    const events = await readAll(runStreamed(agent, 'go'));
    const sent = events.map((event) => JSON.parse(JSON.stringify(streamEventToJSON(event))) as Record<string, unknown>);
    expect(sent[0]).toEqual({ type: 'agent_updated_stream_event', new_agent: { name: 'A' } });
    const isAdded = ({ type }: ResponseStreamEvent): boolean => type === 'response.output_item.added';
    const raw = events.findIndex((event) => event.type === 'raw_response_event' && isAdded(event.data));
    expect(sent[raw]).toEqual(JSON.parse(JSON.stringify(events[raw])));
    expect(sent.filter(({ type }) => type === 'run_item_stream_event').map(({ name }) => name)).toEqual([
      'tool_called',
      'tool_output',
      'tool_called',
      'tool_approval_requested',
    ]);
    expect(sent.find(({ name }) => name === 'tool_output')).toMatchObject({
      position: 1,
      item: {
        type: 'tool_call_output_item',
        agent: { name: 'A' },
        raw_item: { type: 'function_call_output', call_id: 'c9' },
      },
    });
    // Plain objects, so that they can be compared and cloned.
    for (const event of events) expect(Object.getPrototypeOf(event)).toBe(Object.prototype);
  });
});

it('a turn that was saved is counted on, and a resume goes on from the count [IL-130, RUN-702, RUN-1207]', async () => {
  const { agent } = scriptedDesk(toolCall('t'), toolCall('g', {}, { callId: 'c' }), toolCall('t'), 'done');
  const state = await approved(await run(agent, 'go', { maxTurns: 4 }));
  const restored = await RunState.fromString(agent, state.toString());
  expect([restored.currentTurn, restored.maxTurns]).toEqual([2, 4]);
  const result = await run(agent, restored);
  // The work that the resume did before its first model call is no turn.
  expect([result.currentTurn, result.finalOutput]).toEqual([4, 'done']);
});

it('a call item knows its tool; conversions and copies share no list with it [RUN-1101, RUN-004]', async () => {
  const session = new PlainSession();
  const { agent } = scriptedDesk(toolCall('t', {}, { callId: 'c' }), 'done');
  const input: AgentInputItem[] = [user('one')];
  const result = await run(agent, input, { session });
  expect((result.newItems[0] as ToolCallItem).toolName).toBe('t');
  input.push(user('later'));
  expect(kindsOf(result.input as AgentInputItem[])).toBe('u');
  expect(kindsOf(result.toInputList())).toBe('u fc fco m');
});

describe('a stream whose turn is cut after a call began to wait', () => {
  it.each([
    ['fails', 'failed'],
    ['is cancelled', 'cancelled'],
  ] as const)(
    'has no interruptions when it %s, for it did not pause; its state has them [RUN-1211]',
    async (_, status) => {
      const seen: number[] = [];
      const bad = tool({
        name: 'bad',
        failureErrorFunction: null,
        execute: async () => {
          await idle();
          seen.push(stream.toState().interruptions.length, stream.interruptions.length);
          if (status === 'cancelled') stream.cancel();
          throw new Error('no');
        },
      });
      const { agent } = scriptedDesk([toolCall('g'), toolCall('bad')]);
      agent.tools.push(bad);
      const stream = runStreamed(agent, 'go');
      const error = await rejection(stream.completed);
      expect(seen).toEqual([1, 0]);
      expect([stream.status, stream.interruptions, stream.finalOutput]).toEqual([status, [], undefined]);
      expect(getRunErrorState(error)?.interruptions).toHaveLength(1);
    },
  );
});

bothForms((runForm, form) => {
  describe(`items of the provider's own tools (${form})`, () => {
    it('are stored and sent without created_by, in their parts too, and are kept as they came [RUN#66, RUN-1102]', async () => {
      const raw = {
        type: 'shell_call_output',
        id: 'so_1',
        call_id: 's1',
        status: 'completed',
        created_by: 'top',
        max_output_length: null,
        output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 }, created_by: 'part' }],
      };
      const session = new PlainSession();
      const { agent, model } = scriptedDesk(exactly(raw, toolCall('t', {}, { callId: 'c1' })), 'done');
      const result = await runForm(agent, 'go', { session });
      expect(result.newItems[0]?.rawItem).toEqual(raw);
      for (const list of [model.calls[1]?.request.input, session.items, result.toInputList()]) {
        const sent = (list as AgentInputItem[]).find(({ type }) => type === 'shell_call_output');
        expect(sent).toMatchObject({ call_id: 's1', output: [{ stdout: 'a' }] });
        expect(JSON.stringify(sent)).not.toContain('created_by');
      }
    });

    it.each([
      ['one action', { action: { type: 'click', button: 'left', x: 1, y: 2 } }],
      ['a batch of actions', { actions: [{ type: 'screenshot' }, { type: 'click', button: 'left', x: 1, y: 2 }] }],
    ])(
      'computer calls keep the form that the model made, %s: in input, session, state and replay [RUN-1106]',
      async (_, form) => {
        const call = {
          type: 'computer_call',
          id: 'cc_1',
          call_id: 'k1',
          status: 'completed',
          pending_safety_checks: [],
          ...form,
        };
        const output = {
          type: 'computer_call_output',
          call_id: 'k1',
          output: { type: 'computer_screenshot', image_url: 'data:,' },
        };
        const input = [user('look'), call, output] as unknown as AgentInputItem[];
        const session = new PlainSession();
        const { agent, model } = scriptedDesk(toolCall('g', {}, { callId: 'c1' }), 'done');
        const paused = await runForm(agent, input, { session, sessionInputCallback: (_old, now) => [...now] });
        const state = await RunState.fromString(agent, paused.toState().toString());
        for (const item of state.interruptions) state.approve(item);
        const result = await runForm(agent, state, { session });
        const lists = [...model.calls.map(({ request }) => request.input), session.items, result.toInputList()];
        expect(lists).toHaveLength(4);
        for (const list of lists) {
          expect(list.find(({ type }) => type === 'computer_call')).toEqual(call);
          expect(list.find(({ type }) => type === 'computer_call_output')).toEqual(output);
        }
      },
    );
  });
});
