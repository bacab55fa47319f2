import type { Agent } from '../agent/agent.ts';
import type { RunContext } from '../state/context.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { RunResult, RunResultStreaming } from './result.ts';
import type { RunAgentTool } from './env.ts';
import type { RunInput, RunOptions, RunOptionsWithContext } from './options.ts';
import { checkObject } from '../base/options.ts';
import { checkRunOptions } from '../agent/run-option-checks.ts';
import { mergeRunOptions, resolveRunOptions } from './options.ts';
import type { ResolvedOptions } from './options.ts';
import { settledResult } from './result.ts';
import { Segment } from './segment.ts';
import { StreamedRun } from './stream.ts';

/** Options, with a context. Optional if the agent needs none, or the input is a state that brings one, or `D`, the defaults' own, fits. */
export type RunArgs<C, I, X = unknown, D = undefined> =
  | [options: RunOptionsWithContext<C> & X]
  | ([D] extends [C]
      ? [options?: RunOptions<C> & X]
      : [I] extends [RunState<C>]
        ? [options?: RunOptions<C> & X]
        : never);

/** `true` for a stream; decides the result's type. */
export interface StreamOption<S extends boolean> {
  stream?: S | undefined;
}

/**
 * Runs an agent to its final output, or to a pause for decisions.
 * @example let r = await run(agent, 'Refund 7', { session }); while (r.status === 'interrupted') { const s = r.toState(); …; r = await run(agent, s, { session }) }
 * @throws AgentsError with `runData`, and `state` where the run can go on.
 */
export async function run<C, O, I extends RunInput, S extends boolean = false>(
  agent: Agent<C, O>,
  input: I,
  ...options: RunArgs<NoInfer<C>, I, StreamOption<S>>
): Promise<S extends true ? RunResultStreaming<C, O> : RunResult<C, O>> {
  return (await dispatch(agent, input, {}, options[0])) as S extends true ? RunResultStreaming<C, O> : RunResult<C, O>;
}

/** The same as a stream, returned at once; wrong options throw synchronously. */
export function runStreamed<C, O, I extends RunInput>(
  agent: Agent<C, O>,
  input: I,
  ...options: RunArgs<NoInfer<C>, I>
): RunResultStreaming<C, O> {
  return streamed(agent, input, resolve({}, options[0], 'runStreamed'));
}

/** Defaults of a `Runner`. `D`: the context among them. */
export type RunnerDefaults<C, D> = Omit<RunOptions<C>, 'context'> & {
  /** For runs that are given none. */
  context?: D | RunContext<D> | NoInfer<C> | RunContext<NoInfer<C>>;
};

/**
 * `run` and `runStreamed` with defaults, for agents whose context is (at least) the defaults' `C`. With a context among
 * the defaults, agents that it fits are run without another one.
 * @example const runner = new Runner({ maxTurns: 3 }); await runner.run(agent, 'Hi')
 */
export class Runner<in C = unknown, D extends C | undefined = undefined> {
  readonly #defaults: object;

  /** @throws UserError for wrong options */
  constructor(defaults: RunnerDefaults<C, D> = {}) {
    checkRunOptions(defaults as unknown as RunOptions<never>, 'Runner');
    this.#defaults = { ...defaults };
  }

  async run<AC extends C, O, I extends RunInput, S extends boolean = false>(
    agent: Agent<AC, O>,
    input: I,
    ...options: RunArgs<NoInfer<AC>, I, StreamOption<S>, D>
  ): Promise<S extends true ? RunResultStreaming<AC, O> : RunResult<AC, O>> {
    return (await dispatch(agent, input, this.#defaults, options[0])) as S extends true
      ? RunResultStreaming<AC, O>
      : RunResult<AC, O>;
  }

  runStreamed<AC extends C, O, I extends RunInput>(
    agent: Agent<AC, O>,
    input: I,
    ...options: RunArgs<NoInfer<AC>, I, unknown, D>
  ): RunResultStreaming<AC, O> {
    return streamed(agent, input, resolve(this.#defaults, options[0], 'Runner.runStreamed'));
  }
}

function dispatch<C, O>(
  agent: Agent<C, O>,
  input: RunInput,
  defaults: object,
  given: (RunOptions<NoInfer<C>> & StreamOption<boolean>) | undefined,
): RunResultStreaming<C, O> | Promise<RunResult<C, O>> {
  // Before they are taken apart: the parts of anything would do.
  if (given !== undefined) checkObject(given, 'run');
  const { stream = false, ...options } = given ?? {};
  if (typeof stream !== 'boolean') checkRunOptions(given as RunOptions<never>, 'run');
  const resolved = resolve(defaults, options, 'run');
  return stream ? streamed(agent, input, resolved) : plain(agent, input, resolved);
}

function resolve(defaults: object, given: object | undefined, where: string): ResolvedOptions {
  const options = (given === undefined ? {} : given) as RunOptions<never>;
  checkRunOptions(options, where);
  return resolveRunOptions(mergeRunOptions(defaults as RunOptions<never>, options));
}

/** What only runs with agent tools need, loaded with the first one of a process. */
let nestedRuns: Promise<{ readonly runAgentTool: RunAgentTool }> | undefined;
const nested: RunAgentTool = async (call) => {
  nestedRuns ??= import('./nested.ts');
  return await (await nestedRuns).runAgentTool(call);
};

async function plain<C, O>(agent: Agent<C, O>, input: RunInput, options: ResolvedOptions): Promise<RunResult<C, O>> {
  const segment = new Segment(agent, input, options, { nested });
  await segment.run();
  return settledResult(segment.record, segment.trace);
}

function streamed<C, O>(agent: Agent<C, O>, input: RunInput, options: ResolvedOptions): RunResultStreaming<C, O> {
  // The members are getters over one record, whose types the class cannot know.
  return new StreamedRun(agent, input, options, nested) as unknown as RunResultStreaming<C, O>;
}
