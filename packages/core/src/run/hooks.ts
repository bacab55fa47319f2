import type { AgentHooks, RunHooks } from '../agent/hooks.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { StateRecord } from '../state/record.ts';
import type { RunEnv } from './env.ts';

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
