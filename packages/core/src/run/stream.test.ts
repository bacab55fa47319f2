import { describe, expect, it, vi } from 'vitest';
import {
  Agent,
  defineModel,
  getRunErrorState,
  ModelBehaviorError,
  ModelStreamTruncatedError,
  run,
  RunAbortedError,
  runStreamed,
  RunState,
  tool,
  UserError,
} from '../index.ts';
import type { ResponseOutputItem, ResponseStreamEvent, RunResultStreaming, RunStreamEvent } from '../index.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import {
  effectTool,
  freeAndGated,
  idle,
  kindsOf,
  namesOf,
  PlainSession,
  readAll,
  rejection,
  scriptedDesk,
  unhandledDuring,
} from '../../test/run-kit.ts';

/** A paced model lets other work of the process run between its events, as a network would. */
const paced = (...outputs: (string | ResponseOutputItem | readonly ResponseOutputItem[])[]): ScriptedModel =>
  new ScriptedModel(
    outputs.map((output) => ({
      output: typeof output === 'string' || Array.isArray(output) ? output : [output as ResponseOutputItem],
      delayMs: 0,
      chunk: 'word',
    })),
  );

function withTool(model: ScriptedModel, effects: string[] = []) {
  return new Agent({ name: 'A', model, tools: [effectTool('t', effects)] });
}

describe('the order of events', () => {
  it('announces a response after its terminal raw event, outputs after that, each item once [RUN#48, RUN-1301, 1302, 1303, 1304]', async () => {
    const stream = runStreamed(withTool(paced([reasoning('hm'), toolCall('t')], 'done')), 'go');
    const events = await readAll(stream);
    expect(namesOf(events)).toEqual([
      'agent A',
      'R',
      'reasoning_item_created',
      'tool_called',
      'tool_output',
      'R',
      'message_output_created',
    ]);
    const raw = namesOf(events, { raw: true });
    expect(raw[1]).toBe('response.created');
    expect(raw.indexOf('response.completed')).toBe(raw.indexOf('reasoning_item_created') - 1);
    expect(raw.at(-2)).toBe('response.completed');
    const announced = events.flatMap((event) => (event.type === 'run_item_stream_event' ? [event.item] : []));
    expect(announced).toHaveLength(4);
    announced.forEach((item, index) => expect(item).toBe(stream.newItems[index]));
    expect(events.flatMap((event) => (event.type === 'run_item_stream_event' ? [event.position] : []))).toEqual([
      0, 1, 2, 3,
    ]);
  });

  it('passes on the very objects that the model gave, all of them and no other [RUN-1302]', async () => {
    const given: ResponseStreamEvent[] = [];
    const source = new ScriptedModel(['one two three'], { chunk: 'word' });
    const model = defineModel({
      async *streamResponse(request) {
        for await (const event of source.streamResponse(request)) {
          given.push(event);
          yield event;
        }
      },
    });
    const events = await readAll(runStreamed(new Agent({ name: 'A', model }), 'x'));
    const raw = events.flatMap((event) => (event.type === 'raw_response_event' ? [event.data] : []));
    expect(raw).toHaveLength(given.length);
    raw.forEach((event, index) => expect(event).toBe(given[index]));
  });

  it('begins a resumed segment with the agent, then what the pass made; calls are not announced again [RUN#50, RUN-1306, STATE-220]', async () => {
    const agent = freeAndGated(paced([toolCall('g'), toolCall('t')], 'done'));
    const first = runStreamed(agent, 'go');
    expect(namesOf(await readAll(first))).toEqual([
      'agent A',
      'R',
      'tool_called',
      'tool_called',
      'tool_approval_requested',
      'tool_output',
    ]);
    const state = first.toState();
    for (const item of state.interruptions) state.approve(item);
    const second = runStreamed(agent, state);
    const events = await readAll(second);
    expect(namesOf(events)).toEqual(['agent A', 'tool_output', 'R', 'message_output_created']);
    const announced = events.flatMap((event) => (event.type === 'run_item_stream_event' ? [event] : []));
    for (const { item, position } of announced) expect(second.newItems[position]).toBe(item);
  });

  it('of a turn that was cut are not told again when it is resumed: its calls were announced [STATE-220, RUN-1306]', async () => {
    const model = paced([text('one moment'), toolCall('g')], 'done');
    const agent = freeAndGated(model);
    const onApproval = (): undefined => {
      cut.cancel();
    };
    const cut: RunResultStreaming = runStreamed(agent, 'go', { onApproval });
    const before = namesOf(await readAll(cut));
    expect(before.slice(0, 4)).toEqual(['agent A', 'R', 'message_output_created', 'tool_called']);
    const state = getRunErrorState(await rejection(cut.completed)) as RunState;
    const resumed = runStreamed(agent, state);
    expect(namesOf(await readAll(resumed))).toEqual(['agent A', 'tool_approval_requested']);
    expect(resumed.newItems.map((item) => item.type)).toEqual([
      'message_output_item',
      'tool_call_item',
      'tool_approval_item',
    ]);
    expect(model.calls).toHaveLength(1);
  });

  it.each([[undefined], ['before'], ['half']] as const)(
    'of a resumed turn that ends the run are told when it is stored, and not when it could not be (fault: %s) [STATE-220, RUN-1306]',
    async (fault) => {
      const session = new PlainSession();
      const agent = freeAndGated(paced([toolCall('g')])).clone({ toolUseBehavior: 'stop_on_first_tool' });
      const state = (await run(agent, 'go', { session })).toState();
      for (const item of state.interruptions) state.approve(item);
      session.faults.push(fault);
      const stream = runStreamed(agent, state, { session });
      const told: string[] = [];
      const read = async (): Promise<void> => {
        // With the history as it is when the reader hears of it.
        for await (const event of stream) told.push(`${namesOf([event]).join()}: ${session.kinds}`);
      };
      const failed = await read().catch((error: unknown) => error);
      expect(failed).toBe(fault && session.error);
      expect(told).toEqual(['agent A: u fc', ...(fault ? [] : ['tool_output: u fc fco'])]);
    },
  );

  it('announces a call that waits beside a free one once over both segments, in the order of newItems [STATE#94, STATE-126]', async () => {
    const agent = freeAndGated(paced([toolCall('g'), toolCall('t')], 'done'));
    const first = runStreamed(agent, 'go');
    const events = await readAll(first);
    const items = events.flatMap((event) => (event.type === 'run_item_stream_event' ? [event.item] : []));
    expect(items).toEqual([...first.newItems]);
    expect(first.newItems.map((item) => item.type)).toEqual([
      'tool_call_item',
      'tool_call_item',
      'tool_approval_item',
      'tool_call_output_item',
    ]);
    // Nothing is decided: the same pause again, and not one item event.
    const again = runStreamed(agent, first.toState());
    expect(namesOf(await readAll(again))).toEqual(['agent A']);
    expect(again.interruptions).toHaveLength(1);
  });
});

describe('the end of a response', () => {
  const shell = { id: 'resp_1', object: 'response', status: 'in_progress', output: [] as unknown[], usage: null };
  const event = (type: string, members: object = {}): ResponseStreamEvent =>
    ({ type, sequence_number: 0, ...members }) as unknown as ResponseStreamEvent;
  const created = event('response.created', { response: shell });

  it('takes the items that were completed on the way when the terminal event has none, in index order [RUN#51, RUN-1307]', async () => {
    const done = (output_index: number, item: ResponseOutputItem) =>
      event('response.output_item.done', { output_index, item });
    const events = [
      created,
      done(1, text('second')),
      done(0, reasoning('first')),
      event('response.completed', { response: { ...shell, status: 'completed' } }),
    ];
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel([{ events }]) }), 'x');
    expect(namesOf(await readAll(stream))).toEqual([
      'agent A',
      'R',
      'reasoning_item_created',
      'message_output_created',
    ]);
    expect((await stream.completed).finalOutput).toBe('second');
  });

  it.each([
    { name: 'no terminal event', last: [], message: /no final response/ },
    {
      name: 'response.failed',
      last: [
        event('response.failed', {
          response: { ...shell, status: 'failed', error: { code: 'server_error', message: 'secret text' } },
        }),
      ],
      message: /response\.failed/,
    },
    {
      name: 'response.incomplete',
      last: [event('response.incomplete', { response: { ...shell, status: 'incomplete' } })],
      message: /response\.incomplete/,
    },
    { name: 'error', last: [event('error', { code: 'x', message: 'secret text', param: null })], message: /error/ },
  ])(
    'fails the run after $name: earlier raw events are delivered, the iterator is closed [RUN#52, RUN-1308]',
    async ({ last, message }) => {
      let closed = 0;
      const model = defineModel({
        async *streamResponse() {
          try {
            yield created;
            yield event('response.in_progress', { response: shell });
            for (const one of last) {
              yield one;
              throw new Error('The model was asked for another event after its last.');
            }
          } finally {
            closed += 1;
          }
        },
      });
      const stream = runStreamed(new Agent({ name: 'A', model }), 'x');
      const seen: RunStreamEvent[] = [];
      const error = await rejection(
        (async () => {
          for await (const one of stream) seen.push(one);
        })(),
      );
      expect(error).toBeInstanceOf(last.length === 0 ? ModelStreamTruncatedError : ModelBehaviorError);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).not.toContain('secret');
      expect(closed).toBe(1);
      expect(namesOf(seen, { raw: true })).toEqual([
        'agent A',
        'response.created',
        'response.in_progress',
        ...last.map((one) => one.type),
      ]);
      expect(stream.status).toBe('failed');
      expect(stream.error).toBe(error);
      expect(await rejection(stream.completed)).toBe(error);
    },
  );
});

describe('a stream without a reader', () => {
  it('goes on to its end; the events can still be read afterwards [RUN#53, RUN-1401, 1405, STATE-220]', async () => {
    const stream = runStreamed(withTool(paced(toolCall('t'), 'done')), 'go');
    const result = await stream.completed;
    expect(result.status).toBe('completed');
    expect(result.finalOutput).toBe('done');
    expect(stream.finalOutput).toBe('done');
    expect(stream.isComplete).toBe(true);
    expect(namesOf(await readAll(stream))).toEqual([
      'agent A',
      'R',
      'tool_called',
      'tool_output',
      'R',
      'message_output_created',
    ]);
    expect(await readAll(stream)).toEqual([]);
  });

  it('keeps the error of a run that nobody looks at, and raises nothing for the process [RUN#59, RUN-1409, 1423]', async () => {
    const failure = new Error('down');
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel([failure]) }), 'x');
    const unhandled = await unhandledDuring(async () => {
      await vi.waitUntil(() => stream.isComplete);
    });
    expect(unhandled).toEqual([]);
    expect(stream.status).toBe('failed');
    expect(stream.error).toBe(failure);
    expect(stream.isComplete).toBe(true);
    expect(stream.toState().status).toBe('ready');
    expect(await rejection(readAll(stream))).toBe(failure);
    expect(await readAll(stream)).toEqual([]);
  });

  it('throws what failed before the first event to its reader [RUN-1424, SESS-090]', async () => {
    const session = new PlainSession();
    session.failReads = true;
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel(['x']) }), 'x', { session });
    expect(await rejection(readAll(stream))).toBe(session.error);
    expect(await rejection(stream.completed)).toBe(session.error);
  });
});

describe('cancel after the turn', () => {
  it('finishes the turn that is being read, stores it and goes no further; the state goes on with the next call [RUN#54, RUN-1402, 1405, 1414]', async () => {
    const effects: string[] = [];
    const model = paced(toolCall('t'), 'done');
    const agent = withTool(model, effects);
    const session = new PlainSession();
    const stream = runStreamed(agent, 'go', { session });
    const seen: RunStreamEvent[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === 'run_item_stream_event' && event.name === 'tool_called') stream.cancel({ mode: 'after_turn' });
    }
    expect(namesOf(seen)).toEqual(['agent A', 'R', 'tool_called', 'tool_output']);
    expect(model.calls).toHaveLength(1);
    expect(session.kinds).toBe('u fc fco');
    expect(stream.status).toBe('cancelled');
    expect(stream.finalOutput).toBeUndefined();
    const error = await rejection(stream.completed);
    expect(error).toBeInstanceOf(RunAbortedError);
    const states = [stream.toState(), getRunErrorState(error)] as RunState[];
    for (const state of states) expect(state.status).toBe('ready');
    expect(states[0]?.currentStep?.type).toBe('next_step_run_again');
    const resumed = await run(agent, states[1] as RunState, { session });
    expect(resumed.finalOutput).toBe('done');
    expect(session.kinds).toBe('u fc fco m');
    model.add('once more');
    expect((await run(agent, states[0] as RunState, { session: null })).finalOutput).toBe('once more');
    expect(effects).toEqual(['t -']);
  });

  it.each(['tool_output', 'tool_called', 'response.created', 'response.completed'])(
    'prevents the next turn for certain when it comes with the event %s [RUN-1402]',
    async (name) => {
      const model = paced(toolCall('t'), toolCall('t'), 'done');
      const stream = runStreamed(withTool(model), 'go');
      for await (const event of stream) {
        const is =
          event.type === 'raw_response_event'
            ? event.data.type
            : event.type === 'run_item_stream_event'
              ? event.name
              : '';
        if (is !== name) continue;
        // A slow reader: the turn is over long before it makes up its mind.
        await idle(10);
        stream.cancel({ mode: 'after_turn' });
      }
      expect(model.calls).toHaveLength(1);
      expect(kindsOf(stream.toState().toInputList())).toBe('u fc fco');
    },
  );

  it('waits at a boundary for its reader, however long that takes [RUN-1402]', async () => {
    const model = paced(toolCall('t'), 'done');
    const stream = runStreamed(withTool(model), 'go');
    for await (const event of stream) {
      if (event.type !== 'run_item_stream_event' || event.name !== 'tool_output') continue;
      await idle(20);
      expect(model.calls).toHaveLength(1);
    }
    expect(model.calls).toHaveLength(2);
  });

  it('changes nothing for a turn that ends the run, or pauses it [RUN-1414]', async () => {
    const last = runStreamed(new Agent({ name: 'A', model: paced('done') }), 'x');
    for await (const _ of last) last.cancel({ mode: 'after_turn' });
    expect([last.status, (await last.completed).finalOutput]).toEqual(['completed', 'done']);
    const pausing = runStreamed(
      new Agent({ name: 'A', model: paced(toolCall('t')), tools: [effectTool('t', [], { needsApproval: true })] }),
      'x',
    );
    for await (const event of pausing) if (event.type === 'raw_response_event') pausing.cancel({ mode: 'after_turn' });
    expect([pausing.status, pausing.interruptions.length]).toEqual(['interrupted', 1]);
  });

  it('makes no model call when it comes before the first event was read [RUN#57, RUN-1415]', async () => {
    const model = paced('done');
    const stream = runStreamed(new Agent({ name: 'A', model }), 'x');
    stream.cancel({ mode: 'after_turn' });
    const events = await readAll(stream);
    expect(events.length).toBeLessThanOrEqual(1);
    expect(model.calls).toHaveLength(0);
    expect(stream.status).toBe('cancelled');
    expect(stream.toState().status).toBe('ready');
  });
});

describe('cancel at once', () => {
  const down = new Error('down');

  it('ends in the middle of a response: signals the model, stores nothing more, and throws nowhere but from completed [RUN#55, RUN-1405, 1412, 1413]', async () => {
    const session = new PlainSession();
    const model = paced('one two three four');
    let signal: AbortSignal | undefined;
    const watching = defineModel({
      async *streamResponse(request) {
        signal = request.signal;
        return yield* model.streamResponse(request);
      },
    });
    const hooks: string[] = [];
    const stream = runStreamed(
      new Agent({
        name: 'A',
        model: watching,
        hooks: { onEnd: () => void hooks.push('end'), onLlmEnd: () => void hooks.push('llmEnd') },
      }),
      'x',
      { session },
    );
    const seen: string[] = [];
    const unhandled = await unhandledDuring(async () => {
      for await (const event of stream) {
        if (event.type !== 'raw_response_event' || event.data.type !== 'response.output_text.delta') continue;
        seen.push(event.data.delta);
        stream.cancel();
        expect(stream.isComplete).toBe(true);
        expect(stream.status).toBe('cancelled');
        expect(signal?.aborted).toBe(true);
      }
    });
    expect(unhandled).toEqual([]);
    expect(seen).toHaveLength(1);
    expect(hooks).toEqual([]);
    expect(session.kinds).toBe('u');
    expect(stream.finalOutput).toBeUndefined();
    expect(stream.newItems).toEqual([]);
    expect(stream.rawResponses).toEqual([]);
    const error = await rejection(stream.completed);
    expect(error).toBeInstanceOf(RunAbortedError);
    const state = getRunErrorState(error);
    expect(state?.status).toBe('ready');
    model.add('again');
    const again = await run(new Agent({ name: 'A', model }), state as RunState, { session });
    expect(again.finalOutput).toBe('again');
    expect(session.kinds).toBe('u m');
  });

  it('leaves a running call in doubt, and never in what the model sees [RUN-1413, STATE-136]', async () => {
    let begun: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (begun = resolve));
    let stopped = false;
    const slow = tool({
      name: 'slow',
      execute: (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            stopped = true;
            reject(new Error('stopped'));
          });
          begun();
        }),
    });
    const effects: string[] = [];
    const agent = new Agent({
      name: 'A',
      model: paced([toolCall('t', {}, { callId: 'f' }), toolCall('slow', {}, { callId: 's' })]),
      tools: [slow, effectTool('t', effects)],
    });
    const session = new PlainSession();
    const stream = runStreamed(agent, 'x', { session });
    await running;
    await idle();
    stream.cancel();
    expect(await readAll(stream)).toEqual([]);
    const error = await rejection(stream.completed);
    expect(stopped).toBe(true);
    expect(session.kinds).toBe('u');
    for (const state of [stream.toState(), getRunErrorState(error)] as RunState[]) {
      expect(state.status).toBe('interrupted');
      expect(state.interruptions).toEqual([]);
      expect(kindsOf(state.toInputList())).toBe('u');
      const restored = await RunState.fromString(agent, state.toString());
      expect(await rejection(run(agent, restored, { session }))).toMatchObject({ code: 'call_executed_uncommitted' });
    }
    expect(effects).toEqual(['t -']);
  });

  it('wins over after_turn, is idempotent, and does nothing after the end [RUN#56, RUN-1412, 1416]', async () => {
    const model = paced(toolCall('t'), 'done');
    const stream = runStreamed(withTool(model), 'x');
    for await (const event of stream) {
      if (event.type !== 'raw_response_event') continue;
      stream.cancel({ mode: 'after_turn' });
      stream.cancel();
      stream.cancel();
      stream.cancel({ mode: 'after_turn' });
      expect(stream.status).toBe('cancelled');
    }
    await rejection(stream.completed);
    expect(stream.newItems).toEqual([]);
    expect(stream.status).toBe('cancelled');

    const ended = runStreamed(new Agent({ name: 'A', model: paced('done') }), 'x');
    await ended.completed;
    ended.cancel();
    expect([ended.status, ended.finalOutput]).toEqual(['completed', 'done']);
    expect(namesOf(await readAll(ended))).toEqual(['agent A', 'R', 'message_output_created']);
  });

  it.each([
    ['completed', 'done', ['done', 0, undefined, 'message_output_created']],
    ['interrupted', toolCall('g'), [undefined, 1, undefined, 'tool_approval_requested']],
    ['failed', down, [undefined, 0, down, 'down']],
  ] as const)(
    'has no effect on a run that is only told that it has %s [RUN-1412, RUN-1403, RUN-1405]',
    async (status, step, end) => {
      const seen: unknown[] = [];
      const { agent } = scriptedDesk(step);
      const onRunEnd = (_ctx: unknown, outcome: string): void => {
        stream.cancel();
        seen.push(outcome, stream.status, stream.isComplete);
      };
      const stream = runStreamed(agent, 'x', { hooks: { onRunEnd } });
      const completed = await stream.completed.then(
        (result) => result.status,
        () => 'failed',
      );
      const last = await readAll(stream).then(
        (events) => namesOf(events).at(-1),
        (error: unknown) => (error as Error).message,
      );
      expect([...seen, completed, stream.status]).toEqual([status, status, true, status, status]);
      expect([stream.finalOutput, stream.interruptions.length, stream.error, last]).toEqual(end);
    },
  );

  it('leaves no final output where its reader asks for it at the very last event [RUN-1412]', async () => {
    const { agent } = scriptedDesk(toolCall('g'));
    const ending = agent.clone({ toolUseBehavior: 'stop_on_first_tool' });
    const state = (await run(ending, 'x')).toState();
    for (const item of state.interruptions) state.approve(item);
    const stream = runStreamed(ending, state);
    for await (const event of stream)
      if (event.type === 'run_item_stream_event' && event.name === 'tool_output') stream.cancel();
    expect(getRunErrorState(await rejection(stream.completed))?.status).toBe('completed');
    expect([stream.status, stream.finalOutput]).toEqual(['cancelled', undefined]);
  });

  it('empties the queue and ends a reader that waits, without an error [RUN-1412]', async () => {
    const silent = new ScriptedModel([() => new Promise(() => undefined)]);
    const model = defineModel({ streamResponse: (request) => silent.streamResponse(request) });
    const stream = runStreamed(new Agent({ name: 'A', model }), 'x');
    const reader = stream[Symbol.asyncIterator]();
    expect((await reader.next()).value).toMatchObject({ type: 'agent_updated_stream_event' });
    const waiting = reader.next();
    await idle();
    stream.cancel();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await rejection(stream.completed)).toBeInstanceOf(RunAbortedError);
  });

  it.each(['history', 'input callback', 'onRunStart', 'instructions', 'approval policy'])(
    'ends within the bounded drain during %s [RUN-1418]',
    async (where) => {
      let begun: () => void = () => undefined;
      const running = new Promise<void>((resolve) => (begun = resolve));
      const stuck = <T>(at: string, or: T): T | Promise<T> => {
        if (at !== where) return or;
        begun();
        return new Promise<T>(() => undefined);
      };
      const session = new PlainSession();
      const load = session.getItems;
      session.getItems = async (limit) => await stuck('history', load(limit));
      const gated = tool({ name: 'gated', needsApproval: () => stuck('approval policy', true), execute: () => 'ok' });
      const agent = new Agent({
        name: 'A',
        instructions: () => stuck('instructions', 'be good'),
        model: paced(toolCall('gated')),
        tools: [gated],
      });
      const stream = runStreamed(agent, 'x', {
        session,
        sessionInputCallback: (history, input) => stuck('input callback', [...history, ...input]),
        hooks: { onRunStart: () => stuck('onRunStart', undefined) },
      });
      await running;
      stream.cancel();
      await readAll(stream);
      expect(await rejection(stream.completed)).toBeInstanceOf(RunAbortedError);
      expect(stream.status).toBe('cancelled');
    },
  );
});

describe('readers', () => {
  it('lets a reader go at break; the run goes on, a further reader gets the rest [RUN#58, RUN-1408]', async () => {
    const model = paced(toolCall('t', {}, { callId: 'c1' }), toolCall('t', {}, { callId: 'c2' }), 'done');
    const stream = runStreamed(withTool(model), 'go');
    const seen: RunStreamEvent[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === 'run_item_stream_event') break;
    }
    expect((await stream.completed).finalOutput).toBe('done');
    expect(model.calls).toHaveLength(3);
    seen.push(...(await readAll(stream)));
    expect(namesOf(seen)).toEqual([
      'agent A',
      'R',
      'tool_called',
      'tool_output',
      'R',
      'tool_called',
      'tool_output',
      'R',
      'message_output_created',
    ]);
    expect(namesOf(seen).filter((name) => name === 'tool_called')).toHaveLength(2);
  });

  it('lets a reader go when its loop throws, and when it is told to return while it waits [RUN-1408, 1419]', async () => {
    const model = paced(toolCall('t'), 'done');
    const stream = runStreamed(withTool(model), 'go');
    const own = new Error('mine');
    expect(
      await rejection(
        (async () => {
          for await (const _ of stream) throw own;
        })(),
      ),
    ).toBe(own);
    const reader = stream[Symbol.asyncIterator]();
    for (;;) {
      const { value } = await reader.next();
      if (value?.type === 'run_item_stream_event' && value.name === 'tool_called') break;
    }
    const waiting = reader.next();
    await reader.return?.();
    await waiting;
    expect((await stream.completed).finalOutput).toBe('done');
  });

  it.each(['break', 'throw', 'return'] as const)(
    'that leave by %s while the run waits for them at a boundary do not hold it up [RUN-1408, RUN-1402, TRACE-T20]',
    async (way) => {
      const model = paced(toolCall('t'), 'done');
      const stream = runStreamed(withTool(model), 'go');
      const reader = stream.streamEvents();
      let waited = false;
      const leave = async (): Promise<void> => {
        for await (const event of reader) {
          if (event.type !== 'run_item_stream_event' || event.name !== 'tool_output') continue;
          await idle(20);
          waited = model.calls.length === 1;
          if (way === 'break') break;
          if (way === 'throw') throw new Error('mine');
          await reader.return?.();
        }
      };
      await leave().catch(() => undefined);
      expect(waited).toBe(true);
      expect((await stream.completed).finalOutput).toBe('done');
      expect(namesOf(await readAll(stream))).toEqual(['R', 'message_output_created']);
    },
    10_000,
  );

  it('refuses a second reader while one is attached, and takes one after it let go; both views read one queue [RUN-1407]', async () => {
    const stream = runStreamed(withTool(paced(toolCall('t'), 'done')), 'go');
    const first = stream.streamEvents();
    const one = await first.next();
    const second = stream[Symbol.asyncIterator]();
    const refused = await rejection(second.next());
    expect(refused).toBeInstanceOf(UserError);
    expect((refused as Error).message).toMatch(/being read/);
    await first.return?.();
    expect(await first.next()).toEqual({ done: true, value: undefined });
    const rest = await readAll({ [Symbol.asyncIterator]: () => second });
    expect(namesOf([one.value as RunStreamEvent, ...rest])).toEqual([
      'agent A',
      'R',
      'tool_called',
      'tool_output',
      'R',
      'message_output_created',
    ]);
  });

  it('ends for its reader only when the session has everything and nothing of the result changes any more [RUN-1404]', async () => {
    let open: () => void = () => undefined;
    const session = new PlainSession();
    const stream = runStreamed(new Agent({ name: 'A', model: paced('done') }), 'x', { session });
    let ended = false;
    let settled = false;
    void stream.completed.then(() => (settled = true));
    const reading = (async () => {
      for await (const event of stream)
        if (event.type === 'run_item_stream_event') session.gate = new Promise((resolve) => (open = resolve));
      ended = true;
    })();
    while (session.log.length < 3) await idle();
    await idle();
    // The message was announced; the append has not been answered.
    expect(session.log).toEqual(['get', 'add[u]', 'add[m]']);
    expect([ended, settled]).toEqual([false, false]);
    open();
    await reading;
    expect(session.kinds).toBe('u m');
    expect([stream.status, stream.finalOutput, stream.isComplete]).toEqual(['completed', 'done', true]);
    const before = stream.toState().toString();
    await idle();
    expect(stream.toState().toString()).toBe(before);
  });

  it('shows the run as it goes: agent, turn, items, responses [RUN-1403, 1406]', async () => {
    const stream = runStreamed(withTool(paced(toolCall('t'), 'done')), 'go');
    const seen: unknown[] = [];
    for await (const event of stream) {
      if (event.type === 'agent_updated_stream_event') seen.push(stream.currentAgent === event.newAgent);
      if (event.type !== 'run_item_stream_event') continue;
      seen.push([event.name, stream.currentTurn]);
      if (event.name === 'tool_output')
        seen.push([stream.newItems.length, stream.rawResponses.length, stream.isComplete]);
    }
    expect(seen).toEqual([true, ['tool_called', 1], ['tool_output', 1], [2, 1, false], ['message_output_created', 2]]);
    expect([stream.newItems.length, stream.rawResponses.length, stream.isComplete]).toEqual([3, 2, true]);
  });

  it('gives the same stream when run is asked for one [RUN-101]', async () => {
    const stream = await run(new Agent({ name: 'A', model: paced('done') }), 'x', { stream: true });
    expect(namesOf(await readAll(stream))).toEqual(['agent A', 'R', 'message_output_created']);
  });
});
