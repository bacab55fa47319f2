import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import type { ModelRequest, ModelSettings } from '../models/model.ts';
import { plainCopy } from '../models/plain.ts';
import { cleanInput } from './input.ts';
import { handoffToWire, toolChoiceToWire, toolToWire } from './tools.ts';
import { VERSION } from './version.ts';

type Body = Record<string, unknown>;
export interface BuiltRequest {
  body: Body;
  options: Record<string, unknown>;
}

/** Body members that one setting alone makes; they yield to `extraArgs` where the setting was only implied by the model's name. */
const memberOfSetting: Readonly<Partial<Record<keyof ModelSettings, string>>> = {
  temperature: 'temperature',
  topP: 'top_p',
  truncation: 'truncation',
  maxTokens: 'max_output_tokens',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  reasoning: 'reasoning',
  verbosity: 'text',
  metadata: 'metadata',
  store: 'store',
  topLogprobs: 'top_logprobs',
};

/**
 * What is sent for a request; pure.
 * @param model `undefined`: the prompt template's
 * @throws UserError for requests that could only fail
 */
export function buildResponsesRequest(model: string | undefined, request: ModelRequest, stream: boolean): BuiltRequest {
  const { modelSettings: settings } = request;
  const extraBody = extraRecord(settings, 'extraBody');
  const { timeout, idempotency_key, ...extraArgs } = extraRecord(settings, 'extraArgs');
  const body = withExtraArgs(bodyOf(model, request, stream, extraBody), extraArgs, request);
  for (const [key, value] of Object.entries(extraBody)) if (key !== 'stream') body[key] = value;
  return { body: withoutUndefined(body), options: withoutUndefined(optionsOf(request, timeout, idempotency_key)) };
}

function bodyOf(model: string | undefined, request: ModelRequest, stream: boolean, extraBody: Body): Body {
  const { modelSettings: settings } = request;
  const prompt = promptOf(request);
  const tools = [...request.tools.map(toolToWire), ...request.handoffs.map(handoffToWire)];
  if (request.conversationId !== undefined && request.previousResponseId !== undefined) {
    getLogger('models').debug('Both a conversation and a previous response were given: the conversation is sent.');
  }
  return {
    previous_response_id: request.conversationId === undefined ? request.previousResponseId : undefined,
    conversation: request.conversationId,
    instructions: request.systemInstructions,
    model,
    input: cleanInput(request.input),
    include: includeOf(settings),
    // A template has tools of its own; an empty list would take them away.
    tools: prompt && tools.length === 0 ? undefined : structuredClone(tools),
    prompt,
    temperature: settings.temperature ?? undefined,
    top_p: settings.topP ?? undefined,
    truncation: settings.truncation ?? undefined,
    max_output_tokens: settings.maxTokens ?? undefined,
    tool_choice: choiceOf(settings, tools, { hasPrompt: prompt !== undefined, hasOther: 'tools' in extraBody }),
    parallel_tool_calls: tools.length > 0 || prompt ? (settings.parallelToolCalls ?? undefined) : undefined,
    stream: stream ? true : undefined,
    text: textOf(request),
    store: settings.store ?? undefined,
    prompt_cache_retention: settings.promptCacheRetention ?? undefined,
    prompt_cache_options: copied(settings, 'promptCacheOptions'),
    reasoning: copied(settings, 'reasoning'),
    metadata: copied(settings, 'metadata'),
    top_logprobs: settings.topLogprobs ?? undefined,
    context_management: copied(settings, 'contextManagement'),
  };
}

function promptOf({ prompt }: ModelRequest): Body | undefined {
  if (prompt === undefined) return undefined;
  const { id, version = null, variables } = prompt;
  return { id, version, variables: variables === undefined ? null : plainCopy(variables, 'prompt.variables') };
}

/** Next to a template without tools of our own, a choice that names a tool has nothing to name. */
function choiceOf(
  { toolChoice }: ModelSettings,
  tools: readonly Body[],
  from: { readonly hasPrompt: boolean; readonly hasOther: boolean },
): unknown {
  const choice = toolChoiceToWire(toolChoice, tools, from.hasPrompt || from.hasOther);
  return from.hasPrompt && tools.length === 0 && typeof choice === 'object' ? undefined : choice;
}

function includeOf(settings: ModelSettings): string[] | undefined {
  const asked: readonly unknown[] = settings.responseInclude ?? [];
  const wrong = asked.find((entry) => typeof entry !== 'string');
  if (wrong !== undefined) throw new UserError('modelSettings.responseInclude must have strings only.');
  const include = new Set(asked as readonly string[]);
  if (typeof settings.topLogprobs === 'number') include.add('message.output_text.logprobs');
  return include.size > 0 ? [...include] : undefined;
}

function textOf({ outputSchema, modelSettings }: ModelRequest): Body | undefined {
  const verbosity = modelSettings.verbosity ?? undefined;
  if (outputSchema === undefined) return verbosity === undefined ? undefined : { verbosity };
  const { name, schema, strict } = outputSchema;
  return withoutUndefined({
    format: { type: 'json_schema', name, schema: plainCopy(schema, 'outputSchema'), strict },
    verbosity,
  });
}

/** @throws UserError for keys that have a setting of their own, or that are sent already */
function withExtraArgs(body: Body, extraArgs: Body, request: ModelRequest): Body {
  const reserved = ['extra_headers', 'extra_query', 'extra_body', 'stream'].filter((key) => key in extraArgs);
  if (reserved.length > 0)
    throw new UserError(
      `modelSettings.extraArgs cannot hold ${reserved.toSorted().join(', ')}: use extraHeaders, extraQuery, extraBody, or runStreamed().`,
    );
  const yielding = new Set((request.implicitSettings ?? []).map((setting) => memberOfSetting[setting]));
  if (request.outputSchema !== undefined) yielding.delete('text');
  const colliding = Object.keys(extraArgs).filter((key) => body[key] !== undefined && !yielding.has(key));
  if (colliding.length > 0)
    throw new UserError(
      `modelSettings.extraArgs collides with what is sent already: ${colliding.toSorted().join(', ')}.`,
    );
  return { ...body, ...extraArgs };
}

function optionsOf(request: ModelRequest, timeout: unknown, idempotencyKey: unknown): Record<string, unknown> {
  const query = extraRecord(request.modelSettings, 'extraQuery');
  return {
    headers: headersOf(request.modelSettings.extraHeaders),
    query: Object.keys(query).length > 0 ? query : undefined,
    maxRetries: request.attempt?.disableProviderRetries === true ? 0 : undefined,
    timeout: timeout === undefined ? undefined : milliseconds(timeout),
    idempotencyKey,
  };
}

/** Ours below the user's, whatever the case; `null` removes a header, one of the client too. */
function headersOf(extra: ModelSettings['extraHeaders']): Record<string, string | null> {
  const headers = new Map<string, [name: string, value: string | null]>([
    ['user-agent', ['User-Agent', `Agents/TypeScript ${VERSION}`]],
  ]);
  for (const [name, value] of Object.entries(extra ?? {}))
    if (value !== undefined) headers.set(name.toLowerCase(), [name, value]);
  return Object.fromEntries(headers.values());
}

/** `extraArgs.timeout` is in seconds, as everywhere on the wire. */
function milliseconds(seconds: unknown): number {
  if (typeof seconds !== 'number' || !(seconds > 0) || !Number.isFinite(seconds))
    throw new UserError('modelSettings.extraArgs.timeout must be a number of seconds above 0.');
  return seconds * 1000;
}

function extraRecord(settings: ModelSettings, member: 'extraArgs' | 'extraBody' | 'extraQuery'): Body {
  return plainCopy(settings[member] ?? {}, `modelSettings.${member}`);
}

function copied(settings: ModelSettings, member: keyof ModelSettings): unknown {
  const value = settings[member];
  return value === undefined || value === null ? undefined : plainCopy(value, `modelSettings.${member}`);
}

function withoutUndefined<T extends Body>(record: T): T {
  for (const key of Object.keys(record)) if (record[key] === undefined) delete record[key];
  return record;
}
