import type { AnyAgent } from '../../agent/agent.ts';
import type { ResolvedOutput } from '../../agent/output.ts';
import type { Prompt } from '../../agent/prompt.ts';
import type { Handoff } from '../../agent/handoff.ts';
import type { FunctionTool, MaybePromise } from '../../agent/tool.ts';
import type { AgentInputItem } from '../../items/items.ts';
import type { Model, ModelSettings } from '../../models/model.ts';
import type { StateRecord } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import type { CallModelInputFilter } from '../options.ts';
import type { ToolTable } from './classify.ts';
import { agentInternals } from '../../agent/agent.ts';
import { onePerName } from '../../agent/collisions.ts';
import { enabledHandoffs, enabledTools } from '../../agent/enabled.ts';
import { resolveInstructions } from '../../agent/instructions.ts';
import { getDefaultModelSettings } from '../../agent/model-defaults.ts';
import { resolveOutput } from '../../agent/output.ts';
import { resolvePrompt } from '../../agent/prompt.ts';
import { isThenable } from '../../base/at-once.ts';
import { UserError } from '../../base/errors.ts';
import { checkItemList } from '../../items/check.ts';
import { dedupeInput } from '../../items/convert.ts';
import { needsPromptCacheKey, withPromptCacheKey } from '../../models/cache-key.ts';
import { resolveModel } from '../../models/resolve.ts';
import { mergeSettings } from '../../models/settings.ts';
import { contextInternals, viewsOf } from '../../state/context.ts';
import { callHooks, callSharedHooks } from '../hooks.ts';

/** What one model call is made of. */
export interface PreparedCall {
  readonly agent: AnyAgent;
  readonly tools: readonly FunctionTool<never>[];
  readonly handoffs: readonly Handoff<never>[];
  readonly table: ToolTable;
  readonly output: ResolvedOutput;
  readonly model: Model;
  readonly settings: ModelSettings;
  readonly implicitSettings: readonly (keyof ModelSettings)[] | undefined;
  readonly instructions: string | undefined;
  readonly prompt: Prompt | undefined;
  readonly input: readonly AgentInputItem[];
}

/** Steps 5 to 15 of a turn (RUN-401): everything up to the request. */
export async function prepareCall(record: StateRecord, env: RunEnv): Promise<PreparedCall> {
  const agent = record.currentAgent;
  const { context, control } = env;
  const turnInput = env.modelInput.next(record);
  contextInternals(context).turnInput = turnInput;
  env.spans.agentInput(turnInput);
  env.inputCheck?.startParallel();
  if (env.startHooksDue) {
    env.startHooksDue = false;
    const told = callHooks(
      record,
      env,
      (hooks) => hooks.onAgentStart?.(context as never, agent),
      (hooks) => hooks.onStart?.(context as never, agent),
    );
    if (told) await told;
  }
  let enabled = enabledNow(record, env);
  if (isThenable(enabled)) enabled = await enabled;
  const text = resolveInstructions(agent, context);
  // Both at once; the first that fails counts.
  const [instructions, prompt] =
    agent.prompt === undefined
      ? [await control.race(text)]
      : await control.race(Promise.all([text, resolvePrompt(agent, context)]));
  let handoffs = handoffsNow(record, env);
  if (isThenable(handoffs)) handoffs = await handoffs;
  const tools = tableOf(enabled, handoffs, record, env);
  const output = resolveOutput(agent);
  let model = control.race(resolveModel({ runModel: env.options.model, provider: env.options.modelProvider, agent }));
  if (isThenable(model)) model = await model;
  env.server?.checkModel(model, agent, env);
  const { settings, implicit } = settingsOfTurn(record, env, model, prompt);
  const modelData = { input: turnInput, instructions };
  const filter = env.options.callModelInputFilter as CallModelInputFilter | undefined;
  const seen = filter === undefined ? modelData : await filterInput(filter, record, env, modelData);
  env.server?.sending(seen.input);
  const told = callSharedHooks(record, env, (hooks) =>
    hooks.onLlmStart?.(context as never, agent, seen.instructions, viewsOf(contextInternals(context)).list(seen.input)),
  );
  if (told) await told;
  if (env.session) await env.session.writeInput();
  if (env.inputCheck) await env.inputCheck.throwIfKnown();
  return {
    agent,
    tools: tools.list,
    handoffs: tools.handoffs,
    table: tools.table,
    output,
    model,
    settings,
    implicitSettings: implicit,
    instructions: seen.instructions,
    prompt,
    input: seen.input,
  };
}

export interface CollectedTools {
  readonly list: readonly FunctionTool<never>[];
  readonly handoffs: readonly Handoff<never>[];
  readonly table: ToolTable;
}

/** The tools and handoffs of today: enabled ones, one per name. */
export async function collectTools(record: StateRecord, env: RunEnv): Promise<CollectedTools> {
  return tableOf(await enabledNow(record, env), await handoffsNow(record, env), record, env);
}

function enabledNow(record: StateRecord, env: RunEnv): MaybePromise<readonly FunctionTool<never>[]> {
  return env.control.race(enabledTools(record.currentAgent, env.context));
}

function handoffsNow({ currentAgent }: StateRecord, env: RunEnv): MaybePromise<readonly Handoff<never>[]> {
  const warn = (name: string, text: string): void => env.warnOnce(`handoff name:${name}`, text);
  return env.control.race(enabledHandoffs(currentAgent, env.context, warn));
}

const noHandoffs: ToolTable['handoffs'] = new Map();

/** With tools and handoffs together, names that several of them have are seen (RUN-401 step 9). */
function tableOf(
  enabled: readonly FunctionTool<never>[],
  found: readonly Handoff<never>[],
  record: StateRecord,
  env: RunEnv,
): CollectedTools {
  const warn = (name: string, text: string): void => env.warnOnce(`collision:${name}`, text);
  const { tools, handoffs } = onePerName(
    { tools: enabled, handoffs: found },
    record.currentAgent.name,
    env.options.toolNameCollisionPolicy,
    warn,
  );
  env.spans.describeAgent(tools, handoffs);
  const table = {
    functions: new Map(tools.map((tool) => [tool.name, tool])),
    handoffs: handoffs.length === 0 ? noHandoffs : new Map(handoffs.map((handoff) => [handoff.toolName, handoff])),
  };
  return { list: tools, handoffs, table };
}

/** The agent's settings, else those that suit the model's name, with the run's laid over them (MODEL-207). */
function settingsOfTurn(
  record: StateRecord,
  env: RunEnv,
  model: Model,
  prompt: Prompt | undefined,
): { readonly settings: ModelSettings; readonly implicit: readonly (keyof ModelSettings)[] | undefined } {
  const agent = record.currentAgent;
  const { settings: own } = agentInternals(agent);
  const { modelSettings: given, model: runModel } = env.options;
  const named = runModel ?? agent.model;
  // Without a name of ours a prompt template brings its own model, and what suits that nobody here knows.
  const nameless = typeof named === 'object' || (named === undefined && prompt !== undefined);
  const base = own ?? (nameless ? {} : getDefaultModelSettings(named));
  let settings = given === undefined ? base : mergeSettings(base, given);
  env.storeSetting = settings.store ?? undefined;
  // A forced choice is forgotten once the agent used a tool, so that a run can end.
  const used = (record.toolUse.get(agent)?.size ?? 0) > 0;
  if (used && agent.resetToolChoice && settings.toolChoice !== undefined)
    settings = { ...settings, toolChoice: undefined };
  if (needsPromptCacheKey(model, settings))
    settings = withPromptCacheKey(settings, (record.promptCacheKey ??= env.cacheKey()));
  const implicit =
    own === undefined
      ? (Object.keys(base) as (keyof ModelSettings)[]).filter((key) => given?.[key] === undefined)
      : undefined;
  return { settings, implicit: implicit?.length ? implicit : undefined };
}

/** What `callModelInputFilter` returns is what this call sees, and nothing else changes. */
async function filterInput(
  filter: CallModelInputFilter,
  record: StateRecord,
  env: RunEnv,
  modelData: { readonly input: readonly AgentInputItem[]; readonly instructions: string | undefined },
): Promise<{ readonly input: readonly AgentInputItem[]; readonly instructions: string | undefined }> {
  let filtered: unknown;
  const views = viewsOf(contextInternals(env.context));
  const shown = { input: views.list(modelData.input).slice(), instructions: modelData.instructions };
  try {
    filtered = await env.control.race(filter({ modelData: shown, agent: record.currentAgent, context: env.context }));
  } catch (error) {
    env.spans.fail('Error in call_model_input_filter', { exception: error });
    throw error;
  }
  const { input, instructions } = (filtered ?? {}) as { input?: unknown; instructions?: unknown };
  if (!Array.isArray(input))
    throw new UserError('callModelInputFilter must return model input data: { input: […], instructions }.');
  checkItemList(input, 'callModelInputFilter returned');
  if (instructions !== undefined && typeof instructions !== 'string')
    throw new UserError('callModelInputFilter must return `instructions` as a string, or leave them out.');
  return { input: dedupeInput(views.sources(input as AgentInputItem[])), instructions };
}
