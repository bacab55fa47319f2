import type { AgentHooks } from './hooks.ts';
import type { ResolvedOutput } from './output.ts';
import type { DynamicPrompt, Prompt } from './prompt.ts';
import type { FunctionTool, MaybePromise, OutputType, Tool } from './tool.ts';
import type { ToolCallOutputItem } from '../items/items.ts';
import type { Model, ModelSettings } from '../models/model.ts';
import type { RunContext } from '../state/context.ts';
import { brand, internal } from '../base/brand.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { checkOptions, kindOf } from '../base/options.ts';
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

export interface AgentOptions<C = unknown, Own = string> {
  name: string;
  /** Tells agents of equal name apart in snapshots and run stores. */
  id?: string | undefined;
  instructions?: Instructions<C> | undefined;
  /** A prompt template of OpenAI's Responses API, or a function that chooses one. */
  prompt?: Prompt | DynamicPrompt<C> | undefined;
  tools?: readonly Tool<C>[] | undefined;
  /** Default: the provider's default model. */
  model?: string | Model | undefined;
  modelSettings?: ModelSettings | undefined;
  /** Default `'text'`: the final output is a string. */
  outputType?: OutputType<Own> | undefined;
  hooks?: AgentHooks<C> | undefined;
  /** Default `run_llm_again`. */
  toolUseBehavior?: ToolUseBehavior<C> | undefined;
  /** Forget a forced `toolChoice` once a tool was used. Default `true`. */
  resetToolChoice?: boolean | undefined;
}

/** An agent is data: options, read-only. `C` = the context it needs, `O` = the value its runs end with. */
export interface Agent<in C = unknown, out O = string> {
  readonly name: string;
  readonly id: string | undefined;
  readonly instructions: Instructions<C> | undefined;
  readonly prompt: Prompt | DynamicPrompt<C> | undefined;
  /** May be pushed to; takes effect in the next turn. */
  readonly tools: Tool<C>[];
  readonly model: string | Model | undefined;
  /** Those that were given, else the defaults of the model's name. */
  readonly modelSettings: ModelSettings;
  readonly outputType: OutputType<unknown>;
  readonly hooks: AgentHooks<C> | undefined;
  readonly toolUseBehavior: ToolUseBehavior<C>;
  readonly resetToolChoice: boolean;
  /** Shallow: what is not overridden is the same object as here. */
  clone<C2 = C, Own = O>(overrides: Partial<AgentOptions<C2, Own>>): Agent<C & C2, OwnOutput<Own>>;
}

/** Any agent, whatever it needs and gives. To run agents from a list, type the list: `Agent<My, unknown>[]`. */
export type AnyAgent = Agent<never, unknown>;

export interface AgentConstructor {
  new <C = unknown, Own = string>(options: AgentOptions<C, Own>): Agent<C, OwnOutput<Own>>;
  [Symbol.hasInstance](value: unknown): value is AnyAgent;
}

/** Any agent, written so that an inline `new Agent()` infers nothing from its place. */
export type AgentLike = Pick<AnyAgent, 'name' | 'resetToolChoice'>;

/** `Own`, but never inferred from where the agent is used (and, unlike `NoInfer`, invisible in hovers). */
type OwnOutput<Own> = [Own][Own extends unknown ? 0 : never];

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
  'tools',
  'model',
  'modelSettings',
  'outputType',
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
  readonly tools: Tool<never>[];
  readonly model: string | Model | undefined;
  readonly outputType: OutputType<unknown>;
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
    // The caller's own array: what they push to it later counts (TOOL-A3).
    this.tools = (options.tools ?? []) as Tool<never>[];
    this.model = options.model;
    this.outputType = options.outputType ?? 'text';
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
}

function checkAgentOptions(options: AgentOptions<never, unknown>): void {
  if (!isObject(options)) throw new UserError(`Agent: takes an object with at least \`name\`, not ${kindOf(options)}.`);
  const { name, id, instructions, prompt, tools, model, outputType, hooks, toolUseBehavior, resetToolChoice } =
    options as {
      readonly [K in keyof AgentOptions]?: unknown;
    };
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
  if (
    model !== undefined &&
    !(typeof model === 'string' && model.trim() !== '') &&
    !(isObject(model) && 'getResponse' in model && typeof model.getResponse === 'function')
  )
    throw refuse('model', 'a name that is not empty, or an object with `getResponse`', model);
  if (outputType !== undefined) checkOutputType(outputType, where);
  if (hooks !== undefined) checkAgentHooks(hooks, where);
  if (toolUseBehavior !== undefined) checkToolUseBehavior(toolUseBehavior, where);
  if (resetToolChoice !== undefined && typeof resetToolChoice !== 'boolean')
    throw refuse('resetToolChoice', 'true or false', resetToolChoice);
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
