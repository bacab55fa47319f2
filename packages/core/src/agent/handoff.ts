import type { JsonSchema, SchemaWithJson } from './schema.ts';
import type { IsEnabled, MaybePromise } from './tool.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import { brand, internal } from '../base/brand.ts';
import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { isPlainObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { Agent } from './agent.ts';
import { parseArguments, readParameters } from './arguments.ts';
import type { Parameters, ParsedArguments } from './arguments.ts';
import { derivedName, givesInput } from './handoff-internals.ts';
import type { HandoffHalves, HandoffInternals } from './handoff-internals.ts';
import { hasStandard } from './schema.ts';

export type HandoffTarget<C, O> = Agent<C, O> | Handoff<C, O>;

/** What a handoff's filter sees. Nothing of it can be changed in place. */
export interface HandoffInputData<out C = unknown> {
  /** The run's input before any agent spoke. */
  readonly inputHistory: string | readonly AgentInputItem[];
  /** Items of earlier turns. */
  readonly preHandoffItems: readonly RunItem[];
  /** Items of this turn, the handoff's call and output included. */
  readonly newItems: readonly RunItem[];
  /** If given, the model sees these instead of `newItems`. */
  readonly inputItems: readonly RunItem[] | undefined;
  readonly context: RunContext<C>;
}

/** What to change; members that are absent stay. `newItems` decides also what this turn leaves in the session, `inputItems` only what the model sees. */
export interface HandoffInputPatch {
  inputHistory?: string | readonly AgentInputItem[] | undefined;
  preHandoffItems?: readonly RunItem[] | undefined;
  newItems?: readonly RunItem[] | undefined;
  inputItems?: readonly RunItem[] | undefined;
}

/** @example (data) => ({ inputItems: data.newItems.filter((i) => i.type === 'message_output_item') }) */
export type HandoffInputFilter<C = unknown> = (data: HandoffInputData<C>) => MaybePromise<HandoffInputPatch>;

/** Replaces the default summary of nested history: what it returns is the next input. */
export type HandoffHistoryMapper = (transcript: AgentInputItem[]) => AgentInputItem[];

export interface HandoffOptions<C, P = undefined> {
  /**
   * What the model must give with the handoff. Where it does not fit, the run fails with a `ModelBehaviorError`, and nothing of
   * the handoff was called; running the error's state tells the model, which may try again.
   */
  inputType?: P;
  /** Default `transfer_to_` + the agent's name, lower case. */
  toolNameOverride?: string | undefined;
  toolDescriptionOverride?: string | undefined;
  /** Default: the run's `handoffInputFilter`. Any filter wins over nesting: `nestHandoffHistory` is then not looked at. */
  inputFilter?: HandoffInputFilter<C> | undefined;
  /** Give the next agent a summary in place of the conversation. Default: the run's `nestHandoffHistory`. Not beside a filter: compose the filter `nestHandoffHistory()` with it. */
  nestHandoffHistory?: boolean | undefined;
  /** Asked each turn. Default `true`. */
  isEnabled?: IsEnabled<C> | undefined;
}

/** With `inputType` the callback is required, and gets the validated input. */
export type HandoffCallback<C, P> =
  P extends SchemaWithJson<unknown, infer T>
    ? { onHandoff: (ctx: RunContext<C>, input: T) => MaybePromise<void> }
    : { onHandoff?: ((ctx: RunContext<C>) => MaybePromise<void>) | undefined };

export interface HandoffInit<C, O> {
  toolName: string;
  toolDescription: string;
  /** For graphs and logs. */
  agentName: string;
  /** Default: no input. */
  inputJsonSchema?: JsonSchema | undefined;
  /** Default `true`. */
  strictJsonSchema?: boolean | undefined;
  /** Picks the agent that goes on; must return an `Agent`. */
  onInvokeHandoff: (ctx: RunContext<C>, argumentsJson: string) => MaybePromise<Agent<C, O>>;
  inputFilter?: HandoffInputFilter<C> | undefined;
  nestHandoffHistory?: boolean | undefined;
  isEnabled?: IsEnabled<C> | undefined;
}

/** Passed beside the options by `handoff`: what is known of the target. */
const made: unique symbol = Symbol('made by handoff()');

const unknownTarget: HandoffInternals = { agent: undefined, derived: false, halves: undefined };

/**
 * Made by `handoff()`; construct one yourself when the target is only known at run time. A snapshot finds the agents of a run
 * from its starting agent on: list such targets in `handoffs` somewhere, or a stored run cannot be restored.
 * @example new Handoff({ toolName: 'escalate', toolDescription: 'To a senior', agentName: 'Senior', onInvokeHandoff: (ctx: RunContext<My>) => ctx.context.senior })
 */
export class Handoff<in C = unknown, out O = unknown> {
  static {
    brand(this, 'Handoff');
  }

  readonly toolName: string;
  readonly toolDescription: string;
  readonly agentName: string;
  readonly inputJsonSchema: JsonSchema;
  readonly strictJsonSchema: boolean;
  readonly isEnabled: IsEnabled<C>;
  readonly inputFilter: HandoffInputFilter<C> | undefined;
  readonly nestHandoffHistory: boolean | undefined;
  readonly onInvokeHandoff: (ctx: RunContext<C>, argumentsJson: string) => MaybePromise<Agent<C, O>>;
  /** @internal */
  declare readonly [internal]: HandoffInternals;

  /** @throws UserError for options of a wrong kind, for names that are none, and for schemas that strict mode cannot express */
  constructor(options: HandoffInit<C, O>) {
    const internals = (options as { readonly [made]?: HandoffInternals } | undefined)?.[made];
    if (internals === undefined) checkInit(options);
    const { toolName, strictJsonSchema = true } = options;
    this.toolName = toolName;
    this.toolDescription = options.toolDescription;
    this.agentName = options.agentName;
    this.inputJsonSchema =
      internals === undefined
        ? readParameters(options.inputJsonSchema, strictJsonSchema, { where: `handoff ${toolName}`, ...schemaOption })
            .json
        : (options.inputJsonSchema as JsonSchema);
    this.strictJsonSchema = strictJsonSchema;
    this.isEnabled = options.isEnabled ?? true;
    this.inputFilter = options.inputFilter;
    this.nestHandoffHistory = options.nestHandoffHistory;
    this.onInvokeHandoff = options.onInvokeHandoff;
    // Not enumerable: a log of a handoff does not need its target.
    Object.defineProperty(this, internal, { value: internals ?? unknownTarget });
    if (new.target === Handoff) Object.freeze(this);
  }
}

/**
 * A handoff with options; a plain agent in `handoffs` is `handoff(agent)`.
 *
 * @throws UserError naming the option: a wrong kind, `inputType` without `onHandoff`, a callback with too many parameters, a name that is none
 * @example handoff(billing, { inputType: z.object({ reason: z.string() }), onHandoff: (ctx, { reason }) => log(reason) })
 */
export function handoff<C, O, P extends SchemaWithJson<unknown, unknown> | undefined = undefined>(
  agent: Agent<C, O>,
  options?: HandoffOptions<C, P> & HandoffCallback<C, P>,
): Handoff<C, O> {
  if (!(agent instanceof Agent))
    throw new UserError(
      `handoff: the first argument must be an Agent (made by \`new Agent\`), not ${kindOf(agent)}. A target that is only known at run time takes \`new Handoff\`.`,
    );
  const where = `handoff to agent ${agent.name}`;
  checkOptions(options, optionChecks, where);
  const made = makeHandoff(agent, options, where);
  if (options?.toolNameOverride === undefined) warnReplaced(agent.name, (_, text) => getLogger().warn(text));
  return made as unknown as Handoff<C, O>;
}

/** A plain agent of a list of handoffs, as it is named today. @internal */
export function handoffOf(agent: Agent<never, unknown>, warn: (name: string, text: string) => void): Handoff<never> {
  warnReplaced(agent.name, warn);
  return makeHandoff(agent, undefined, `handoff to agent ${agent.name}`);
}

/** A name that lost more than white space may not be told from another one by the model. */
function warnReplaced(agentName: string, warn: (name: string, text: string) => void): void {
  const { name, replaced } = derivedName(agentName);
  if (!replaced) return;
  const whose = getLogger().dontLogToolData ? 'The name of an agent' : `The name of agent ${agentName} (${name})`;
  warn(
    name,
    `${whose} has characters that names of tools have not; the name of its handoff has _ in their places. Pass \`toolNameOverride\` of handoff() for another one.`,
  );
}

// ---- construction

type Options = (HandoffOptions<never, unknown> & { onHandoff?: unknown }) | undefined;
type Callback = (ctx: RunContext<never>, input?: unknown) => MaybePromise<void>;

const optionChecks = {
  inputType: kinds.any,
  toolNameOverride: kinds.string,
  toolDescriptionOverride: kinds.string,
  inputFilter: kinds.function,
  nestHandoffHistory: kinds.boolean,
  isEnabled: kinds.either(kinds.boolean, kinds.function),
  onHandoff: kinds.any,
};

const initChecks = {
  toolName: kinds.string,
  toolDescription: kinds.string,
  agentName: kinds.nonEmptyString,
  inputJsonSchema: kinds.object,
  strictJsonSchema: kinds.boolean,
  onInvokeHandoff: kinds.function,
  inputFilter: kinds.function,
  nestHandoffHistory: kinds.boolean,
  isEnabled: kinds.either(kinds.boolean, kinds.function),
};

const schemaOption = { option: 'inputJsonSchema', remedy: 'Change the shape, or pass `strictJsonSchema: false`.' };
const typeOption = { option: 'inputType', remedy: 'Change the shape.' };

function checkInit(options: unknown): void {
  if (!isPlainObject(options))
    throw new UserError(`Handoff: takes an object with \`toolName\` and \`onInvokeHandoff\`, not ${kindOf(options)}.`);
  checkOptions(options, initChecks, 'Handoff');
  for (const name of ['toolName', 'toolDescription', 'agentName', 'onInvokeHandoff'])
    if (options[name] === undefined) throw new UserError(`Handoff: the option \`${name}\` is missing.`);
  checkName(options['toolName'] as string, 'Handoff', 'toolName');
}

function checkName(name: string, where: string, option: string): void {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name)) return;
  throw new UserError(
    `${where}: '${name}' is no name of a tool. Pass \`${option}\` with 1 to 64 letters, digits, _ or -.`,
  );
}

function makeHandoff(agent: Agent<never, unknown>, options: Options, where: string): Handoff<never> {
  const { inputType, isEnabled, inputFilter, nestHandoffHistory, toolNameOverride, toolDescriptionOverride } =
    options ?? {};
  const onHandoff = options?.onHandoff as Callback | undefined;
  if (inputType !== undefined && !hasStandard(inputType))
    throw new UserError(
      `${where}: the option \`inputType\` takes a Standard Schema, not ${kindOf(inputType)}. A bare JSON Schema goes into jsonSchema().`,
    );
  checkCallback(onHandoff, inputType !== undefined, where);
  const toolName = toolNameOverride ?? derivedName(agent.name).name;
  checkName(toolName, where, 'toolNameOverride');
  const input = readParameters(inputType, true, { where: `handoff ${toolName}`, ...typeOption });
  const halves: HandoffHalves = {
    read: (argumentsJson) =>
      inputType === undefined ? { ok: true, value: undefined } : readInput(toolName, input, argumentsJson),
    take: async (ctx, value) => {
      await (inputType === undefined ? onHandoff?.(ctx) : onHandoff?.(ctx, value));
      return agent;
    },
  };
  const init: HandoffInit<never, unknown> & { readonly [made]: HandoffInternals } = {
    toolName,
    toolDescription: toolDescriptionOverride ?? defaultDescription(agent),
    agentName: agent.name,
    inputJsonSchema: input.json,
    strictJsonSchema: true,
    isEnabled,
    inputFilter,
    nestHandoffHistory,
    onInvokeHandoff: async (ctx, argumentsJson) => {
      const parsed = halves.read(argumentsJson);
      if (!parsed.ok) throw parsed.error;
      return await halves.take(ctx, parsed.value);
    },
    [made]: { agent, derived: toolNameOverride === undefined, halves },
  };
  return new Handoff(init);
}

function checkCallback(onHandoff: unknown, hasInput: boolean, where: string): void {
  if (onHandoff === undefined) {
    if (hasInput) throw new UserError(`${where}: \`inputType\` needs \`onHandoff\`, the function that gets the input.`);
    return;
  }
  if (typeof onHandoff !== 'function')
    throw new UserError(`${where}: the option \`onHandoff\` takes a function, not ${kindOf(onHandoff)}.`);
  const most = hasInput ? 2 : 1;
  if (onHandoff.length > most)
    throw new UserError(
      `${where}: \`onHandoff\` is called with ${hasInput ? 'the context and the input' : 'the context alone, as there is no `inputType`'}, and declares ${onHandoff.length} parameters.`,
    );
}

function readInput(toolName: string, input: Parameters, argumentsJson: string): ParsedArguments {
  if (givesInput(argumentsJson)) return parseArguments(`handoff ${toolName}`, input, argumentsJson);
  const error = new ModelBehaviorError(`The handoff ${toolName} expected input, and the model gave none.`);
  return { ok: false, error, issues: '(root): expected object' };
}

function defaultDescription({ name, handoffDescription }: Agent<never, unknown>): string {
  return `Handoff to the ${name} agent to handle the request. ${handoffDescription ?? ''}`.trimEnd();
}
