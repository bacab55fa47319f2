import type { AnyAgent } from '../src/agent/agent.ts';
import type { RunHooks } from '../src/agent/hooks.ts';
import type { RunInput, RunOptions } from '../src/run/options.ts';
import type { RunResult } from '../src/run/result.ts';
import type { Session } from '../src/sessions/contract.ts';
import type { RunStreamEvent } from '../src/run/events.ts';
import { expect } from 'vitest';
import { getRunErrorDetails, getRunErrorState } from '../src/base/errors.ts';
import type { RunErrorDetails } from '../src/base/errors.ts';
import { run, runStreamed } from '../src/run/run.ts';
import { MemorySession } from '../src/sessions/memory.ts';

/** One case of the loop: everything it needs is made anew for each form. */
export interface Scenario {
  /** Makes agent, input and options; `log` collects what the case wants to compare. */
  readonly setUp: (kit: ScenarioKit) => {
    readonly agent: AnyAgent;
    readonly input: RunInput | Promise<RunInput>;
    readonly options?: RunOptions<never>;
  };
  /** Goes on with what came out of the first segment (decisions, resumes). */
  readonly goOn?: (
    outcome: Outcome,
    go: (agent: AnyAgent, input: RunInput, options?: RunOptions<never>) => Promise<Outcome>,
    kit: ScenarioKit,
  ) => Promise<Outcome>;
}

export interface ScenarioKit {
  readonly log: string[];
  /** Hooks that write every event into the log. */
  readonly hooks: RunHooks<never>;
  /** A session whose writes are logged. */
  readonly session: (id: string) => Session & { readonly writes: unknown[][] };
}

export interface Outcome {
  readonly result: RunResult | undefined;
  readonly error: unknown;
  /** Of the streamed form. */
  readonly events: readonly RunStreamEvent[];
}

export interface SymmetricOutcome extends Outcome {
  readonly log: readonly string[];
  readonly writes: readonly unknown[][];
}

/**
 * Runs a scenario in both forms and compares what must be equal (RUN-002): input, replay lists, items, responses, usage,
 * hook log, session writes, final output, last agent, state text, error. Gives the streamed outcome, which has the events.
 */
export async function symmetry(
  scenario: Scenario,
): Promise<{ readonly plain: SymmetricOutcome; readonly streamed: SymmetricOutcome }> {
  const plain = await play(scenario, async (agent, input, options) =>
    settle(async () => (await run(agent as never, input as never, options as never)) as RunResult),
  );
  const streamed = await play(scenario, (agent, input, options) => settleStream(agent, input, options));
  expect(view(streamed)).toEqual(view(plain));
  return { plain, streamed };
}

async function play(
  scenario: Scenario,
  go: (agent: AnyAgent, input: RunInput, options?: RunOptions<never>) => Promise<Outcome>,
): Promise<SymmetricOutcome> {
  const log: string[] = [];
  const writes: unknown[][] = [];
  const kit: ScenarioKit = { log, hooks: loggingHooks(log), session: (id) => loggingSession(id, writes) };
  const { agent, input, options } = scenario.setUp(kit);
  let outcome = await go(agent, await input, options);
  if (scenario.goOn) outcome = await scenario.goOn(outcome, go, kit);
  return { ...outcome, log, writes };
}

async function settle(work: () => Promise<RunResult>): Promise<Outcome> {
  try {
    return { result: await work(), error: undefined, events: [] };
  } catch (error) {
    return { result: undefined, error, events: [] };
  }
}

async function settleStream(agent: AnyAgent, input: RunInput, options?: RunOptions<never>): Promise<Outcome> {
  const events: RunStreamEvent[] = [];
  try {
    const stream = runStreamed(agent as never, input as never, options as never);
    for await (const event of stream) events.push(event);
    return { result: (await stream.completed) as RunResult, error: undefined, events };
  } catch (error) {
    return { result: undefined, error, events };
  }
}

/** What both forms must agree on. Ids that are drawn anew in each run are left out. */
function view({ result, error, log, writes }: SymmetricOutcome): unknown {
  const details = error === undefined ? undefined : getRunErrorDetails(error);
  return {
    result: result && {
      status: result.status,
      input: result.input,
      preserved: result.toInputList(),
      normalized: result.toInputList({ mode: 'normalized' }),
      items: result.newItems.map((item) => [item.type, item.agent.name, item.rawItem]),
      responses: result.rawResponses,
      usage: result.context.usage,
      finalOutput: result.finalOutput,
      guardrails: verdictsOf(result),
      lastAgent: result.lastAgent.name,
      lastResponseId: result.lastResponseId,
      interruptions: result.interruptions.map((item) => item.callId),
      turn: result.currentTurn,
      state: comparable(result.toState().toString()),
    },
    error:
      error === undefined
        ? undefined
        : { name: (error as Error).name, message: (error as Error).message, code: (error as { code?: unknown }).code },
    errorItems: details?.newItems.map((item) => [item.type, item.rawItem]),
    errorResponses: details?.rawResponses,
    errorUsage: details?.context.usage,
    errorGuardrails: details && verdictsOf(details),
    errorState: comparable(getRunErrorState(error)?.toString()),
    log,
    writes,
  };
}

function verdictsOf(all: Omit<RunErrorDetails, 'toInputList'> | RunResult): unknown {
  return [
    all.inputGuardrailResults,
    all.outputGuardrailResults.map(({ agent, ...result }) => [agent.name, result]),
    all.toolInputGuardrailResults,
    all.toolOutputGuardrailResults,
  ];
}

function comparable(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  const { agents_ts: own, trace: _, ...state } = JSON.parse(text) as Record<string, unknown>;
  const { run_key: __, decisions, expiries: ___, ...rest } = (own ?? {}) as Record<string, unknown>;
  const undated = Array.isArray(decisions)
    ? decisions.map((decision: object) => ({ ...decision, at: undefined }))
    : undefined;
  return { ...state, agents_ts: { ...rest, decisions: undated } };
}

function loggingHooks(log: string[]): RunHooks<never> {
  return {
    onRunStart: (_ctx, agent) => void log.push(`runStart ${agent.name}`),
    onRunEnd: (_ctx, outcome) => void log.push(`runEnd ${outcome}`),
    onAgentStart: (_ctx, agent) => void log.push(`agentStart ${agent.name}`),
    onAgentEnd: (_ctx, agent, output) => void log.push(`agentEnd ${agent.name} ${JSON.stringify(output)}`),
    onHandoff: (_, from, to) => void log.push(`handoff ${from.name} ${to.name}`),
    onLlmStart: (_ctx, agent, prompt, input) =>
      void log.push(`llmStart ${agent.name} ${prompt ?? '-'} ${input.length}`),
    onLlmEnd: (ctx, agent) => void log.push(`llmEnd ${agent.name} ${ctx.usage.requests}`),
    onToolStart: (ctx, _agent, tool) => void log.push(`toolStart ${tool.name} ${ctx.toolCallId}`),
    onToolEnd: (ctx, _agent, tool, result) =>
      void log.push(`toolEnd ${tool.name} ${ctx.toolCallId} ${JSON.stringify(result)}`),
  };
}

function loggingSession(id: string, writes: unknown[][]): Session & { readonly writes: unknown[][] } {
  const memory = new MemorySession(id);
  return {
    sessionId: id,
    writes,
    getItems: (limit?: number) => memory.getItems(limit),
    addItems: (items) => {
      writes.push(structuredClone([...items]));
      return memory.addItems(items);
    },
    popItem: () => memory.popItem(),
    clearSession: () => memory.clearSession(),
  };
}
