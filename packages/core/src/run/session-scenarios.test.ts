import { describe, expect, it } from 'vitest';
import { Agent, getRunErrorState, handoff, MemorySession, RunState, tool } from '../index.ts';
import type { AgentInputItem, RunItem, InputGuardrail, OutputGuardrail, RunContext } from '../index.ts';
import { removeAllTools } from '../extensions/index.ts';
import type { ContextAwareSession } from '../session.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, refusal, ScriptedModel, text, toolCall } from '../testing/index.ts';
import { z } from 'zod';
import { effectTool, kindsOf, PlainSession, rejection, user } from '../../test/run-kit.ts';

const says = (trips: boolean): OutputGuardrail => ({ name: 'o', execute: () => ({ tripwireTriggered: trips }) });
const call = (name: string, id: string) => toolCall(name, { id }, { callId: id });
const outputsOf = (items: readonly object[]): unknown[] =>
  items.flatMap((item) => (item as { output?: unknown }).output ?? []);

/** Two tenants in one store; the context says whose history it is. */
class TenantSession implements ContextAwareSession<{ tenant: string }> {
  readonly sessionId = 's';
  readonly acceptsRunContext = true as const;
  readonly contexts: unknown[] = [];
  readonly tenants = new Map<string, AgentInputItem[]>();
  #of(ctx: RunContext<{ tenant: string }> | undefined): AgentInputItem[] {
    this.contexts.push(ctx);
    const tenant = ctx?.context.tenant ?? '';
    const items = this.tenants.get(tenant) ?? [];
    this.tenants.set(tenant, items);
    return items;
  }
  async getItems(limit?: number, ctx?: RunContext<{ tenant: string }>): Promise<AgentInputItem[]> {
    const items = structuredClone(this.#of(ctx));
    return limit === undefined ? items : items.slice(-limit);
  }
  async addItems(items: readonly AgentInputItem[], ctx?: RunContext<{ tenant: string }>): Promise<void> {
    this.#of(ctx).push(...structuredClone([...items]));
  }
  async popItem(ctx?: RunContext<{ tenant: string }>): Promise<AgentInputItem | undefined> {
    return this.#of(ctx).pop();
  }
  async clearSession(ctx?: RunContext<{ tenant: string }>): Promise<void> {
    this.#of(ctx).length = 0;
  }
}

bothForms((runForm, form) => {
  describe(`what a session has after a run (${form})`, () => {
    it.each([
      ['in the moment in which the model answers', 0],
      ['long after the model answered', 10],
    ])('is the input alone when a parallel input guardrail trips %s [SESS#17]', async (_, ticks) => {
      const session = new PlainSession();
      let answered = (): void => undefined;
      const first = new Promise<void>((resolve) => {
        answered = resolve;
      });
      const late: InputGuardrail = {
        name: 'late',
        runInParallel: true,
        execute: async () => {
          await first;
          for (let tick = 0; tick < ticks; tick++) await new Promise<void>((resolve) => void setImmediate(resolve));
          return { tripwireTriggered: true };
        },
      };
      const model = new ScriptedModel([
        () => {
          answered();
          return 'said';
        },
      ]);
      const agent = new Agent({ name: 'A', model, inputGuardrails: [late] });
      await expect(runForm(agent, 'x', { session })).rejects.toMatchObject({ code: 'input_guardrail_tripwire' });
      expect(model.calls).toHaveLength(1);
      expect(session.kinds).toBe('u');
    });

    it('is the input alone when an output guardrail trips on a message [SESS#18]', async () => {
      const session = new PlainSession();
      const agent = new Agent({ name: 'A', model: new ScriptedModel(['secret']), outputGuardrails: [says(true)] });
      await expect(runForm(agent, 'x', { session })).rejects.toMatchObject({ code: 'output_guardrail_tripwire' });
      expect(session.kinds).toBe('u');
      expect(JSON.stringify(session.items)).not.toContain('secret');
    });

    it('is a call and its withheld output when the output of a tool was blocked; the next request has the pair [SESS#19, SESS-087]', async () => {
      const session = new PlainSession();
      const model = new ScriptedModel([call('t', 'c1'), 'next']);
      const tools = [effectTool('t', [], { result: () => 'secret' })];
      const guarded = new Agent({
        name: 'A',
        model,
        tools,
        toolUseBehavior: 'stop_on_first_tool',
        outputGuardrails: [says(true)],
      });
      const error = await rejection(runForm(guarded, 'x', { session }));
      expect(session.kinds).toBe('u fc fco');
      expect(outputsOf(session.items)).toEqual(['Output withheld by an output guardrail.']);
      expect(JSON.stringify([session.items, getRunErrorState(error)?.toString()])).not.toContain('secret');
      await runForm(new Agent({ name: 'A', model, tools }), 'y', { session });
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fco u');
    });

    it('is all of the final turn when an output guardrail throws: reasoning, call and output [SESS-087]', async () => {
      const session = new PlainSession();
      const failure = new Error('no verdict');
      const throws: OutputGuardrail = {
        name: 'o',
        execute: () => {
          throw failure;
        },
      };
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[reasoning('why'), call('t', 'c1')]]),
        tools: [effectTool('t', [], { result: () => 'said' })],
        toolUseBehavior: 'stop_on_first_tool',
        outputGuardrails: [throws],
      });
      expect(await rejection(runForm(agent, 'x', { session }))).toBe(failure);
      expect(session.log.filter((line) => line.startsWith('add'))).toEqual(['add[u]', 'add[reasoning fc fco]']);
      expect(outputsOf(session.items)).toEqual(['said']);
      // A refusal, and what a handler says in its place.
      session.items.length = 0;
      const refusing = new Agent({
        name: 'A',
        model: new ScriptedModel([[reasoning('why'), refusal('no')]]),
        outputGuardrails: [throws],
      });
      const errorHandlers = { modelRefusal: () => ({ finalOutput: 'instead' }) };
      expect(await rejection(runForm(refusing, 'x', { session, errorHandlers }))).toBe(failure);
      expect(session.kinds).toBe('u reasoning m m');
    });

    it('is what the filter of a handoff leaves of that turn, or all of it with items for the model or nesting; earlier turns whole [SESS#29]', async () => {
      const filters = {
        removeAllTools,
        inputItems: ({ newItems }: { newItems: readonly RunItem[] }) => ({ inputItems: newItems.slice(-1) }),
        nesting: undefined,
      };
      for (const [name, inputFilter] of Object.entries(filters)) {
        const session = new PlainSession();
        const target = new Agent({ name: 'B', model: new ScriptedModel(['done']) });
        const to = handoff(target, {
          ...(inputFilter ? { inputFilter } : { nestHandoffHistory: true }),
          toolNameOverride: 'to_b',
        });
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([call('t', 'c1'), [call('t', 'c2'), toolCall('to_b', {}, { callId: 'h' })]]),
          tools: [effectTool('t', [])],
          handoffs: [to],
        });
        await runForm(agent, 'x', { session });
        const ofTurn = name === 'removeAllTools' ? '' : 'fc fc fco fco ';
        expect([name, session.kinds]).toEqual([name, `u fc fco ${ofTurn}m`]);
      }
    });

    it('is what the user said, whatever a filter shows the model [SESS#30, SESS-084]', async () => {
      const session = new PlainSession();
      const model = new ScriptedModel(['done']);
      await runForm(new Agent({ name: 'A', model }), 'my number is 7', {
        session,
        callModelInputFilter: ({ modelData }) => ({ ...modelData, input: [user('my number is *')] }),
      });
      expect(model.calls[0]?.request.input).toEqual([user('my number is *')]);
      expect(session.items[0]).toMatchObject({ content: 'my number is 7' });
      // In each turn, of the history too; what it is given cannot be changed.
      const again = new ScriptedModel([call('t', 'c1'), 'done']);
      await runForm(new Agent({ name: 'A', model: again, tools: [effectTool('t', [])] }), 'and 8', {
        session,
        callModelInputFilter: ({ modelData }) => {
          const hidden = { content: '*', arguments: '*', output: '*' };
          for (const item of modelData.input) expect(() => Object.assign(item, hidden)).toThrow(TypeError);
          return { ...modelData, input: modelData.input.map((item) => ({ ...item, ...hidden }) as AgentInputItem) };
        },
      });
      expect(again.calls[0]?.request.input).toMatchObject([{ content: '*' }, { content: '*' }, { content: '*' }]);
      expect(session.kinds).toBe('u m u fc fco m');
      expect(JSON.stringify(session.items)).not.toContain('*');
    });

    it('keeps the ids of reasoning that a later run leaves out of its requests [SESS#31]', async () => {
      const session = new PlainSession();
      const model = new ScriptedModel([[reasoning('why'), text('done')], 'next']);
      const agent = new Agent({ name: 'A', model });
      await runForm(agent, 'x', { session });
      const stored = session.items.find(({ type }) => type === 'reasoning');
      expect(stored).toHaveProperty('id');
      await runForm(agent, 'y', { session, reasoningItemIdPolicy: 'omit' });
      const sent = model.calls[1]?.request.input.find(({ type }) => type === 'reasoning');
      expect(sent).toBeDefined();
      expect(sent).not.toHaveProperty('id');
      expect(session.items.find(({ type }) => type === 'reasoning')).toEqual(stored);
    });

    it('belongs to the tenant of the context, over a pause, a resume and a guardrail that trips [SESS#34]', async () => {
      const session = new TenantSession();
      const other = [user('theirs')];
      session.tenants.set('other', other);
      const model = new ScriptedModel([call('g', 'c1'), 'done', 'said']);
      const agent = new Agent<{ tenant: string }>({
        name: 'A',
        model,
        tools: [effectTool('g', [], { needsApproval: true })],
      });
      const calledWith = (context: unknown): boolean => session.contexts.every((given) => given === context);
      const paused = await runForm(agent, 'x', { session, context: { tenant: 'mine' } });
      expect(calledWith(paused.context)).toBe(true);
      session.contexts.length = 0;
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      const resumed = await runForm(agent, state, { session, context: { tenant: 'mine' } });
      expect(calledWith(resumed.context)).toBe(true);
      expect(kindsOf(session.tenants.get('mine') ?? [])).toBe('u fc fco m');
      session.contexts.length = 0;
      const guarded = agent.clone({ outputGuardrails: [says(true)] as never });
      await rejection(runForm(guarded, 'y', { session, context: { tenant: 'mine' } }));
      expect(new Set(session.contexts).size).toBe(1);
      expect(kindsOf(session.tenants.get('mine') ?? [])).toBe('u fc fco m u');
      expect(session.tenants.get('other')).toEqual(other);
    });

    it('is the input alone at a pause under output guardrails that end with a tool, then calls before outputs in one append [SESS#83, SESS-106]', async () => {
      const session = new PlainSession();
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[call('t', 'c1'), call('g', 'c2')]]),
        tools: [effectTool('t', []), effectTool('g', [], { needsApproval: true })],
        toolUseBehavior: 'stop_on_first_tool',
        outputGuardrails: [says(false)],
      });
      const paused = await runForm(agent, 'x', { session });
      expect(session.kinds).toBe('u');
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      session.log.length = 0;
      await runForm(agent, state, { session });
      expect(session.log.filter((line) => line.startsWith('add'))).toEqual(['add[fc fc fco fco]']);
      expect(session.kinds).toBe('u fc fc fco fco');
    });

    it('is the completed pair of a turn in which another tool failed the run [SESS#85]', async () => {
      const session = new MemorySession();
      const failing = tool({
        name: 'bad',
        parameters: z.object({ id: z.string() }),
        failureErrorFunction: null,
        execute: () => {
          throw new Error('broken');
        },
      });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[call('t', 'c1'), call('bad', 'c2')]]),
        tools: [effectTool('t', []), failing],
      });
      const error = await rejection(runForm(agent, 'x', { session }));
      expect(error).toMatchObject({ code: 'tool_call' });
      expect(kindsOf(await session.getItems())).toBe('u fc fco');
      expect((await session.getItems())[1]).toMatchObject({ call_id: 'c1' });
    });
  });
});
