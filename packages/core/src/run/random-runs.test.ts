import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  Agent,
  configureLogging,
  defineModel,
  getRunErrorState,
  MaxTurnsExceededError,
  run,
  RunAbortedError,
  runStreamed,
  RunState,
  toUsage,
} from '../index.ts';
import type { AgentInputItem, Model, RunInput, RunOptions, RunResult } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { reasoning, text, toolCall } from '../testing/index.ts';
import { effectTool, PlainSession } from '../../test/run-kit.ts';

// Whatever interrupts a run (people, appends that fail, models that fail, limits, cancels), in whichever form and process
// it goes on: in the end it did what it would have done at one go, and nothing twice (STATE-534).

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

/** Numbers that look random, the same for one seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

interface Call {
  readonly id: string;
  readonly gated: boolean;
  readonly approved: boolean;
}
type Script = readonly (readonly Call[])[];

function scriptOf(random: (below: number) => number): Script {
  return Array.from({ length: 1 + random(4) }, (_, turn) =>
    Array.from({ length: 1 + random(3) }, (__, index) => ({
      id: `c${turn}_${index}`,
      gated: random(2) === 0,
      approved: random(3) > 0,
    })),
  );
}

/** Answers with the first turn whose calls it has not seen, so that it may be asked again. */
function modelOf(script: Script, failures: { left: number }): Model & { readonly asked: number[] } {
  const asked: number[] = [];
  const model = defineModel({
    async getResponse({ input }) {
      const seen = new Set(input.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : [])));
      const turn = script.findIndex((calls) => !seen.has(calls[0]?.id ?? ''));
      asked.push(turn);
      if (failures.left > 0) {
        failures.left -= 1;
        throw new Error('the model is down');
      }
      const calls = script[turn] ?? [];
      const output =
        calls.length === 0
          ? [{ ...text('done'), id: 'msg' }]
          : [
              { ...reasoning('hm'), id: `r${turn}` },
              ...calls.map(({ id, gated }) => toolCall(gated ? 'gated' : 'free', { id }, { callId: id })),
            ];
      return { output, usage: toUsage({ requests: 1 }), responseId: `resp_${turn}` };
    },
  });
  return Object.assign(model, { asked });
}

function agentOf(model: Model, effects: string[]): Agent {
  return new Agent({
    name: 'A',
    model,
    tools: [effectTool('free', effects), effectTool('gated', effects, { needsApproval: true })],
  });
}

/** Outputs of one turn may come in two passes; which one comes first depends on who decided when. */
function inTurns(items: readonly AgentInputItem[]): unknown[] {
  const groups: unknown[][] = [];
  let outputs: AgentInputItem[] = [];
  const flush = (): void => {
    if (outputs.length > 0) groups.push(outputs.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))));
    outputs = [];
  };
  for (const item of items) {
    if (item.type === 'function_call_output') outputs.push(item);
    else {
      flush();
      groups.push([item]);
    }
  }
  flush();
  return groups;
}

interface Ending {
  readonly result?: RunResult | undefined;
  readonly error?: unknown;
  readonly streamState?: RunState | undefined;
}

async function segment(
  agent: Agent,
  input: RunInput,
  options: RunOptions,
  random: (below: number) => number,
  cancels: boolean,
): Promise<Ending> {
  if (random(2) === 0)
    return await run(agent, input, options).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
  const stream = runStreamed(agent, input, options);
  let left = cancels ? random(25) : -1;
  const mode = random(2) === 0 ? 'after_turn' : 'immediate';
  const reads = random(4) > 0;
  try {
    if (reads)
      for await (const _ of stream) {
        if (left === 0) stream.cancel({ mode });
        left -= 1;
      }
    return { result: await stream.completed };
  } catch (error) {
    await stream.completed.catch(() => undefined);
    return { error, streamState: stream.toState() };
  }
}

/** Drives a run to its end through everything that `random` throws at it. */
async function drive(seed: number, kinds: { readonly faults: boolean; readonly cancels: boolean }) {
  const random = numbers(seed);
  const script = scriptOf(random);
  const approved = new Map(script.flat().map((call) => [call.id, call.approved]));
  const reference = async () => {
    const effects: string[] = [];
    const session = new PlainSession();
    const agent = agentOf(modelOf(script, { left: 0 }), effects);
    const result = await run(agent, 'go', {
      session,
      onApproval: (_ctx, item) => ({ type: approved.get(item.callId) ? 'approve' : 'reject' }),
    });
    return { effects: effects.toSorted(), items: inTurns(result.toInputList()), stored: inTurns(session.items) };
  };
  const effects: string[] = [];
  const failures = { left: 0 };
  const model = modelOf(script, failures);
  const agent = agentOf(model, effects);
  const session = new PlainSession();
  let input: RunInput = 'go';
  for (let round = 0; round < 60; round += 1) {
    if (kinds.faults && random(3) === 0)
      session.faults.splice(
        0,
        session.faults.length,
        ...Array.from({ length: random(3) }, () => undefined),
        random(2) === 0 ? 'before' : 'after',
      );
    if (kinds.faults && random(5) === 0) failures.left = 1;
    const maxTurns = random(4) === 0 ? 1 + random(3) : null;
    const ending: Ending = await segment(agent, input, { session, maxTurns }, random, kinds.cancels);
    session.faults.length = 0;
    failures.left = 0;
    if (ending.result?.status === 'completed') {
      return {
        outcome: {
          effects: effects.toSorted(),
          items: inTurns(ending.result.toInputList()),
          stored: inTurns(session.items),
        },
        expected: await reference(),
        effects,
        asked: model.asked,
      };
    }
    const { error } = ending;
    const known =
      error === undefined ||
      error === session.error ||
      error instanceof MaxTurnsExceededError ||
      error instanceof RunAbortedError ||
      (error as Error).message === 'the model is down';
    if (!known) throw error as Error;
    const left = ending.result?.toState() ?? getRunErrorState(error);
    let state = (random(2) === 0 ? left : (ending.streamState ?? left)) as RunState;
    if (state.status === 'unrecoverable')
      return { outcome: undefined, expected: await reference(), effects, asked: model.asked };
    if (random(2) === 0) state = await RunState.fromString(agent, state.toString());
    for (const item of state.interruptions) {
      if (random(3) === 0) continue;
      state.decide(item, { type: approved.get(item.callId) ? 'approve' : 'reject' });
    }
    input = state;
  }
  throw new Error('The run did not end.');
}

describe('a run of any script, interrupted anywhere', () => {
  it.each(Array.from({ length: 60 }, (_, index) => index + 1))(
    'by people and limits does what it would have done at one go (seed %i) [STATE-534]',
    async (seed) => {
      const { outcome, expected, asked } = await drive(seed, { faults: false, cancels: false });
      expect(outcome).toEqual(expected);
      expect(asked).toEqual([...new Set(asked)]);
    },
  );

  it.each(Array.from({ length: 120 }, (_, index) => index + 1001))(
    'also by appends and models that fail (seed %i) [STATE-534]',
    async (seed) => {
      const { outcome, expected, effects } = await drive(seed, { faults: true, cancels: false });
      // A final output that could not be stored ends the run for good; until then nothing was done twice.
      expect(outcome ?? { ...expected, effects: effects.toSorted() }).toEqual(expected);
    },
  );

  it.each(Array.from({ length: 120 }, (_, index) => index + 2001))(
    'also by cancels of both kinds (seed %i) [STATE-534, RUN-1413]',
    async (seed) => {
      const driven = await drive(seed, { faults: true, cancels: true }).catch((error: unknown) => error);
      // A call that was cut in the middle is never just run again: the run cannot end then.
      if ((driven as { code?: string }).code === 'call_executed_uncommitted') return;
      expect(driven).not.toBeInstanceOf(Error);
      const { outcome, expected, effects } = driven as Awaited<ReturnType<typeof drive>>;
      expect(outcome ?? { ...expected, effects: effects.toSorted() }).toEqual(expected);
    },
  );
});
