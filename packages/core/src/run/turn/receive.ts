import type { RunItem } from '../../items/items.ts';
import type { ModelResponse } from '../../models/model.ts';
import type { ProcessedResponse, StateRecord } from '../../state/record.ts';
import type { RunEnv } from '../env.ts';
import type { PreparedCall } from './prepare.ts';
import { freezeRaw } from '../../items/views.ts';
import { contextInternals } from '../../state/context.ts';
import { isOfCallIds } from '../../state/ledger.ts';
import { qualifiedNameOf } from '../../state/lookup-key.ts';
import { callSharedHooks } from '../hooks.ts';
import { classify } from './classify.ts';
import { toolNotFound } from './call-run.ts';
import { planResponse } from './plan.ts';
import type { Plan } from './plan.ts';
import { announce, nextPosition } from './publish.ts';

type Asked = Pick<PreparedCall, 'agent' | 'table'>;

export interface Received {
  readonly plan: Plan;
  readonly processed: ProcessedResponse;
}

/** Steps 18 to 22 of a turn (RUN-401): what the response asks for, told to readers and hooks before anything of it runs. */
export async function receive(
  response: ModelResponse,
  prepared: Asked,
  record: StateRecord,
  env: RunEnv,
): Promise<Received> {
  let plan: Plan;
  try {
    plan = understand(response, prepared, env);
  } catch (error) {
    // A response whose call ids are unusable is not the end of a model call that hooks could make sense of (STATE-158).
    if (!isOfCallIds(error)) {
      forgetCalls(response, env);
      await llmEnd(response, record, env);
    }
    throw error;
  }
  const { items } = plan.classified;
  const processed = processedOf(plan);
  env.server?.understood(processed, record);
  announce(items, nextPosition(record), env);
  try {
    const told = llmEnd(response, record, env);
    if (told) await told;
    if (env.inputCheck) await env.inputCheck.throwIfKnown();
  } catch (error) {
    forgetCalls(response, env);
    throw error;
  }
  trackUse(record, items);
  return { plan, processed };
}

/** The response does not count, and the model is asked again: what it calls then may have the same ids. */
function forgetCalls({ output }: ModelResponse, { server, context }: RunEnv): void {
  if (server !== undefined) return;
  const { ledger } = contextInternals(context);
  for (const item of output) if (item.type === 'function_call') ledger.withdraw(item.call_id);
}

function processedOf({ classified: { items: newItems }, calls, handoffs: handingOff }: Plan): ProcessedResponse {
  const toolsUsed = newItems
    .map((item) => (isToolSearch(item) ? 'tool_search' : toolName(item)))
    .filter((name) => name !== undefined);
  const functions = calls.flatMap(({ call, tool }) => (tool ? [{ call, tool: descriptor(tool) }] : []));
  const handoffs = handingOff.map(({ call, handoff }) => ({ call, toolName: handoff.toolName }));
  return { newItems, toolsUsed, functions, handoffs, foreign: {} };
}

function understand(response: ModelResponse, prepared: Asked, env: RunEnv): Plan {
  const classified = classify(response, prepared.agent, prepared.table);
  for (const type of classified.unknownTypes)
    env.warnOnce(`item type ${type}`, `The model sent an output item of the unknown type ${type}; it is left out.`);
  const plan = planResponse(classified, contextInternals(env.context).ledger);
  if (plan.dropped)
    env.warnOnce(
      'repeated calls',
      'The model repeated a tool call that the run or its history already has (same id, tool and arguments); it is not run again.',
    );
  const missing = plan.calls.find(({ tool }) => tool === undefined);
  if (missing && env.options.toolNotFoundBehavior === 'raise_error') {
    env.spans.fail('Tool not found', { tool_name: missing.call.name });
    throw toolNotFound(missing.call.name, prepared.agent.name);
  }
  return plan;
}

export function llmEnd(response: ModelResponse, record: StateRecord, env: RunEnv): Promise<void> | undefined {
  if (env.server?.llmEndDue(record) === false) return undefined;
  return callSharedHooks(record, env, (hooks) => {
    if (hooks.onLlmEnd === undefined) return undefined;
    freezeResponse(response);
    return hooks.onLlmEnd(env.context as never, record.currentAgent, response);
  });
}

/** Hooks see the response that the run keeps (RUN-1203). */
function freezeResponse({ output, usage, rawUsage }: ModelResponse): void {
  for (const item of output) freezeRaw(item);
  freezeRaw(usage);
  freezeRaw(rawUsage);
}

/** One name per call, with its namespace; of the provider's tools the name of their kind. */
function toolName(item: RunItem): string | undefined {
  if (item.type === 'handoff_call_item') return item.rawItem.name;
  if (item.type !== 'tool_call_item' || item.toolName === undefined) return undefined;
  return qualifiedNameOf(item.toolName, (item.rawItem as { namespace?: string | null }).namespace);
}

/** Finding tools is no use of one: a forced choice stays (RUN-408). */
function isToolSearch({ type }: RunItem): boolean {
  return type === 'tool_search_call_item' || type === 'tool_search_output_item';
}

function trackUse({ toolUse, currentAgent }: StateRecord, items: readonly RunItem[]): void {
  for (const item of items) {
    const name = toolName(item);
    if (name === undefined) continue;
    const used = toolUse.get(currentAgent);
    if (used) used.add(name);
    else toolUse.set(currentAgent, new Set([name]));
  }
}

function descriptor(tool: NonNullable<Plan['calls'][number]['tool']>): ProcessedResponse['functions'][number]['tool'] {
  return {
    name: tool.name,
    description: tool.description,
    paramsJsonSchema: tool.paramsJsonSchema as never,
    lookupKey: { kind: 'bare', name: tool.name },
  };
}
