import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  defineModel,
  ModelBehaviorError,
  RunState,
  tool,
  toUsage,
  UserError,
} from '../src/index.ts';
import type {
  AgentOptions,
  FunctionTool,
  Model,
  ModelRequest,
  ModelResponse,
  ResponseOutputItem,
  RunContext,
  RunOptions,
  ToolOptions,
} from '../src/index.ts';
import { buildResponsesRequest } from '../src/openai/request.ts';
import { classify } from '../src/run/turn/classify.ts';
import { bothForms } from '../src/testing/forms.ts';
import { InMemoryTraceProcessor, reasoning, ScriptedModel, text, toolCall } from '../src/testing/index.ts';
import { modelRequest } from '../src/testing/request.ts';
import type { ModelStep } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { setTraceProcessors } from '../src/tracing.ts';
import { idle, kindsOf, PlainSession, rejection } from './run-kit.ts';
import { symmetry } from './symmetry.ts';

let recorder: InMemoryTraceProcessor;
let logged: string[];

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
  logged = [];
  configureLogging({ level: 'debug', sink: (record) => void logged.push(JSON.stringify(record)) });
});
afterEach(() => resetDefaults());

const call = (name: string, args: object | string = {}) => toolCall(name, args, { callId: name });
const gives = (name: string, output: unknown, options: Partial<ToolOptions<undefined, unknown, unknown>> = {}) =>
  tool({ name, execute: () => output, ...options });
const webSearch = {
  type: 'web_search_call',
  id: 'ws1',
  status: 'completed',
  action: {},
} as unknown as ResponseOutputItem;
const toolSearch = {
  type: 'tool_search_call',
  id: 'ts1',
  status: 'completed',
  arguments: {},
} as unknown as ResponseOutputItem;
const usedBy = (json: unknown): unknown => (json as { tool_use_tracker: unknown }).tool_use_tracker;

/** A model whose streams have nothing but their terminal event: for items that scripts cannot stream. */
function terse(...outputs: readonly (readonly ResponseOutputItem[])[]): Model & { readonly choices: unknown[] } {
  const choices: unknown[] = [];
  const left = [...outputs];
  const next = (request: ModelRequest): readonly ResponseOutputItem[] => {
    choices.push(request.modelSettings.toolChoice);
    return left.shift() ?? [];
  };
  return {
    choices,
    getResponse: async (request) => ({ output: next(request), usage: toUsage({ requests: 1 }) }),
    async *streamResponse(request) {
      yield { type: 'response.completed', response: { output: next(request) }, sequence_number: 0 } as never;
    },
  };
}

function outputsIn(model: ScriptedModel): unknown[] {
  const input = model.calls.at(-1)?.request.input ?? [];
  return input.flatMap((item) => (item.type === 'function_call_output' ? [item.output] : []));
}

describe('a function tool on the wire', () => {
  const wireOf = (made: FunctionTool<never>): unknown =>
    (buildResponsesRequest('gpt-5.6-luna', modelRequest({ tools: [made] }), false).body['tools'] as unknown[])[0];

  test('has five members, and no other that is not set [TOOL-F4]', () => {
    const made = tool({
      name: 'find',
      title: 'Find',
      description: 'Finds it',
      parameters: z.object({ q: z.string() }),
      execute: () => 1,
    });
    expect(wireOf(made)).toEqual({
      type: 'function',
      name: 'find',
      description: 'Finds it',
      parameters: {
        type: 'object',
        properties: { q: { type: 'string' } },
        required: ['q'],
        additionalProperties: false,
      },
      strict: true,
    });
    expect(wireOf(gives('bare', 1, { strict: false }))).toMatchObject({ description: '', strict: false });
  });

  test('has what providerData lays over it [TOOL-F4]', () => {
    const made = gives('find', 1, { providerData: { cache: { ttl: 5 }, description: 'other' } });
    expect(wireOf(made)).toMatchObject({ name: 'find', cache: { ttl: 5 }, description: 'other' });
    expect(made.description).toBe('');
  });

  test('is a frozen object that is told from others by its type [TOOL-Z3]', () => {
    const made = gives('find', 1);
    expect(Object.isFrozen(made)).toBe(true);
    expect(made.type).toBe('function');
    expect(() => Object.assign(made, { name: 'other' })).toThrow(TypeError);
    expect(JSON.parse(JSON.stringify(made))).toMatchObject({ type: 'function', name: 'find', strictJsonSchema: true });
  });
});

describe('classifying a response', () => {
  const response = (output: readonly ResponseOutputItem[]): ModelResponse => ({ output, usage: toUsage() });
  const freeze = <T>(value: T): T => {
    if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
    return value;
  };
  const never = (): never => expect.unreachable();
  const tableOf = (...tools: readonly object[]) => ({
    functions: new Map((tools as readonly FunctionTool<never>[]).map((made) => [made.name, made])),
    handoffs: new Map<string, never>(),
  });

  test('gives the same for the same, changes nothing and calls no code of the user [TOOL-P10]', () => {
    const made = tool({
      name: 'find',
      parameters: z.object({ q: z.string().refine(never) }),
      isEnabled: never,
      needsApproval: never,
      execute: never,
    });
    const agent = new Agent({ name: 'A', tools: [made], instructions: never, toolUseBehavior: never });
    const table = tableOf(made);
    const bare = { ...call('find'), call_id: 'bare', arguments: '' };
    const asked = freeze(
      response([reasoning('r'), call('find', { q: 'x' }), call('ghost'), bare, webSearch, text('hi')]),
    );
    const [first, second] = [classify(asked, agent, table), classify(asked, agent, table)];
    expect(second).toEqual(first);
    expect(first.calls.map((found) => [found.call.name, found.tool])).toEqual([
      ['find', made],
      ['ghost', undefined],
      ['find', made],
    ]);
  });

  test('keeps the order of the response, and its objects [TOOL-P1]', () => {
    const output = [reasoning('r'), call('find'), webSearch, text('hi'), call('ghost')];
    const { items } = classify(response(output), new Agent({ name: 'A' }), tableOf());
    expect(items.map((item) => item.type)).toEqual([
      'reasoning_item',
      'tool_call_item',
      'tool_call_item',
      'message_output_item',
      'tool_call_item',
    ]);
    items.forEach((item, index) => expect(item.rawItem).toBe(output[index]));
  });

  test('finds tools by their bare name; a call with a namespace finds none of them [TOOL-P11]', () => {
    const [patch, find] = [gives('apply_patch_now', 1), gives('find', 1)];
    const table = tableOf(patch, find);
    const found = (name: string, namespace?: string, options: Partial<AgentOptions> = {}) =>
      classify(
        response([toolCall(name, {}, namespace === undefined ? {} : { namespace })]),
        new Agent({ name: 'A', ...options }),
        table,
      ).calls[0]?.tool?.name;
    expect([found('apply_patch_now'), found('find'), found('find', 'crm'), found('Find')]).toEqual([
      'apply_patch_now',
      'find',
      undefined,
      undefined,
    ]);
    expect(found('json_tool_call')).toBeUndefined();
    expect(found('json_tool_call', undefined, { outputType: z.object({}) as never })).toBe('json_tool_call');
    expect(found('json_tool_call', 'crm', { outputType: z.object({}) as never })).toBeUndefined();
  });
});

bothForms((run, form) => {
  const agentOf = (tools: readonly FunctionTool[], steps: ModelStep[], options: Partial<AgentOptions> = {}) => {
    const model = new ScriptedModel(steps);
    return { model, agent: new Agent({ name: 'Desk', tools, model, ...options }) };
  };

  describe(`items of calls (${form})`, () => {
    it('are the objects of the response, in its order [TOOL-P1]', async () => {
      const output = [reasoning('r'), call('find'), call('find2')].map((item, index) => ({ ...item, id: `i${index}` }));
      const answers = [output, [text('done')]];
      const model: Model = defineModel({
        getResponse: async () => ({ output: answers.shift() ?? [], usage: toUsage({ requests: 1 }) }),
      });
      const tools = [gives('find', 1), gives('find2', 2)];
      const result = await run(new Agent({ name: 'A', tools, model }), 'hi');
      const raw = result.rawResponses[0]?.output ?? [];
      expect(raw.map(({ type }) => type)).toEqual(['reasoning', 'function_call', 'function_call']);
      raw.forEach((item, index) => expect(result.newItems[index]?.rawItem).toBe(item));
    });

    it('tell title, description and origin of the tool that runs, of two with one name the last [TOOL-P3, TOOL-AC43, TOOL-I4]', async () => {
      const tools = [
        gives('find', 'first', { title: 'First', description: 'one' }),
        gives('find', 'second', { title: 'Second', description: 'two' }),
      ];
      const { agent, model } = agentOf(tools, [call('find'), 'done']);
      const result = await run(agent, 'hi');
      expect(result.newItems[0]).toMatchObject({
        title: 'Second',
        description: 'two',
        toolOrigin: { type: 'function' },
      });
      expect(outputsIn(model)).toEqual(['second']);
      expect(model.calls[0]?.request.tools).toEqual([tools[1]]);
      expect(logged.filter((line) => line.includes('"warn"'))).toHaveLength(1);
    });

    it('of one name are refused before the model is asked when the run says so; both owners are told [TOOL-AC44]', async () => {
      const { agent, model } = agentOf([gives('find', 1), gives('find', 2)], ['no']);
      const error = await rejection(run(agent, 'hi', { toolNameCollisionPolicy: 'error' }));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/agent Desk: .*tool and tool.*find.*`name`/);
      expect(model.calls).toEqual([]);
    });

    it('leave one name each in the list of used tools: of functions theirs, of hosted ones their kind [TOOL-P2]', async () => {
      const calls = [call('find'), toolCall('find', { a: 1 }), toolCall('rm', {}, { namespace: 'disk' })];
      const model = terse([webSearch, toolSearch, ...calls], [text('done')]);
      const agent = new Agent({ name: 'Desk', tools: [gives('find', 1)], model });
      const result = await run(agent, 'hi', { toolNotFoundBehavior: 'return_error_to_model' });
      expect(usedBy(result.toState().toJSON())).toEqual({ Desk: ['web_search', 'find', 'disk.rm'] });
    });
  });

  describe(`calls that come twice (${form})`, () => {
    it('run once; one pair is in items, session and events [TOOL-AC46]', async () => {
      let bodies = 0;
      const twice = [call('find', '{"a":1,"b":2}'), call('find', '{ "b": 2, "a": 1 }')];
      const find = tool({ name: 'find', parameters: { type: 'object' }, strict: false, execute: () => ++bodies });
      const { agent } = agentOf([find], [twice, 'done']);
      const session = new PlainSession();
      const result = await run(agent, 'hi', { session });
      expect(bodies).toBe(1);
      expect(result.newItems.map((item) => item.type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
      expect(session.kinds).toBe('u fc fco m');
    });

    it('with other arguments fail the run; nothing runs [TOOL-AC47]', async () => {
      const { agent } = agentOf(
        [gives('find', 1, { execute: () => expect.unreachable() })],
        [[call('find', { a: 1 }), call('find', { a: 2 })]],
      );
      const error = await rejection(run(agent, 'hi'));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect(error).toMatchObject({ code: 'call_id_reused' });
    });
  });

  describe(`a call of an unknown tool (${form})`, () => {
    it('beside calls that wait for approval fails the run, and nobody is asked [STATE-129]', async () => {
      const asked: string[] = [];
      const gated = gives('gated', 1, {
        needsApproval: () => {
          asked.push('policy');
          return true;
        },
        execute: () => expect.unreachable(),
      });
      const { agent } = agentOf([gated], [[call('gated'), call('ghost')]]);
      const onApproval: RunOptions['onApproval'] = () => void asked.push('person');
      const error = await rejection(run(agent, 'hi', { onApproval }));
      expect((error as Error).message).toBe('Tool ghost not found in agent Desk');
      expect(asked).toEqual([]);
    });

    it('fails the run before anything of the response runs, and marks the turn [TOOL-P14]', async () => {
      const { agent } = agentOf(
        [gives('find', 1, { execute: () => expect.unreachable() })],
        [[call('find'), call('ghost')]],
      );
      const error = await rejection(run(agent, 'hi'));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toBe('Tool ghost not found in agent Desk');
      expect(recorder.spans.find(({ type }) => type === 'turn')?.error).toEqual({
        message: 'Tool not found',
        data: { tool_name: 'ghost' },
      });
    });

    it('is told to the model by the text of the formatter, else a fixed one [TOOL-P14, TOOL-X15]', async () => {
      const kinds: unknown[] = [];
      for (const [answer, wanted] of [
        [undefined, "Tool 'ghost' not found."],
        ['no such tool', 'no such tool'],
      ] as const) {
        const { agent, model } = agentOf([gives('find', 'found')], [[call('ghost'), call('find')], 'done']);
        const toolErrorFormatter: RunOptions['toolErrorFormatter'] = ({ kind, toolName, callId }) => {
          kinds.push([kind, toolName, callId]);
          return answer;
        };
        await run(agent, 'hi', { toolNotFoundBehavior: 'return_error_to_model', toolErrorFormatter });
        expect(outputsIn(model)).toEqual(['found', wanted]);
      }
      expect(kinds[0]).toEqual(['tool_not_found', 'ghost', 'ghost']);
    });

    it('named json_tool_call gives structured agents their arguments back, in both modes [TOOL-P11, RUN-514]', async () => {
      for (const toolNotFoundBehavior of ['raise_error', 'return_error_to_model'] as const) {
        const model = new ScriptedModel([call('json_tool_call', { stars: 4 }), '{"stars":5}']);
        const agent = new Agent({ name: 'A', model, outputType: z.object({ stars: z.int() }) });
        const result = await run(agent, 'hi', { toolNotFoundBehavior });
        expect(outputsIn(model)).toEqual(['{"stars":4}']);
        expect(result.finalOutput).toEqual({ stars: 5 });
        expect(model.calls[0]?.request.tools).toEqual([]);
      }
      const ends = new Agent({
        name: 'A',
        model: new ScriptedModel([call('json_tool_call', { stars: 4 })]),
        outputType: z.object({ stars: z.int() }),
        toolUseBehavior: 'stop_on_first_tool',
      });
      expect((await run(ends, 'hi')).finalOutput).toEqual({ stars: 4 });
      const { agent } = agentOf([], [call('json_tool_call')]);
      expect(await rejection(run(agent, 'hi'))).toMatchObject({
        message: 'Tool json_tool_call not found in agent Desk',
      });
    });
  });

  describe(`tools that are switched off (${form})`, () => {
    it('are not on the wire, and a call to one is a call of an unknown tool [TOOL-AC32, TOOL-F31]', async () => {
      const isEnabled = (ctx: RunContext<{ admin: boolean } | undefined>): boolean => ctx.context?.admin ?? false;
      const { agent, model } = agentOf(
        [gives('hidden', 1, { isEnabled: isEnabled as never }), gives('find', 1)],
        [call('hidden')],
      );
      const error = await rejection(run(agent, 'hi', { context: { admin: false } }));
      expect(error).toMatchObject({ message: 'Tool hidden not found in agent Desk' });
      expect(model.calls[0]?.request.tools.map(({ name }) => name)).toEqual(['find']);
    });

    it('between request and execution fail the turn before any call of it starts [TOOL-AC33, TOOL-F32]', async () => {
      const log: string[] = [];
      let asked = 0;
      const switched = (name: string, answers: boolean[]) =>
        tool({
          name,
          isEnabled: async () => {
            log.push(`${name} asked`);
            await idle(1);
            return answers[Math.floor(asked++ / 2)] ?? false;
          },
          execute: () => expect.unreachable(),
        });
      const plain = gives('plain', 1, { execute: () => expect.unreachable() });
      const { agent } = agentOf(
        [switched('a', [true, true]), switched('b', [true, false]), plain],
        [[call('plain'), call('a'), call('b'), toolCall('a')]],
      );
      const error = await rejection(run(agent, 'hi', { hooks: { onToolStart: () => expect.unreachable() } }));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toBe('Tool b is currently disabled for agent Desk.');
      expect(log).toEqual(['a asked', 'b asked', 'a asked', 'b asked']);
    });

    it('by a predicate that throws then: its error, before any call starts [TOOL-F32]', async () => {
      const cause = new Error('directory is down');
      let asked = 0;
      const made = gives('a', 1, {
        isEnabled: () => {
          asked += 1;
          if (asked > 1) throw cause;
          return true;
        },
      });
      const { agent } = agentOf(
        [made, gives('b', 1, { execute: () => expect.unreachable() })],
        [[call('b'), call('a')]],
      );
      expect(await rejection(run(agent, 'hi'))).toBe(cause);
    });
  });

  describe(`the text of a call that did not run (${form})`, () => {
    const rejected = async (message: string | undefined, toolErrorFormatter?: RunOptions['toolErrorFormatter']) => {
      const { agent, model } = agentOf([gives('rm', 1, { needsApproval: true })], [call('rm'), 'done']);
      const state = await RunState.fromString(agent, (await run(agent, 'hi')).toState().toString());
      for (const item of state.interruptions) state.reject(item, { message });
      await run(agent, state, { toolErrorFormatter });
      return outputsIn(model);
    };

    it('is that of the decision, else of the formatter, else the default [TOOL-X15]', async () => {
      const asked: unknown[] = [];
      const formatter: RunOptions['toolErrorFormatter'] = ({ kind, defaultMessage }) => {
        asked.push([kind, defaultMessage]);
        return 'of the formatter';
      };
      expect(await rejected('of the person', formatter)).toEqual(['of the person']);
      expect(asked).toEqual([]);
      expect(await rejected(undefined, formatter)).toEqual(['of the formatter']);
      expect(asked).toEqual([['approval_rejected', 'Tool execution was not approved.']]);
      expect(await rejected(undefined)).toEqual(['Tool execution was not approved.']);
      expect(await rejected(undefined, () => 7 as never)).toEqual(['Tool execution was not approved.']);
      expect(logged.filter((line) => line.includes('"error"'))).toHaveLength(1);
      expect(await rejected(undefined, () => Promise.reject(new Error('x9-secret')))).toEqual([
        'Tool execution was not approved.',
      ]);
      expect(logged.filter((line) => line.includes('"error"'))).toHaveLength(2);
      expect(logged.join()).not.toContain('x9-secret');
    });
  });

  describe(`tools that end a run (${form})`, () => {
    const tools = [gives('find', { hits: 2 }), gives('save', 'saved')];
    const both = [call('find'), call('save')];

    it('never do with run_llm_again; stop_on_first_tool takes the first call’s output [TOOL-X17, TOOL-AC27]', async () => {
      const again = agentOf(tools, [both, 'done']);
      expect((await run(again.agent, 'hi')).finalOutput).toBe('done');
      const stops = agentOf(tools, [both], { toolUseBehavior: 'stop_on_first_tool' });
      expect((await run(stops.agent, 'hi')).finalOutput).toBe('{"hits":2}');
      expect(stops.model.calls).toHaveLength(1);
      const slow = [gives('find', 1, { execute: () => idle(5) }), gives('save', 2)];
      const bySlow = agentOf(slow, [both], { toolUseBehavior: 'stop_on_first_tool' });
      expect((await run(bySlow.agent, 'hi')).finalOutput).toBe('');
    });

    it('do when their name is listed [TOOL-X17, TOOL-AC28]', async () => {
      const toolUseBehavior = { stopAtToolNames: ['save'] };
      const { agent, model } = agentOf(tools, [call('find'), call('save')], { toolUseBehavior });
      expect((await run(agent, 'hi')).finalOutput).toBe('saved');
      expect(model.calls).toHaveLength(2);
      const together = agentOf(tools, [both], { toolUseBehavior });
      expect((await run(together.agent, 'hi')).finalOutput).toBe('saved');
      // In the order of the calls, not of the names.
      const listed = agentOf(tools, [both], { toolUseBehavior: { stopAtToolNames: ['save', 'other', 'find'] } });
      expect((await run(listed.agent, 'hi')).finalOutput).toBe('{"hits":2}');
    });

    it('do when a function of all results says so; it is asked once per turn with tools [TOOL-X17, TOOL-A17, TOOL-AC29]', async () => {
      const asked: unknown[] = [];
      const model = new ScriptedModel([both, reasoning('no call'), toolCall('save', {}, { callId: 'again' })]);
      const final = { stars: 5 };
      const agent = new Agent({
        name: 'Desk',
        tools,
        model,
        outputType: z.object({ stars: z.int() }),
        toolUseBehavior: async (ctx, results) => {
          await idle(1);
          asked.push([
            ctx.usage.requests,
            results.map(({ tool: { name }, output, runItem }) => [name, output, runItem.callId]),
          ]);
          return asked.length === 2 ? { isFinalOutput: true, finalOutput: final } : { isFinalOutput: false };
        },
      });
      const result = await run(agent, 'hi');
      expect(result.finalOutput).toBe(final);
      expect(asked).toEqual([
        [
          1,
          [
            ['find', { hits: 2 }, 'find'],
            ['save', 'saved', 'save'],
          ],
        ],
        [3, [['save', 'saved', 'again']]],
      ]);
    });

    it('count over all passes of the response, rejections too; nothing counts of none, and none while one waits [TOOL-X18, TOOL-X19]', async () => {
      const asked: unknown[] = [];
      const { agent, model } = agentOf(
        [
          gives('find', 'found'),
          gives('ask', 'asked', { needsApproval: true }),
          gives('rm', 1, { needsApproval: true }),
        ],
        [
          [call('rm'), call('ghost'), call('find'), call('ask')],
          [call('ghost', { again: 1 })].map((item) => ({ ...item, call_id: 'g2' })),
          'done',
        ],
        {
          toolUseBehavior: (_ctx, results) => {
            asked.push(results.map(({ output }) => output));
            return { isFinalOutput: false };
          },
        },
      );
      const options: RunOptions = { toolNotFoundBehavior: 'return_error_to_model' };
      const paused = await run(agent, 'hi', options);
      expect([paused.status, asked]).toEqual(['interrupted', []]);
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) if (item.callId === 'rm') state.reject(item, { message: 'no' });
      const again = await run(agent, state, options);
      expect([again.status, asked]).toEqual(['interrupted', []]);
      const next = again.toState();
      for (const item of next.interruptions) next.approve(item);
      const result = await run(agent, next, options);
      expect(asked).toEqual([['no', 'found', 'asked']]);
      expect([result.finalOutput, model.calls.length]).toEqual(['done', 3]);
    });
  });

  describe(`a forced tool choice (${form})`, () => {
    const choices = (model: ScriptedModel) => model.calls.map(({ request }) => request.modelSettings.toolChoice);
    const modelSettings = { toolChoice: 'required', temperature: 0 } as const;

    it('is forgotten once the agent used a tool; its settings stay what they are [TOOL-X22, TOOL-AC30, TOOL-A18]', async () => {
      const { agent, model } = agentOf([gives('find', 1)], [call('find'), 'done'], { modelSettings });
      await run(agent, 'hi');
      expect(choices(model)).toEqual(['required', undefined]);
      expect(model.calls[1]?.request.modelSettings).toMatchObject({ temperature: 0 });
      expect(agent.modelSettings).toEqual(modelSettings);
    });

    it('is forgotten after hosted tools, and a function of that name, but not after a mere tool search [TOOL-X22]', async () => {
      const hosted = agentOf([gives('find', 1)], [webSearch, 'done'], { modelSettings });
      await run(hosted.agent, 'hi');
      expect(choices(hosted.model)).toEqual(['required', undefined]);
      const named = agentOf([gives('tool_search', 1)], [call('tool_search'), 'done'], { modelSettings });
      await run(named.agent, 'hi');
      expect(choices(named.model)).toEqual(['required', undefined]);
      const model = terse([toolSearch, reasoning('hm')], [call('find')], [text('{}')]);
      const outputType = z.object({});
      await run(new Agent({ name: 'A', tools: [gives('find', 1)], model, modelSettings, outputType }), 'hi');
      expect(model.choices).toEqual(['required', 'required', undefined]);
    });

    it('is forgotten by this run alone, and over a pause and JSON [TOOL-X23]', async () => {
      const gated = gives('rm', 1, { needsApproval: true });
      const { agent, model } = agentOf([gated], [call('rm'), 'done', 'other'], { modelSettings });
      const paused = await run(agent, 'hi');
      const json = paused.toState().toJSON() as unknown as { tool_use_tracker: object };
      expect(json.tool_use_tracker).toEqual({ Desk: ['rm'] });
      const tracker = { ...json.tool_use_tracker, Gone: ['x'] };
      const state = await RunState.fromJSON(agent, { ...json, tool_use_tracker: tracker });
      for (const item of state.interruptions) state.approve(item);
      await run(agent, state);
      await run(agent, 'another run');
      expect(choices(model)).toEqual(['required', undefined, 'required']);
    });

    it('stays where the agent says so: then only turns or tools end the run [TOOL-X24]', async () => {
      const options = { modelSettings, resetToolChoice: false };
      const steps = Array.from({ length: 3 }, (_, index) => toolCall('find', {}, { callId: `c${index}` }));
      const { agent, model } = agentOf([gives('find', 1)], steps, options);
      const error = await rejection(run(agent, 'hi', { maxTurns: 3 }));
      expect(error).toMatchObject({ code: 'max_turns_exceeded' });
      expect(choices(model)).toEqual(['required', 'required', 'required']);
      const ends = agentOf([gives('find', 1)], [toolCall('find')], {
        ...options,
        toolUseBehavior: 'stop_on_first_tool',
      });
      expect((await run(ends.agent, 'hi')).finalOutput).toBe('1');
    });
  });

  describe(`schemas in a run (${form})`, () => {
    it('one JSON Schema in two tools stays what it was [TOOL-AC51]', async () => {
      const schema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'object', properties: {} } } };
      const before = structuredClone(schema);
      const [one, two] = ['one', 'two'].map((name) => tool({ name, parameters: schema, execute: (args) => args }));
      const { agent, model } = agentOf([one, two] as FunctionTool[], [[call('one', { a: 'x' }), call('two')], 'done']);
      await run(agent, 'hi');
      expect(outputsIn(model)).toEqual(['{"a":"x"}', '{}']);
      expect(schema).toEqual(before);
      // It stays its owner's, who may change it; the tools have what they were made with.
      Object.assign(schema.properties.a, { type: 'number' });
      for (const made of [one, two])
        expect(made?.paramsJsonSchema).toMatchObject({ properties: { a: { type: 'string' } } });
    });

    it('an open record is refused by strict tools with its path, and sent open by others [TOOL-AC52]', async () => {
      const parameters = z.object({ tags: z.record(z.string(), z.number()) });
      expect(() => tool({ name: 'note', parameters, execute: () => 1 })).toThrow(/tool note: tags: /);
      const open = tool({ name: 'note', parameters, strict: false, execute: ({ tags }) => tags });
      const { agent, model } = agentOf([open], [call('note', { tags: { a: 1 } }), 'done']);
      await run(agent, 'hi');
      expect(outputsIn(model)).toEqual(['{"a":1}']);
      const sent = model.calls[0]?.request.tools[0];
      expect(sent).toMatchObject({
        strictJsonSchema: false,
        paramsJsonSchema: { properties: { tags: { additionalProperties: { type: 'number' } } } },
      });
    });

    it('a recursive type is a finite schema, and deep arguments are validated [TOOL-AC53]', async () => {
      const Node = z.object({
        v: z.number(),
        get next() {
          return Node.optional();
        },
      });
      const sum = tool({
        name: 'sum',
        parameters: Node,
        execute: (node) => {
          let total = 0;
          for (let at: z.infer<typeof Node> | undefined = node; at; at = at.next) total += at.v;
          return total;
        },
      });
      const deep = { v: 1, next: { v: 2, next: { v: 3, next: null } } };
      const { agent, model } = agentOf(
        [sum],
        [[call('sum', deep), toolCall('sum', { v: 1, next: { v: 2, next: { v: 'x' } } }, { callId: 'wrong' })], 'done'],
      );
      await run(agent, 'hi');
      expect(outputsIn(model)).toEqual([
        '6',
        expect.stringMatching(/ Invalid arguments: next\.next\.v: expected number$/),
      ]);
      expect(JSON.stringify(sum.paramsJsonSchema).length).toBeLessThan(500);
    });
  });

  describe(`what is private (${form})`, () => {
    it('appears in no line of the log and no message: arguments, outputs, errors, payloads [TOOL-Z1]', async () => {
      const secret = 'x9-secret';
      const tools = [
        tool({ name: 'ok', parameters: z.object({ q: z.string() }), execute: ({ q }) => `${q} out` }),
        gives('boom', 1, { execute: () => Promise.reject(new Error(secret)) }),
        tool({ name: 'typed', parameters: z.object({ n: z.number() }), execute: () => 1 }),
        gives('facts', secret, { customDataExtractor: () => ({ secret }) }),
      ];
      const calls = [
        call('ok', { q: secret }),
        call('boom'),
        call('typed', { n: secret }),
        call('facts', `{"${secret}`),
      ];
      const { agent } = agentOf(tools, [calls, 'done', call('typed', `{"${secret}`), 'done']);
      await run(agent, secret, { traceIncludeSensitiveData: false });
      const strict = agentOf(
        [tools[2]?.copyWith({ failureErrorFunction: null }) as FunctionTool],
        [call('typed', { n: secret })],
      );
      const error = (await rejection(
        run(strict.agent, 'hi', { traceIncludeSensitiveData: false }),
      )) as ModelBehaviorError;
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect([error.message, error.cause]).toEqual(['Invalid arguments for tool typed', undefined]);
      expect(logged.join()).not.toContain(secret);
      expect(JSON.stringify(recorder.spans.map((span) => [span.toJSON(), span.error]))).not.toContain(secret);
    });
  });
});

describe('options that nobody knows', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['an agent', () => new Agent({ name: 'Desk', tool: [] } as never), /'tool' of agent Desk.*'tools'/],
    [
      'a clone',
      () => new Agent({ name: 'Desk' }).clone({ instruction: '' } as never),
      /'instruction' of agent Desk.*'instructions'/,
    ],
    ['a tool', () => gives('find', 1, { timeout: 5 } as never), /'timeout' of tool find.*'timeoutMs'/],
    [
      'a copy',
      () => gives('find', 1).copyWith({ descripton: 'x' } as never),
      /'descripton' of tool find.*'description'/,
    ],
  ])('are refused by name, with the owner and what was meant: %s [TOOL-AC104, TOOL-Z11]', (_, make, message) => {
    expect(make).toThrow(UserError);
    expect(make).toThrow(message);
  });

  test('but what is undefined was not given [TOOL-AC104, TOOL-Z11]', () => {
    const made = gives('find', 1, { timeoutMs: undefined, isEnabled: undefined, customDataExtractor: undefined });
    const agent = new Agent({ name: 'Desk', tools: [made], prompt: undefined, toolUseBehavior: undefined });
    expect([made.copyWith({ name: undefined }).name, agent.clone({ name: undefined } as never).name]).toEqual([
      'find',
      'Desk',
    ]);
  });
});

describe('plain and streamed runs of the first scenarios', () => {
  const noted = (log: string[], name: string, needsApproval = false) =>
    tool({
      name,
      needsApproval,
      parameters: z.object({ ms: z.number().default(0) }),
      execute: ({ ms }) => void log.push(`${name} ${ms}`),
    });
  const resume =
    (decide: (state: RunState) => void) =>
    async (
      first: Parameters<NonNullable<Parameters<typeof symmetry>[0]['goOn']>>[0],
      go: Parameters<NonNullable<Parameters<typeof symmetry>[0]['goOn']>>[1],
    ) => {
      const state = first.result?.toState() as RunState;
      decide(state);
      return await go(first.result?.lastAgent as never, state, { session: null });
    };
  const approve = resume((state) => state.interruptions.forEach((item) => state.approve(item)));
  const reject = resume((state) => state.interruptions.forEach((item) => state.reject(item, { message: 'not today' })));
  const scenarios: Record<
    string,
    {
      steps: ModelStep[];
      tools?: (log: string[]) => FunctionTool[];
      more?: Partial<AgentOptions>;
      goOn?: typeof approve;
    }
  > = {
    AC1: { steps: [call('add', { ms: 2 }), '5'], tools: (log) => [noted(log, 'add')] },
    AC2: {
      steps: [[30, 10, 20].map((ms) => toolCall('wait', { ms }, { callId: `w${ms}` })), 'done'],
      tools: () => [
        tool({
          name: 'wait',
          parameters: z.object({ ms: z.number() }),
          execute: async ({ ms }) => {
            await new Promise((resolve) => setTimeout(resolve, ms));
            return ms;
          },
        }) as FunctionTool,
      ],
    },
    AC3: {
      steps: ['{"stars":4,"note":null}'],
      more: { outputType: z.object({ stars: z.int(), note: z.string().optional() }) as never },
    },
    AC5: {
      steps: [call('boom'), 'sorry'],
      tools: () => [gives('boom', 1, { execute: () => Promise.reject(new Error('x9')) })],
    },
    AC6: { steps: [call('rm'), 'done'], tools: (log) => [noted(log, 'rm', true)], goOn: approve },
    AC7: { steps: [call('rm'), 'done'], tools: (log) => [noted(log, 'rm', true)], goOn: reject },
    AC8: {
      steps: [[call('rm'), call('ls')], 'done'],
      tools: (log) => [noted(log, 'rm', true), noted(log, 'ls')],
      goOn: approve,
    },
  };

  it.each(Object.keys(scenarios))('make the same items and the same requests: %s [TOOL-AC11]', async (name) => {
    const { steps, tools, more, goOn } = scenarios[name] as (typeof scenarios)[string];
    const { plain, streamed } = await symmetry({
      setUp: ({ log, hooks, session }) => {
        const model = new ScriptedModel(
          steps.map((step) => (asked) => {
            const { input, systemInstructions, modelSettings, tools: sent, outputSchema } = asked.request;
            log.push(
              JSON.stringify([input, systemInstructions, modelSettings, sent.map((one) => one.name), outputSchema]),
            );
            return step;
          }),
        );
        const agent = new Agent({ name: 'Desk', instructions: 'Be brief.', model, tools: tools?.(log) ?? [], ...more });
        return { agent, input: 'hi', options: { hooks, session: session('s') } };
      },
      ...(goOn && { goOn: (first, go) => goOn(first, go) }),
    });
    expect(streamed.log).toEqual(plain.log);
    expect(streamed.log.filter((line) => line.startsWith('['))).toHaveLength(steps.length);
    expect(kindsOf(streamed.result?.toInputList() ?? [])).toMatch(/^u .*m$/);
  });
});
