/** Every place at which a run calls what its users wrote, and what must come of a callback that misbehaves there. */

export const kinds = ['throw', 'reject', 'wrong', 'hang', 'cancel', 'late', 'mutate', 'trip'] as const;
/**
 * `hang` never settles and the caller's signal is aborted; `cancel` the same by `stream.cancel()`; `late` settles when the run
 * is over; `mutate` changes by a cast what it was given; `trip` is a guardrail's own way to say no.
 */
export type Kind = (typeof kinds)[number];

export const groups = [
  'hook',
  'guardrail',
  'filter',
  'mapper',
  'predicate',
  'tool',
  'agent tool',
  'handoff',
  'other',
] as const;
export type Group = (typeof groups)[number];

/**
 * What must come of a fault: the run fails with what was thrown, with a `UserError` (of the SDK, about the callback), with
 * either a failure of the tool or a text for the model, with an error of the class named; or it goes on.
 */
export type Fate =
  /** With the very thing that was thrown. */
  | 'thrown'
  /** With a `ToolCallError` around it. */
  | 'tool'
  /** By the policy of the tool: a text, or the run fails with a `ToolCallError`. */
  | 'policy'
  /** With a `UserError` that has it as `cause`. */
  | 'caused'
  | 'user_error'
  | 'model_behavior'
  | 'input_trip'
  | 'output_trip'
  | 'tool_input_trip'
  | 'tool_output_trip'
  | 'goes on';

export interface Site {
  readonly group: Group;
  /** What a throw or a rejection comes to. */
  readonly fails: readonly Fate[];
  /** What a value of a wrong kind comes to. Default: it is ignored. */
  readonly wrong?: readonly Fate[];
  /** What is of a wrong kind here. */
  readonly values?: readonly unknown[];
  /** Must answer at once: a promise is of a wrong kind, and nothing can hang. */
  readonly sync?: true;
  /** Nobody is kept by it: an abort comes too late, or nobody waits. */
  readonly unheard?: true;
  readonly trip?: Fate;
}

const nothing = [undefined, null, 0, 'no', [], {}, () => 1] as const;
const noText = [undefined, null, 3, {}, []] as const;
const noList = [undefined, null, 'items', 7, { length: 1 }, [3], [null], [undefined]] as const;
const noVerdict = [undefined, null, true, 'ok', {}, [], { tripwireTriggered: 'no' }] as const;
const noPatch = [undefined, null, 1, 'x', [], { newItems: 3 }, { inputItems: [{}] }, { inputHistory: 5 }] as const;

const hook = (fails: Fate = 'thrown'): Site => ({ group: 'hook', fails: [fails], values: nothing });
const guardrail = (trip: Fate): Site => ({
  group: 'guardrail',
  fails: ['thrown'],
  wrong: ['user_error'],
  values: noVerdict,
  trip,
});
const predicate: Site = {
  group: 'predicate',
  fails: ['thrown'],
  // What is not true is not enabled: the model asks for a tool that it was not told of.
  wrong: ['model_behavior', 'goes on'],
  values: [undefined, null, 0, ''],
};
const policy: Site = {
  group: 'predicate',
  // A resumed pass waits for a person instead.
  fails: ['caused', 'goes on'],
  wrong: ['user_error', 'goes on'],
  values: [undefined, null, 1, 'yes', {}],
};

export type AnywhereName =
  | 'run.onRunStart'
  | 'run.onRunEnd'
  | 'run.onAgentStart'
  | 'run.onAgentEnd'
  | 'run.onHandoff'
  | 'run.onToolStart'
  | 'run.onToolEnd'
  | 'run.onLlmStart'
  | 'run.onLlmEnd'
  | 'run.onTurnEnd'
  | 'run.onError'
  | 'agent.onStart'
  | 'agent.onEnd'
  | 'agent.onHandoff'
  | 'agent.onToolStart'
  | 'agent.onToolEnd'
  | 'agent.onLlmStart'
  | 'agent.onLlmEnd'
  | 'guardrail.input.blocking'
  | 'guardrail.input.parallel'
  | 'guardrail.output'
  | 'guardrail.tool.input'
  | 'guardrail.tool.output'
  | 'callModelInputFilter'
  | 'handoff.inputFilter'
  | 'tool.isEnabled'
  | 'handoff.isEnabled'
  | 'tool.needsApproval'
  | 'toolUseBehavior'
  | 'tool.execute'
  | 'tool.failureErrorFunction'
  | 'tool.customDataExtractor'
  | 'handoff.onHandoff'
  | 'handoff.onInvokeHandoff'
  | 'instructions';
export type OuterName =
  | 'run.handoffInputFilter'
  | 'handoffHistoryMapper'
  | 'sessionInputCallback'
  | 'customOutputExtractor'
  | 'inputBuilder'
  | 'onStream'
  | 'agentTool.isEnabled'
  | 'agentTool.needsApproval'
  | 'agentTool.failureErrorFunction'
  | 'agentTool.model'
  | 'onApproval'
  | 'toolErrorFormatter'
  | 'errorHandlers.maxTurns'
  | 'outputGuardrailBlockedMessage';

/** Those that a run has at its own level and in runs of its agent tools. */
const anywhere: Readonly<Record<AnywhereName, Site>> = {
  'run.onRunStart': hook(),
  'run.onRunEnd': { ...hook('goes on'), unheard: true },
  'run.onAgentStart': hook(),
  'run.onAgentEnd': hook(),
  'run.onHandoff': hook(),
  'run.onToolStart': hook(),
  'run.onToolEnd': hook(),
  'run.onLlmStart': hook(),
  'run.onLlmEnd': hook(),
  'run.onTurnEnd': hook(),
  'run.onError': { ...hook('goes on'), unheard: true },
  'agent.onStart': hook(),
  'agent.onEnd': hook(),
  'agent.onHandoff': hook(),
  'agent.onToolStart': hook(),
  'agent.onToolEnd': hook(),
  'agent.onLlmStart': hook(),
  'agent.onLlmEnd': hook(),
  'guardrail.input.blocking': guardrail('input_trip'),
  'guardrail.input.parallel': guardrail('input_trip'),
  'guardrail.output': guardrail('output_trip'),
  'guardrail.tool.input': guardrail('tool_input_trip'),
  'guardrail.tool.output': guardrail('tool_output_trip'),
  callModelInputFilter: {
    group: 'filter',
    fails: ['thrown'],
    wrong: ['user_error'],
    values: [undefined, null, 3, [], {}, { input: 'x' }, { input: [null] }],
  },
  'handoff.inputFilter': { group: 'filter', fails: ['thrown'], wrong: ['user_error'], values: noPatch },
  'tool.isEnabled': predicate,
  'handoff.isEnabled': predicate,
  'tool.needsApproval': policy,
  toolUseBehavior: {
    group: 'predicate',
    fails: ['thrown'],
    wrong: ['user_error'],
    values: [undefined, null, true, {}, [], { isFinalOutput: 'no' }],
  },
  'tool.execute': {
    group: 'tool',
    fails: ['policy'],
    values: [undefined, null, 5n, Symbol('s'), () => 1, new Map(), cyclic()],
  },
  'tool.failureErrorFunction': { group: 'tool', fails: ['tool'], wrong: ['user_error', 'goes on'], values: noText },
  'tool.customDataExtractor': {
    group: 'mapper',
    fails: ['thrown'],
    wrong: ['user_error'],
    values: [3, 'x', [1], { f: () => 1 }, { n: Number.NaN }, new Map()],
  },
  'handoff.onHandoff': { group: 'handoff', fails: ['thrown'], values: nothing },
  'handoff.onInvokeHandoff': {
    group: 'handoff',
    fails: ['thrown'],
    wrong: ['user_error'],
    values: [undefined, null, 'B', {}, { name: 'B' }],
  },
  instructions: { group: 'other', fails: ['thrown'], wrong: ['user_error'], values: noText },
};

const outer: Readonly<Record<OuterName, Site>> = {
  'run.handoffInputFilter': { group: 'filter', fails: ['thrown'], wrong: ['user_error'], values: noPatch },
  handoffHistoryMapper: { group: 'mapper', fails: ['thrown'], wrong: ['user_error'], values: noList, sync: true },
  sessionInputCallback: { group: 'mapper', fails: ['thrown'], wrong: ['user_error'], values: noList },
  customOutputExtractor: { group: 'mapper', fails: ['policy'], values: [undefined, null, 5, {}, cyclic()] },
  inputBuilder: { group: 'mapper', fails: ['policy'], wrong: ['policy'], values: [undefined, null, 5, {}] },
  onStream: { group: 'agent tool', fails: ['goes on'], values: nothing },
  'agentTool.isEnabled': { ...predicate, group: 'agent tool' },
  'agentTool.needsApproval': { ...policy, group: 'agent tool' },
  'agentTool.failureErrorFunction': {
    group: 'agent tool',
    fails: ['tool'],
    wrong: ['user_error', 'goes on'],
    values: noText,
  },
  'agentTool.model': { group: 'agent tool', fails: ['policy'], wrong: ['policy'], values: [undefined, null, 'x', {}] },
  onApproval: {
    group: 'other',
    // A resumed pass waits for a person instead.
    fails: ['caused', 'thrown', 'goes on'],
    wrong: ['user_error', 'goes on'],
    values: [null, true, 'approve', {}, { type: 'yes' }],
  },
  toolErrorFormatter: { group: 'other', fails: ['goes on'], values: noText },
  'errorHandlers.maxTurns': {
    group: 'other',
    fails: ['thrown'],
    wrong: ['user_error'],
    values: [null, 'x', {}, 3, []],
  },
  outputGuardrailBlockedMessage: { group: 'other', fails: ['goes on'], values: noText },
};

export type SiteName = AnywhereName | OuterName | `nested.${AnywhereName}`;

export const siteOf: Readonly<Record<SiteName, Site>> = {
  ...anywhere,
  ...outer,
  ...(Object.fromEntries(Object.entries(anywhere).map(([name, site]) => [`nested.${name}`, site])) as Record<
    `nested.${AnywhereName}`,
    Site
  >),
};
export const siteNames = Object.keys(siteOf) as SiteName[];
export const isNested = (name: SiteName): boolean => name.startsWith('nested.');

/** Kinds of faults that a place knows. */
export function kindsOf(name: SiteName): Kind[] {
  const site = siteOf[name];
  return kinds.filter((kind) => {
    if (kind === 'trip') return site.trip !== undefined;
    if (site.sync) return kind !== 'hang' && kind !== 'cancel' && kind !== 'late';
    return true;
  });
}

function cyclic(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}
