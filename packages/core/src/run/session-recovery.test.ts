import { describe, expect, it } from 'vitest';
import {
  Agent,
  getRunErrorState,
  MemorySession,
  run,
  RunAbortedError,
  runStreamed,
  RunState,
  UserError,
} from '../index.ts';
import type { RunInput, RunOptions, RunResult } from '../index.ts';
import type { HistoryOperation } from '../session.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import type { AppendFault } from '../../test/run-kit.ts';
import { effectTool, idle, kindsOf, PlainSession, readAll, rejection, thrown, user } from '../../test/run-kit.ts';

const forms = ['plain', 'streamed'] as const;
type Form = (typeof forms)[number];

interface Ended {
  readonly result?: RunResult;
  readonly error?: unknown;
  /** States to go on from: of the error, its JSON, and of a stream its own. */
  readonly states: Readonly<Record<string, () => Promise<RunState>>>;
}

/** A run in one form, with every state that it leaves. */
async function go(form: Form, agent: Agent, input: RunInput, options: RunOptions): Promise<Ended> {
  const ofError = (error: unknown) => ({
    'the error': async () => getRunErrorState(error) as RunState,
    JSON: async () => await RunState.fromString(agent, String(getRunErrorState(error))),
  });
  if (form === 'plain')
    return await run(agent, input, options).then(
      (result) => ({ result, states: {} }),
      (error: unknown) => ({ error, states: ofError(error) }),
    );
  const stream = runStreamed(agent, input, options);
  const read = readAll(stream).then(
    () => undefined,
    (error: unknown) => error,
  );
  const ended: Ended = await stream.completed.then(
    (result) => ({ result, states: {} }),
    (error: unknown) => ({
      error,
      states: {
        ...ofError(error),
        'the stream': async () => stream.toState(),
        'JSON of the stream': async () => await RunState.fromString(agent, stream.toState().toString()),
      },
    }),
  );
  expect(await read).toBe(ended.error);
  return ended;
}

/** Every way to a state after a failure, by the form that offers it. */
const ways = forms.flatMap((form) =>
  ['the error', 'JSON', ...(form === 'streamed' ? ['the stream', 'JSON of the stream'] : [])].map((way) => ({
    form,
    way,
  })),
);
const faults: readonly AppendFault[] = ['before', 'after'];
const withFaults = ways.flatMap((one) => faults.map((fault) => ({ ...one, fault })));

const pendingOf = (state: RunState): unknown => state.toJSON()['pending_session_write'];

async function stateOf(ended: Ended, way: string): Promise<RunState> {
  const state = await ended.states[way]?.();
  if (!state) throw new Error(`There is no state of ${way}.`);
  return state;
}

/** A run whose first turn calls a free tool, and whose append of that turn fails. */
function freshTurn(session = new PlainSession()) {
  const effects: string[] = [];
  const model = new ScriptedModel([toolCall('t', {}, { callId: 'c' }), 'done']);
  const agent = new Agent({ name: 'A', model, tools: [effectTool('t', effects)] });
  return { effects, model, agent, session };
}

/** A run that waits for a decision; the turn's calls are stored. */
async function pausedTurn(form: Form, session = new PlainSession()) {
  const effects: string[] = [];
  const model = new ScriptedModel([toolCall('t', {}, { callId: 'c' }), 'done']);
  const hooks: string[] = [];
  const agent = new Agent({
    name: 'A',
    model,
    tools: [effectTool('t', effects, { needsApproval: true })],
    hooks: { onToolStart: () => void hooks.push('start'), onToolEnd: () => void hooks.push('end') },
  });
  const { result } = await go(form, agent, 'x', { session });
  const state = result?.toState() as RunState;
  for (const item of state.interruptions) state.approve(item);
  return { effects, hooks, model, agent, session, state };
}

describe('the append of a fresh tool turn fails', () => {
  it.each(withFaults)(
    '$fault it was stored ($form): the state of $way settles it, the tool does not run again [RUN#72, STATE#91, SESS#32, SESS#80, RUN-1610]',
    async ({ form, way, fault }) => {
      const { effects, model, agent, session } = freshTurn();
      session.faults.push(undefined, fault);
      const failed = await go(form, agent, 'x', { session });
      expect(failed.error).toBe(session.error);
      // The tail is known from the load: nothing is read before the append.
      expect(session.log).toEqual(['get', 'add[u]', 'add[fc fco]']);
      expect(model.calls).toHaveLength(1);

      const state = await stateOf(failed, way);
      expect(state.status).toBe('ready');
      expect(pendingOf(state)).toMatchObject({
        session_id: 's',
        before: [expect.stringMatching(/^[0-9a-f]{64}$/)],
        persisted_count: 2,
        response_id: 'resp_1',
        has_local_tool_outputs: true,
      });
      session.log.length = 0;
      const { result } = await go(form, agent, state, { session });
      expect(result?.finalOutput).toBe('done');
      expect(session.log).toEqual(fault === 'before' ? ['get(3)', 'add[fc fco]', 'add[m]'] : ['get(3)', 'add[m]']);
      expect(session.kinds).toBe('u fc fco m');
      expect(effects).toEqual(['t -']);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fco');
      expect(result?.toState().toJSON()).not.toHaveProperty('pending_session_write');
    },
  );
});

describe('the append of a resumed tool turn fails', () => {
  const all = [...withFaults, ...forms.flatMap((form) => faults.map((fault) => ({ form, way: 'the object', fault })))];
  it.each(all)(
    '$fault it was stored ($form): the state of $way settles it, the tool does not run again [RUN#72, STATE#20, STATE#21, SESS#15, STATE-311]',
    async ({ form, way, fault }) => {
      const { effects, hooks, model, agent, session, state } = await pausedTurn(form);
      session.log.length = 0;
      session.faults.push(fault);
      const failed = await go(form, agent, state, { session });
      expect(failed.error).toBe(session.error);
      expect(session.log).toEqual(['get(2)', 'add[fco]']);
      expect([effects, hooks, model.calls.length]).toEqual([['t -'], ['start', 'end'], 1]);

      const next = way === 'the object' ? state : await stateOf(failed, way);
      expect(next.status).toBe('ready');
      session.log.length = 0;
      const { result } = await go(form, agent, next, { session });
      expect(result?.finalOutput).toBe('done');
      expect(session.log).toEqual(fault === 'before' ? ['get(3)', 'add[fco]', 'add[m]'] : ['get(3)', 'add[m]']);
      expect(session.kinds).toBe('u fc fco m');
      expect([effects, hooks, model.calls.length]).toEqual([['t -'], ['start', 'end'], 2]);
      expect(result?.toState().toJSON()).not.toHaveProperty('pending_session_write');
    },
  );

  it.each(forms)('again and again, and is stored once in the end (%s) [STATE-313]', async (form) => {
    const { effects, agent, session, state } = await pausedTurn(form);
    for (const fault of ['before', 'before', 'after'] as const) {
      session.faults.push(fault);
      expect((await go(form, agent, state, { session })).error).toBe(session.error);
    }
    expect((await go(form, agent, state, { session })).result?.finalOutput).toBe('done');
    expect([session.kinds, effects]).toEqual(['u fc fco m', ['t -']]);
  });

  it.each(ways)(
    'in a partial resume ($form): the batch is settled and the pause shows the rest ($way) [STATE#25, STATE-312]',
    async ({ form, way }) => {
      const effects: string[] = [];
      const session = new PlainSession();
      const model = new ScriptedModel([
        [toolCall('t', { id: 1 + '' }, { callId: 'c1' }), toolCall('t', { id: 2 + '' }, { callId: 'c2' })],
        'done',
      ]);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('t', effects, { needsApproval: true })] });
      const state = (await go(form, agent, 'x', { session })).result?.toState() as RunState;
      const [one] = state.interruptions;
      if (one) state.approve(one);
      session.faults.push('before');
      const failed = await go(form, agent, state, { session });
      expect(failed.error).toBe(session.error);

      const next = await stateOf(failed, way);
      expect(next.interruptions.map((item) => item.callId)).toEqual(['c2']);
      const paused = await go(form, agent, next, { session });
      expect(paused.result?.interruptions.map((item) => item.callId)).toEqual(['c2']);
      expect(session.kinds).toBe('u fc fc fco');
      const last = paused.result?.toState() as RunState;
      for (const item of last.interruptions) last.reject(item);
      expect((await go(form, agent, last, { session })).result?.finalOutput).toBe('done');
      expect(session.kinds).toBe('u fc fc fco fco m');
      expect(effects).toEqual(['t 1']);
      expect(model.calls).toHaveLength(2);
    },
  );
});

describe('the append of the input fails', () => {
  it.each(withFaults)(
    '$fault it was stored ($form): the first turn is repeated in full, the input is stored once ($way) [STATE-321, STATE#96]',
    async ({ form, way, fault }) => {
      const session = new PlainSession('s', [user('old')]);
      const hooks: string[] = [];
      const model = new ScriptedModel(['done']);
      const agent = new Agent({ name: 'A', model, hooks: { onStart: () => void hooks.push('start') } });
      session.faults.push(fault);
      const failed = await go(form, agent, 'x', { session });
      expect(failed.error).toBe(session.error);
      expect(model.calls).toHaveLength(0);
      const state = await stateOf(failed, way);
      expect([state.status, state.currentTurn]).toEqual(['ready', 0]);
      const { result } = await go(form, agent, state, { session });
      expect(result?.finalOutput).toBe('done');
      expect(result?.currentTurn).toBe(1);
      expect(session.kinds).toBe('u u m');
      expect(kindsOf(model.calls[0]?.request.input ?? [])).toBe('u u');
      expect(hooks).toEqual(['start', 'start']);
    },
  );

  it.each(ways)(
    'not, but the model does ($form): the input is not stored again ($way) [RUN-305, RUN-1602]',
    async ({ form, way }) => {
      const session = new PlainSession();
      const agent = new Agent({ name: 'A', model: new ScriptedModel([new Error('down'), 'done']) });
      const failed = await go(form, agent, 'x', { session });
      const { result } = await go(form, agent, await stateOf(failed, way), { session });
      expect([result?.finalOutput, session.kinds]).toEqual(['done', 'u m']);
    },
  );
});

describe('a batch that cannot be settled', () => {
  /** Refused with this code, as often as it is tried, without a write or a model call; the batch stays. */
  async function refused(
    form: Form,
    agent: Agent,
    state: RunState,
    options: RunOptions,
    code: string,
    session: PlainSession,
  ): Promise<void> {
    const items = structuredClone(session.items);
    const before = pendingOf(state);
    for (let i = 0; i < 2; i += 1) {
      const { error } = await go(form, agent, state, options).catch((error: unknown) => ({ error }));
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ code });
      expect((error as Error).message).toMatch(code === 'session_missing' ? /session: null/ : /pending session write/i);
    }
    expect(session.items).toEqual(items);
    expect(pendingOf(state)).toEqual(before);
  }

  it.each(ways)(
    'was stored in part ($form, $way): refused, the session untouched [STATE#22, RUN-1611]',
    async ({ form, way }) => {
      const { effects, model, agent, session } = freshTurn();
      session.faults.push(undefined, 'half');
      const state = await stateOf(await go(form, agent, 'x', { session }), way);
      expect(session.kinds).toBe('u fc');
      await refused(form, agent, state, { session }, 'session_write_ambiguous', session);
      expect([effects, model.calls.length]).toEqual([['t -'], 1]);
    },
  );

  it.each(ways)(
    'was followed by items of somebody else ($form, $way): refused, until the session is repaired [RUN#73, STATE#23, SESS#16, RUN-1611]',
    async ({ form, way }) => {
      const { effects, model, agent, session } = freshTurn();
      session.faults.push(undefined, 'before');
      const state = await stateOf(await go(form, agent, 'x', { session }), way);
      session.items.push(user('another writer'));
      await refused(form, agent, state, { session }, 'session_write_ambiguous', session);
      expect(model.calls).toHaveLength(1);
      session.items.pop();
      expect((await go(form, agent, state, { session })).result?.finalOutput).toBe('done');
      expect([session.kinds, effects]).toEqual(['u fc fco m', ['t -']]);
    },
  );

  it.each(ways)(
    'belongs to another session ($form, $way): refused before anything is read or written [RUN#73, STATE#24, RUN-1612]',
    async ({ form, way }) => {
      const { model, agent, session } = freshTurn();
      session.faults.push(undefined, 'before');
      const state = await stateOf(await go(form, agent, 'x', { session }), way);
      const other = new PlainSession('other');
      session.log.length = 0;
      await refused(form, agent, state, {}, 'session_missing', session);
      await refused(form, agent, state, { session: null }, 'session_write_wrong_session', session);
      await refused(form, agent, state, { session: other }, 'session_write_wrong_session', session);
      expect([session.log, other.log, model.calls.length]).toEqual([[], [], 1]);
      expect((await go(form, agent, state, { session })).result?.finalOutput).toBe('done');
    },
  );

  it.each(forms)(
    'is being settled by another run of the same state (%s): refused, the first goes on [STATE#30, RUN-1612]',
    async (form) => {
      const { model, agent, session } = freshTurn();
      session.faults.push(undefined, 'before');
      const state = await stateOf(await go(form, agent, 'x', { session }), 'the error');
      let open = (): void => undefined;
      session.gate = new Promise((resolve) => (open = resolve));
      const first = go(form, agent, state, { session });
      await idle();
      const second = await go(form, agent, state, { session }).catch((error: unknown) => ({ error }));
      expect(second.error).toMatchObject({ code: 'session_write_busy' });
      open();
      expect((await first).result?.finalOutput).toBe('done');
      expect([session.kinds, model.calls.length]).toEqual(['u fc fco m', 2]);
    },
  );
});

describe('the last append fails', () => {
  /** Nobody may go on with such a state, however often it is tried, and nothing of the run is touched. */
  async function dead(
    form: Form,
    agent: Agent,
    state: RunState,
    session: PlainSession,
    model: ScriptedModel,
  ): Promise<void> {
    expect(state.status).toBe('unrecoverable');
    expect(state.toJSON()).toMatchObject({ terminal_unrecoverable: true });
    // An output that the session does not have is none.
    expect(state.currentStep?.type).not.toBe('next_step_final_output');
    expect(pendingOf(state)).toBeUndefined();
    const calls = model.calls.length;
    const touched: string[] = [];
    const options: RunOptions = {
      session,
      hooks: { onRunStart: () => void touched.push('start'), onRunEnd: () => void touched.push('end') },
    };
    session.log.length = 0;
    for (let i = 0; i < 2; i += 1) {
      const error =
        form === 'plain'
          ? await rejection(run(agent, state, options))
          : thrown(() => runStreamed(agent, state, options));
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ code: 'state_unrecoverable' });
      expect((error as Error).message).toMatch(/cannot be resumed/);
    }
    expect([session.log, touched, model.calls.length]).toEqual([[], [], calls]);
  }

  it.each(withFaults)(
    'in a fresh segment, $fault it was stored ($form, $way): the write error, then refusals [RUN#74, STATE-331, STATE-332]',
    async ({ form, way, fault }) => {
      const session = new PlainSession();
      const model = new ScriptedModel(['done', 'never']);
      const agent = new Agent({ name: 'A', model });
      session.faults.push(undefined, fault);
      const failed = await go(form, agent, 'x', { session });
      expect(failed.error).toBe(session.error);
      await dead(form, agent, await stateOf(failed, way), session, model);
    },
  );

  it.each([...ways, ...forms.map((form) => ({ form, way: 'the object' }))])(
    'in a resumed segment ($form, $way): the write error, then refusals [RUN#74, STATE-332]',
    async ({ form, way }) => {
      const { model, agent, session, state } = await pausedTurn(form);
      session.faults.push(undefined, 'before');
      const failed = await go(form, agent, state, { session });
      expect(failed.error).toBe(session.error);
      await dead(form, agent, way === 'the object' ? state : await stateOf(failed, way), session, model);
    },
  );

  it.each(ways)(
    'after a tool ended the run, fresh and resumed ($form, $way) [STATE#27, STATE-331]',
    async ({ form, way }) => {
      for (const needsApproval of [false, true]) {
        const session = new PlainSession();
        const model = new ScriptedModel([toolCall('t')]);
        const agent = new Agent({
          name: 'A',
          model,
          tools: [effectTool('t', [], { needsApproval })],
          toolUseBehavior: 'stop_on_first_tool',
        });
        let input: RunInput = 'x';
        if (needsApproval) {
          const state = (await go(form, agent, 'x', { session })).result?.toState() as RunState;
          for (const item of state.interruptions) state.approve(item);
          input = state;
        } else session.faults.push(undefined);
        session.faults.push('before');
        const failed = await go(form, agent, input, { session });
        expect(failed.error).toBe(session.error);
        await dead(form, agent, await stateOf(failed, way), session, model);
      }
    },
  );

  it('leaves no mark on a run that ends well [STATE-334]', async () => {
    const session = new PlainSession();
    const result = await run(new Agent({ name: 'A', model: new ScriptedModel(['done']) }), 'x', { session });
    expect(result.toState().toJSON()).not.toHaveProperty('terminal_unrecoverable');
    expect(result.toState().status).toBe('completed');
  });
});

describe('an abort during an append', () => {
  it('waits for the append: what it stored counts [SESS#33, SESS-016, STATE-314]', async () => {
    const { effects, model, agent, session } = freshTurn();
    const controller = new AbortController();
    let open = (): void => undefined;
    const append = session.addItems;
    session.addItems = async (items) => {
      if (session.log.includes('add[u]')) {
        session.gate = new Promise((resolve) => (open = resolve));
        controller.abort('enough');
      }
      await append(items);
    };
    const running = rejection(run(agent, 'x', { session, signal: controller.signal }));
    let over = false;
    void running.then(() => (over = true));
    await idle(20);
    expect(over).toBe(false);
    open();
    const error = await running;
    session.gate = undefined;
    session.addItems = append;
    expect(error).toBeInstanceOf(RunAbortedError);
    expect(session.kinds).toBe('u fc fco');
    const state = getRunErrorState(error) as RunState;
    expect(pendingOf(state)).toBeUndefined();
    expect((await run(agent, state, { session })).finalOutput).toBe('done');
    expect([session.kinds, effects, model.calls.length]).toEqual(['u fc fco m', ['t -'], 2]);
  });

  it.each(forms)(
    'that settles what is owed keeps it owed; the next run settles it (%s) [STATE-314, RUN-1612, RUN-1418]',
    async (form) => {
      const { effects, model, agent, session } = freshTurn();
      session.faults.push(undefined, 'before');
      const state = await stateOf(await go(form, agent, 'x', { session }), 'the error');
      const owed = pendingOf(state);
      const controller = new AbortController();
      const read = session.getItems;
      session.getItems = (limit) => {
        controller.abort();
        return read(limit).then(() => new Promise(() => undefined));
      };
      const stopped = await rejection(run(agent, state, { session, signal: controller.signal }));
      expect(stopped).toBeInstanceOf(RunAbortedError);
      expect([session.kinds, model.calls.length]).toEqual(['u', 1]);
      expect(pendingOf(state)).toEqual(owed);
      expect(pendingOf(getRunErrorState(stopped) as RunState)).toEqual(owed);
      session.getItems = read;
      expect((await go(form, agent, state, { session })).result?.finalOutput).toBe('done');
      expect([session.kinds, effects]).toEqual(['u fc fco m', ['t -']]);
    },
  );
});

describe('a session with history transactions', () => {
  /** Fails appends after they were done; keeps the ids of all operations. */
  class Faulty extends MemorySession {
    readonly ids: string[] = [];
    readonly faults: (AppendFault | undefined)[] = [];
    readonly error = new Error('the store is down');

    override async applyHistoryTransaction(operation: HistoryOperation<never>): Promise<void> {
      this.ids.push(operation.operationId);
      const fault = this.faults.shift();
      if (fault !== 'before') await super.applyHistoryTransaction(operation);
      if (fault !== undefined) throw this.error;
    }
  }

  const failing = async (form: Form, fault: AppendFault) => {
    const effects: string[] = [];
    const session = new Faulty('s');
    session.faults.push(undefined, fault);
    const model = new ScriptedModel([toolCall('t', {}, { callId: 'c' }), 'done']);
    const agent = new Agent({ name: 'A', model, tools: [effectTool('t', effects)] });
    const failed = await go(form, agent, 'x', { session });
    expect(failed.error).toBe(session.error);
    await session.addItems([user('another writer')]);
    return { effects, session, agent, failed };
  };

  it.each(withFaults)(
    'repeats the operation with the same id, whoever wrote in between ($fault, $form, $way) [STATE#92, SESS-101, STATE-320]',
    async ({ form, way, fault }) => {
      const { effects, session, agent, failed } = await failing(form, fault);
      const { result } = await go(form, agent, await stateOf(failed, way), { session });
      expect(result?.finalOutput).toBe('done');
      expect(session.ids[2]).toBe(session.ids[1]);
      expect(new Set(session.ids).size).toBe(3);
      expect(kindsOf(await session.getItems())).toBe(fault === 'before' ? 'u u fc fco m' : 'u fc fco u m');
      expect(effects).toEqual(['t -']);
    },
  );

  it('is asked by its tail once the key of the run is gone, and refused when others wrote [STATE#92, SESS-103]', async () => {
    const { session, agent, failed } = await failing('plain', 'before');
    const { agents_ts: _, ...json } = (await stateOf(failed, 'the error')).toJSON();
    const state = await RunState.fromJSON(agent, json);
    expect(await rejection(run(agent, state, { session }))).toMatchObject({ code: 'session_write_ambiguous' });
  });
});
