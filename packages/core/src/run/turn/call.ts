import type { ResponseStreamEvent } from '../../items/wire.ts';
import type { ModelResponse } from '../../models/model.ts';
import type { StateRecord } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import type { PreparedCall } from './prepare.ts';
import { ModelBehaviorError, ModelTimeoutError, UserError } from '../../base/errors.ts';
import { toUsage } from '../../base/usage.ts';
import { callModel } from '../../models/call.ts';

/**
 * The model call of a turn. Its usage counts as soon as it is known, also that of a response which failed; raw events go
 * to the stream as they come.
 */
export async function callForTurn(prepared: PreparedCall, record: StateRecord, env: RunEnv): Promise<ModelResponse> {
  const { emit, control } = env;
  const request = {
    systemInstructions: prepared.instructions,
    ...(prepared.prompt === undefined ? undefined : { prompt: prepared.prompt }),
    input: prepared.input,
    ...env.server?.ids(record),
    modelSettings: prepared.settings,
    implicitSettings: prepared.implicitSettings,
    tools: prepared.tools,
    handoffs: prepared.handoffs,
    outputSchema: prepared.output.type === 'text' ? undefined : prepared.output.request,
    signal: env.inputCheck?.signal ?? control.signalForModel(),
    tracing: env.spans.modelTracing,
    traceParent: env.spans.current,
    attempt: env.attempt,
  };
  const { server } = env;
  const onEvent =
    emit &&
    ((data: ResponseStreamEvent): Promise<void> | undefined => {
      server?.seen(data, record, env);
      emit({ type: 'raw_response_event', data });
      return env.room?.();
    });
  const effect = { kind: 'model', turn: record.currentTurn, agentName: prepared.agent.name } as const;
  env.models.add(prepared.model);
  const compaction = env.session?.compaction;
  compaction?.asked();
  try {
    const response = await env.step(effect, () => {
      const answer = callModel(prepared.model, request, onEvent);
      return control.race(env.inputCheck?.cut(answer) ?? answer);
    });
    server?.accept(response, record, env);
    compaction?.answered(prepared.input, response.output);
    env.countUsage(response.usage);
    env.spans.countUsage(response.usage);
    return response;
  } catch (error) {
    // A request that left counts, with what the provider said that it cost; wrong use is found before.
    const failed = error instanceof ModelBehaviorError ? error.response?.usage : undefined;
    if (!(error instanceof UserError)) env.countUsage(failed ?? server?.acceptedUsage ?? toUsage());
    if (error instanceof ModelBehaviorError) env.deliverQueued = true;
    if (error instanceof ModelTimeoutError) env.spans.modelTimedOut(error);
    throw error;
  }
}
