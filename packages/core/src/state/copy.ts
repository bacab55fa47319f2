import { randomHex } from '../base/ids.ts';
import { contextInternals, RunContext } from './context.ts';
import { applyDecision } from './decide.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { GuardrailResultLists, StateRecord } from './record.ts';

/** What a fresh run begins with. */
export interface NewRecordInit {
  readonly agent: AnyAgent;
  /** The caller's value, not wrapped. */
  readonly context: unknown;
  readonly input: string | readonly AgentInputItem[];
  /** `null`: no limit. */
  readonly maxTurns: number | null;
  readonly reasoningItemIdPolicy?: 'preserve' | 'omit' | undefined;
  readonly sessionId?: string | undefined;
  /** Default: 128 random bits as hex. */
  readonly runKey?: string | undefined;
}

/** The record of a run that has not begun. */
export function newRecord(init: NewRecordInit): StateRecord {
  return ownContext({
    startingAgent: init.agent,
    currentAgent: init.agent,
    context: new RunContext(init.context),
    input: init.input,
    generatedItems: [],
    sessionItems: [],
    ownedHistory: [],
    modelResponses: [],
    processed: undefined,
    step: { type: 'none' },
    currentTurn: 0,
    maxTurns: init.maxTurns,
    persistedItemCount: 0,
    pendingWrite: undefined,
    unrecoverable: false,
    toolUse: new Map(),
    guardrailResults: { input: [], output: [], toolInput: [], toolOutput: [] },
    reasoningItemIdPolicy: init.reasoningItemIdPolicy,
    promptCacheKey: undefined,
    trace: undefined,
    runKey: init.runKey ?? randomHex(16),
    sessionId: init.sessionId,
    decisions: [],
    foreign: {},
    inUse: false,
  });
}

/**
 * An independent record (STATE-131…134): lists, decisions, ledger and usage are its own; items, responses, agents and the
 * application context are shared. It costs one slice of pointers per list.
 */
export function copyRecord(record: StateRecord): StateRecord {
  const { pendingWrite, trace } = record;
  return ownContext({
    ...record,
    context: copyContext(record.context),
    input: typeof record.input === 'string' ? record.input : record.input.slice(),
    generatedItems: record.generatedItems.slice(),
    sessionItems: record.sessionItems.slice(),
    modelResponses: record.modelResponses.slice(),
    step:
      record.step.type === 'interruption'
        ? { ...record.step, interruptions: record.step.interruptions.slice() }
        : record.step,
    pendingWrite: pendingWrite && {
      ...pendingWrite,
      items: pendingWrite.items.slice(),
      before: pendingWrite.before && [...pendingWrite.before],
    },
    toolUse: new Map([...record.toolUse].map(([agent, names]) => [agent, new Set(names)])),
    guardrailResults: copyResults(record.guardrailResults),
    trace: trace && { ...trace, ...(trace.metadata && { metadata: { ...trace.metadata } }) },
    decisions: record.decisions.slice(),
    agentToolRuns: copyAgentToolRuns(record),
    inUse: false,
  });
}

/** Paused runs are records too; what they keep is copied like the rest (STATE-133). */
export function copyAgentToolRuns({ agentToolRuns: runs }: StateRecord): StateRecord['agentToolRuns'] {
  return runs === undefined || runs.size === 0 ? undefined : runs.copy(copyRecord);
}

export function copyResults({ input, output, toolInput, toolOutput }: GuardrailResultLists): GuardrailResultLists {
  return {
    input: input.slice(),
    output: output.slice(),
    toolInput: toolInput.slice(),
    toolOutput: toolOutput.slice(),
  };
}

/** Makes `context.decide` decide on this record; a record's context belongs to it alone. */
export function ownContext(record: StateRecord): StateRecord {
  contextInternals(record.context).decide = (item, decision) => applyDecision(record, item, decision);
  return record;
}

/** Gives the record a context of its own in place of the one that a run goes on with. */
export function separateContext(record: StateRecord): void {
  record.context = copyContext(record.context);
  ownContext(record);
}

function copyContext(context: RunContext): RunContext {
  const from = contextInternals(context);
  const copy = new RunContext(from.value);
  const to = contextInternals(copy);
  to.usage = from.usage.copy();
  to.approvals = from.approvals.copy();
  to.ledger = from.ledger.copy();
  to.turnInput = from.turnInput;
  to.toolInput = from.toolInput;
  return copy;
}
