import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { ApprovalMap } from '../state/approvals.ts';
import type { ApprovalRecord } from '../state/approvals.ts';
import type { AgentGraph } from './agents.ts';
import { own } from './json.ts';
import type { Version } from './versions.ts';

/**
 * @throws UserError `schema_feature_mismatch`, `approval_record_invalid`, `approval_owner_missing`, `agent_identity_missing`
 */
export function readApprovals(context: JsonObject, graph: AgentGraph, version: Version): ApprovalMap {
  const approvals = new ApprovalMap();
  const named = own(context, 'approvals');
  if (isObject(named)) {
    for (const [key, value] of Object.entries(named)) if (isObject(value)) approvals.named.set(key, readRecord(value));
  }
  readFunctions(own(context, 'function_tool_approvals'), approvals, graph, version);
  const hosted = own(context, 'hosted_mcp_approvals');
  if (version.has('hostedApprovals') && Array.isArray(hosted)) {
    for (const entry of hosted as readonly JsonValue[]) readHosted(entry, approvals);
  }
  return approvals;
}

function readFunctions(list: JsonValue | undefined, approvals: ApprovalMap, graph: AgentGraph, version: Version): void {
  if (list === undefined) return;
  if (!Array.isArray(list)) throw invalidRecord('must be a list');
  if (list.length > 0) version.require('functionOwners', 'decisions that belong to an agent');
  for (const [index, entry] of (list as readonly JsonValue[]).entries()) {
    const at = `[${index}]`;
    if (!isObject(entry)) throw invalidRecord(`${at} must be an object`);
    const key = own(entry, 'tool_key');
    const decision = own(entry, 'decision');
    if (typeof key !== 'string') throw invalidRecord(`${at}.tool_key must be a string`);
    if (!isObject(decision)) throw invalidRecord(`${at}.decision must be an object`);
    // Skipped in silence, a rejection would become an open question.
    if (!isChoice(own(decision, 'approved')) || !isChoice(own(decision, 'rejected')))
      throw invalidRecord(`${at}.decision must have approved and rejected, each true, false or a list of call ids`);
    const owner = graph.resolve(own(entry, 'agent'));
    if (owner === undefined) {
      throw new UserError(
        'The run state holds a decision of an agent that is not reachable from this one. Pass the original starting agent.',
        { code: 'approval_owner_missing' },
      );
    }
    if (graph.isDistinct(owner)) Object.assign(approvals.functionRecord(owner, key), readRecord(decision));
  }
}

function readHosted(entry: JsonValue, approvals: ApprovalMap): void {
  const identity = isObject(entry) ? own(entry, 'identity') : undefined;
  const decision = isObject(entry) ? own(entry, 'decision') : undefined;
  if (isObject(identity) && isObject(decision) && isHostedIdentity(identity))
    approvals.hosted.push({ identity, record: readRecord(decision) });
}

function isHostedIdentity(identity: JsonObject): boolean {
  const members = {
    server_tool: ['server_label', 'tool_name'],
    request: ['request_id'],
    query: ['tool_name', 'request_id'],
  };
  const type = own(identity, 'type');
  if (type !== 'server_tool' && type !== 'request' && type !== 'query') return false;
  return members[type].every((key) => typeof own(identity, key) === 'string');
}

/** What is not of the right kind decides nothing. */
function readRecord(json: JsonObject): ApprovalRecord {
  const messages = own(json, 'rejection_messages');
  const record: ApprovalRecord = {
    approved: readChoice(own(json, 'approved')),
    rejected: readChoice(own(json, 'rejected')),
    rejectionMessages: new Map(
      isObject(messages)
        ? Object.entries(messages).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
        : [],
    ),
  };
  const message = own(json, 'sticky_rejection_message');
  if (typeof message === 'string') record.stickyRejectionMessage = message;
  const scope = own(json, 'sticky_scope');
  if (typeof scope === 'string') record.stickyScope = scope;
  return record;
}

function readChoice(value: JsonValue | undefined): boolean | string[] {
  return isChoice(value) ? (Array.isArray(value) ? [...(value as readonly string[])] : (value as boolean)) : [];
}

function isChoice(value: JsonValue | undefined): boolean {
  return typeof value === 'boolean' || (Array.isArray(value) && value.every((member) => typeof member === 'string'));
}

/** Ids of calls that were decided one by one. */
export function decidedCalls(approvals: ApprovalMap): Set<string> {
  const ids = new Set<string>();
  const collect = ({ approved, rejected }: ApprovalRecord): void => {
    for (const list of [approved, rejected]) if (Array.isArray(list)) for (const id of list) ids.add(id);
  };
  for (const records of approvals.functions.values()) for (const record of records.values()) collect(record);
  for (const record of approvals.named.values()) collect(record);
  for (const { record } of approvals.hosted) collect(record);
  return ids;
}

function invalidRecord(what: string): UserError {
  return new UserError(
    `The decisions of agents in the run state are malformed: context.function_tool_approvals${what.startsWith('[') ? '' : ' '}${what}.`,
    { code: 'approval_record_invalid' },
  );
}
