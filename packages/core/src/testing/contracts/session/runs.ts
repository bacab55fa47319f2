import { Agent } from '../../../agent/agent.ts';
import { tool } from '../../../agent/tool.ts';
import { getRunErrorState } from '../../../base/errors.ts';
import type { AgentInputItem } from '../../../items/items.ts';
import type { RunOptions } from '../../../run/options.ts';
import type { RunResult, RunResultStreaming } from '../../../run/result.ts';
import { run, runStreamed } from '../../../run/run.ts';
import { SessionOutcomeUnknownError } from '../../../sessions/errors.ts';
import { RunState } from '../../../snapshot/run-state.ts';
import { reasoning, toolCall } from '../../builders.ts';
import type { ModelStep } from '../../script.ts';
import { ScriptedModel } from '../../scripted-model.ts';
import { check, refuses, rejection, same } from '../case.ts';
import { kindsOf, recorded } from './recorded.ts';
import type { Recorded, RecordOptions } from './recorded.ts';
import type { Scene, SessionCase } from './scene.ts';

type Form = (
  agent: Agent,
  input: string | readonly AgentInputItem[] | RunState,
  options: RunOptions,
) => Promise<RunResult>;

const plain: Form = async (agent, input, options) => (await run(agent, input, options)) as RunResult;
const streamed: Form = async (agent, input, options) => {
  const stream: RunResultStreaming = runStreamed(agent, input, options);
  for await (const _ of stream);
  return await stream.completed;
};

/** One run of the case: a form, a session of its own, and an agent with a free and a gated tool. */
class Stage {
  readonly form: Form;
  readonly scene: Scene;
  readonly id: string;
  readonly ran: string[] = [];

  constructor(scene: Scene, form: Form) {
    this.scene = scene;
    this.form = form;
    this.id = `${scene.id}-${form === plain ? 'plain' : 'streamed'}`;
  }

  async session(options?: RecordOptions, settings?: { limit?: number | null }): Promise<Recorded> {
    return recorded(await this.scene.open(settings, this.id), options);
  }

  async stored(): Promise<object[]> {
    return await (await this.scene.open(undefined, this.id)).getItems();
  }

  agent(
    steps: Iterable<ModelStep>,
    options: { toolUseBehavior?: 'stop_on_first_tool'; instructions?: () => string } = {},
  ): Agent & { readonly script: ScriptedModel } {
    const script = new ScriptedModel(steps);
    const body = (name: string) => () => {
      this.ran.push(name);
      return `${name} done`;
    };
    const agent = new Agent({
      name: 'contract',
      model: script,
      tools: [
        tool({ name: 'free', execute: body('free') }),
        tool({ name: 'gated', needsApproval: true, execute: body('gated') }),
        tool({
          name: 'broken',
          failureErrorFunction: null,
          execute: () => {
            throw new Error('broken');
          },
        }),
      ],
      ...options,
    });
    return Object.assign(agent, { script });
  }
}

/** A case in both forms of a run. */
function both(id: string, title: string, body: (stage: Stage) => Promise<void>): SessionCase {
  return {
    id,
    title,
    async body(scene) {
      await body(new Stage(scene, plain));
      await body(new Stage(scene, streamed));
    },
  };
}

function batches({ writes }: Recorded, ...expected: readonly string[]): void {
  same(writes.map(kindsOf), expected, 'batches written');
}

/** Through its text, as another process would see it. */
async function restored(agent: Agent, state: RunState): Promise<RunState> {
  return await RunState.fromString(agent, state.toString());
}

/** The state at a pause, after this decision on each waiting call. */
async function decided(agent: Agent, result: RunResult, decision: 'approve' | 'reject'): Promise<RunState> {
  same(result.status, 'interrupted', 'status');
  const state = await restored(agent, result.toState());
  for (const item of state.interruptions) state[decision](item);
  return state;
}

const gated = toolCall('gated', {}, { callId: 'call_gated' });
const free = toolCall('free', {}, { callId: 'call_free' });

export const runs: readonly SessionCase[] = [
  both('K1', 'a turn of two tools and a message are three batches, and the next run sees them', async (stage) => {
    const recorder = await stage.session();
    const agent = stage.agent([[free, toolCall('free', {}, { callId: 'call_2' })], 'done', 'again']);
    await stage.form(agent, 'go', { session: recorder.session });
    batches(recorder, 'u', 'fc fc fco fco', 'm');
    same(recorder.reads.length, 1, 'count of reads');
    await stage.form(agent, 'more', { session: recorder.session });
    same(kindsOf(agent.script.calls[2]?.request.input as object[]), 'u fc fc fco fco m u', 'input of the next run');
    same(kindsOf(await stage.stored()), 'u fc fc fco fco m u m', 'history');
  }),
  both('K3', 'a pause writes the waiting call, the resume its output', async (stage) => {
    const agent = stage.agent([[gated, free], 'done']);
    const first = await stage.session();
    const paused = await stage.form(agent, 'go', { session: first.session });
    batches(first, 'u', 'fc fc fco');
    const again = await stage.session();
    await stage.form(agent, await decided(agent, paused, 'approve'), { session: again.session });
    batches(again, 'fco', 'm');
    check(!again.reads.includes(undefined), 'a resume to read no history');
    same(kindsOf(await stage.stored()), 'u fc fc fco fco m', 'history');
    same(stage.ran, ['free', 'gated'], 'tools that ran');
  }),
  both('K4', 'a rejected call is answered by the rejection', async (stage) => {
    const agent = stage.agent([gated, 'done']);
    const recorder = await stage.session();
    const paused = await stage.form(agent, 'go', { session: recorder.session });
    await stage.form(agent, await decided(agent, paused, 'reject'), { session: recorder.session });
    batches(recorder, 'u', 'fc', 'fco', 'm');
    same(stage.ran, [], 'tools that ran');
  }),
  both('K5', 'a tool that ends the run: the pause and its answer', async (stage) => {
    for (const decision of ['approve', 'reject'] as const) {
      const agent = stage.agent([toolCall('gated', {}, { callId: `call_${decision}` })], {
        toolUseBehavior: 'stop_on_first_tool',
      });
      const recorder = await stage.session();
      const paused = await stage.form(agent, 'go', { session: recorder.session });
      await stage.form(agent, await decided(agent, paused, decision), { session: recorder.session });
      batches(recorder, 'u', 'fc', 'fco');
      same(agent.script.calls.length, 1, 'count of model calls');
    }
  }),
  both('K6', 'a pause that is abandoned stays stored and is not sent', async (stage) => {
    const agent = stage.agent([gated, 'done']);
    const recorder = await stage.session();
    await stage.form(agent, 'go', { session: recorder.session });
    await stage.form(agent, 'never mind', { session: recorder.session });
    batches(recorder, 'u', 'fc', 'u', 'm');
    same(kindsOf(agent.script.calls[1]?.request.input as object[]), 'u u', 'input of the second run');
    same(kindsOf(await stage.stored()), 'u fc u m', 'history');
  }),
  both('K9', 'a model that fails leaves what was written before', async (stage) => {
    const agent = stage.agent([new Error('down'), free, new Error('down')]);
    const recorder = await stage.session();
    await rejection(() => stage.form(agent, 'go', { session: recorder.session }), 'the run');
    batches(recorder, 'u');
    await rejection(() => stage.form(agent, 'go', { session: recorder.session }), 'the run');
    batches(recorder, 'u', 'u', 'fc fco');
  }),
  both('K10', 'a tool that fails the run keeps the pairs that were completed beside it', async (stage) => {
    const agent = stage.agent([toolCall('broken'), [free, toolCall('broken')]]);
    const recorder = await stage.session();
    await rejection(() => stage.form(agent, 'go', { session: recorder.session }), 'the run');
    batches(recorder, 'u');
    await rejection(() => stage.form(agent, 'go', { session: recorder.session }), 'the run');
    same(recorder.writes.length, 3, 'count of batches');
    same(kindsOf(recorder.writes[2] ?? []), 'fc fco', 'the kept pair');
  }),
  both('K11', 'the limit of turns leaves every turn that was made', async (stage) => {
    const recorder = await stage.session();
    await refuses(
      () => stage.form(stage.agent([free, free]), 'go', { session: recorder.session, maxTurns: 1 }),
      'max_turns_exceeded',
      'the run',
    );
    batches(recorder, 'u', 'fc fco');
  }),
  {
    id: 'K12',
    title: 'a stream that is cancelled at a tool call has stored the input alone',
    async body(scene) {
      const stage = new Stage(scene, streamed);
      const recorder = await stage.session();
      const stream: RunResultStreaming = runStreamed(stage.agent([free, 'done']), 'go', {
        session: recorder.session,
      });
      for await (const event of stream)
        if (event.type === 'run_item_stream_event' && event.name === 'tool_called') stream.cancel();
      await stream.completed.catch(() => undefined);
      batches(recorder, 'u');
    },
  },
  {
    id: 'K13',
    title: 'a stream that is cancelled after a turn goes on from there',
    async body(scene) {
      const stage = new Stage(scene, streamed);
      const agent = stage.agent([free, toolCall('free', {}, { callId: 'call_2' }), 'done']);
      const recorder = await stage.session();
      const stream: RunResultStreaming = runStreamed(agent, 'go', { session: recorder.session });
      for await (const event of stream)
        if (event.type === 'run_item_stream_event') stream.cancel({ mode: 'after_turn' });
      await stream.completed.catch(() => undefined);
      batches(recorder, 'u', 'fc fco');
      await stage.form(agent, await restored(agent, stream.toState()), { session: recorder.session });
      batches(recorder, 'u', 'fc fco', 'fc fco', 'm');
      same(recorder.reads.filter((limit) => limit === undefined).length, 1, 'count of reads of the history');
    },
  },
  both(
    'K15',
    'a turn whose write fails is in the state of the error, and stored once when that is resumed',
    async (stage) => {
      const failure = new Error('disk is gone');
      const agent = stage.agent([free, 'done']);
      const failing = await stage.session({
        onAppend: async (count, store) => {
          if (count === 1) throw failure;
          await store();
        },
      });
      const error = await rejection(() => stage.form(agent, 'go', { session: failing.session }), 'the run');
      check((error as unknown) === failure, 'the very error of the session');
      same(kindsOf(await stage.stored()), 'u', 'history after the failure');
      const state = getRunErrorState(error);
      check(state !== undefined, 'a state on the error');
      await stage.form(agent, await restored(agent, state), { session: (await stage.session()).session });
      same(kindsOf(await stage.stored()), 'u fc fco m', 'history after the resume');
      same(stage.ran, ['free'], 'tools that ran');
    },
  ),
  both('K16', 'instructions that throw leave nothing', async (stage) => {
    const recorder = await stage.session();
    const agent = stage.agent(['done'], {
      instructions: () => {
        throw new Error('no instructions');
      },
    });
    await rejection(() => stage.form(agent, 'go', { session: recorder.session }), 'the run');
    batches(recorder);
  }),
  both('K17', 'a callback shapes the request, and only what is new is stored', async (stage) => {
    const agent = stage.agent(['1', '2', '3', '4']);
    const { session } = await stage.session();
    await stage.form(agent, 'a', { session });
    await stage.form(agent, 'b', {
      session,
      sessionInputCallback: (history, items) => [...history.toReversed(), ...items],
    });
    same(kindsOf(agent.script.calls[1]?.request.input as object[]), 'm u u', 'input with the history reversed');
    same(kindsOf(await stage.stored()), 'u m u m', 'history');
    await stage.form(agent, 'c', {
      session,
      sessionInputCallback: (history, items) => structuredClone([...history, ...items]),
    });
    same(kindsOf(await stage.stored()), 'u m u m u m', 'history after everything was rebuilt');
    await stage.form(agent, 'd', { session, sessionInputCallback: (history) => history });
    same(kindsOf(await stage.stored()), 'u m u m u m m', 'history after the new input was dropped');
  }),
  both('K18', 'a limit that cuts a pair sends no orphan', async (stage) => {
    const agent = stage.agent([free, 'done', 'again']);
    const { session } = await stage.session();
    await stage.form(agent, 'go', { session });
    await stage.form(agent, 'more', { session, sessionSettings: { limit: 2 } });
    same(kindsOf(agent.script.calls[2]?.request.input as object[]), 'm u', 'input');
    same(kindsOf(await stage.stored()), 'u fc fco m u m', 'history');
  }),
  both('K19', 'the policy on ids of reasoning holds for stored reasoning too', async (stage) => {
    const agent = stage.agent([[{ ...reasoning('thinking'), id: 'rs_1' }, free], 'done', 'again']);
    const { session } = await stage.session();
    await stage.form(agent, 'go', { session });
    await stage.form(agent, 'more', { session, reasoningItemIdPolicy: 'omit' });
    const sent = ((agent.script.calls[2]?.request.input ?? []) as { type?: string }[]).find(
      ({ type }) => type === 'reasoning',
    );
    check(sent !== undefined && !('id' in sent), 'reasoning without its id in the request');
    const kept = (await stage.stored()).find((item) => (item as { type?: string }).type === 'reasoning');
    check(kept !== undefined && 'id' in kept && kept.id === 'rs_1', 'the id in the store');
  }),
  both('K20', 'a session that asks for it gets the context of the result with each call', async (stage) => {
    const recorder = await stage.session({ acceptsRunContext: true });
    const result = await stage.form(stage.agent([free, 'done']), 'go', {
      session: recorder.session,
      context: { tenant: 7 },
    });
    check(recorder.contexts.length === recorder.reads.length + recorder.writes.length, 'a context with each call');
    check(
      recorder.contexts.every((context) => context === result.context),
      'the context of the result',
    );
  }),
  both('K21', 'a paused run goes on with another session object', async (stage) => {
    const agent = stage.agent([gated, 'done']);
    const paused = await stage.form(agent, 'go', { session: (await stage.session()).session });
    const state = await decided(agent, paused, 'approve');
    await refuses(() => stage.form(agent, state, {}), 'session_missing', 'a resume without the session');
    await stage.form(agent, state, { session: (await stage.session()).session });
    same(kindsOf(await stage.stored()), 'u fc fco m', 'history');
  }),
  both('K22', 'a batch whose answer was lost is stored once', async (stage) => {
    for (const withoutCapability of [false, true]) {
      const agent = stage.agent([toolCall('gated', {}, { callId: `call_${withoutCapability}` }), 'done']);
      const paused = await stage.form(agent, 'go', { session: (await stage.session()).session });
      const before = (await stage.stored()).length;
      const losing = await stage.session({
        plain: withoutCapability,
        onAppend: async (count, store) => {
          await store();
          if (count === 0) throw new SessionOutcomeUnknownError('The connection was lost.', { operation: 'append' });
        },
      });
      const state = await decided(agent, paused, 'approve');
      if (withoutCapability) {
        const error = await refuses(
          () => stage.form(agent, state, { session: losing.session }),
          'session_outcome_unknown',
          'the run',
        );
        const left = getRunErrorState(error);
        check(left !== undefined, 'a state on the error');
        await stage.form(agent, await restored(agent, left), { session: losing.session });
      } else await stage.form(agent, state, { session: losing.session });
      same(kindsOf((await stage.stored()).slice(before)), 'fco m', 'what the resume added');
    }
    same(stage.ran, ['gated', 'gated'], 'tools that ran');
  }),
];
