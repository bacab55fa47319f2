import type { AnyAgent } from '../agent/agent.ts';
import type { Model, ModelRequest } from '../models/model.ts';
import type { RunOptions } from './options.ts';
import { checkRunOptions } from '../agent/run-option-checks.ts';
import { resolveRunOptions } from './options.ts';
import { Segment } from './segment.ts';
import { prepareCall } from './turn/prepare.ts';

/** Stands for models that have only a name: nothing is asked of it. */
const unasked = { getResponse: () => Promise.reject(new Error('not called')) } as unknown as Model;

/**
 * The first request of a run with these options, without input: prepared as every request is, and sent to nobody. No hook,
 * session, guardrail, trace or input filter is touched; instructions, prompt and what says whether a tool or handoff is
 * enabled are asked as in a run.
 *
 * @throws UserError for wrong options, and what the functions of the agent throw
 */
export async function firstRequest(agent: AnyAgent, options: RunOptions<never>, where: string): Promise<ModelRequest> {
  checkRunOptions(options, where);
  const segment = new Segment(
    agent,
    [],
    resolveRunOptions({
      ...options,
      hooks: undefined,
      callModelInputFilter: undefined,
      modelProvider: { getModel: () => unasked },
      tracingDisabled: true,
    }),
  );
  const { env, record, control } = segment;
  try {
    control.throwIfAborted();
    env.startHooksDue = false;
    const { instructions, prompt, settings, implicitSettings, tools, handoffs, output } = await prepareCall(
      record,
      env,
    );
    return {
      systemInstructions: instructions,
      ...(prompt !== undefined && { prompt }),
      input: [],
      modelSettings: settings,
      implicitSettings,
      tools,
      handoffs,
      outputSchema: output.type === 'text' ? undefined : output.request,
      tracing: env.spans.modelTracing,
    };
  } finally {
    control.dispose();
    env.spans.end();
  }
}
