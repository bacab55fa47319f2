import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, getRunErrorState, run, runStreamed, RunState, streamEventToJSON, tool } from '../index.ts';
import type { RunOptions, RunStreamEvent } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { reasoning, refusal, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, exactly, idle, namesOf, readAll, rejection } from '../../test/run-kit.ts';

// What `extendedEvents` adds to a stream, and what a stream without it says.

afterEach(() => resetDefaults());

const call = (name: string, callId: string, args: object = {}) => toolCall(name, args, { callId });

/** A promise that the test opens. */
function latch(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Tools `slow` and `fast`; `slow` ends when the test has seen the output of `fast`. */
function pair(model: ScriptedModel, options: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const gate = latch();
  const slow = tool({
    name: 'slow',
    parameters: z.object({}),
    execute: async () => {
      await gate.opened;
      return 'slow ok';
    },
  });
  const effects: string[] = [];
  const tools = [slow, effectTool('fast', effects), effectTool('gated', [], { needsApproval: true })];
  return { agent: new Agent({ name: 'A', model, tools, ...options } as never), gate, effects };
}

const positions = (events: readonly RunStreamEvent[]): string[] =>
  events.flatMap((event) =>
    event.type === 'run_item_stream_event'
      ? [`${event.name} ${(event.item as { callId?: string }).callId ?? '-'} ${event.position}`]
      : [],
  );

/** Events whose position is not that of their item. */
const misplaced = (
  events: readonly RunStreamEvent[],
  stream: Pick<ReturnType<typeof runStreamed>, 'newItems'>,
): unknown[] =>
  events.filter((event) => event.type === 'run_item_stream_event' && event.item !== stream.newItems[event.position]);

/** Reads the stream and opens the gate at the first event with this name; without it, a moment later. */
async function readOpening(
  agent: Agent,
  gate: { open: () => void },
  name: string,
  options: RunOptions = { extendedEvents: true },
): Promise<{ events: RunStreamEvent[]; stream: ReturnType<typeof runStreamed> }> {
  const stream = runStreamed(agent, 'go', options);
  const events: RunStreamEvent[] = [];
  let seen = false;
  // Without the option nothing is told before the gate is open.
  const timer = options.extendedEvents === true ? undefined : setTimeout(() => gate.open(), 150);
  try {
    for await (const event of stream) {
      events.push(event);
      if (event.type !== 'run_item_stream_event' || event.name !== name || seen) continue;
      seen = true;
      gate.open();
    }
  } finally {
    clearTimeout(timer);
  }
  return { events, stream };
}

describe('events of turns', () => {
  it('tell of each turn when it begins and when it is stored, with what it decided [RUN-1311]', async () => {
    const b = new Agent({ name: 'B', model: new ScriptedModel(['done']) });
    const model = new ScriptedModel([[call('fast', 'c1')], [call('transfer_to_b', 'h1')]]);
    const a = new Agent({ name: 'A', model, tools: [effectTool('fast', [])], handoffs: [b] });
    const events = await readAll(runStreamed(a, 'go', { extendedEvents: true }));
    expect(namesOf(events)).toEqual([
      'agent A',
      'turn_started',
      'R',
      'tool_called',
      'tool_output',
      'turn_ended',
      'turn_started',
      'R',
      'handoff_requested',
      'handoff_occured',
      'turn_ended',
      'agent B',
      'turn_started',
      'R',
      'message_output_created',
      'turn_ended',
    ]);
    const data = events.flatMap((event) => (event.type === 'run_extended_event' ? [event.data] : []));
    expect(data).toEqual([
      { turn: 1, agent: a },
      { turn: 1, agent: a, step: 'next_step_run_again' },
      { turn: 2, agent: a },
      { turn: 2, agent: a, step: 'next_step_handoff' },
      { turn: 3, agent: b },
      { turn: 3, agent: b, step: 'next_step_final_output' },
    ]);
  });

  it('tell of a turn that pauses, and of its end when it is resumed [RUN-1311]', async () => {
    const { agent } = pair(new ScriptedModel([[call('gated', 'c1')], 'done']));
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    const first = await readAll(stream);
    const state = stream.toState();
    for (const item of state.interruptions) state.approve(item);
    const second = await readAll(runStreamed(agent, state, { extendedEvents: true }));
    const steps = (events: readonly RunStreamEvent[]): unknown[] =>
      events.flatMap((event) =>
        event.type === 'run_extended_event' && event.name === 'turn_ended' ? [[event.data.turn, event.data.step]] : [],
      );
    expect(steps(first)).toEqual([[1, 'next_step_interruption']]);
    expect(steps(second)).toEqual([
      [1, 'next_step_run_again'],
      [2, 'next_step_final_output'],
    ]);
    expect(namesOf(second).filter((name) => name === 'turn_started')).toHaveLength(1);
  });
});

describe('progress of tools', () => {
  const reporting = (seen: unknown[] = []) =>
    tool({
      name: 'report',
      parameters: z.object({}),
      execute: async (_args, ctx) => {
        ctx.emit({ percent: 50 });
        await idle();
        ctx.emit('nearly');
        seen.push('ran');
        return 'ok';
      },
    });

  it('comes while the tool runs, with its call [RUN-1311]', async () => {
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([[call('report', 'c1')], 'done']),
      tools: [reporting()],
    });
    const events = await readAll(runStreamed(agent, 'go', { extendedEvents: true }));
    expect(
      events.flatMap((event) =>
        event.type === 'run_extended_event' && event.name === 'tool_progress' ? [event.data] : [],
      ),
    ).toEqual([
      { toolName: 'report', callId: 'c1', data: { percent: 50 } },
      { toolName: 'report', callId: 'c1', data: 'nearly' },
    ]);
    const names = namesOf(events);
    expect(names.indexOf('tool_called')).toBeLessThan(names.indexOf('tool_progress'));
    expect(names.lastIndexOf('tool_progress')).toBeLessThan(names.indexOf('tool_output'));
  });

  it('goes nowhere without the option, in a plain run, and in a segment that does not ask for it any more [RUN-1311]', async () => {
    const ran: unknown[] = [];
    const make = (): Agent =>
      new Agent({ name: 'A', model: new ScriptedModel([[call('report', 'c1')], 'done']), tools: [reporting(ran)] });
    const plain = await run(make(), 'go', { extendedEvents: true });
    expect(plain.finalOutput).toBe('done');
    const events = await readAll(runStreamed(make(), 'go'));
    expect(namesOf(events)).not.toContain('tool_progress');
    expect(ran).toEqual(['ran', 'ran']);
  });

  it('of a run inside an agent tool goes to the one who listens to that run [RUN-1311]', async () => {
    const heard: string[] = [];
    const inner = new Agent({
      name: 'I',
      model: new ScriptedModel([[call('report', 'n1')], 'in']),
      tools: [reporting()],
    });
    const ask = inner.asTool({
      toolName: 'ask',
      toolDescription: 'x',
      onStream: ({ event }) => {
        if (event.type === 'run_extended_event') heard.push(event.name);
      },
    });
    const outer = new Agent({
      name: 'O',
      model: new ScriptedModel([[call('ask', 'c1', { input: 'q' })], 'out']),
      tools: [ask],
    });
    const events = await readAll(runStreamed(outer, 'go', { extendedEvents: true }));
    expect(heard).toEqual([
      'turn_started',
      'tool_progress',
      'tool_progress',
      'turn_ended',
      'turn_started',
      'turn_ended',
    ]);
    expect(namesOf(events)).not.toContain('tool_progress');
  });
});

describe('results of calls', () => {
  const script = (): ScriptedModel =>
    new ScriptedModel([[call('slow', 'c1'), call('fast', 'c2'), call('gated', 'c3')]]);

  it('are announced as soon as they are there, with the place that they will have [RUN-1311, STATE-519]', async () => {
    const { agent, gate } = pair(script());
    const { events, stream } = await readOpening(agent, gate, 'tool_output');
    const told = positions(events);
    expect(told.slice(0, 3)).toEqual(['tool_called c1 0', 'tool_called c2 1', 'tool_called c3 2']);
    expect(told.slice(3, 5).toSorted()).toEqual(['tool_approval_requested c3 5', 'tool_output c2 4']);
    expect(told.slice(5)).toEqual(['tool_output c1 3']);
    expect(misplaced(events, stream)).toEqual([]);
  });

  it('come in their order when all are done without the option [RUN-1303, 1304, 1311]', async () => {
    const { agent, gate } = pair(script());
    const { events } = await readOpening(agent, gate, 'tool_output', {});
    expect(positions(events).slice(3)).toEqual([
      'tool_output c1 3',
      'tool_output c2 4',
      'tool_approval_requested c3 5',
    ]);
    expect(namesOf(events)).not.toContain('turn_started');
  });

  it('that an output guardrail may withhold are announced with the turn [RUN-1311, STATE-127]', async () => {
    const { agent, gate, effects } = pair(new ScriptedModel([[call('slow', 'c1'), call('fast', 'c2')]]), {
      toolUseBehavior: 'stop_on_first_tool',
      outputGuardrails: [{ name: 'no', execute: () => ({ tripwireTriggered: true }) }],
    });
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    const events: RunStreamEvent[] = [];
    const reading = (async () => {
      for await (const event of stream) events.push(event);
    })();
    while (effects.length === 0) await idle();
    await idle(10);
    expect(positions(events)).toEqual(['tool_called c1 0', 'tool_called c2 1']);
    gate.open();
    expect(await rejection(reading)).toMatchObject({ name: 'OutputGuardrailTripwireTriggered' });
  });

  it('of a turn whose input is not accepted yet are announced with the turn [RUN-403, 1311]', async () => {
    const model = new ScriptedModel([[call('fast', 'c1')]]);
    const { agent } = pair(model, {
      inputGuardrails: [
        {
          name: 'late',
          execute: async () => {
            await idle(20);
            return { tripwireTriggered: true };
          },
        },
      ],
    });
    const events: RunStreamEvent[] = [];
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    const error = await rejection(
      (async () => {
        for await (const event of stream) events.push(event);
      })(),
    );
    expect(error).toMatchObject({ name: 'InputGuardrailTripwireTriggered' });
    expect(namesOf(events)).not.toContain('tool_output');
  });

  it('with custom data are announced when it is there [RUN-1309, 1311]', async () => {
    const withData = tool({
      name: 'data',
      parameters: z.object({}),
      execute: () => 'ok',
      customDataExtractor: async () => {
        await idle();
        return { rows: 3 };
      },
    });
    const agent = new Agent({ name: 'A', model: new ScriptedModel([[call('data', 'c1')], 'done']), tools: [withData] });
    const data: unknown[] = [];
    for await (const event of runStreamed(agent, 'go', { extendedEvents: true }))
      if (event.type === 'run_item_stream_event' && event.name === 'tool_output') data.push(event.item.customData);
    expect(data).toEqual([{ rows: 3 }]);
  });

  it('behind an agent tool that may pause wait for it: their place is not certain before [RUN-1311, STATE-519]', async () => {
    const inner = new Agent({
      name: 'I',
      model: new ScriptedModel([[call('gated', 'n1')]]),
      tools: [effectTool('gated', [], { needsApproval: true })],
    });
    const ask = inner.asTool({ toolName: 'ask', toolDescription: 'x' });
    const model = new ScriptedModel([
      [call('fast', 'c0'), call('ask', 'c1', { input: 'q' }), call('fast', 'c2', { id: '2' })],
    ]);
    const agent = new Agent({ name: 'O', model, tools: [ask, effectTool('fast', [])] });
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    const events = await readAll(stream);
    expect(misplaced(events, stream)).toEqual([]);
    expect(positions(events).slice(3)).toEqual(['tool_output c0 3', 'tool_output c2 4']);
  });

  it('behind an agent tool that has paused count without it [RUN-1311, STATE-519]', async () => {
    const innerModel = new ScriptedModel([[call('gated', 'n1')]]);
    const inner = new Agent({
      name: 'I',
      model: innerModel,
      tools: [effectTool('gated', [], { needsApproval: true })],
    });
    const ask = inner.asTool({ toolName: 'ask', toolDescription: 'x' });
    const { agent: base, gate } = pair(
      new ScriptedModel([[call('ask', 'c1', { input: 'q' }), call('last', 'c2'), call('slow', 'c3')]]),
    );
    const last = tool({
      name: 'last',
      parameters: z.object({}),
      execute: async () => {
        while (innerModel.calls.length === 0) await idle();
        await idle(20);
        return 'ok';
      },
    });
    const agent = base.clone({ tools: [ask, last, ...base.tools] as never });
    const { events, stream } = await readOpening(agent, gate, 'tool_output');
    expect(positions(events).slice(3)).toEqual(['tool_output c2 3', 'tool_output c3 4']);
    expect(misplaced(events, stream)).toEqual([]);
  });

  it('of a turn that goes on after a pause are announced when it is done, each once and with its place [RUN-1306, 1311]', async () => {
    const { agent } = pair(new ScriptedModel([[call('gated', 'c1'), call('fast', 'c2'), call('gated', 'c3')], 'done']));
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    const before = await readAll(stream);
    const state = stream.toState();
    for (const item of state.interruptions) state.approve(item);
    const resumed = runStreamed(agent, state, { extendedEvents: true });
    const after = await readAll(resumed);
    expect(misplaced([...before, ...after], resumed)).toEqual([]);
    expect(positions(after).slice(0, 2)).toEqual(['tool_output c1 6', 'tool_output c3 7']);
  });

  it('of calls to unknown tools stand behind all others [RUN-1311, 514]', async () => {
    const { agent, gate } = pair(new ScriptedModel([[call('nobody', 'c1'), call('slow', 'c2')], 'done']));
    const options = { extendedEvents: true, toolNotFoundBehavior: 'return_error_to_model' } as const;
    const { events, stream } = await readOpening(agent, gate, 'tool_output', options);
    expect(positions(events).slice(2, 4)).toEqual(['tool_output c1 3', 'tool_output c2 2']);
    expect(misplaced(events, stream)).toEqual([]);
  });

  it('of a turn that fails are announced once, also those that it keeps [RUN-509, 1303, 1311]', async () => {
    const model = new ScriptedModel([[call('fast', 'c1'), call('boom', 'c2')]]);
    const boom = tool({
      name: 'boom',
      parameters: z.object({}),
      failureErrorFunction: null,
      execute: async () => {
        await idle();
        throw new Error('boom');
      },
    });
    const agent = new Agent({ name: 'A', model, tools: [effectTool('fast', []), boom] });
    const events: RunStreamEvent[] = [];
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    const error = await rejection(
      (async () => {
        for await (const event of stream) events.push(event);
      })(),
    );
    expect(error).toMatchObject({ message: /boom/ });
    expect(namesOf(events).filter((name) => name === 'tool_output')).toHaveLength(1);
    expect(getRunErrorState(error)?.newItems.map(({ type }) => type)).toEqual([
      'tool_call_item',
      'tool_call_output_item',
    ]);
  });
});

describe('items without an event', () => {
  const compaction = { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' };
  const message = {
    id: 'm1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'ok', annotations: [] }],
  };

  it('have one with the option: compaction [RUN-1311]', async () => {
    const names = async (options: RunOptions): Promise<string[]> => {
      const agent = new Agent({ name: 'A', model: new ScriptedModel([exactly(compaction, message)]) });
      return namesOf(await readAll(runStreamed(agent, 'go', options))).filter((name) => name.endsWith('_created'));
    };
    expect(await names({ extendedEvents: true })).toEqual(['compaction_item_created', 'message_output_created']);
    expect(await names({})).toEqual(['message_output_created']);
  });
});

describe('what every stream announces', () => {
  it.each<[string, ModelStep[], RunOptions, string[]]>([
    [
      'reasoning and hosted tools',
      [
        exactly(
          { type: 'reasoning', id: 'r1', summary: [] },
          { type: 'web_search_call', id: 'w1', status: 'completed', action: { type: 'search', query: 'x' } },
          {
            id: 'm1',
            type: 'message',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'ok', annotations: [] }],
          },
        ),
      ],
      {},
      ['reasoning_item_created', 'tool_called', 'message_output_created'],
    ],
    [
      'a refusal, and what a handler says in its place',
      [[reasoning('hm'), refusal('no')]],
      { errorHandlers: { modelRefusal: () => ({ finalOutput: 'sorry' }) } },
      ['reasoning_item_created', 'message_output_created', 'message_output_created'],
    ],
    [
      'a refusal alone, when the handler leaves nothing in history',
      [[refusal('no')]],
      { errorHandlers: { modelRefusal: () => ({ finalOutput: 'sorry', includeInHistory: false }) } },
      ['message_output_created'],
    ],
  ])('%s [RUN-1310]', async (_, steps, options, names) => {
    const agent = new Agent({ name: 'A', model: new ScriptedModel(steps) });
    const stream = runStreamed(agent, 'go', options);
    const events = await readAll(stream);
    expect(events.flatMap((event) => (event.type === 'run_item_stream_event' ? [event.name] : []))).toEqual(names);
    expect(misplaced(events, stream)).toEqual([]);
  });

  it('what a handler says at the turn limit [RUN-1310]', async () => {
    const agent = new Agent({ name: 'A', model: new ScriptedModel([]) });
    const events = await readAll(
      runStreamed(agent, 'go', { maxTurns: 0, errorHandlers: { maxTurns: () => ({ finalOutput: 'enough' }) } }),
    );
    expect(namesOf(events)).toEqual(['agent A', 'message_output_created']);
  });
});

describe('events as JSON', () => {
  it('name agents, and have any data that a tool may give [RUN-1312]', async () => {
    const report = tool({
      name: 'report',
      parameters: z.object({}),
      execute: (_args, ctx) => {
        const circular: Record<string, unknown> = { at: new Date(0), big: 1n, fn: () => 1 };
        circular['self'] = circular;
        ctx.emit(circular);
        return 'ok';
      },
    });
    const agent = new Agent({ name: 'A', model: new ScriptedModel([[call('report', 'c1')], 'done']), tools: [report] });
    const events = await readAll(runStreamed(agent, 'go', { extendedEvents: true }));
    const json = events.map(
      (event) => JSON.parse(JSON.stringify(streamEventToJSON(event))) as { type: string; name?: string },
    );
    const extended = json.filter(({ type }) => type === 'run_extended_event');
    expect(extended[0]).toEqual({
      type: 'run_extended_event',
      name: 'turn_started',
      data: { turn: 1, agent: { name: 'A' } },
    });
    expect(extended[1]).toMatchObject({
      name: 'tool_progress',
      data: { tool_name: 'report', call_id: 'c1', data: { at: '1970-01-01T00:00:00.000Z', big: '1' } },
    });
    expect(extended[2]).toEqual({
      type: 'run_extended_event',
      name: 'turn_ended',
      data: { turn: 1, step: 'next_step_run_again', agent: { name: 'A' } },
    });
    for (const event of events) expect(Object.getPrototypeOf(event)).toBe(Object.prototype);
  });
});

describe('the option', () => {
  it('takes true or false, the limit a number of events [RUN-104, 217]', () => {
    const agent = new Agent({ name: 'A', model: new ScriptedModel([text('x')]) });
    expect(() => runStreamed(agent, 'x', { extendedEvents: 'yes' } as never)).toThrow(/extendedEvents/);
    for (const eventBufferLimit of [0, 1.5, -1, '5'])
      expect(() => runStreamed(agent, 'x', { eventBufferLimit } as never)).toThrow(/eventBufferLimit/);
  });

  it('is not remembered by a state [RUN-1311]', async () => {
    const { agent } = pair(new ScriptedModel([[call('gated', 'c1')], 'done']));
    const stream = runStreamed(agent, 'go', { extendedEvents: true });
    await readAll(stream);
    const state = await RunState.fromString(agent, stream.toState().toString());
    for (const item of state.interruptions) state.approve(item);
    expect(namesOf(await readAll(runStreamed(agent, state)))).not.toContain('turn_ended');
  });
});
