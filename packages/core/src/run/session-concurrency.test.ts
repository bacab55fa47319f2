import { describe, expect, it } from 'vitest';
import { Agent, getRunErrorState, MemorySession, UserError } from '../index.ts';
import { SessionOutcomeUnknownError, SessionVersionConflictError } from '../session.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool, kindsOf, PlainSession, rejection, user } from '../../test/run-kit.ts';

const detect = { sessionConcurrency: 'detect' } as const;

/** So many of its next appends are stored, but the answers are lost. */
class LosingSession extends MemorySession {
  lose = 0;
  override async appendIfVersion(...args: Parameters<MemorySession['appendIfVersion']>): Promise<string> {
    const version = await super.appendIfVersion(...args);
    if (this.lose === 0) return version;
    this.lose--;
    throw new SessionOutcomeUnknownError('lost', { operation: 'append', operationId: args[2]?.operationId });
  }
}

bothForms((runForm, form) => {
  describe(`other writers on a session (${form})`, () => {
    const agentWith = (model: ScriptedModel, done: string[] = []) =>
      new Agent({ name: 'A', model, tools: [effectTool('t', done)] });

    it('are none who wrote between a batch without an answer and the run that settles it [SESS-361]', async () => {
      const session = new LosingSession();
      const agent = agentWith(new ScriptedModel([toolCall('t'), 'done']));
      // Once, and all that it is tried again.
      session.lose = 4;
      const error = await rejection(runForm(agent, 'x', { session, ...detect }));
      expect(error).toBeInstanceOf(SessionOutcomeUnknownError);
      await session.addItems([user('from elsewhere')]);
      const result = await runForm(agent, getRunErrorState(error)!, { session, ...detect });
      expect(result.finalOutput).toBe('done');
      expect(kindsOf(await session.getItems())).toBe('u u fc fco m');
    });

    it('are not looked for unless it is asked for [SESS-361]', async () => {
      const session = new MemorySession();
      const model = new ScriptedModel([
        async () => {
          await session.addItems([user('from elsewhere')]);
          return 'done';
        },
      ]);
      await runForm(agentWith(model), 'x', { session });
      expect(kindsOf(await session.getItems())).toBe('u u m');
    });

    it('are noticed before the next model call; the error has the state, which goes on behind them [SESS-361, SESS#68]', async () => {
      const session = new MemorySession();
      const done: string[] = [];
      const model = new ScriptedModel([
        async () => {
          await session.addItems([user('from elsewhere')]);
          return toolCall('t');
        },
        'done',
      ]);
      const agent = agentWith(model, done);
      const error = await rejection(runForm(agent, 'x', { session, ...detect }));
      expect(error).toBeInstanceOf(SessionVersionConflictError);
      expect(model.calls).toHaveLength(1);
      expect(kindsOf(await session.getItems())).toBe('u u');
      const state = getRunErrorState(error);
      if (!state) throw new Error('The error has no state.');
      const result = await runForm(agent, state, { session, ...detect });
      expect(result.finalOutput).toBe('done');
      expect(done).toHaveLength(1);
      expect(kindsOf(await session.getItems())).toBe('u u fc fco m');
    });

    it('are noticed between the load and the first request: nothing is sent [SESS-361]', async () => {
      const session = new MemorySession();
      const model = new ScriptedModel(['done']);
      const hooks = { onLlmStart: async () => await session.addItems([user('from elsewhere')]) };
      const error = await rejection(runForm(agentWith(model), 'x', { session, hooks, ...detect }));
      expect(error).toMatchObject({ code: 'session_version_conflict' });
      expect(model.calls).toHaveLength(0);
      expect(kindsOf(await session.getItems())).toBe('u');
    });

    it('are none where only this run writes, over turns, a pause and a lost answer [SESS-361]', async () => {
      const session = new LosingSession();
      await session.addItems([user('before')]);
      const model = new ScriptedModel([toolCall('t'), toolCall('gated'), 'done']);
      const agent = new Agent({
        name: 'A',
        model,
        tools: [effectTool('t', []), effectTool('gated', [], { needsApproval: true })],
      });
      session.lose = 1;
      const paused = await runForm(agent, 'x', { session, ...detect });
      expect(paused.status).toBe('interrupted');
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      session.lose = 1;
      const result = await runForm(agent, state, { session, ...detect });
      expect(result.finalOutput).toBe('done');
      expect(kindsOf(await session.getItems())).toBe('u u fc fco fc fco m');
    });

    it('who wrote during a pause are part of the history; those after it are noticed [SESS-361]', async () => {
      for (const isLate of [false, true]) {
        const session = new MemorySession();
        const model = new ScriptedModel([
          toolCall('gated'),
          async () => {
            if (isLate) await session.addItems([user('after the pause')]);
            return 'done';
          },
        ]);
        const agent = new Agent({ name: 'A', model, tools: [effectTool('gated', [], { needsApproval: true })] });
        const state = (await runForm(agent, 'x', { session, ...detect })).toState();
        await session.addItems([user('during the pause')]);
        for (const item of state.interruptions) state.approve(item);
        const ended = await runForm(agent, state, { session, ...detect }).catch((error: unknown) => error);
        expect(ended).toMatchObject(isLate ? { code: 'session_version_conflict' } : { finalOutput: 'done' });
        expect(kindsOf(await session.getItems())).toBe(isLate ? 'u fc u fco u' : 'u fc u fco m');
      }
    });

    it('need a session with versions: refused before anything is read or sent [SESS-361]', async () => {
      const session = new PlainSession();
      const model = new ScriptedModel(['done']);
      const error = await rejection(runForm(agentWith(model), 'x', { session, ...detect }));
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ code: 'session_no_versions' });
      expect(session.log).toEqual([]);
      expect(model.calls).toHaveLength(0);
    });
  });
});
