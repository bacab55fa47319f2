import { UserError } from '../base/errors.ts';
import type { UserErrorCode } from '../base/error-codes.ts';
import type { JsonObject } from '../items/wire.ts';
import { nestedRuns } from '../state/agent-tool-runs.ts';
import { approvalInternals } from '../state/decisions.ts';
import type { ProcessedFunction, ProcessedResponse, StateRecord, Step } from '../state/record.ts';
import { own } from './json.ts';

/** A reason why a restored run cannot go on here: what the state does, to follow "the state …". */
interface Unsupported {
  readonly subject: string;
  readonly code?: UserErrorCode;
}

/**
 * What a state holds that this version cannot continue, as the end of "The state …"; `undefined` when it can go on. Such a
 * state can be read, decided and written again without loss.
 */
export function unsupportedSubject(record: StateRecord): string | undefined {
  return find(record)?.subject;
}

/** @throws UserError before any effect, when the run cannot go on here */
export function checkSupported(record: StateRecord): void {
  const found = find(record);
  if (found === undefined) return;
  throw new UserError(
    `The run state ${found.subject}, which this version cannot continue. Resume it with the edition that wrote it.`,
    found.code && { code: found.code },
  );
}

function find(record: StateRecord): Unsupported | undefined {
  const here = inForeign(record) ?? inStep(record);
  if (here) return here;
  for (const { record: nested } of nestedRuns(record)) {
    const found = find(nested);
    if (found) return found;
  }
  return undefined;
}

function inForeign(record: StateRecord): Unsupported | undefined {
  const { foreign } = record;
  const additions = own(foreign, 'agents_ts') as JsonObject | undefined;
  if (own(foreign, 'sandbox') !== undefined)
    return { subject: 'needs a sandbox of the Python edition', code: 'sandbox_unsupported' };
  if (own(foreign, 'pending_input') !== undefined) return { subject: 'holds staged input' };
  if (additions?.['run_id'] !== undefined) return { subject: 'belongs to a run store', code: 'store_missing' };
  if (additions?.['expiries'] !== undefined) return { subject: 'holds calls whose approval expires' };
  return undefined;
}

function inStep({ step, processed, serverManaged }: StateRecord): Unsupported | undefined {
  if (step.type !== 'interruption') return undefined;
  if (step.responseAccepted && serverManaged === undefined)
    return { subject: 'has a response of a conversation that the provider keeps, and does not name that conversation' };
  return inWaitingItems(step) ?? (processed && inResponse(processed));
}

function inWaitingItems({ interruptions }: Extract<Step, { type: 'interruption' }>): Unsupported | undefined {
  for (const item of interruptions) {
    const { lookupKey } = approvalInternals(item);
    if (item.rawItem.type !== 'function_call')
      return { subject: `waits for a decision on a call of type ${item.rawItem.type}` };
    if (item.toolOrigin?.type === 'mcp')
      return { subject: 'waits for a decision on a tool of an MCP server', code: 'mcp_binding_mismatch' };
    if (lookupKey !== undefined && lookupKey.kind !== 'bare')
      return { subject: 'waits for a decision on a tool in a namespace or of a tool search' };
  }
  return undefined;
}

const lists: Readonly<Record<string, string>> = {
  computer_actions: 'waits with a computer call',
  custom_tool_actions: 'waits with a call of a custom tool',
  local_shell_actions: 'waits with a shell call',
  shell_actions: 'waits with a shell call',
  apply_patch_actions: 'waits with a patch',
  mcp_approval_requests: 'waits with a request of a hosted MCP server',
};

function inResponse({ functions, foreign }: ProcessedResponse): Unsupported | undefined {
  for (const [key, subject] of Object.entries(lists)) if (own(foreign, key) !== undefined) return { subject };
  if (own(foreign, 'mcp_tool_bindings') !== undefined)
    return { subject: 'waits with a call of a tool of an MCP server', code: 'mcp_binding_mismatch' };
  return functions.some(isOtherFunction)
    ? { subject: 'waits with a call of a tool in a namespace or of a tool search' }
    : undefined;
}

function isOtherFunction({ tool }: ProcessedFunction): boolean {
  return tool.lookupKey !== undefined && tool.lookupKey.kind !== 'bare';
}
