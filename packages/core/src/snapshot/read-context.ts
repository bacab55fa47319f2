import { answersLater } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import { usageFromJSON, UsageAccumulator } from '../base/usage.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { ApprovalMap } from '../state/approvals.ts';
import { RunContext } from '../state/context.ts';
import type { AgentGraph } from './agents.ts';
import type { ContextForeign } from './context-json.ts';
import { compact, own, visibleCause } from './json.ts';
import type { Json } from './json.ts';
import { readApprovals } from './read-approvals.ts';
import { usageExtras } from './usage-json.ts';
import type { Version } from './versions.ts';

/** A context as it is read. A `RunContext` of the caller is not touched before everything else was found to be right. */
export interface StoredContext {
  readonly context: RunContext;
  readonly usage: UsageAccumulator;
  readonly approvals: ApprovalMap;
  readonly toolInput: unknown;
  readonly foreign: ContextForeign;
}

/** Everything of the context but the ledger, which needs the items. */
export function readContext(
  json: JsonObject,
  graph: AgentGraph,
  version: Version,
  options: RestoreContextOptions,
): StoredContext {
  const approvals = readApprovals(json, graph, version);
  const context = readContextValue(json, options);
  return {
    context,
    usage: new UsageAccumulator(usageFromJSON(own(json, 'usage'))),
    approvals,
    toolInput: options.context === undefined ? own(json, 'tool_input') : undefined,
    foreign: foreignOf(json, context.context),
  };
}

function foreignOf(json: JsonObject, value: unknown): ContextForeign {
  const foreign: Json = { usage: usageExtras(own(json, 'usage')) };
  const meta = own(json, 'context_meta') as JsonObject | undefined;
  if (meta?.['requires_deserializer'] === true && value !== null && value === own(json, 'context')) {
    foreign['value'] = value as JsonObject;
    foreign['meta'] = meta;
  }
  return compact(foreign);
}

// ---- the caller's value

/** What replaces or rebuilds the stored context. */
export interface RestoreContextOptions {
  readonly context?: unknown;
  readonly contextDeserializer?: ((raw: JsonObject) => unknown) | undefined;
  readonly strictContext?: boolean | undefined;
}

/**
 * The context that the restored run gets. A `RunContext` becomes the state's own.
 *
 * @throws UserError `context_not_object`, `context_needs_deserializer`, `context_deserializer_failed`, `context_wrapper_subclass`
 */
function readContextValue(context: JsonObject, options: RestoreContextOptions): RunContext {
  if (options.context !== undefined) return contextFor(options.context);
  const stored = Object.hasOwn(context, 'context') ? own(context, 'context') : {};
  if (options.contextDeserializer !== undefined)
    return new RunContext(deserialized(stored, options.contextDeserializer));
  if (stored !== null && !isObject(stored)) throw notObject('The context in the run state');
  const contextMeta = own(context, 'context_meta');
  if (
    isObject(contextMeta) &&
    (own(contextMeta, 'requires_deserializer') === true || own(contextMeta, 'omitted') === true)
  ) {
    const problem = 'The context in this run state was no plain object';
    const help = 'Pass context or contextDeserializer to the restore';
    if (options.strictContext === true)
      throw new UserError(`${problem}. ${help}, or leave out strictContext.`, { code: 'context_needs_deserializer' });
    getLogger('run_state').warn(`${problem}; what is left of it is its data. ${help}.`);
  }
  return new RunContext(stored);
}

function contextFor(context: unknown): RunContext {
  if (!(context instanceof RunContext)) return new RunContext(context);
  // Of whichever copy of the package the class is: a subclass has one more prototype.
  if (Object.getPrototypeOf(Object.getPrototypeOf(context)) !== Object.prototype) {
    throw new UserError(
      'The option context takes your own value or a RunContext, but no subclass such as ToolContext.',
      { code: 'context_wrapper_subclass' },
    );
  }
  return context;
}

function deserialized(stored: JsonValue | undefined, deserializer: (raw: JsonObject) => unknown): unknown {
  if (!isObject(stored)) throw notObject('What contextDeserializer gets, the context in the run state,');
  let value: unknown;
  try {
    value = deserializer(stored);
  } catch (error) {
    throw new UserError('contextDeserializer threw while the run state was restored.', {
      code: 'context_deserializer_failed',
      ...visibleCause(error),
    });
  }
  if (answersLater(value))
    throw new UserError(
      'contextDeserializer must answer at once: it returned a promise, which would become the context. Do the waiting before the restore, and pass the option context.',
      { code: 'context_deserializer_failed' },
    );
  return value;
}

function notObject(what: string): UserError {
  return new UserError(`${what} must be a JSON object.`, { code: 'context_not_object' });
}
