import type { InputGuardrail, OutputGuardrail } from './guardrail.ts';
import type { Handoff, HandoffTarget } from './handoff.ts';
import type { AgentHooks } from './hooks.ts';
import type { ResolvedOutput } from './output.ts';
import type { DynamicPrompt, Prompt } from './prompt.ts';
import type { AgentToolOptions } from './agent-tool.ts';
import type { SchemaWithJson } from './schema.ts';
import type { FunctionTool, MaybePromise, OutputType, Tool, ToolArgs, ToolParameters } from './tool.ts';
import type { ToolCallOutputItem } from '../items/items.ts';
import type { Model, ModelSettings } from '../models/model.ts';
import type { RunContext } from '../state/context.ts';
import { brand, internal } from '../base/brand.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { checkOptions, kindOf } from '../base/options.ts';
import { agentAsTool } from './agent-tool.ts';
import { checkGuardrails } from './guardrail.ts';
import { isHandoff } from './handoff-internals.ts';
import { checkAgentHooks } from './hooks.ts';
import { checkInstructions } from './instructions.ts';
import { getDefaultModelSettings } from './model-defaults.ts';
import { checkModelSettings } from './model-settings.ts';
import { checkOutputType } from './output.ts';
import { checkPrompt } from './prompt.ts';
import { isFunctionTool } from './tool-internals.ts';

/** The system prompt, or a function called once per turn. */
export type Instructions<C> = string | ((ctx: RunContext<C>, agent: AnyAgent) => MaybePromise<string>);

/** What happens after local tools ran: ask the model again, or end the run with a tool's output. */
export type ToolUseBehavior<C> =
  | 'run_llm_again'
  | 'stop_on_first_tool'
  | { stopAtToolNames: readonly string[] }
  | ((ctx: RunContext<C>, results: readonly FunctionToolResult[]) => MaybePromise<ToolsToFinalOutputResult>);

export interface ToolsToFinalOutputResult {
  isFinalOutput: boolean;
  finalOutput?: unknown;
}

export interface FunctionToolResult {
  readonly tool: FunctionTool<never>;
  readonly output: unknown;
  readonly runItem: ToolCallOutputItem;
}

export interface AgentOptions<
  C = unknown,
  Own = string,
  H extends readonly HandoffLike[] = readonly HandoffTarget<C, Own>[],
> {
  name: string;
  /** Tells agents of equal name apart in snapshots and run stores. */
  id?: string | undefined;
  instructions?: Instructions<C> | undefined;
  /** A prompt template of OpenAI's Responses API, or a function that chooses one. */
  prompt?: Prompt | DynamicPrompt<C> | undefined;
  /** What other agents' models read about this one. */
  handoffDescription?: string | undefined;
  /** Agents, and handoffs made by `handoff`, that the model may pass the conversation to. */
  handoffs?: H | undefined;
  tools?: readonly Tool<C>[] | undefined;
  /** Default: the provider's default model. */
  model?: string | Model | undefined;
  modelSettings?: ModelSettings | undefined;
  /** Default `'text'`: the final output is a string. */
  outputType?: OutputType<Own> | undefined;
  /** Check the run's input when this agent is the first one. */
  inputGuardrails?: readonly InputGuardrail<C>[] | undefined;
  /** Check the final output when this agent gave it. */
  outputGuardrails?: readonly OutputGuardrail<C, NoInfer<Own>>[] | undefined;
  hooks?: AgentHooks<C> | undefined;
  /** Default `run_llm_again`. */
  toolUseBehavior?: ToolUseBehavior<C> | undefined;
  /** Forget a forced `toolChoice` once a tool was used. Default `true`. */
  resetToolChoice?: boolean | undefined;
}

/** An agent is data: options, read-only. `C` = the context it needs, `O` = the value its runs end with, handoffs included. */
export interface Agent<in C = unknown, out O = string> {
  readonly name: string;
  readonly id: string | undefined;
  readonly instructions: Instructions<C> | undefined;
  readonly prompt: Prompt | DynamicPrompt<C> | undefined;
  readonly handoffDescription: string | undefined;
  /** May be pushed to, for cycles; the target's output must fit `O`. */
  readonly handoffs: HandoffTarget<C, O>[];
  /** May be pushed to; takes effect in the next turn. */
  readonly tools: Tool<C>[];
  readonly model: string | Model | undefined;
  /** Those that were given, else the defaults of the model's name. */
  readonly modelSettings: ModelSettings;
  readonly outputType: OutputType<unknown>;
  readonly inputGuardrails: InputGuardrail<C>[];
  readonly outputGuardrails: OutputGuardrail<C, never>[];
  readonly hooks: AgentHooks<C> | undefined;
  readonly toolUseBehavior: ToolUseBehavior<C>;
  readonly resetToolChoice: boolean;
  /** Shallow: what is not overridden is the same object as here. */
  clone<C2 = C, Own = O, const H extends readonly HandoffLike[] = readonly []>(
    overrides: Partial<AgentOptions<C2, Own, H>>,
  ): Agent<C & C2 & ContextsOf<H>, OwnOutput<Own> | OutputsOf<H>>;
  /**
   * This agent as a tool of another one; its pauses surface in the outer run. Arguments default to `{ input: string }`.
   * @throws UserError for wrong options, and for names and schemas that models cannot be given
   */
  asTool<P extends ToolParameters = SchemaWithJson<unknown, { input: string }>>(
    options?: AgentToolOptions<C, O, P>,
  ): FunctionTool<C, ToolArgs<P>, string>;
}

/** Any agent, whatever it needs and gives. To run agents from a list, type the list: `Agent<My, unknown>[]`. */
export type AnyAgent = Agent<never, unknown>;

export interface AgentConstructor {
  new <C = unknown, Own = string, const H extends readonly HandoffLike[] = readonly HandoffTarget<C, Own>[]>(
    options: AgentOptions<C, Own, H>,
  ): Agent<C & ContextsOf<H>, OwnOutput<Own> | OutputsOf<H>>;
  [Symbol.hasInstance](value: unknown): value is AnyAgent;
}

/** Any agent, and any agent or handoff, written so that an inline `new Agent()` infers nothing from its place. */
export type AgentLike = Pick<AnyAgent, 'name' | 'resetToolChoice'>;
export type HandoffLike = AgentLike | Pick<Handoff<never>, 'toolName' | 'agentName'>;

/** `Own`, but never inferred from where the agent is used (and, unlike `NoInfer`, invisible in hovers). */
type OwnOutput<Own> = [Own][Own extends unknown ? 0 : never];

/** The union of the outputs of these agents and handoffs. */
export type OutputsOf<H extends readonly unknown[]> = H[number] extends infer T
  ? T extends HandoffTarget<never, infer O>
    ? O
    : never
  : never;

/** The intersection of the contexts that these agents and handoffs need. */
export type ContextsOf<H extends readonly unknown[]> = (
  H[number] extends infer T
    ? T extends Agent<infer C, unknown>
      ? (c: C) => void
      : T extends Handoff<infer C, unknown>
        ? (c: C) => void
        : never
    : never
) extends (c: infer I) => void
  ? I
  : unknown;

// ---- implementation

/** What an agent keeps for the loop. @internal */
export interface AgentInternals {
  /** As given; `undefined`: the defaults of whatever model is used in the end count (MODEL-303). */
  readonly settings: ModelSettings | undefined;
  /** Worked out at first use. */
  output: ResolvedOutput | undefined;
}

/** @internal */
export function agentInternals(agent: AnyAgent): AgentInternals {
  return (agent as unknown as { readonly [internal]: AgentInternals })[internal];
}

const known = [
  'name',
  'id',
  'instructions',
  'prompt',
  'handoffDescription',
  'handoffs',
  'tools',
  'model',
  'modelSettings',
  'outputType',
  'inputGuardrails',
  'outputGuardrails',
  'hooks',
  'toolUseBehavior',
  'resetToolChoice',
] as const;

/** How a clone gets the settings of its source: the same object, not a copy of the copy. */
const inherited: unique symbol = Symbol('settings of the source');

class AgentImpl {
  static {
    brand(this, 'Agent');
    Object.defineProperty(this, 'name', { value: 'Agent' });
  }

  readonly name: string;
  readonly id: string | undefined;
  readonly instructions: Instructions<never> | undefined;
  readonly prompt: Prompt | DynamicPrompt<never> | undefined;
  readonly handoffDescription: string | undefined;
  readonly handoffs: HandoffTarget<never, unknown>[];
  readonly tools: Tool<never>[];
  readonly model: string | Model | undefined;
  readonly outputType: OutputType<unknown>;
  readonly inputGuardrails: InputGuardrail<never>[];
  readonly outputGuardrails: OutputGuardrail<never, never>[];
  readonly hooks: AgentHooks<never> | undefined;
  readonly toolUseBehavior: ToolUseBehavior<never>;
  readonly resetToolChoice: boolean;
  /** @internal */
  declare readonly [internal]: AgentInternals;

  constructor(options: AgentOptions<never, unknown> & { readonly [inherited]?: ModelSettings | undefined }) {
    checkAgentOptions(options);
    this.name = options.name;
    this.id = options.id;
    this.instructions = options.instructions;
    this.prompt = options.prompt;
    this.handoffDescription = options.handoffDescription;
    // The caller's own arrays: what they push to them later counts (TOOL-A3).
    this.handoffs = (options.handoffs ?? []) as HandoffTarget<never, unknown>[];
    this.tools = (options.tools ?? []) as Tool<never>[];
    this.model = options.model;
    this.outputType = options.outputType ?? 'text';
    this.inputGuardrails = (options.inputGuardrails ?? []) as InputGuardrail<never>[];
    this.outputGuardrails = (options.outputGuardrails ?? []) as readonly unknown[] as OutputGuardrail<never, never>[];
    this.hooks = options.hooks;
    this.toolUseBehavior = options.toolUseBehavior ?? 'run_llm_again';
    this.resetToolChoice = options.resetToolChoice ?? true;
    const settings =
      options[inherited] ??
      (options.modelSettings === undefined
        ? undefined
        : checkModelSettings(options.modelSettings, `agent ${options.name}: modelSettings`));
    const internals: AgentInternals = { settings, output: undefined };
    Object.defineProperty(this, internal, { value: internals });
  }

  get modelSettings(): ModelSettings {
    const { settings } = this[internal];
    if (settings) return settings;
    return typeof this.model === 'object' ? {} : getDefaultModelSettings(this.model);
  }

  clone(overrides: Partial<AgentOptions<never, unknown>>): AgentImpl {
    checkOptions(overrides, known, `agent ${this.name}: clone`);
    const options: Record<PropertyKey, unknown> = {};
    for (const key of known) {
      const own = key === 'modelSettings' ? undefined : this[key];
      options[key] = overrides[key] === undefined ? own : overrides[key];
    }
    if (overrides.modelSettings === undefined) options[inherited] = this[internal].settings;
    const copy = new AgentImpl(options as unknown as AgentOptions<never, unknown>);
    if (copy.outputType === this.outputType) copy[internal].output = this[internal].output;
    return copy;
  }

  asTool(options?: AgentToolOptions<never, unknown, ToolParameters>): FunctionTool<never> {
    return agentAsTool<never, unknown, ToolParameters>(this as unknown as AnyAgent, options);
  }
}

type Unchecked = { readonly [K in keyof AgentOptions]?: unknown };

function checkAgentOptions(options: AgentOptions<never, unknown>): void {
  if (!isObject(options)) throw new UserError(`Agent: takes an object with at least \`name\`, not ${kindOf(options)}.`);
  const { name, id, instructions, prompt, tools, model, outputType, hooks, toolUseBehavior, resetToolChoice } =
    options as Unchecked;
  if (typeof name !== 'string') throw new UserError(`Agent: the field \`name\` takes a string, not ${kindOf(name)}.`);
  if (name === '')
    throw new UserError('Agent: the field `name` is empty. Snapshots, traces and messages name agents by it.');
  const where = `agent ${name}`;
  checkOptions(options, known, where);
  const refuse = (field: string, accepted: string, value: unknown): UserError =>
    new UserError(`${where}: the field \`${field}\` takes ${accepted}, not ${kindOf(value)}.`);
  if (id !== undefined && (typeof id !== 'string' || id === '')) throw refuse('id', 'a string that is not empty', id);
  if (instructions !== undefined) checkInstructions(instructions, where);
  if (prompt !== undefined) checkPrompt(prompt, where);
  if (tools !== undefined && !Array.isArray(tools)) throw refuse('tools', 'an array of tools', tools);
  const wrong = (tools as readonly unknown[] | undefined)?.findIndex((tool) => !isFunctionTool(tool)) ?? -1;
  if (wrong >= 0) throw refuse(`tools[${wrong}]`, 'a tool made by `tool()`', (tools as readonly unknown[])[wrong]);
  checkHandoffs(options, refuse);
  if (
    model !== undefined &&
    !(typeof model === 'string' && model.trim() !== '') &&
    !(isObject(model) && 'getResponse' in model && typeof model.getResponse === 'function')
  )
    throw refuse('model', 'a name that is not empty, or an object with `getResponse`', model);
  if (outputType !== undefined) checkOutputType(outputType, where);
  for (const field of ['inputGuardrails', 'outputGuardrails'] as const)
    if (options[field] !== undefined) checkGuardrails(options[field], field, where);
  if (hooks !== undefined) checkAgentHooks(hooks, where);
  if (toolUseBehavior !== undefined) checkToolUseBehavior(toolUseBehavior, where);
  if (resetToolChoice !== undefined && typeof resetToolChoice !== 'boolean')
    throw refuse('resetToolChoice', 'true or false', resetToolChoice);
}

function checkHandoffs(
  { handoffs, handoffDescription }: Unchecked,
  refuse: (field: string, accepted: string, value: unknown) => UserError,
): void {
  if (handoffDescription !== undefined && typeof handoffDescription !== 'string')
    throw refuse('handoffDescription', 'a string', handoffDescription);
  if (handoffs === undefined) return;
  if (!Array.isArray(handoffs)) throw refuse('handoffs', 'an array of agents and handoffs', handoffs);
  const wrong = handoffs.findIndex((target) => !(target instanceof AgentImpl) && !isHandoff(target));
  if (wrong >= 0) throw refuse(`handoffs[${wrong}]`, 'an agent, or a handoff made by `handoff()`', handoffs[wrong]);
}

function checkToolUseBehavior(behavior: unknown, where: string): void {
  if (behavior === 'run_llm_again' || behavior === 'stop_on_first_tool' || typeof behavior === 'function') return;
  if (isObject(behavior)) {
    checkOptions(behavior, ['stopAtToolNames'], `${where}: toolUseBehavior`);
    const names: unknown = (behavior as { stopAtToolNames?: unknown }).stopAtToolNames;
    if (Array.isArray(names) && names.every((name) => typeof name === 'string')) return;
  }
  throw new UserError(
    `${where}: the field \`toolUseBehavior\` takes 'run_llm_again', 'stop_on_first_tool', { stopAtToolNames: […] } or a function, not ${kindOf(behavior)}.`,
  );
}

/** @example new Agent({ name: 'Desk', instructions: 'Be brief.', tools: [refund], outputType: z.object({ ok: z.boolean() }) }) */
export const Agent: AgentConstructor = AgentImpl as unknown as AgentConstructor;
