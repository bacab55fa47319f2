import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnyAgent } from './agent.ts';
import type { AgentTool } from './agent-tool.ts';
import type { CustomDataExtractor } from './custom-data.ts';
import type { ToolInputGuardrail, ToolOutputGuardrail } from './guardrail.ts';
import type { JsonSchema, SchemaWithJson } from './schema.ts';
import type { FitsOutput, ToolValue } from './tool-value.ts';
import type { ToolInternals } from './tool-internals.ts';
import type { ToolTimeoutError } from '../base/errors.ts';
import type { JsonObject } from '../items/wire.ts';
import type { RunContext, ToolContext } from '../state/context.ts';
import type { NeedsApproval } from '../state/decisions.ts';
import { internal } from '../base/brand.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { parametersOf, parseArguments, readParameters } from './arguments.ts';
import { checkGuardrails } from './guardrail.ts';
import { invokeTool } from './invoke.ts';
import { hasStandard } from './schema.ts';
import { copySchema, freezeDeep } from './schema-parts.ts';
import { checkTimeoutMs, readTimeout, timeoutBehaviors } from './timeout.ts';
import { readResultSchema } from './tool-result.ts';

export type { ToolCustomDataContext } from './custom-data.ts';
export type { OutputSchema, OutputType } from './output.ts';
export type { JsonSchema, SchemaWithJson } from './schema.ts';
export type { FitsOutput, ToolValue } from './tool-value.ts';

export type MaybePromise<T> = T | Promise<T>;

export type ToolParameters = StandardSchemaV1<unknown, unknown> | JsonSchema | undefined;

/** Nothing, or what tsc says about a schema that can only validate. */
export type NeedsJsonSchema<P> =
  P extends StandardSchemaV1<unknown, unknown>
    ? P extends SchemaWithJson<unknown, unknown>
      ? unknown
      : 'This schema gives no JSON Schema: use z.toJSONSchema(schema), or toStandardJsonSchema(schema) of Valibot'
    : unknown;

/** The arguments a tool sees: the schema's output; `{}` without parameters; `unknown` for a bare JSON Schema, which is not checked. */
export type ToolArgs<P> = P extends StandardSchemaV1<unknown, infer Out> ? Out : P extends undefined ? {} : unknown;

/** Turns a failure into text for the model. */
export type ToolErrorFunction<C> = (ctx: RunContext<C>, error: Error) => MaybePromise<string>;

export type IsEnabled<C> = boolean | ((ctx: RunContext<C>, agent: AnyAgent) => MaybePromise<boolean>);

/** `C` comes from `execute`, `CB` from the other callbacks; `toolFor<My>()` fixes both. `S` is what `outputSchema` is. */
export interface ToolOptions<P, C, R, CB = C, S = undefined> {
  /** Default: the name of the function `execute`, if it has one of its own. Letters, digits, `_`, `-`; at most 64. */
  name?: string | undefined;
  title?: string | undefined;
  description?: string | undefined;
  parameters?: P & NeedsJsonSchema<P>;
  /** Strict JSON Schema on the wire. Default `true`. */
  strict?: boolean | undefined;
  /**
   * Its value becomes text (strings as they are, everything else as JSON), or what `toolOutput` makes: text, images, files.
   * With `outputSchema` it is an object that becomes JSON.
   */
  execute: (args: ToolArgs<P>, ctx: ToolContext<C>) => MaybePromise<R>;
  /** Asked before the call runs. Default `false`. */
  needsApproval?: NeedsApproval<CB, ToolArgs<P>> | undefined;
  /** Asked each turn before the tools are sent, and again before the call runs. Default `true`. */
  isEnabled?: IsEnabled<CB> | undefined;
  /** `null` rethrows: the run fails. Default: a fixed text without the error's message. */
  failureErrorFunction?: ToolErrorFunction<CB> | null | undefined;
  /** Check each call before it runs, one after the other. */
  inputGuardrails?: readonly ToolInputGuardrail<CB>[] | undefined;
  /** Check what each call gave, failure texts too, one after the other. */
  outputGuardrails?: readonly ToolOutputGuardrail<CB>[] | undefined;
  /** Milliseconds that one call may take, arguments and body; then its signal is aborted. Default: no limit. */
  timeoutMs?: number | undefined;
  /** What becomes of a call that took too long: a text for the model, or the run fails. Default `error_as_result`. */
  timeoutBehavior?: 'error_as_result' | 'raise_exception' | undefined;
  /** The text of `error_as_result`. Default: `Tool '<name>' timed out after <s> seconds.` */
  timeoutErrorFunction?: ((ctx: RunContext<CB>, error: ToolTimeoutError) => MaybePromise<string>) | undefined;
  /**
   * Facts for your own use on the output item, `item.customData`: a plain object of JSON values, or nothing. The model never
   * sees them; states keep them.
   */
  customDataExtractor?: CustomDataExtractor<CB> | undefined;
  /** At most so many calls of this tool at once in one run. Default: all. */
  maxConcurrency?: number | undefined;
  /**
   * Who may call it: the model itself (`direct`), programs that the model wrote (`programmatic`), or both. Default
   * `['direct']`. A call by anyone else fails the run before a tool runs. The tool of the service that runs programs is not
   * part of this SDK yet: with the models that it has, calls are direct.
   */
  allowedCallers?: readonly ToolCaller[] | undefined;
  /**
   * What `execute` returns, an object, told to the model (of a Standard Schema its output side, in strict form: no optional
   * members). Each value goes through the schema; what that gives, after transforms and defaults, is what the model,
   * guardrails, hooks and `item.output` get. A value that does not fit, or has no JSON form, fails the run with a `UserError`
   * whatever `failureErrorFunction` says. Texts in place of a value (failures, timeouts, rejections) are not checked, nor is
   * anything by a bare JSON Schema.
   *
   * @example outputSchema: z.object({ left: z.number(), shelf: z.string().nullable() })
   */
  outputSchema?: S & NeedsJsonSchema<S>;
  /** Merged into the wire tool. */
  providerData?: JsonObject | undefined;
}

/** Who calls a tool: the model itself, or a program that the model wrote. */
export type ToolCaller = 'direct' | 'programmatic';

/** A function tool as others see it; immutable, made by `tool`. `C` = the context it needs, `A` = its arguments, `R` = what it gives. */
export interface FunctionTool<in C = unknown, in A = never, out R = unknown> {
  readonly type: 'function';
  readonly name: string;
  /** `namespace.name` inside a namespace, else `name`. */
  readonly qualifiedName: string;
  readonly title: string | undefined;
  readonly description: string;
  readonly paramsJsonSchema: JsonSchema;
  readonly strictJsonSchema: boolean;
  /** What it declares to return, as it is sent. */
  readonly outputJsonSchema: JsonSchema | undefined;
  readonly origin: ToolOrigin;
  readonly needsApproval: NeedsApproval<C, A>;
  readonly allowedCallers: readonly ToolCaller[];
  readonly providerData: JsonObject | undefined;
  /** Parses, validates and runs, with timeout and failure policy. Unit tests: `invokeFunctionTool`. */
  onInvokeTool(ctx: ToolContext<C>, argumentsJson: string): Promise<unknown>;
  /** A copy with other options; the source is untouched. */
  copyWith<S extends ToolParameters = undefined>(
    overrides: ToolOverrides<C, A, S>,
  ): FunctionTool<C, A, ToolValue<S, R>>;
}

/** What `copyWith` can change: all but parameters and body. */
export type ToolOverrides<C, A, S = undefined> = Omit<
  ToolOptions<undefined, C, unknown, C, S>,
  'parameters' | 'execute' | 'needsApproval'
> & {
  needsApproval?: NeedsApproval<C, A> | undefined;
};

/** Where a tool comes from. */
export type ToolOrigin =
  | { readonly type: 'function' }
  /** `mcpToolName` is the tool's name on its server, without prefixes. */
  | { readonly type: 'mcp'; readonly mcpServerName: string; readonly mcpToolName: string }
  | { readonly type: 'agent_as_tool'; readonly agentName: string; readonly agentToolName: string };

/** Anything an agent can call that needs context `C`. */
export type Tool<C = unknown> = FunctionTool<C, never, unknown>;

/**
 * A function tool. Arguments come from `parameters`, the context from an annotated `ctx`.
 *
 * @throws UserError for a bad name, option or schema; it names the tool and the path in the schema
 * @example tool({ name: 'refund', parameters: z.object({ id: z.string() }), needsApproval: true, execute: ({ id }, ctx: ToolContext<My>) => ctx.context.db.refund(id) })
 */
export function tool<
  P extends ToolParameters = undefined,
  C = unknown,
  R = unknown,
  CB = C,
  S extends ToolParameters = undefined,
>(
  options: ToolOptions<P, C, R, CB, S> & FitsOutput<S, NoInfer<R>>,
): FunctionTool<unknown extends CB ? C : C & CB, ToolArgs<P>, ToolValue<S, R>> {
  return make(options as unknown as Options) as unknown as FunctionTool<
    unknown extends CB ? C : C & CB,
    ToolArgs<P>,
    ToolValue<S, R>
  >;
}

/** `tool` for one context type: every `ctx` is typed without annotations. `const tool = toolFor<My>()`. */
export function toolFor<C>(): <P extends ToolParameters = undefined, R = unknown, S extends ToolParameters = undefined>(
  options: ToolOptions<P, C, R, C, S> & FitsOutput<S, NoInfer<R>>,
) => FunctionTool<C, ToolArgs<P>, ToolValue<S, R>> {
  return tool;
}

// ---- construction

/** Options whatever their types are. */
type Options = ToolOptions<undefined, never, unknown, never, ToolParameters> & { readonly [behind]?: AgentTool };

/** Passed beside the options by `asTool`; copies of the tool have it too. */
const behind: unique symbol = Symbol('the agent behind the tool');

const approvalKinds = kinds.either(kinds.boolean, kinds.function);

const overridable = {
  name: kinds.string,
  title: kinds.string,
  description: kinds.string,
  strict: kinds.boolean,
  needsApproval: kinds.any,
  isEnabled: kinds.either(kinds.boolean, kinds.function),
  failureErrorFunction: kinds.nullable(kinds.function),
  inputGuardrails: kinds.any,
  outputGuardrails: kinds.any,
  timeoutMs: checkTimeoutMs,
  timeoutBehavior: kinds.oneOf(...timeoutBehaviors),
  timeoutErrorFunction: kinds.function,
  customDataExtractor: kinds.function,
  maxConcurrency: kinds.integer(1),
  allowedCallers: checkCallers,
  outputSchema: kinds.any,
  providerData: kinds.object,
} as const;

const known = { ...overridable, parameters: kinds.any, execute: kinds.function } as const;

function make(options: Options): FunctionTool<never> {
  if (typeof options !== 'object' || options === null)
    throw new UserError(`tool: takes an object with \`name\`, \`parameters\` and \`execute\`, not ${kindOf(options)}.`);
  const where = typeof options.name === 'string' ? `tool ${options.name}` : 'tool';
  checkOptions(options, known, where);
  if (options.execute === undefined)
    throw new UserError(`${where}: the option \`execute\` is missing. It is the function that runs.`);
  return new ToolImpl(options, toolName(options));
}

/** A tool whose calls are runs of an agent. @internal */
export function makeAgentTool(options: Omit<Options, 'execute'>, agentTool: AgentTool): FunctionTool<never> {
  const execute = (): never => {
    throw new UserError(
      `tool ${options.name}: a tool made by \`asTool\` runs its agent, which only a run can do. Give it to an agent, or run the agent itself.`,
    );
  };
  return make({ ...options, execute, [behind]: agentTool });
}

function toolName({ name, execute }: Options): string {
  // `execute: () => …` is called `execute` by the language: nobody means that.
  const given: string = name ?? (execute.name === 'execute' ? '' : execute.name);
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(given))
    throw new UserError(
      `tool: the name '${given}' is no name of a tool. Pass \`name\` with 1 to 64 letters, digits, _ or -.`,
    );
  return given;
}

const direct: readonly ToolCaller[] = Object.freeze(['direct']);

/** Whether it is a list; what stands in it, `readCallers` looks at. */
function checkCallers(value: unknown): string | undefined {
  return Array.isArray(value) ? undefined : "a list of 'direct', 'programmatic' or both";
}

/** @throws UserError that says what is wrong with the list */
function readCallers(callers: readonly ToolCaller[] | undefined, where: string): readonly ToolCaller[] {
  if (callers === undefined) return direct;
  const list = [...callers];
  let problem: string | undefined;
  if (list.length === 0) problem = 'it is empty; `isEnabled: false` hides a tool from everybody';
  else if (!list.every((caller) => caller === 'direct' || caller === 'programmatic'))
    problem = 'it holds something else';
  else if (new Set(list).size < list.length) problem = 'it names one twice';
  if (problem === undefined) return Object.freeze(list);
  throw new UserError(
    `Option 'allowedCallers' of ${where} must be a list of 'direct', 'programmatic' or both: ${problem}.`,
  );
}

/** A list of its own; `undefined` when there is nothing in it. */
function given<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list === undefined || list.length === 0 ? undefined : [...list];
}

class ToolImpl implements FunctionTool<never> {
  readonly type = 'function' as const;
  readonly name: string;
  readonly qualifiedName: string;
  readonly title: string | undefined;
  readonly description: string;
  readonly paramsJsonSchema: JsonSchema;
  readonly strictJsonSchema: boolean;
  readonly outputJsonSchema: JsonSchema | undefined;
  readonly origin: ToolOrigin;
  readonly needsApproval: NeedsApproval<never, never>;
  readonly allowedCallers: readonly ToolCaller[];
  readonly providerData: JsonObject | undefined;
  /** @internal */
  declare readonly [internal]: ToolInternals;
  readonly #options: Options;

  constructor(options: Options, name: string) {
    const where = `tool ${name}`;
    const { needsApproval = false, strict = true, execute } = options;
    if (approvalKinds(needsApproval) !== undefined)
      throw new UserError(
        `${where}: \`needsApproval\` must be true, false or a function, not ${kindOf(needsApproval)}.`,
        { code: 'needs_approval_type' },
      );
    for (const field of ['inputGuardrails', 'outputGuardrails'] as const)
      if (options[field] !== undefined) checkGuardrails(options[field], field, where);
    const parameters = readParameters(options.parameters, strict, parametersOf(where));
    this.name = name;
    this.qualifiedName = name;
    this.title = options.title;
    this.description = options.description ?? '';
    this.paramsJsonSchema = parameters.json;
    this.strictJsonSchema = strict;
    const agentTool = options[behind];
    if (agentTool && options.outputSchema !== undefined)
      throw new UserError(
        `${where}: a tool made by \`asTool\` returns a text and takes no \`outputSchema\`. Give the agent an \`outputType\`.`,
      );
    const result = options.outputSchema === undefined ? undefined : readResultSchema(options.outputSchema, name);
    this.outputJsonSchema = result?.json;
    this.needsApproval = needsApproval;
    this.allowedCallers = readCallers(options.allowedCallers, where);
    this.providerData =
      options.providerData && (freezeDeep(copySchema(options.providerData, `${where}: providerData`)) as JsonObject);
    const inputGuardrails = given(options.inputGuardrails);
    const outputGuardrails = given(options.outputGuardrails);
    // Copies are made of what this tool is, whatever becomes of the objects that it was made of.
    this.#options = {
      ...options,
      ...(options.parameters !== undefined && !hasStandard(options.parameters) && { parameters: parameters.declared }),
      ...(result && !hasStandard(options.outputSchema) && { outputSchema: result.json }),
      allowedCallers: this.allowedCallers,
      providerData: this.providerData,
      inputGuardrails,
      outputGuardrails,
    } as Options;
    this.origin = Object.freeze(
      agentTool === undefined
        ? { type: 'function' }
        : { type: 'agent_as_tool', agentName: agentTool.agent.name, agentToolName: name },
    );
    const internals: ToolInternals = {
      parse: (argumentsJson) => parseArguments(`tool ${name}`, parameters, argumentsJson),
      execute,
      isEnabled: options.isEnabled ?? true,
      needsApproval: this.needsApproval,
      failureErrorFunction: options.failureErrorFunction,
      inputGuardrails,
      outputGuardrails,
      timeout: readTimeout(options),
      customDataExtractor: options.customDataExtractor,
      maxConcurrency: options.maxConcurrency,
      declared: parameters.declared,
      readResult: result?.read,
      agentTool,
    };
    // Not enumerable: a log of the tool shows what it is, not how it works.
    Object.defineProperty(this, internal, { value: Object.freeze(internals) });
    Object.freeze(this);
  }

  async onInvokeTool(ctx: ToolContext<never>, argumentsJson: string): Promise<unknown> {
    return (await invokeTool(this, ctx, argumentsJson)).output;
  }

  copyWith(overrides: ToolOverrides<never, never, never>): FunctionTool<never, never, never> {
    checkOptions(overrides, overridable, `tool ${this.name}: copyWith`);
    const options: Record<PropertyKey, unknown> = { ...this.#options, name: this.name };
    for (const [key, value] of Object.entries(overrides)) if (value !== undefined) options[key] = value;
    return new ToolImpl(options as unknown as Options, toolName(options as unknown as Options)) as FunctionTool<
      never,
      never,
      never
    >;
  }
}
