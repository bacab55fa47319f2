import { describe, expect, it } from 'vitest';

import { Agent, getRunErrorState, MemorySession, run, runStreamed, RunState, tool } from '../src/index.ts';
import type { AgentInputItem, Session } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { ScriptedModel, toolCall } from '../src/testing/index.ts';

/** Runs with sessions, through the public entries. The cases of `sessionContract` (group K) show more of them. */

const free = (ran: string[] = []) =>
  tool({
    name: 'free',
    execute: () => {
      ran.push('free');
      return 'ok';
    },
  });
const gated = (ran: string[] = []) =>
  tool({
    name: 'gated',
    needsApproval: true,
    execute: () => {
      ran.push('gated');
      return 'ok';
    },
  });

/** A session of four methods that waits and fails as a test says. */
function slow(options: { delayMs?: number; fail?: (batch: number) => Error | undefined } = {}) {
  const inner = new MemorySession('slow');
  const batches: (readonly AgentInputItem[])[] = [];
  const session: Session = {
    sessionId: 'slow',
    getItems: (limit) => inner.getItems(limit),
    async addItems(items) {
      const failure = options.fail?.(batches.length);
      batches.push(items);
      await new Promise((resolve) => setTimeout(resolve, options.delayMs ?? 0));
      if (failure !== undefined) throw failure;
      await inner.addItems(items);
    },
    popItem: () => inner.popItem(),
    clearSession: () => inner.clearSession(),
  };
  return { session, inner, batches };
}

const roles = (items: readonly AgentInputItem[]) =>
  items.map((item) =>
    'type' in item && item.type?.startsWith('function') ? item.type : (item as { role: string }).role,
  );

bothForms((runForm, form) => {
  describe(`${form} runs with a session`, () => {
    it('append what is new, and the next run sees all of it [SESS#1, IL-001, IL-004]', async () => {
      const { session, inner, batches } = slow();
      const model = new ScriptedModel([toolCall('free'), 'one', 'two']);
      const agent = new Agent({ name: 'A', model, tools: [free()] });
      await runForm(agent, 'first', { session });
      await runForm(agent, 'second', { session });
      expect(batches.map(roles)).toEqual([
        ['user'],
        ['function_call', 'function_call_output'],
        ['assistant'],
        ['user'],
        ['assistant'],
      ]);
      expect(model.calls[2]?.request.input).toEqual([
        ...(await inner.getItems()).slice(0, 4),
        { role: 'user', content: 'second' },
      ]);
    });

    it('end when every write has ended [IL-002, RUN-1602]', async () => {
      const { session, inner } = slow({ delayMs: 20 });
      await runForm(
        new Agent({ name: 'A', model: new ScriptedModel([toolCall('free'), 'done']), tools: [free()] }),
        'go',
        { session },
      );
      expect(await inner.getItems()).toHaveLength(4);
    });

    it('fail with the error of the session, whichever batch it was [IL-003, SESS-090]', async () => {
      for (const failing of [0, 1, 2]) {
        const failure = new Error('store is down');
        const { session } = slow({ fail: (batch) => (batch === failing ? failure : undefined) });
        const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('free'), 'done']), tools: [free()] });
        await expect(runForm(agent, 'go', { session })).rejects.toBe(failure);
      }
    });

    it('that pause go on in another process, each call and output stored once [SESS#2, STATE-302, IL-058, IL-061]', async () => {
      const ran: string[] = [];
      const model = new ScriptedModel([
        [toolCall('gated', {}, { callId: 'g' }), toolCall('free', {}, { callId: 'f' })],
        'done',
      ]);
      const agent = new Agent({ name: 'A', model, tools: [free(ran), gated(ran)] });
      const { session, inner } = slow();
      const paused = await runForm(agent, 'go', { session });
      const state = await RunState.fromString(agent, paused.toState().toString());
      state.approve(state.interruptions[0]!);
      const reads: unknown[] = [];
      const again: Session = {
        ...slow().session,
        getItems: (limit) => {
          reads.push(limit);
          return inner.getItems(limit);
        },
        addItems: (items) => inner.addItems(items),
      };
      await runForm(agent, state as RunState, { session: again });
      expect(
        (await inner.getItems()).map((item) => ('call_id' in item ? `${item.type} ${item.call_id}` : 'message')),
      ).toEqual([
        'message',
        'function_call g',
        'function_call f',
        'function_call_output f',
        'function_call_output g',
        'message',
      ]);
      expect(ran).toEqual(['free', 'gated']);
      // No read for preparation: what is read is the end that a write follows.
      expect(reads).toEqual([2]);
    });

    it('settle an append whose answer was lost, from JSON, without running the tool again [SESS#15, STATE-302, IL-084]', async () => {
      for (const stored of [true, false]) {
        const ran: string[] = [];
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('gated'), 'done']),
          tools: [gated(ran)],
        });
        const { session, inner } = slow();
        const paused = await runForm(agent, 'go', { session });
        const state = paused.toState();
        state.approve(state.interruptions[0]!);
        const losing: Session = {
          ...session,
          addItems: async (items) => {
            if (stored) await inner.addItems(items);
            throw new Error('lost');
          },
        };
        const error: unknown = await runForm(agent, state, { session: losing }).catch((thrown: unknown) => thrown);
        const text = getRunErrorState(error)!.toString();
        expect(JSON.parse(text)).toMatchObject({
          pending_session_write: { session_id: 'slow', persisted_count: expect.any(Number) },
        });
        const result = await runForm(agent, (await RunState.fromString(agent, text)) as RunState, { session });
        expect(result.status).toBe('completed');
        expect(JSON.parse(result.toState().toString())).not.toHaveProperty('pending_session_write');
        expect(ran).toEqual(['gated']);
        expect(roles(await inner.getItems())).toEqual(['user', 'function_call', 'function_call_output', 'assistant']);
      }
    });

    it('read no item when the limit is 0 [SESS#28, IL-018]', async () => {
      const session = new MemorySession('s', { items: [{ role: 'user', content: 'old' }] });
      const model = new ScriptedModel(['done']);
      await runForm(new Agent({ name: 'A', model }), 'new', { session, sessionSettings: { limit: 0 } });
      expect(model.calls[0]?.request.input).toEqual([{ role: 'user', content: 'new' }]);
      expect(roles(await session.getItems())).toEqual(['user', 'user', 'assistant']);
    });
  });
});

it('a session together with a conversation of the service is refused before anything is read [SESS#10]', async () => {
  const { session, batches } = slow();
  const model = new ScriptedModel(['done']);
  const agent = new Agent({ name: 'A', model });
  const options = { session, conversationId: 'conv_1' };
  await expect(run(agent, 'go', options as never)).rejects.toMatchObject({
    name: 'UserError',
    message: expect.stringContaining('conversationId'),
  });
  expect(() => runStreamed(agent, 'go', options as never)).toThrow(/conversationId/);
  expect(batches).toEqual([]);
  expect(model.calls).toEqual([]);
});

it('an aborted run waits for the append in flight before it says so [SESS-016, STATE-314]', async () => {
  const controller = new AbortController();
  const { session, inner } = slow({ delayMs: 30 });
  const running = run(new Agent({ name: 'A', model: new ScriptedModel(['done']) }), 'go', {
    session,
    signal: controller.signal,
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  controller.abort();
  const error: unknown = await running.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'AbortError' });
  // What was sent is stored and known to be.
  expect(await inner.getItems()).toHaveLength(1);
  expect(JSON.parse(getRunErrorState(error)!.toString())).not.toHaveProperty('pending_session_write');
});
