import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';

/** What `$schemaVersion` is written as. */
export const currentVersion = '1.21';

/** The set that is read; anything else is refused before any other part is looked at. */
const supported: readonly string[] = Array.from({ length: 22 }, (_, minor) => `1.${minor}`);

/**
 * What a label can carry, by the first minor version that has it. The one place to touch for the next schema, together
 * with `currentVersion`.
 */
const since = {
  /** Agents of one name are told apart. Before: the first of that name. */
  agentIdentity: 7,
  programmaticCalls: 13,
  nestedHistory: 13,
  sessionIndexes: 13,
  hostedApprovals: 14,
  /** Before: rebuilt from history. */
  ledger: 15,
  recovery: 17,
  responseOwnership: 17,
  functionOwners: 18,
  compaction: 18,
  heldWrites: 19,
  guardrailBoundary: 20,
  /** Before: the order of same-named agents could depend on the state of their hooks. */
  hooklessIdentity: 21,
} as const;

export type Feature = keyof typeof since;

/** The label of one payload. */
export interface Version {
  readonly label: string;
  has(feature: Feature): boolean;
  /** @throws UserError `schema_feature_mismatch` when the label is older than the feature. */
  require(feature: Feature, what: string): void;
}

/**
 * Reads the label, and refuses states of other formats.
 *
 * @throws UserError `state_malformed`, `schema_missing`, `schema_type`, `schema_unsupported`, `foreign_run_state`
 */
export function readVersion(state: unknown): Version {
  if (!isObject(state)) {
    throw new UserError('A run state must be a JSON object, as toString() or toJSON() of a RunState gave it.', {
      code: 'state_malformed',
    });
  }
  const label = Object.hasOwn(state, '$schemaVersion') ? state['$schemaVersion'] : undefined;
  const known = `Supported: 1.0 to ${currentVersion}; ${currentVersion} is what this version writes.`;
  if (label === undefined)
    throw new UserError(`The run state has no $schemaVersion. ${known}`, { code: 'schema_missing' });
  if (typeof label !== 'string')
    throw new UserError(`The $schemaVersion of a run state must be a string. ${known}`, { code: 'schema_type' });
  if (!supported.includes(label))
    throw new UserError(`This $schemaVersion of a run state is not supported. ${known}`, {
      code: 'schema_unsupported',
    });
  if (Object.hasOwn(state, 'currentTurn') && !Object.hasOwn(state, 'current_turn')) {
    const message =
      'This is a run state of another TypeScript SDK (camelCase members). Finish that run where it began, or start a new one.';
    throw new UserError(message, { code: 'foreign_run_state' });
  }
  return version(label);
}

function version(label: string): Version {
  const minor = Number(label.slice(2));
  return {
    label,
    has: (feature) => minor >= since[feature],
    require: (feature, what) => {
      if (minor >= since[feature]) return;
      const message = `The run state holds ${what}, which needs $schemaVersion 1.${since[feature]} or later, but declares an older one.`;
      throw new UserError(message, { code: 'schema_feature_mismatch' });
    },
  };
}
