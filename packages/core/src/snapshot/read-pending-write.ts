import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { HeldWrite, ModelExchange, PendingWrite } from '../state/pending-write.ts';
import { own } from './json.ts';
import type { Feature, Version } from './versions.ts';

const required = ['session_id', 'items', 'before', 'persisted_count'];
const optional: Readonly<Record<string, Feature>> = {
  response_id: 'compaction',
  store: 'compaction',
  has_local_tool_outputs: 'compaction',
  append_acknowledged: 'compaction',
  compaction_model_exchange: 'compaction',
  held: 'heldWrites',
  reasoning_item_id_policy: 'heldWrites',
  current_response: 'heldWrites',
};
/**
 * Reads `pending_session_write` (STATE-318).
 *
 * @throws UserError `session_write_invalid`
 */
export function readPendingWrite(
  json: JsonValue | undefined,
  version: Version,
  currentTurn: number,
  mayGoOn: boolean,
): PendingWrite | undefined {
  if (json === undefined || json === null) return undefined;
  if (!isObject(json)) throw invalid('it must be an object');
  if (!version.has('recovery')) throw invalid('its $schemaVersion does not know one');
  if (!mayGoOn) throw invalid('the run has ended');
  checkMembers(json, version);
  const items = checkBase(json);
  checkOptional(json);
  checkHeld(json, currentTurn, items.length);
  return {
    sessionId: own(json, 'session_id') as string,
    items: items as unknown as readonly AgentInputItem[],
    before: own(json, 'before') as readonly string[] | null,
    persistedCount: own(json, 'persisted_count') as number,
    responseId: (own(json, 'response_id') ?? null) as string | null,
    store: (own(json, 'store') ?? null) as boolean | null,
    hasLocalToolOutputs: own(json, 'has_local_tool_outputs') === true,
    acknowledged: own(json, 'append_acknowledged') === true,
    held: readHeld(json),
    exchange: readExchange(own(json, 'compaction_model_exchange')),
  };
}

function readExchange(json: JsonValue | undefined): ModelExchange | undefined {
  if (!isObject(json)) return undefined;
  return {
    itemDigests: own(json, 'item_digests') as readonly string[],
    reasoningItemIdPolicy: own(json, 'reasoning_item_id_policy') as ModelExchange['reasoningItemIdPolicy'],
  };
}

function readHeld(json: JsonObject): HeldWrite | undefined {
  if (own(json, 'held') !== true) return undefined;
  const { turn, start } = own(json, 'current_response') as { readonly turn: number; readonly start: number };
  return { policy: (own(json, 'reasoning_item_id_policy') ?? null) as HeldWrite['policy'], turn, start };
}

function checkMembers(json: JsonObject, version: Version): void {
  for (const key of Object.keys(json)) {
    if (required.includes(key)) continue;
    const feature = Object.hasOwn(optional, key) ? optional[key] : undefined;
    if (feature === undefined) throw invalid('it has an unknown member');
    if (!version.has(feature)) throw invalid(`its $schemaVersion does not know ${key}`);
  }
}

function checkBase(json: JsonObject): readonly JsonObject[] {
  const items = own(json, 'items');
  const before = own(json, 'before');
  if (typeof own(json, 'session_id') !== 'string') throw invalid('session_id must be a string');
  if (!Array.isArray(items) || items.length === 0 || !items.every(isObject))
    throw invalid('items must be a list of objects, not empty');
  if (before !== null && !isListOf(before, isDigest)) throw invalid('before must be null or a list of SHA-256 digests');
  if (!isCount(own(json, 'persisted_count'))) throw invalid('persisted_count must be an integer of at least 0');
  return items as readonly JsonObject[];
}

function checkOptional(json: JsonObject): void {
  checkMember(json, 'response_id', 'a string or null', (value) => value === null || typeof value === 'string');
  checkMember(json, 'store', 'true, false or null', (value) => value === null || typeof value === 'boolean');
  checkMember(json, 'has_local_tool_outputs', 'true or false', (value) => typeof value === 'boolean');
  checkMember(
    json,
    'append_acknowledged',
    'true or false, and false while before is null',
    (value) => value === false || (value === true && own(json, 'before') !== null),
  );
  checkMember(json, 'compaction_model_exchange', 'a list of digests and a policy', isExchange);
}

function checkHeld(json: JsonObject, currentTurn: number, items: number): void {
  checkMember(json, 'held', 'true or false', (value) => typeof value === 'boolean');
  if (own(json, 'held') === true) {
    if (own(json, 'before') !== null || own(json, 'current_response') === undefined)
      throw invalid('a held batch needs before: null and current_response');
  } else if (own(json, 'reasoning_item_id_policy') !== undefined || own(json, 'current_response') !== undefined) {
    throw invalid('reasoning_item_id_policy and current_response belong to held batches');
  }
  checkMember(json, 'reasoning_item_id_policy', 'a policy', isPolicy);
  checkMember(json, 'current_response', 'exactly { turn, start } inside the run', (value) => {
    if (!isObject(value) || Object.keys(value).length !== 2) return false;
    const turn = own(value, 'turn');
    const start = own(value, 'start');
    return isCount(turn) && turn <= currentTurn && isCount(start) && start <= items;
  });
}

function checkMember(json: JsonObject, key: string, expected: string, fits: (value: JsonValue) => boolean): void {
  const value = own(json, key);
  if (value !== undefined && !fits(value)) throw invalid(`${key} must be ${expected}`);
}

function isExchange(value: JsonValue): boolean {
  if (!isObject(value) || Object.keys(value).length !== 2) return false;
  const policy = own(value, 'reasoning_item_id_policy');
  return (
    policy !== undefined &&
    isPolicy(policy) &&
    isListOf(own(value, 'item_digests'), (member) => typeof member === 'string')
  );
}

function isPolicy(value: JsonValue): boolean {
  return value === null || value === 'preserve' || value === 'omit';
}

function isListOf(value: JsonValue | undefined, fits: (member: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(fits);
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function invalid(why: string): UserError {
  return new UserError(
    `The pending Session write of the run state is invalid: ${why}. Restore the state as it was written.`,
    { code: 'session_write_invalid' },
  );
}
