import type { AgentHooks, RunHooks } from '../agent/hooks.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { StateRecord } from '../state/record.ts';
import type { RunEnv } from './env.ts';
import { stateOf } from '../snapshot/run-state.ts';
import { copyRecord } from '../state/copy.ts';
import { nextStepOf } from '../state/next-step.ts';

/**
 * Calls the run's hook and the agent's hook of one event together. Both are awaited, also when one of them fails; the
 * first failure is the one that counts. Costs nothing where no hooks are set. Nothing starts in a run that was aborted.
 */
export function callHooks(
  record: StateRecord,
  env: RunEnv,
  ofRun: (hooks: RunHooks<never>) => MaybePromise<void> | undefined,
  ofAgent: (hooks: AgentHooks<never>) => MaybePromise<void> | undefined,
): Promise<void> | undefined {
  const runHooks = env.options.hooks;
  const agentHooks = record.currentAgent.hooks;
  if (runHooks === undefined && agentHooks === undefined) return undefined;
  return callBoth(env, runHooks && (() => ofRun(runHooks)), agentHooks && (() => ofAgent(agentHooks)));
}

/** Hooks that runs and agents have alike. */
type SharedHooks = Pick<RunHooks<never>, keyof RunHooks & keyof AgentHooks>;

/** `callHooks` for an event that runs and agents have the same hook for. */
export function callSharedHooks(
  record: StateRecord,
  env: RunEnv,
  hook: (hooks: SharedHooks) => MaybePromise<void> | undefined,
): Promise<void> | undefined {
  return callHooks(record, env, hook, hook);
}

/** A turn of this agent is recorded and stored (RUN-812, 1311). */
export async function turnEnded(agent: AnyAgent, record: StateRecord, env: RunEnv): Promise<void> {
  const turn = record.currentTurn;
  const step = nextStepOf(record.step)?.type;
  const hook = env.options.hooks?.onTurnEnd;
  if (step === undefined) return;
  env.extended?.({ type: 'run_extended_event', name: 'turn_ended', data: { turn, agent, step } });
  if (hook === undefined) return;
  env.control.throwIfAborted();
  const info = { turn, agent, step, toState: () => stateOf(copyRecord(record)) as RunState<never> };
  await env.spans.besideTurns(
    agent,
    async () => await env.control.race(hook.call(env.options.hooks, env.context as never, info)),
  );
}

type Call = () => MaybePromise<void> | undefined;

async function callBoth(env: RunEnv, ofRun: Call | undefined, ofAgent: Call | undefined): Promise<void> {
  env.control.throwIfAborted();
  const calls: Promise<void>[] = [];
  if (ofRun) calls.push(start(ofRun));
  if (ofAgent) calls.push(start(ofAgent));
  let failed = false;
  let failure: unknown;
  await env.control.race(
    Promise.all(
      calls.map((call) =>
        call.catch((error: unknown) => {
          if (!failed) failure = error;
          failed = true;
        }),
      ),
    ),
  );
  if (failed) throw failure;
}

/** A hook that throws at once fails like one that rejects. */
async function start(call: Call): Promise<void> {
  await call();
}
