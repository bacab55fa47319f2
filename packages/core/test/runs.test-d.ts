// Every promise of inference of runs, results, states, events and errors, and every program that must not compile.
/* oxlint-disable no-new, vitest/expect-expect -- the compiler asserts */
import { describe, test } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  AgentsError,
  MaxTurnsExceededError,
  run,
  RunContext,
  Runner,
  runStreamed,
  RunState,
  tool,
  toolFor,
} from '../src/index.ts';
import type {
  AgentInputItem,
  AgentsErrorCode,
  AnyAgent,
  CompletedRunResult,
  Decision,
  RunHooks,
  RunItem,
  RunOptions,
  RunResult,
  RunResultBase,
  RunResultStreaming,
  RunStreamEvent,
  Session,
  ToolApprovalItem,
  ToolContext,
} from '../src/index.ts';

type Eq<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function yes<_T extends true>(): void;

interface My {
  user: string;
  db: { query(sql: string): Promise<string[]> };
}
interface Less {
  user: string;
}
declare const my: My;
declare const session: Session;

const lookup = tool({
  name: 'lookup',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }, ctx: ToolContext<My>) => ctx.context.user + city,
});
const refund = toolFor<My>()({
  name: 'refund',
  parameters: z.object({ amount: z.number() }),
  needsApproval: (_ctx, { amount }) => amount > 100,
  execute: ({ amount }, ctx) => ({ amount, by: ctx.context.user }),
});
const needy = new Agent({ name: 'needy', tools: [lookup, refund] });
const plain = new Agent({ name: 'plain' });
const counted = new Agent({ name: 'counted', outputType: z.object({ n: z.number() }) });

describe('a run needs the context of its agent, and no other', () => {
  test('what must not compile', () => {
    // @ts-expect-error no context
    void run(needy, 'hi');
    // @ts-expect-error wrong context
    void run(needy, 'hi', { context: { tenant: 1 } });
    // @ts-expect-error `db` is missing
    void run(needy, 'hi', { context: { user: 'x' } });
    // @ts-expect-error no context, streamed
    void run(needy, 'hi', { stream: true });
    // @ts-expect-error no context
    runStreamed(needy, 'hi');
    // @ts-expect-error misspelt option
    void run(plain, 'hi', { maxTurn: 3 });
    // @ts-expect-error an agent of nothing
    void run({ name: 'x' }, 'hi');
    // @ts-expect-error the hooks need My
    void run(plain, 'x', { hooks: { onAgentStart: (ctx: RunContext<My>) => void ctx.context.db } });
  });

  test('what does', async () => {
    const streamOrNot = Boolean(session);
    const either = await run(plain, 'hi', { stream: streamOrNot });
    yes<Eq<typeof either, RunResult<unknown, string> | RunResultStreaming<unknown, string>>>();
    void run(needy, 'hi', { context: my });
    void run(needy, 'hi', { context: new RunContext(my) });
    void run(needy, 'hi', { context: my, stream: true });
    void run(plain, 'hi');
    void run(plain, 'hi', { maxTurns: null });
    void run(plain, 'hi', { context: my });
    void run(plain, [{ role: 'user', content: 'x' }]);
    void run(needy, [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }], { context: my });
    const items: readonly AgentInputItem[] = [];
    void run(plain, items);
    runStreamed(needy, 'hi', { context: my });
    runStreamed(plain, items, { signal: AbortSignal.timeout(1000) });
    const optional = new Agent({
      name: 'o',
      instructions: (ctx: RunContext<My | undefined>) => ctx.context?.user ?? '',
    });
    void run(optional, 'hi');
    void run(optional, 'hi', { context: my });
    const options: RunOptions<My> = {};
    void run(needy, 'hi', { ...options, context: my });
    const maybe: { signal?: AbortSignal } = {};
    void run(plain, 'hi', { signal: maybe.signal, maxTurns: undefined, session: null });
    const hooks: RunHooks = {
      onAgentStart: (ctx, agent) => void (ctx.usage && agent.name),
      onToolStart: (ctx, _agent, t) => void (ctx.toolCallId + t.type),
    };
    void run(needy, 'x', { context: my, hooks });
  });

  test('a generic program keeps the types', () => {
    async function generic<C, O>(agent: Agent<C, O>, context: C): Promise<O | undefined> {
      return (await run(agent, 'x', { context })).finalOutput;
    }
    void generic;
  });

  test('a runner with defaults', async () => {
    const runner = new Runner({ maxTurns: 3, modelSettings: { temperature: 0 } });
    // @ts-expect-error no context
    void runner.run(needy, 'hi');
    const mine = new Runner({ hooks: { onAgentStart: (ctx: RunContext<My>) => void ctx.context.user } });
    void mine.run(needy, 'hi', { context: my });
    void mine.run(plain, 'hi', { context: my });
    // @ts-expect-error the runner's hooks need My
    void mine.run(plain, 'hi');
    const result = await runner.run(needy, 'hi', { context: my });
    yes<Eq<typeof result, RunResult<My, string>>>();
    const stream = await runner.run(plain, 'hi', { stream: true });
    yes<Eq<typeof stream, RunResultStreaming<unknown, string>>>();
  });

  test('a runner whose defaults have the context', async () => {
    const runner = new Runner({ context: my, maxTurns: 3 });
    yes<Eq<Awaited<ReturnType<typeof runner.run<My, string, string>>>, RunResult<My, string>>>();
    const result = await runner.run(needy, 'hi');
    yes<Eq<typeof result, RunResult<My, string>>>();
    void runner.run(needy, 'hi', { context: my, stream: true });
    runner.runStreamed(needy, 'hi');
    void runner.run(plain, 'hi');
    void new Runner({ context: new RunContext(my) }).run(needy, 'hi');
    const hooks = { onAgentStart: (ctx: RunContext<My>) => void ctx.context.user };
    void new Runner({ context: my, hooks }).run(needy, 'hi');
    // @ts-expect-error the hooks need My
    void new Runner({ context: 1, hooks });
    // @ts-expect-error the context does not fit
    void new Runner({ context: 1 }).run(needy, 'hi');
    const perhaps = (given: My | undefined): void => {
      // @ts-expect-error perhaps there is none
      void new Runner({ context: given }).run(needy, 'hi');
    };
    perhaps(my);
    const explicit = new Runner<My>({ context: my });
    // @ts-expect-error what is written out says nothing of a context
    void explicit.run(needy, 'hi');
    void explicit.run(needy, 'hi', { context: my });
    void (new Runner() satisfies Runner);
  });

  test('agents in lists', () => {
    const list: AnyAgent[] = [needy, counted, plain];
    const team: Agent<My, unknown>[] = [needy, counted, plain];
    void run(team[0]!, 'x', { context: my });
    // @ts-expect-error nothing is known about its context: type the list
    void run(list[0]!, 'x', { context: my });
    // @ts-expect-error would need My
    plain.tools.push(lookup);
    // @ts-expect-error `db` is missing in Less
    new Agent<Less>({ name: 'a', tools: [lookup] });
    class Desk extends Agent<My, string> {
      readonly extra = 1;
    }
    void run(new Desk({ name: 's', tools: [lookup] }), 'x', { context: my });
  });
});

describe('a result has a status', () => {
  test('that narrows its members; the output is that of the agent [RUN-1205]', async () => {
    const result = await run(counted, 'x');
    yes<Eq<typeof result, RunResult<unknown, { n: number }>>>();
    yes<Eq<typeof result.finalOutput, { n: number } | undefined>>();
    if (result.status === 'completed') {
      yes<Eq<typeof result.finalOutput, { n: number }>>();
      yes<Eq<typeof result.interruptions, readonly []>>();
    } else {
      yes<Eq<typeof result.finalOutput, undefined>>();
      const first: ToolApprovalItem = result.interruptions[0];
      void first;
    }
    // @ts-expect-error it may wait for a decision
    void result.finalOutput.n;
    // @ts-expect-error results are read-only
    result.newItems.push(result.newItems[0]!);
  });

  test('so a loop over pauses ends with the output', async () => {
    let result = await run(counted, 'x');
    while (result.status === 'interrupted') {
      const state = result.toState();
      for (const item of result.interruptions) state.approve(item);
      result = await run(counted, state);
    }
    yes<Eq<typeof result.finalOutput, { n: number }>>();
  });

  test('over processes too', async () => {
    let result = await run(needy, 'x', { context: my, session });
    while (result.status === 'interrupted') {
      const state = await RunState.fromString(needy, result.toState().toString(), { context: my });
      for (const item of state.interruptions) state.reject(item, { message: 'no' });
      result = await run(needy, state, { session });
    }
    result.finalOutput.toUpperCase();
  });

  test('and fits what takes any result', async () => {
    const stream = await run(counted, 'x', { stream: true });
    yes<Eq<typeof stream, RunResultStreaming<unknown, { n: number }>>>();
    const done = await stream.completed;
    yes<Eq<typeof done, RunResult<unknown, { n: number }>>>();
    const log = (result: RunResultBase): void => void result;
    log(await run(needy, 'x', { context: my }));
    log(runStreamed(counted, 'x'));
    let results: RunResult<unknown, unknown> = await run(counted, 'x');
    results = await run(plain, 'x');
    void results;
    const completed = undefined as unknown as CompletedRunResult<unknown, { n: number }>;
    void completed?.finalOutput.n;
  });

  test('the last agent takes the next turn', async () => {
    const result = await run(needy, 'x', { context: my });
    const next = await run(result.lastAgent, [...result.toInputList(), { role: 'user', content: 'y' }], {
      context: result.context,
    });
    yes<Eq<typeof next.finalOutput, string | undefined>>();
    const stream = runStreamed(counted, 'x');
    for await (const event of stream) void event;
    void run(stream.currentAgent, 'y');
  });
});

describe('states and decisions', () => {
  test('keep the types of the agent', async () => {
    const state = await RunState.fromString(counted, '{}');
    yes<Eq<typeof state, RunState<unknown, { n: number }>>>();
    const result = await run(counted, state);
    yes<Eq<typeof result.finalOutput, { n: number } | undefined>>();
    // @ts-expect-error a state is restored, not made
    new RunState();
    for (const item of state.interruptions) {
      const args = item.argumentsFor(refund);
      if (args) yes<Eq<typeof args, { amount: number }>>();
      state.decide(item, { type: 'approve', always: true, by: 'ana' });
    }
    switch (state.currentStep?.type) {
      case 'next_step_interruption':
        void state.currentStep.interruptions;
        break;
      case 'next_step_final_output':
        void state.currentStep.output.n;
        break;
      default:
    }
  });

  test('a state brings its context, an unknown one does not', async () => {
    const state = await RunState.fromString(needy, '{}');
    void run(needy, state);
    void run(needy, state, { maxTurns: 3 });
    void run(needy, state, { context: my });
    void runStreamed(needy, state);
    const bare = state as RunState;
    // @ts-expect-error it may hold another context: give it again
    void run(needy, bare);
    void run(needy, bare, { context: my });
    const decisions: Decision[] = [
      { type: 'approve', always: true },
      { type: 'reject', message: 'no', by: 'ana' },
    ];
    // @ts-expect-error no such decision
    decisions.push({ type: 'postpone' });
  });
});

describe('events and items', () => {
  test('narrow by type and name', async () => {
    for await (const event of runStreamed(plain, 'x')) {
      if (event.type === 'raw_response_event' && event.data.type === 'response.output_text.delta') {
        const delta: string = event.data.delta;
        void delta;
      }
      if (event.type === 'run_item_stream_event' && event.name === 'tool_output') void event.item.output;
      if (event.type === 'run_item_stream_event' && event.name === 'tool_approval_requested')
        void event.item.argumentsFor(refund);
    }
    const exhaustive = (event: RunStreamEvent): string => {
      switch (event.type) {
        case 'raw_response_event':
          return event.data.type;
        case 'run_item_stream_event':
          return event.name;
        case 'agent_updated_stream_event':
          return event.newAgent.name;
        case 'run_extended_event':
          return event.name === 'turn_ended' ? event.data.step : event.name;
      }
    };
    void exhaustive;
  });

  test('wire items and run items narrow', () => {
    const item = undefined as unknown as AgentInputItem;
    if (item?.type === 'function_call') {
      const name: string = item.name;
      void name;
    }
    const kinds = (one: RunItem): unknown => {
      switch (one.type) {
        case 'message_output_item':
          return one.rawItem.content;
        case 'tool_call_item':
          return one.rawItem.type === 'function_call' ? one.rawItem.name : one.toolName;
        case 'handoff_output_item':
          return one.targetAgent.name;
        case 'tool_approval_item':
          return one.callId;
        default:
          return one.rawItem;
      }
    };
    void kinds;
  });
});

describe('errors', () => {
  test('carry the state to go on from', async () => {
    try {
      await run(needy, 'x', { context: my });
    } catch (error) {
      if (error instanceof MaxTurnsExceededError && error.state)
        void run(needy, error.state, { context: my, maxTurns: error.maxTurns + 10 });
      if (error instanceof AgentsError) {
        const code: AgentsErrorCode = error.code;
        void code;
        void error.runData?.newItems;
      }
    }
  });
});
