import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, getRunErrorState, RunState, tool, UserError } from '../index.ts';
import type { AgentToolResult, RunContext, ToolContext } from '../index.ts';
import { recordOf } from '../snapshot/run-state.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, logged, PlainSession, rejection, thrown } from '../../test/run-kit.ts';

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

const usage = { requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 };
const model = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { usage });
const ask = (callId = 'call_out', args: object = { input: 'q' }) => toolCall('expert', args, { callId });
const outputs = (items: readonly object[]): unknown[] =>
  items.flatMap((item) => ((item as { type?: string }).type === 'function_call_output' ? [item] : []));
const failureText = 'An error occurred while running the tool. Please try again.';

/** An outer agent with the tool `expert`, which is an inner agent. */
function pair(outer: ScriptedModel, inner: ScriptedModel, options: object = {}, innerOptions: object = {}) {
  const expert = new Agent({ name: 'Expert', model: inner, ...innerOptions });
  const desk = new Agent({ name: 'Desk', model: outer, tools: [expert.asTool({ toolName: 'expert', ...options })] });
  return { desk, expert };
}

const contentOf = (m: ScriptedModel): unknown =>
  (m.calls[0]?.request.input[0] as { content?: unknown } | undefined)?.content;
/** Matches this text alone. */
const exactText = (of: string): RegExp => new RegExp(`^${of.replaceAll(/[^\w]/g, String.raw`\$&`)}$`);
const outOf = (m: ScriptedModel, call = 1): unknown =>
  (outputs(m.calls[call]?.request.input ?? [])[0] as { output?: unknown } | undefined)?.output;

bothForms((runForm, form) => {
  describe(`an agent as a tool (${form})`, () => {
    it('runs on its input, and its answer is the output [TOOL-AC9, RUN-1004, 1209, TOOL-AT16, SESS-052]', async () => {
      const outer = model(ask(), 'done');
      const inner = model('r');
      const { desk } = pair(outer, inner);
      const session = new PlainSession();
      const result = await runForm(desk, 'hi', { session });
      expect(inner.calls[0]?.request.input).toEqual([{ role: 'user', content: 'q' }]);
      expect(outOf(outer)).toBe('r');
      expect(result.finalOutput).toBe('done');
      expect(result.context.usage).toMatchObject({ requests: 3, inputTokens: 30, totalTokens: 45 });
      expect(result.context.usage.requestUsageEntries).toHaveLength(3);
      expect(result.agentToolInvocation).toBeUndefined();
      const origin = { type: 'agent_as_tool', agentName: 'Expert', agentToolName: 'expert' };
      expect(result.newItems.slice(0, 2)).toMatchObject([{ toolOrigin: origin }, { toolOrigin: origin }]);
      expect(session.kinds).toBe('u fc fco m');
    });

    it('that fails is told to the developer like any tool that throws; arguments that do not fit are no such fault [RUN-1901] [TOOL-AT11]', async () => {
      const lines = logged({ level: 'warn' });
      const failing = pair(model(ask(), 'done'), model(new Error('secret')));
      expect((await runForm(failing.desk, 'hi')).finalOutput).toBe('done');
      expect(lines).toMatchObject([{ level: 'warn', logger: 'openai.agents.tools' }]);
      expect(lines[0]?.message).toMatch(/expert failed: Error/);
      expect(JSON.stringify(lines)).not.toContain('secret');
      const astray = pair(model(ask(), 'done'), model(toolCall('no_such_tool')));
      await runForm(astray.desk, 'hi');
      expect(lines[1]?.message).toMatch(/expert failed: ModelBehaviorError/);
      const misfit = pair(model(ask('call_out', { input: 5 }), 'done'), model());
      await runForm(misfit.desk, 'hi');
      expect(lines).toHaveLength(2);
    });

    it('lets three run at once, in call order, and keeps nothing of them [TOOL-AC86]', async () => {
      const names = ['Spanish', 'French', 'Italian'];
      let open = (): void => undefined;
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      let running = 0;
      const agents = names.map(
        (name) =>
          new Agent({
            name,
            model: model(async () => {
              running += 1;
              if (running === 3) open();
              await gate;
              return name;
            }),
          }),
      );
      const outer = model(
        names.map((name) => toolCall(name.toLowerCase(), { input: 'hello' }, { callId: name })),
        'done',
      );
      const result = await runForm(
        new Agent({ name: 'Desk', model: outer, tools: agents.map((agent) => agent.asTool()) }),
        'go',
      );
      expect(outputs(outer.calls[1]?.request.input ?? [])).toMatchObject(names.map((output) => ({ output })));
      expect(result.context.usage.requests).toBe(5);
      expect(recordOf(result.toState()).agentToolRuns?.size ?? 0).toBe(0);
    });

    it('does not count against the outer cap while it runs tools of its own [TOOL-X3]', async () => {
      const effects: string[] = [];
      const inner = model([toolCall('t', {}, { callId: 'a' }), toolCall('t', {}, { callId: 'b' })], 'r');
      const { desk } = pair(model(ask(), 'done'), inner, {}, { tools: [effectTool('t', effects)] });
      const result = await runForm(desk, 'hi', { toolExecution: { maxFunctionToolConcurrency: 1 } });
      expect(result.finalOutput).toBe('done');
      expect(effects).toHaveLength(2);
    });

    it("takes the outer run's options, and its own over them field by field [TOOL-AC64, TOOL-AT7]", async () => {
      const seen = { outer: model(ask(), 'r', 'done'), own: model('own') };
      const expert = new Agent({ name: 'Expert' });
      const desk = (run?: object) =>
        new Agent({ name: 'Desk', tools: [expert.asTool({ toolName: 'expert', run: run as never })] });
      await runForm(desk(), 'hi', { model: seen.outer, modelSettings: { temperature: 0.5 } });
      expect(seen.outer.calls).toHaveLength(3);
      expect(seen.outer.calls[1]?.request.modelSettings).toMatchObject({ temperature: 0.5 });
      const outer = model(ask(), 'done');
      await runForm(desk({ model: seen.own, modelSettings: { topP: 0.1 } }), 'hi', {
        model: outer,
        modelSettings: { temperature: 0.5 },
      });
      expect(seen.own.calls[0]?.request.modelSettings).toMatchObject({ temperature: 0.5, topP: 0.1 });
    });

    it('inherits neither hooks nor session, error handlers and turns; its hooks are those of `run` [TOOL-AT7, AT17, AT34, AC88]', async () => {
      const log: string[] = [];
      const hooks = (who: string) => ({
        onRunStart: () => void log.push(`${who} start`),
        onAgentStart: (_: unknown, agent: { name: string }) => void log.push(`${who} ${agent.name}`),
        onLlmStart: () => void log.push(`${who} llm`),
      });
      const own = new PlainSession('own');
      const outerSession = new PlainSession('outer');
      const { desk } = pair(model(ask(), 'done'), model('r'), { run: { hooks: hooks('inner'), session: own } });
      await runForm(desk, 'hi', { hooks: hooks('outer'), session: outerSession });
      expect(log).toEqual([
        'outer start',
        'outer Desk',
        'outer llm',
        'inner start',
        'inner Expert',
        'inner llm',
        'outer llm',
      ]);
      expect(own.kinds).toBe('u m');
      expect(outerSession.kinds).toBe('u fc fco m');

      const twelve = (run?: object) => {
        const steps = Array.from({ length: 12 }, (_, i) => toolCall('t', {}, { callId: `t${i}` }));
        const outer = model(ask(), 'done');
        const { desk: at } = pair(outer, model(...steps, 'r'), { run }, { tools: [effectTool('t', [])] });
        return { at, outer };
      };
      const free = twelve({ maxTurns: null });
      await runForm(free.at, 'hi', { maxTurns: 3 });
      expect(outOf(free.outer)).toBe('r');
      const limited = twelve();
      await runForm(limited.at, 'hi', {
        maxTurns: null,
        errorHandlers: { maxTurns: () => ({ finalOutput: 'handled' }) },
      });
      expect(outOf(limited.outer)).toBe(failureText);
    });

    it('has a context of its own over the same value, and structured input only where it was structured [TOOL-AC67, AT8, AT29, RUN-106]', async () => {
      const seen: unknown[] = [];
      const look = tool({
        name: 'look',
        execute: (_, ctx: ToolContext<{ id: number }>) => {
          seen.push([ctx.context, ctx.toolInput, ctx.usage.requests]);
          return 'ok';
        },
      });
      const inner = model(toolCall('look', {}, { callId: 'l' }), 'r', toolCall('look', {}, { callId: 'l' }), 'r');
      const expert = new Agent<{ id: number }>({ name: 'Expert', model: inner, tools: [look] });
      const q = z.object({ q: z.string().describe('search text'), lang: z.enum(['de', 'en']) });
      const outer = model(
        toolCall('structured', { q: 'tea', lang: 'de' }, { callId: 'c1' }),
        toolCall('plain', { input: 'x' }, { callId: 'c2' }),
        toolCall('look', {}, { callId: 'c3' }),
        'done',
      );
      const tools = [
        expert.asTool({ toolName: 'structured', parameters: q }),
        expert.asTool({ toolName: 'plain' }),
        look,
      ];
      const value = { id: 7 };
      await runForm(new Agent<{ id: number }>({ name: 'Desk', model: outer, tools }), 'hi', { context: value });
      expect(seen).toEqual([
        [value, { q: 'tea', lang: 'de' }, 1],
        [value, undefined, 1],
        [value, undefined, 7],
      ]);
      expect((seen[0] as unknown[])[0]).toBe(value);
      const input = contentOf(inner);
      expect(input).toContain('## Structured Input Data:\n```json\n{\n  "q": "tea",\n  "lang": "de"\n}\n```');
      expect(input).toMatch(
        /## Input Schema Summary:\n- q \(string, required\) - search text\n- lang \(enum\("de" \| "en"\), required\)$/,
      );
    });

    it.each<[string, z.ZodObject, Record<string, unknown>, string | undefined]>([
      [
        'with the description of the whole, what is required, nullable, of many values and constant',
        z
          .object({
            q: z.string(),
            n: z.int().nullable(),
            size: z.enum(['a', 'b', 'c', 'd', 'e', 'f', 'g']),
            kind: z.literal('x'),
            more: z.boolean().optional(),
          })
          .describe('a question'),
        { q: 't', n: null, size: 'a', kind: 'x' },
        [
          'Description: a question',
          '- q (string, required)',
          '- n (integer | null, required)',
          '- size (enum("a" | "b" | "c" | "d" | "e" | ...), required)',
          '- kind (literal("x"), required)',
          '- more (boolean, optional)',
        ].join('\n'),
      ],
      ['not without any description', z.object({ q: z.string(), n: z.int() }), { q: 't', n: 1 }, undefined],
      [
        'not with a field that is not simple',
        z.object({ q: z.string().describe('text'), list: z.array(z.string()) }),
        { q: 't', list: [] },
        undefined,
      ],
    ])('has a summary of its input %s [TOOL-AT5]', async (_, parameters, args, summary) => {
      const inner = model('r');
      const { desk } = pair(model(ask('c', args), 'done'), inner, { parameters });
      await runForm(desk, 'hi');
      const [, found] = String(contentOf(inner)).split('## Input Schema Summary:\n');
      expect(found).toBe(summary);
    });

    it.each<[string, object, object, string | RegExp]>([
      [
        'JSON for members that are no simple values',
        { parameters: z.object({ a: z.object({ b: z.int() }) }) },
        { a: { b: 1 } },
        '{"a":{"b":1}}',
      ],
      ['the text of one `input`', { parameters: z.object({ input: z.string() }) }, { input: 'x' }, 'x'],
      [
        'the schema where it is asked for',
        { parameters: z.object({ q: z.string() }), includeInputSchema: true },
        { q: 'x' },
        /## Input JSON Schema:\n```json/,
      ],
      ['the text alone without parameters, whatever is asked for', { includeInputSchema: true }, { input: 'x' }, 'x'],
      [
        'what a builder makes',
        { inputBuilder: ({ params }: { params: { input: string } }) => `<${params.input}>` },
        { input: 'x' },
        '<x>',
      ],
    ])('is given %s [TOOL-AT3, AT4, AT6, AT30]', async (_, options, args, expected) => {
      const inner = model('r');
      const { desk } = pair(model(ask('c', args), 'done'), inner, options);
      await runForm(desk, 'hi');
      expect(contentOf(inner)).toMatch(typeof expected === 'string' ? exactText(expected) : expected);
    });

    it('fails by its policy when a builder gives neither text nor items [TOOL-AT6]', async () => {
      const outer = model(ask(), 'done');
      const { desk } = pair(outer, model(), {
        inputBuilder: () => 7,
        failureErrorFunction: (_: unknown, error: Error) => `${error.name}: ${error.message}`,
      });
      await runForm(desk, 'hi');
      expect(outOf(outer)).toMatch(/^ModelBehaviorError: .*invalid input/);
    });

    it('gives structured output as JSON, and anything of an extractor as a tool would [TOOL-AT25, AT33, AT10, AT15, RUN#78]', async () => {
      const outer = model(ask('a'), ask('b'), 'done');
      const seen: AgentToolResult[] = [];
      const inner = model('{"n":2}', '{"n":3}');
      const expert = new Agent({ name: 'Expert', model: inner, outputType: z.object({ n: z.int() }) });
      const plain = expert.asTool({ toolName: 'expert' });
      await runForm(new Agent({ name: 'Desk', model: outer, tools: [plain] }), 'hi');
      expect(outOf(outer)).toBe('{"n":2}');
      const second = model(ask('x'), 'done');
      const extracting = expert.asTool({
        toolName: 'expert',
        customOutputExtractor: (result) => {
          seen.push(result);
          return { n: result.finalOutput.n, ids: [1] } as never;
        },
      });
      inner.add('{"n":4}');
      await runForm(new Agent({ name: 'Desk', model: second, tools: [extracting] }), 'hi');
      expect(outOf(second)).toBe('{"n":4,"ids":[1]}');
      expect(seen[0]?.agentToolInvocation).toEqual({
        toolName: 'expert',
        toolCallId: 'x',
        toolArguments: '{"input":"q"}',
      });
      expect(Object.isFrozen(seen[0]?.agentToolInvocation)).toBe(true);
      expect(seen[0]?.finalOutput).toEqual({ n: 4 });
    });

    it('tells of the call as the model wrote it, not as it was read; parameters of its own are in the context [RUN-1209]', async () => {
      const texts = ['{ "n" : 1.0, "more": true }', '{"n":2}'];
      const outer = model(...texts.map((json, index) => toolCall('expert', json, { callId: `c${index}` })), 'done');
      const seen: unknown[] = [];
      const expert = new Agent({ name: 'Expert', model: model('a', 'b') }).asTool({
        toolName: 'expert',
        parameters: z.object({ n: z.int() }),
        customOutputExtractor: ({ agentToolInvocation: invocation, context }) => {
          seen.push([Object.isFrozen(invocation), invocation.toolCallId, invocation.toolArguments, context.toolInput]);
          return '';
        },
      });
      await runForm(new Agent({ name: 'Desk', model: outer, tools: [expert] }), 'hi');
      expect(seen).toEqual([
        [true, 'c0', texts[0], { n: 1 }],
        [true, 'c1', texts[1], { n: 2 }],
      ]);
    });

    it('gives the newest text of its items when its answer is empty, unless a guardrail judged that [TOOL-AC95, AT10]', async () => {
      const script = (): ScriptedModel => model(toolCall('t', {}, { callId: 't' }), text(''));
      const outer = model(ask(), 'done');
      await runForm(pair(outer, script(), {}, { tools: [effectTool('t', [])] }).desk, 'hi');
      expect(outOf(outer)).toBe('t ok');
      const judged = model(ask(), 'done');
      const pass = { name: 'pass', execute: () => ({ tripwireTriggered: false, outputInfo: undefined }) };
      await runForm(pair(judged, script(), {}, { tools: [effectTool('t', [])], outputGuardrails: [pass] }).desk, 'hi');
      expect(outOf(judged)).toBe('');
    });

    it('tells the model of a failure by a fixed text without the formatter, and goes on [TOOL-AT11, AT27, AC91, RUN-243]', async () => {
      const asked: unknown[] = [];
      const outer = model(ask(), 'done');
      const { desk } = pair(
        outer,
        model(toolCall('t', {}, { callId: 't' })),
        { run: { maxTurns: 1 } },
        { tools: [effectTool('t', [])] },
      );
      const result = await runForm(desk, 'hi', { toolErrorFormatter: (args) => void asked.push(args.kind) });
      expect(outOf(outer)).toBe(failureText);
      expect(asked).toEqual([]);
      expect(result.finalOutput).toBe('done');
      expect(result.context.usage.requests).toBe(3);
    });

    it('fails the run with what the nested run failed with where failures are not handled [TOOL-AT28, RUN-1801, 1803]', async () => {
      const trip = { name: 'trip', execute: () => ({ tripwireTriggered: true, outputInfo: 'x' }) };
      const { desk } = pair(
        model(ask(), 'done'),
        model('r'),
        { failureErrorFunction: null },
        { inputGuardrails: [trip] },
      );
      const error = await rejection(runForm(desk, 'hi'));
      expect(error).toMatchObject({ name: 'InputGuardrailTripwireTriggered' });
      expect((error as { runData: { lastAgent: Agent } }).runData.lastAgent.name).toBe('Expert');
      const state = getRunErrorState(error);
      expect(state).toBeInstanceOf(RunState);
      expect(state?.currentAgent?.name).toBe('Desk');
    });

    it('follows a handoff inside [TOOL-AT32]', async () => {
      const other = new Agent({ name: 'Other', model: model('from other') });
      const outer = model(ask(), 'done');
      const events: string[] = [];
      const { desk } = pair(
        outer,
        model(toolCall('transfer_to_other', {}, { callId: 'h' })),
        {
          onStream: ({ agent, event }: { agent: Agent; event: { type: string } }) =>
            void events.push(`${agent.name} ${event.type}`),
        },
        { handoffs: [other] },
      );
      await runForm(desk, 'hi');
      expect(outOf(outer)).toBe('from other');
      const updated = events
        .map((event, index) => (event.endsWith('agent_updated_stream_event') ? index : -1))
        .filter((i) => i >= 0);
      expect(updated.map((index) => events[index])).toEqual([
        'Expert agent_updated_stream_event',
        'Other agent_updated_stream_event',
      ]);
      expect(events.slice(updated[1]).every((event) => event.startsWith('Other'))).toBe(true);
    });

    it('is switched off and waits like any tool, before it starts [TOOL-AT12, STATE-117]', async () => {
      const outer = model('no tools', ask(), 'done');
      const inner = model('r');
      const off = pair(outer, inner, { isEnabled: () => false });
      await runForm(off.desk, 'hi');
      expect(outer.calls[0]?.request.tools).toEqual([]);
      const { desk } = pair(outer, inner, {
        needsApproval: (_: RunContext, { input }: { input: string }) => input === 'q',
      });
      const first = await runForm(desk, 'hi');
      expect(first.interruptions).toMatchObject([{ name: 'expert', agent: { name: 'Desk' } }]);
      expect(inner.calls).toHaveLength(0);
      const state = first.toState();
      for (const item of state.interruptions) state.approve(item);
      expect((await runForm(desk, state)).finalOutput).toBe('done');
      expect(inner.calls).toHaveLength(1);
    });

    it('ends with its run, and with its own limit of time [TOOL-AT12]', async () => {
      const hang =
        (signals: AbortSignal[]): ModelStep =>
        (call) => {
          if (call.request.signal) signals.push(call.request.signal);
          return new Promise<ModelStep>(() => undefined);
        };
      const signals: AbortSignal[] = [];
      const abort = new AbortController();
      const { desk } = pair(model(ask()), model(hang(signals)));
      const running = rejection(runForm(desk, 'hi', { signal: abort.signal }));
      while (signals.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      abort.abort();
      expect(await running).toMatchObject({ name: 'AbortError' });
      expect(signals[0]?.aborted).toBe(true);

      const outer = model(ask(), 'done');
      const timed: AbortSignal[] = [];
      const expert = new Agent({ name: 'Expert', model: model(hang(timed)) });
      const tools = [expert.asTool({ toolName: 'expert' }).copyWith({ timeoutMs: 20 })];
      await runForm(new Agent({ name: 'Desk', model: outer, tools }), 'hi');
      expect(outOf(outer)).toBe("Tool 'expert' timed out after 0.02 seconds.");
      expect(timed[0]?.aborted).toBe(true);
    });
  });
});

describe('asTool', () => {
  const expert = new Agent({ name: 'Tax Expert', model: 'm' });

  it('is named after the agent, takes one input, and keeps what it is in copies [TOOL-AT1, AT2, AT16]', () => {
    const made = expert.asTool();
    expect(made).toMatchObject({ name: 'tax_expert', description: '', strictJsonSchema: true });
    expect(made.paramsJsonSchema).toEqual({
      type: 'object',
      properties: { input: { type: 'string' } },
      required: ['input'],
      additionalProperties: false,
    });
    const copy = made.copyWith({ name: 'other', timeoutMs: 5 });
    expect(copy.origin).toEqual({ type: 'agent_as_tool', agentName: 'Tax Expert', agentToolName: 'other' });
  });

  it('warns of letters that names of tools have not, unless it is given a name [TOOL-AT1]', () => {
    const lines = logged({ level: 'warn' });
    new Agent({ name: 'Köln' }).asTool();
    expect(lines).toHaveLength(1);
    new Agent({ name: 'Köln' }).asTool({ toolName: 'koeln' });
    expect(lines).toHaveLength(1);
  });

  it.each<[object, RegExp]>([
    [{ toolname: 'x' }, /toolname/],
    [{ toolName: 'a b' }, /no name of a tool/],
    [{ onStream: true }, /onStream/],
    [{ customOutputExtractor: 'x' }, /customOutputExtractor/],
    [{ inputBuilder: {} }, /inputBuilder/],
    [{ parameters: z.string() }, /object/],
    [{ run: { model: 7 } }, /model/],
    [{ run: { maxturns: 1 } }, /maxturns/],
    [{ run: { context: {} } }, /context/],
    [{ run: { signal: new AbortController().signal } }, /signal/],
    [{ run: { onApproval: () => undefined } }, /onApproval/],
    [{ approvalTtlMs: 1000 }, /approvalTtlMs/],
  ])('refuses %o at once [TOOL-AT35]', (options, message) => {
    const error = thrown(() => expert.asTool(options));
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).toMatch(message);
  });

  it('refuses agents whose names give no name of a tool [TOOL-AT1]', () => {
    expect(() => new Agent({ name: 'x'.repeat(65) }).asTool()).toThrow(UserError);
  });

  it('does not run without a run', async () => {
    const result = expert
      .asTool({ failureErrorFunction: null })
      .onInvokeTool({ signal: new AbortController().signal } as never, '{"input":"q"}');
    expect(await rejection(result)).toBeInstanceOf(UserError);
  });
});
