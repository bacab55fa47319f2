import type { FunctionTool } from '../../agent/tool.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { RunEnv } from '../env.ts';
import type { Pass } from './pass.ts';
import { toolInternals } from '../../agent/tool-internals.ts';
import { ModelBehaviorError } from '../../base/errors.ts';
import { Batch } from './batch.ts';
import { Places } from './places.ts';
import { CallRun } from './call-run.ts';

/**
 * Gates and runs the calls of a pass, side by side and in call order. Each finished output is committed at once; calls
 * that wait leave a waiting item in their place.
 * @throws what the first failing call threw; what its siblings finished stays committed
 */
export async function executeCalls(pass: Pass, env: RunEnv): Promise<void> {
  if (pass.calls.some(({ tool }) => tool && toolInternals(tool).isEnabled !== true)) await checkEnabled(pass, env);
  const batch = new Batch();
  const places = new Places(env.options.toolExecution?.maxFunctionToolConcurrency);
  const waiting = earlierWaiting(pass);
  const off = env.control.onAbort((error) => batch.fail(error));
  // An input that is not accepted stops calls that have not failed the turn already (RUN-910).
  const offInput = env.inputCheck?.onFailure((error) => {
    if (!batch.stopping) batch.fail(error);
  });
  try {
    // What a reader does at the events of the response comes before its calls: a run that was cut begins none.
    env.control.throwIfAborted();
    for (const call of pass.calls)
      batch.start(call, () => new CallRun(call, pass, env, batch, places).run(waiting?.get(call.call.call_id)));
    await batch.settled();
  } catch (error) {
    env.inputCheck?.tooLate();
    throw error;
  } finally {
    off();
    offInput?.();
  }
}

/** Items with which calls of this response wait since an earlier pass, by call id. */
function earlierWaiting(pass: Pass): ReadonlyMap<string, ToolApprovalItem> | undefined {
  const { step } = pass.record;
  if (pass.fresh) return undefined;
  return new Map(
    step.type === 'interruption'
      ? step.interruptions.filter((item) => item.agent === pass.agent).map((item) => [item.callId, item])
      : [],
  );
}

/** A tool may have been switched off since the model was told of it; asked once more before any call of the turn starts. */
async function checkEnabled(pass: Pass, env: RunEnv): Promise<void> {
  const asked = new Map<FunctionTool<never>, Promise<boolean>>();
  for (const { tool } of pass.calls) {
    if (tool === undefined || asked.has(tool)) continue;
    const { isEnabled } = toolInternals(tool);
    if (isEnabled === false) asked.set(tool, Promise.resolve(false));
    else if (isEnabled !== true) asked.set(tool, (async () => isEnabled(env.context as never, pass.agent))());
  }
  const answers = await env.control.race(Promise.all(asked.values()));
  const disabled = [...asked.keys()].find((_, index) => answers[index] !== true);
  if (disabled)
    throw new ModelBehaviorError(`Tool ${disabled.qualifiedName} is currently disabled for agent ${pass.agent.name}.`);
}
