import type { Agent, AnyAgent } from './agent.ts';
import type { JsonSchema } from './schema.ts';
import type {
  FunctionTool,
  IsEnabled,
  MaybePromise,
  NeedsJsonSchema,
  ToolArgs,
  ToolErrorFunction,
  ToolParameters,
} from './tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ResponseFunctionToolCall } from '../items/wire.ts';
import type { RunStreamEvent } from '../run/events.ts';
import type { NestedRunOptions } from '../run/options.ts';
import type { AgentToolResult } from '../run/result.ts';
import type { NeedsApproval } from '../state/decisions.ts';
import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { snakeName } from './handoff-internals.ts';
import { checkNestedRunOptions } from './run-option-checks.ts';
import { jsonSchema } from './schema.ts';
import { makeAgentTool } from './tool.ts';

export interface AgentToolOptions<C, O, P> {
  /** Default: the agent's name in snake case. */
  toolName?: string | undefined;
  /** What the outer model knows of the tool beside its name. Default: empty, so give one. */
  toolDescription?: string | undefined;
  /** Replaces `{ input: string }`; the nested run sees the arguments as structured text and in `ctx.toolInput`. */
  parameters?: P & NeedsJsonSchema<P>;
  /** Makes the input of the nested run. Default: the text of `input`; of `parameters` with descriptions, a text that explains them. */
  inputBuilder?:
    | ((args: {
        readonly params: ToolArgs<P>;
        readonly summary: string | undefined;
        readonly jsonSchema: JsonSchema | undefined;
      }) => MaybePromise<string | AgentInputItem[]>)
    | undefined;
  /** Add the JSON Schema of `parameters` to the nested input. Default `false`. */
  includeInputSchema?: boolean | undefined;
  /** Default: the final output as text, else the last message. */
  customOutputExtractor?: ((result: AgentToolResult<C, O>) => MaybePromise<string>) | undefined;
  /**
   * Streams the nested run and gives its events, in order, before the tool returns. A handler that falls more than 1024
   * events behind fails the call.
   */
  onStream?:
    | ((args: {
        readonly event: RunStreamEvent;
        readonly agent: AnyAgent;
        readonly toolCall: ResponseFunctionToolCall;
      }) => MaybePromise<void>)
    | undefined;
  /** Options of the nested run, over those of the outer run. Session, hooks, error handlers and `maxTurns` (10) are never inherited. */
  run?: NestedRunOptions<C> | undefined;
  /** Asked before the nested run starts; its own calls are asked about one by one. Default `false`. */
  needsApproval?: NeedsApproval<C, ToolArgs<P>> | undefined;
  isEnabled?: IsEnabled<C> | undefined;
  /** `null` rethrows what the nested run failed with. Default: a fixed text. */
  failureErrorFunction?: ToolErrorFunction<C> | null | undefined;
}

/** What `asTool` keeps for the run of its agent. @internal */
export interface AgentTool {
  readonly agent: AnyAgent;
  /** It has `parameters` of its own. */
  readonly structured: boolean;
  readonly options: Pick<
    AgentToolOptions<never, unknown, undefined>,
    'inputBuilder' | 'includeInputSchema' | 'customOutputExtractor' | 'onStream' | 'run'
  >;
}

const known = {
  toolName: kinds.string,
  toolDescription: kinds.string,
  parameters: kinds.any,
  inputBuilder: kinds.function,
  includeInputSchema: kinds.boolean,
  customOutputExtractor: kinds.function,
  onStream: kinds.function,
  run: kinds.object,
  needsApproval: kinds.any,
  isEnabled: kinds.either(kinds.boolean, kinds.function),
  failureErrorFunction: kinds.nullable(kinds.function),
};

const inputSchema = jsonSchema(
  {
    type: 'object',
    properties: { input: { type: 'string' } },
    required: ['input'],
    additionalProperties: false,
  },
  {
    validate: (value) => {
      const { input } = value as { input?: unknown };
      if (typeof input !== 'string') throw Object.assign(new TypeError(), { issues: [inputIssue] });
      return { input };
    },
  },
);

const inputIssue = { message: 'Expected a string', path: ['input'] };

/** `agent.asTool(options)`. @throws UserError for wrong options and names, and for schemas that models cannot be given */
export function agentAsTool<C, O, P extends ToolParameters>(
  agent: Agent<C, O>,
  options: AgentToolOptions<C, O, P> = {},
): FunctionTool<C, ToolArgs<P>, string> {
  const where = `agent ${agent.name}: asTool`;
  checkOptions(options, known, where);
  const { toolName, toolDescription = '', parameters, needsApproval, isEnabled, failureErrorFunction } = options;
  const { inputBuilder, includeInputSchema, customOutputExtractor, onStream, run } = options;
  if (run !== undefined) checkNestedRunOptions(run, `${where}, run`);
  const made = makeAgentTool(
    {
      name: toolName ?? defaultName(agent.name, where),
      description: toolDescription,
      parameters: (parameters ?? inputSchema) as never,
      needsApproval: needsApproval as never,
      isEnabled: isEnabled,
      failureErrorFunction: failureErrorFunction,
    },
    {
      agent,
      structured: parameters !== undefined,
      options: {
        inputBuilder: inputBuilder as never,
        includeInputSchema,
        customOutputExtractor: customOutputExtractor as never,
        onStream,
        run: run && { ...run },
      },
    },
  );
  return made as unknown as FunctionTool<C, ToolArgs<P>, string>;
}

/** @throws UserError */
function defaultName(agentName: string, where: string): string {
  const { name, replaced } = snakeName(agentName);
  if (name === '' || name.length > 64)
    throw new UserError(
      `${where}: the name of the agent gives no name of a tool (1 to 64 letters, digits, _ or -). Pass \`toolName\`.`,
    );
  if (replaced) {
    const whose = getLogger().dontLogToolData ? 'The name of an agent' : `The name of agent ${agentName} (${name})`;
    getLogger().warn(
      `${whose} has characters that names of tools have not; its tool has _ in their places. Pass \`toolName\` of asTool() for another one.`,
    );
  }
  return name;
}
