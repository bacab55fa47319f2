import { afterEach, describe, expect, it } from 'vitest';
import { Agent, getRunErrorState, RunState, tool } from '../index.ts';
import type { RunResult, Span } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms, ScriptedModel, toolCall } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing/processors.ts';

afterEach(() => resetDefaults());

/** A desk whose `pay` fails on its first attempt (or more), after it may have paid; `look` beside it is harmless. */
function desk(options: { needsApproval?: boolean; failures?: number } = {}) {
  const effects: string[] = [];
  const keys = new Set<string>();
  const pay = tool({
    name: 'pay',
    needsApproval: options.needsApproval ?? false,
    failureErrorFunction: null,
    execute: (_args, ctx) => {
      effects.push(`pay ${ctx.attempt}`);
      keys.add(ctx.idempotencyKey);
      if (ctx.attempt <= (options.failures ?? 1)) throw new Error('line cut');
      return 'paid';
    },
  });
  const look = tool({ name: 'look', execute: () => void effects.push('look') });
  const model = new ScriptedModel([
    [toolCall('look', {}, { callId: 'l' }), toolCall('pay', {}, { callId: 'p' })],
    'done',
  ]);
  return { effects, keys, model, agent: new Agent({ name: 'Desk', model, tools: [look, pay] }) };
}

const outputs = (result: RunResult): unknown[] =>
  result.newItems.flatMap((item) => (item.type === 'tool_call_output_item' ? [item.output] : []));

bothForms((runForm, form) => {
  const failed = async (kit: ReturnType<typeof desk>): Promise<RunState> => {
    const error: unknown = await runForm(kit.agent, 'go').catch((e: unknown) => e);
    const state = getRunErrorState(error);
    if (!state) throw new Error('The error has no state.');
    return state;
  };
  const reread = (kit: ReturnType<typeof desk>, state: RunState) => RunState.fromString(kit.agent, state.toString());

  describe(`a call that was started and not finished (${form})`, () => {
    it('is never just run again: the error names the call and the answers [STATE-136, 154] [STATE-510]', async () => {
      const kit = desk();
      const state = await failed(kit);
      expect(state.status).toBe('interrupted');
      const spans: Span[] = [];
      setTraceProcessors([{ onSpanEnd: (span: Span) => void spans.push(span) }]);
      const again: unknown = await runForm(kit.agent, state).catch((e: unknown) => e);
      // Nothing narrower than the agent's span tells of it [TRACE-E1].
      expect(spans.find(({ type }) => type === 'agent')?.error?.message).toBe('Error in agent run');
      expect(again).toMatchObject({ code: 'call_executed_uncommitted' });
      expect((again as Error).message).toMatch(/pay \(p\) was started.*onInDoubt.*rerun, done or reject/);
      expect(kit.effects).toEqual(['look', 'pay 1']);
      expect(kit.model.calls).toHaveLength(1);
    });

    it.each(['live', 'through JSON'])(
      'waits for an answer with onInDoubt interrupt, and goes on by it; state %s [STATE-178, 510]',
      async (way) => {
        for (const answer of ['rerun', 'done', 'reject'] as const) {
          const kit = desk();
          let state = await failed(kit);
          if (way !== 'live') state = await reread(kit, state);
          const paused = await runForm(kit.agent, state, { onInDoubt: 'interrupt' });
          expect(paused.status).toBe('interrupted');
          expect(paused.interruptions.map((item) => [item.callId, item.inDoubt])).toEqual([['p', true]]);
          let next = paused.toState();
          const [item] = next.interruptions;
          if (!item) throw new Error('Nothing waits.');
          if (answer === 'done') next.decide(item, { type: 'done', output: { receipt: 7 }, by: 'ana' });
          else next.decide(item, { type: answer });
          if (way !== 'live') next = await reread(kit, next);
          const result = await runForm(kit.agent, next);
          expect(result.finalOutput).toBe('done');
          expect(outputs(result)[1]).toEqual(
            { rerun: 'paid', done: { receipt: 7 }, reject: 'Tool execution was not approved.' }[answer],
          );
          expect(kit.effects).toEqual(answer === 'rerun' ? ['look', 'pay 1', 'pay 2'] : ['look', 'pay 1']);
          expect(kit.keys.size).toBe(1);
          expect(kit.model.calls).toHaveLength(2);
        }
      },
    );

    it('is asked about again when its rerun was cut, whatever was said of it before [STATE-178, 162]', async () => {
      const kit = desk({ failures: 2 });
      const state = (await runForm(kit.agent, await failed(kit), { onInDoubt: 'interrupt' })).toState();
      const [item] = state.interruptions;
      state.decide(item!, { type: 'reject', message: 'no' });
      state.decide(item!, { type: 'rerun' });
      const error: unknown = await runForm(kit.agent, await reread(kit, state)).catch((e: unknown) => e);
      const cut = getRunErrorState(error) as RunState;
      const asked = await runForm(kit.agent, await reread(kit, cut), { onInDoubt: 'interrupt' });
      expect(asked.interruptions.map(({ callId }) => callId)).toEqual(['p']);
      expect(kit.effects).toEqual(['look', 'pay 1', 'pay 2']);
    });

    it('runs again with onInDoubt retry, under the same idempotency key [STATE-510, 509]', async () => {
      const kit = desk();
      const result = await runForm(kit.agent, await reread(kit, await failed(kit)), { onInDoubt: 'retry' });
      expect(outputs(result)[1]).toBe('paid');
      expect(kit.effects).toEqual(['look', 'pay 1', 'pay 2']);
      expect(kit.keys.size).toBe(1);
    });

    it('that had been approved says so on its item, and takes no second approval [STATE-178]', async () => {
      const kit = desk({ needsApproval: true });
      const paused = await runForm(kit.agent, 'go');
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      const error: unknown = await runForm(kit.agent, state).catch((e: unknown) => e);
      for (const left of [
        state,
        getRunErrorState(error) as RunState,
        await reread(kit, getRunErrorState(error) as RunState),
      ]) {
        const [item] = left.interruptions;
        expect(item?.inDoubt).toBe(true);
        expect(() => left.approve(item as never)).toThrow(expect.objectContaining({ code: 'approval_in_doubt' }));
      }
      expect(() => paused.toState().decide(paused.interruptions[0] as never, { type: 'rerun' })).toThrow(
        expect.objectContaining({ code: 'approval_not_in_doubt' }),
      );
    });

    it('may be answered by the program [STATE-105]', async () => {
      const kit = desk();
      const result = await runForm(kit.agent, await failed(kit), {
        onInDoubt: 'interrupt',
        onApproval: (_ctx, item) => (item.inDoubt ? { type: 'done', output: 'found in the books' } : undefined),
      });
      expect(outputs(result)).toEqual([undefined, 'found in the books']);
      expect(kit.effects).toEqual(['look', 'pay 1']);
    });

    it('is in doubt again when the rerun fails too: an answer is acted on once [STATE-178]', async () => {
      const kit = desk();
      const broken = tool({
        name: 'pay',
        failureErrorFunction: null,
        execute: () => {
          kit.effects.push('pay');
          throw new Error('still cut');
        },
      });
      const agent = kit.agent.clone({ tools: [kit.agent.tools[0] as never, broken] });
      let state = getRunErrorState(await runForm(agent, 'go').catch((e: unknown) => e)) as RunState;
      state = (await runForm(agent, state, { onInDoubt: 'interrupt' })).toState();
      for (const item of state.interruptions) state.decide(item, { type: 'rerun' });
      state = getRunErrorState(await runForm(agent, state).catch((e: unknown) => e)) as RunState;
      state = await RunState.fromString(agent, state.toString());
      await expect(runForm(agent, state)).rejects.toMatchObject({ code: 'call_executed_uncommitted' });
      expect(kit.effects).toEqual(['look', 'pay', 'pay']);
      expect(state.getDecisions().map((decision) => decision.type)).toEqual(['rerun']);
    });

    it('of a tool that is gone can still be told done', async () => {
      const kit = desk();
      const agent = kit.agent.clone({ tools: kit.agent.tools.slice(0, 1) });
      const state = (await runForm(agent, await failed(kit), { onInDoubt: 'interrupt' })).toState();
      for (const item of state.interruptions) state.decide(item, { type: 'done', output: 'paid by hand' });
      expect(outputs(await runForm(agent, state))).toEqual([undefined, 'paid by hand']);
    });
  });
});
