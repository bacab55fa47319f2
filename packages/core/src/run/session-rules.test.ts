import { afterEach, describe, expect, it } from 'vitest';
import {
  Agent,
  configureLogging,
  getRunErrorState,
  MemorySession,
  run,
  runStreamed,
  RunState,
  UserError,
  withTrace,
} from '../index.ts';
import type { AgentInputItem, LogRecord, RunOptions, RunResult, RunResultStreaming } from '../index.ts';
import type { HistoryOperation } from '../session.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import type { AppendFault } from '../../test/run-kit.ts';
import { effectTool, kindsOf, PlainSession, readAll, rejection, thrown, user } from '../../test/run-kit.ts';
import { changed } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';

afterEach(() => resetDefaults());

function desk(steps: readonly ModelStep[]) {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const tools = [effectTool('refund', effects, { needsApproval: true }), effectTool('lookup', effects)];
  return { agent: new Agent({ name: 'Desk', model, tools }), model, effects };
}

const call = (name: string, callId: string) => toolCall(name, {}, { callId });

function approveAll(state: RunState): RunState {
  for (const item of state.interruptions) state.approve(item);
  return state;
}

const ways = ['live', 'through JSON'] as const;
const comingBack = async (way: (typeof ways)[number], agent: Agent, state: RunState): Promise<RunState> =>
  way === 'live' ? state : await RunState.fromString(agent, state.toString());

bothForms((runForm, form) => {
  describe.each(ways)(`a batch that is owed (${form}, %s)`, (way) => {
    it('is looked for past the window and the callback of the run [STATE-315]', async () => {
      const { agent, model, effects } = desk([call('lookup', 'a'), 'done']);
      const session = new PlainSession('s', ['1', '2', '3', '4'].map(user));
      let merged = 0;
      const options: RunOptions = {
        session,
        sessionSettings: { limit: 1 },
        sessionInputCallback: (history, input) => {
          merged += 1;
          return [...history, ...input];
        },
      };
      session.faults.push(undefined, 'after');
      const error = await rejection(runForm(agent, [user('go')], options));
      expect([error, merged]).toEqual([session.error, 1]);
      session.log.length = 0;
      const state = await comingBack(way, agent, getRunErrorState(error) as RunState);
      const result = await runForm(agent, state, options);
      expect([result.finalOutput, merged, effects]).toEqual(['done', 1, ['lookup -']]);
      // Three items before the batch were known, of which it takes one more than the batch has; and the batch.
      expect(session.log[0]).toBe('get(4)');
      expect(session.kinds).toBe('u u u u u fc fco m');
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u u fc fco');
    });

    it.each<AppendFault>(['before', 'after'])(
      'takes decisions while it is; then it is settled and they count: append failed %s [STATE-319]',
      async (fault) => {
        const { agent, model, effects } = desk([[call('refund', 'a'), call('refund', 'b')], 'done']);
        const session = new PlainSession();
        session.faults.push(undefined, fault);
        const error = await rejection(runForm(agent, 'go', { session }));
        const state = await comingBack(way, agent, getRunErrorState(error) as RunState);
        const pending = (): unknown => state.toJSON()['pending_session_write'];
        expect([state.status, pending() === undefined]).toEqual(['interrupted', false]);
        const before = structuredClone(pending());
        const [a, b] = state.interruptions;
        if (!a || !b) throw new Error('Two calls wait.');
        state.approve(a);
        state.reject(b, { message: 'no' });
        expect(pending()).toEqual(before);
        const next = await comingBack(way, agent, state);
        const result = await runForm(agent, next, { session });
        expect([result.finalOutput, effects, model.calls.length]).toEqual(['done', ['refund -'], 2]);
        expect(session.kinds).toBe('u fc fc fco fco m');
      },
    );

    it.each<AppendFault>(['before', 'after'])(
      'remembers its tail by the raw digests of Python, and is found by them: append failed %s [STATE#110, STATE-316]',
      async (fault) => {
        const { agent, effects } = desk([call('lookup', 'a'), 'done']);
        const stored = [{ role: 'assistant', content: 'x', status: 'completed' }] as unknown as AgentInputItem[];
        const session = new PlainSession('s', stored);
        session.faults.push(undefined, fault);
        const error = await rejection(runForm(agent, [user('héllo 😀')], { session }));
        const state = await comingBack(way, agent, getRunErrorState(error) as RunState);
        expect(state.toJSON()['pending_session_write']).toMatchObject({
          before: [
            '8d56c6328e68c8e845aeb24cddc062660fbc2de878578b681c8f4008397627dc',
            '7e50cdfa28e66f86f18b29a8541c891b6383990103aefc7189c63219a010dcf7',
          ],
        });
        session.log.length = 0;
        const result = await runForm(agent, state, { session });
        expect([result.finalOutput, effects, session.kinds]).toEqual(['done', ['lookup -'], 'a u fc fco m']);
        expect(session.log.filter((entry) => entry === 'add[fc fco]')).toHaveLength(fault === 'before' ? 1 : 0);
      },
    );
  });

  describe.each(ways)(`the session of a pause (${form}, %s)`, (way) => {
    it('is asked for before any effect, unless nothing is to be read or stored; without the key nothing is asked [STATE#122, STATE-210]', async () => {
      const resumed = async (options: RunOptions, edit?: (json: Members) => Members) => {
        const { agent, model, effects } = desk([call('refund', 'a'), 'done']);
        const session = new PlainSession('chat');
        const first = (await runForm(agent, 'go', { session })).toState();
        const json = first.toJSON() as unknown as Members;
        const state = edit ? await RunState.fromJSON(agent, edit(json)) : await comingBack(way, agent, first);
        approveAll(state);
        session.log.length = 0;
        const own = options.session === undefined ? options : { ...options, session: options.session && session };
        const outcome = await attempt(() => runForm(agent, state, own));
        return { outcome, state, agent, model, effects, session };
      };
      const missing = await resumed({});
      const atOnce = thrown(() => runStreamed(missing.agent, missing.state));
      for (const error of [missing.outcome, atOnce]) {
        expect(error).toBeInstanceOf(UserError);
        expect(error).toMatchObject({ code: 'session_missing' });
      }
      expect([missing.model.calls.length, missing.effects, missing.session.log]).toEqual([1, [], []]);

      const without = await resumed({ session: null });
      expect(without.outcome).toMatchObject({ finalOutput: 'done' });
      expect([without.effects, without.session.log, without.session.kinds]).toEqual([['refund -'], [], 'u fc']);

      const same = await resumed({ session: new PlainSession('chat') });
      expect(same.outcome).toMatchObject({ finalOutput: 'done' });
      expect([same.effects, same.session.kinds]).toEqual([['refund -'], 'u fc fco m']);

      const dropped = await resumed({}, (json) => changed(json, 'agents_ts', undefined));
      expect(dropped.outcome).toMatchObject({ finalOutput: 'done' });
      expect([dropped.effects, dropped.session.log]).toEqual([['refund -'], []]);
    });
  });

  describe(`a run without a session (${form})`, () => {
    it('has no history and writes nothing, whoever used the agent before [SESS-052]', async () => {
      const { agent, model } = desk(['one', 'two', 'three']);
      const session = new PlainSession();
      await runForm(agent, 'first', { session });
      session.log.length = 0;
      await runForm(agent, 'second');
      await runForm(agent, 'third', { session: null });
      expect(model.calls.map(({ request }) => kindsOf(request.input))).toEqual(['u', 'u', 'u']);
      expect([session.log, session.kinds]).toEqual([[], 'u m']);
    });
  });

  describe(`a session beside a conversation of the provider (${form})`, () => {
    it('is refused before it is called: given with the run, or carried by its state [SESS-051]', async () => {
      const { agent, model, effects } = desk([call('refund', 'a'), 'done']);
      const session = new PlainSession();
      const given = await rejection(attempted(() => runForm(agent, 'go', { session, conversationId: 'conv_1' })));
      expect(given).toBeInstanceOf(UserError);
      expect((given as Error).message).toMatch(/conversationId/);
      const json = (await runForm(agent, 'go')).toState().toJSON() as unknown as Members;
      for (const [key, value] of [
        ['conversation_id', 'conv_1'],
        ['previous_response_id', 'resp_1'],
        ['auto_previous_response_id', true],
      ] as const) {
        const state = approveAll(await RunState.fromJSON(agent, { ...json, [key]: value }));
        const error = await rejection(attempted(() => runForm(agent, state, { session })));
        expect(error).toMatchObject({ name: 'UserError', code: 'session_conflict' });
        const name = key.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
        expect((error as Error).message).toMatch(new RegExp(`session.*${name}`));
      }
      expect([session.log, model.calls.length, effects]).toEqual([[], 1, []]);
    });
  });

  describe(`the key of the prompt cache (${form})`, () => {
    it('is that of the session, before that of the group [SESS-053]', async () => {
      const keys: unknown[] = [];
      const model = new ScriptedModel(['1', '2', '3']);
      const caching = {
        supportsDefaultPromptCacheKey: () => true,
        getResponse: (request: Parameters<ScriptedModel['getResponse']>[0]) => {
          keys.push(request.modelSettings.extraArgs?.['prompt_cache_key']);
          return model.getResponse(request);
        },
        streamResponse: (request: Parameters<ScriptedModel['streamResponse']>[0]) => {
          keys.push(request.modelSettings.extraArgs?.['prompt_cache_key']);
          return model.streamResponse(request);
        },
      };
      const agent = new Agent({ name: 'A', model: caching });
      await runForm(agent, 'go', { session: new PlainSession('s1'), groupId: 'g1' });
      await runForm(agent, 'go', { session: new PlainSession('s1') });
      await runForm(agent, 'go', { groupId: 'g1' });
      // `printf s1 | sha256sum`, `printf g1 | sha256sum`
      expect(keys).toEqual([
        'agents-sdk:session:e8bc163c82eee18733288c7d4ac636db',
        'agents-sdk:session:e8bc163c82eee18733288c7d4ac636db',
        'agents-sdk:group:711430f6164e93803d93428bc1fab80f',
      ]);
    });
  });

  describe(`two runs at once inside one trace (${form})`, () => {
    it('that say the same to one session are stored both: their operations are two [SESS#79, SESS-101]', async () => {
      const operations: string[] = [];
      class Watched extends MemorySession {
        override async applyHistoryTransaction(operation: HistoryOperation): Promise<void> {
          operations.push(operation.operationId);
          await super.applyHistoryTransaction(operation);
        }
      }
      const session = new Watched('s');
      await withTrace('both', async () => {
        await Promise.all(
          ['one', 'two'].map((answer) =>
            runForm(new Agent({ name: 'A', model: new ScriptedModel([answer]) }), 'the same', { session }),
          ),
        );
      });
      const items = await session.getItems();
      expect(items.filter((item) => 'role' in item && item.role === 'user')).toHaveLength(2);
      expect([items.length, operations.length, new Set(operations).size]).toEqual([4, 4, 4]);
    });
  });

  describe(`what a run logs about its session (${form})`, () => {
    const secret = 'planted-secret';
    const failing = async (logging: Parameters<typeof configureLogging>[0]): Promise<LogRecord[]> => {
      const records: LogRecord[] = [];
      configureLogging({ level: 'debug', ...logging, sink: (record) => void records.push(record) });
      const boom = effectTool('boom', [], {
        failureErrorFunction: null,
        result: () => {
          throw new Error('boom');
        },
      });
      const tools = [effectTool('lookup', [], { result: () => secret }), boom];
      const model = new ScriptedModel([[call('lookup', 'a'), call('boom', 'b')]]);
      const session = new PlainSession('chat', [user(secret)]);
      session.faults.push(undefined, 'before');
      await rejection(runForm(new Agent({ name: 'A', model, tools }), secret, { session }));
      return records;
    };

    it('holds none of its items [SESS-017]', async () => {
      const records = await failing({});
      expect(records.map((record) => record.message).join(' ')).toMatch(/could not be stored in the session/);
      expect(JSON.stringify(records)).not.toContain(secret);
      for (const only of [{ dontLogModelData: false }, { dontLogToolData: false }]) {
        const about = (await failing(only)).filter(({ message }) => message.includes('session'));
        expect(JSON.stringify(about)).not.toContain(secret);
      }
    });
  });
});

describe('the state of a stream whose resume could not be stored', () => {
  it('is a copy each time: what is done to its JSON leaks nowhere, and it goes on [STATE#29, STATE-137]', async () => {
    const { agent, effects } = desk([call('refund', 'a'), 'done']);
    const session = new PlainSession();
    const paused = await run(agent, 'go', { session });
    const state = approveAll(paused.toState());
    session.faults.push('before');
    const stream = runStreamed(agent, state, { session }) as unknown as RunResultStreaming;
    expect(await readAll(stream).catch((error: unknown) => error)).toBe(session.error);
    await stream.completed.catch(() => undefined);
    const first = stream.toState();
    const text = first.toString();
    const json = first.toJSON() as unknown as Members;
    wreck(json);
    wreckLists(first);
    expect(stream.toState().toString()).toBe(text);
    expect(first.toString()).toBe(text);
    expect(text).toContain('"pending_session_write":{');
    for (const next of [stream.toState(), await RunState.fromString(agent, text)]) {
      const copy = new PlainSession('s', session.items);
      const result = await run(agent, next, { session: copy, model: new ScriptedModel(['done']) });
      expect([result.finalOutput, copy.kinds, effects]).toEqual(['done', 'u fc fco m', ['refund -']]);
    }
  });
});

/** Empties every list and object of a JSON value, and changes every text in it. */
function wreck(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    const member = (value as Members)[key];
    wreck(member);
    if (typeof member === 'string') (value as Members)[key] = 'changed';
    else delete (value as Members)[key];
  }
}

function wreckLists(state: RunState): void {
  for (const list of [state.interruptions, state.newItems, state.getDecisions()]) {
    try {
      (list as unknown[]).length = 0;
    } catch {
      // A frozen list is as good.
    }
  }
}

const attempt = async (work: () => Promise<RunResult>): Promise<unknown> =>
  await attempted(work).catch((error: unknown) => error);

/** Also for what is thrown at once. */
const attempted = async (work: () => Promise<RunResult>): Promise<RunResult> => await work();
