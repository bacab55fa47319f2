import { describe, expect, it } from 'vitest';
import { Agent, getRunErrorState, RunState } from '../index.ts';
import type { AgentInputItem, JsonObject } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import { effectTool, kindsOf, PlainSession, rejection } from '../../test/run-kit.ts';

/** A store that gives every item an id and a date of its own, as databases do. */
class DatingSession extends PlainSession {
  readonly written: string[] = [];
  override addItems = async (items: readonly AgentInputItem[]): Promise<void> => {
    this.written.push(kindsOf(items));
    for (const item of items)
      this.items.push({
        ...item,
        id: `row_${this.items.length}`,
        stored_at: 1_700_000_000 + this.items.length,
      } as never);
  };
}

/** The same by its item policy: what the run stores has the store's members already. */
class StampingSession extends PlainSession {
  readonly written: string[] = [];
  prepareItemsForPersistence = (items: readonly AgentInputItem[]): AgentInputItem[] =>
    items.map((item, index) => ({ ...item, stored_at: this.items.length + index }) as never);
  normalizeForComparison = (item: AgentInputItem): AgentInputItem => {
    const { stored_at: _, ...plain } = item as AgentInputItem & { stored_at?: number };
    return plain;
  };
  override addItems = async (items: readonly AgentInputItem[]): Promise<void> => {
    this.written.push(kindsOf(items));
    if (this.faults.shift() !== undefined) throw this.error;
    this.items.push(...items);
  };
}

const desk = (): { agent: Agent; model: ScriptedModel } => {
  const model = new ScriptedModel([
    toolCall('t', {}, { callId: 'a' }),
    toolCall('g', {}, { callId: 'b' }),
    text('done'),
    text('later'),
  ]);
  const tools = [effectTool('t', []), effectTool('g', [], { needsApproval: true })];
  return { agent: new Agent({ name: 'A', model, tools }), model };
};

bothForms((runForm, form) => {
  describe(`a session that changes what it stores (${form})`, () => {
    it.each([
      ['itself', DatingSession],
      ['by its item policy', StampingSession],
    ])(
      '(%s) gets each item once: what was written is counted, not what it gives back [RUN-1607, RUN-1603]',
      async (_, Store) => {
        const { agent, model } = desk();
        const session = new Store();
        const paused = await runForm(agent, 'go', { session });
        let state: RunState = paused.toState();
        expect(state.toJSON()['current_turn_persisted_item_count']).toBe(1);
        state = await RunState.fromString(agent, state.toString());
        for (const item of state.interruptions) state.approve(item);
        await runForm(agent, state, { session });
        await runForm(agent, 'and?', { session });
        expect(session.written).toEqual(['u', 'fc fco', 'fc', 'fco', 'm', 'u', 'm']);
        expect(session.kinds).toBe('u fc fco fc fco m u m');
        expect(kindsOf(model.calls[3]?.request.input ?? [])).toBe('u fc fco fc fco m u');
      },
    );
  });

  it(`what a session with an item policy is owed counts by what the run wrote (${form}) [RUN-1607]`, async () => {
    const { agent } = desk();
    const session = new StampingSession();
    session.faults.push(undefined, 'before');
    const state = getRunErrorState(await rejection(runForm(agent, 'go', { session })));
    expect(state?.toJSON()).toMatchObject({
      current_turn_persisted_item_count: 0,
      pending_session_write: { persisted_count: 2 },
    });
    const paused = await runForm(agent, await RunState.fromString(agent, String(state)), { session });
    expect(paused.interruptions).toHaveLength(1);
    expect([session.kinds, session.written]).toEqual(['u fc fco fc', ['u', 'fc fco', 'fc fco', 'fc']]);
  });

  describe(`the keys of a state for what a session is owed (${form})`, () => {
    const failed = async (faults: readonly ('before' | undefined)[]): Promise<{ agent: Agent; json: JsonObject }> => {
      const { agent } = desk();
      const session = new PlainSession('s');
      session.faults.push(...faults);
      const error = await rejection(runForm(agent, 'go', { session, onApproval: () => ({ type: 'approve' }) }));
      return { agent, json: getRunErrorState(error)?.toJSON() as JsonObject };
    };
    const keys = ['pending_session_write', 'terminal_unrecoverable'];
    const present = (json: JsonObject): string[] => keys.filter((key) => key in json);

    it('are there only when they are needed [RUN-1614, STATE-334]', async () => {
      const { agent } = desk();
      const session = new PlainSession('s');
      const paused = await runForm(agent, 'go', { session });
      expect(present(paused.toState().toJSON())).toEqual([]);
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      expect(present((await runForm(agent, state, { session })).toState().toJSON())).toEqual([]);
      const turn = await failed([undefined, 'before']);
      expect(present(turn.json)).toEqual(['pending_session_write']);
      expect(turn.json['pending_session_write']).toEqual({
        session_id: 's',
        persisted_count: 2,
        response_id: 'resp_1',
        store: null,
        has_local_tool_outputs: true,
        items: [
          { type: 'function_call', call_id: 'a', name: 't', arguments: '{}', status: 'completed' },
          { type: 'function_call_output', call_id: 'a', output: 't ok' },
        ],
        before: [expect.stringMatching(/^[0-9a-f]{64}$/)],
      });
      const last = await failed([undefined, undefined, undefined, 'before']);
      expect(present(last.json)).toEqual(['terminal_unrecoverable']);
      expect(last.json['terminal_unrecoverable']).toBe(true);
    });

    it('are refused under labels that did not have them, and with members that are newer than the label [RUN-1614, STATE-318]', async () => {
      const turn = await failed([undefined, 'before']);
      const last = await failed([undefined, undefined, undefined, 'before']);
      const write = turn.json['pending_session_write'] as JsonObject;
      const { store: _1, response_id: _2, has_local_tool_outputs: _3, ...oldest } = write;
      const read = async (version: string, json: JsonObject): Promise<unknown> =>
        await RunState.fromJSON(turn.agent, { ...json, $schemaVersion: version }).then(
          () => 'read',
          (error: { code?: unknown }) => error.code,
        );
      const owing = (pending: JsonObject): JsonObject => ({ ...turn.json, pending_session_write: pending });
      expect(await read('1.21', turn.json)).toBe('read');
      expect(await read('1.17', owing(oldest))).toBe('read');
      expect(await read('1.16', owing(oldest))).not.toBe('read');
      expect(await read('1.17', owing(write))).toBe('session_write_invalid');
      expect(await read('1.18', owing({ ...write, held: true }))).toBe('session_write_invalid');
      expect(await read('1.21', owing({ ...write, later: 1 }))).toBe('session_write_invalid');
      expect(await read('1.16', last.json)).toBe('terminal_marker_invalid');
      expect(await read('1.21', last.json)).toBe('read');
    });
  });
});
