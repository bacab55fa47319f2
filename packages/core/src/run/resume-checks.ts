import type { AnyAgent } from '../agent/agent.ts';
import type { ServerManaged, StateRecord } from '../state/record.ts';
import type { ResolvedOptions } from './options.ts';
import { UserError } from '../base/errors.ts';
import { checkSessionForResume } from '../sessions/recover.ts';
import { locateResponse } from '../state/locate.ts';
import { checkSupported } from '../snapshot/unsupported.ts';
import { checkServerManaged } from './server-managed.ts';

/**
 * What a resume checks before any effect (STATE-201, 209, 210, 332; SESS-051).
 *
 * @param managed how the provider knows the history from now on
 * @throws UserError
 */
export function checkResume(
  record: StateRecord,
  agent: AnyAgent,
  options: ResolvedOptions,
  managed: ServerManaged | undefined,
): void {
  const { session } = options;
  checkStartingAgent(record, agent);
  if (record.inUse) throw busy(record);
  checkServerManaged(managed, record.currentAgent, options);
  if (record.unrecoverable)
    throw new UserError(
      'The state ended at an unrecoverable boundary and cannot be resumed: its output was accepted but not stored. Start a new run.',
      { code: 'state_unrecoverable' },
    );
  checkSupported(record);
  checkSessionForResume(record, session);
}

/**
 * With output guardrails, a waiting turn must be known in full and be in no session yet: what they block has to be taken
 * out of everything (STATE-218).
 *
 * @throws UserError `resume_output_guardrail_boundary`
 */
export function checkGuardedResume(record: StateRecord, options: ResolvedOptions): void {
  const { currentAgent: agent, step } = record;
  const guarded = agent.outputGuardrails.length > 0 || (options.outputGuardrails?.length ?? 0) > 0;
  if (!guarded || step.type !== 'interruption') return;
  if (!locateResponse(record).located)
    throw boundary('which of its items belong to the response that waits is not known');
  if (agent.toolUseBehavior === 'run_llm_again' || record.persistedItemCount === 0) return;
  if (options.session) throw boundary('items of the response that waits are in the session already');
  record.persistedItemCount = 0;
}

function boundary(why: string): UserError {
  return new UserError(
    `The state cannot be resumed with output guardrails: ${why}, so that a blocked output could not be taken back. Start a new run from input that is safe.`,
    { code: 'resume_output_guardrail_boundary' },
  );
}

function busy({ pendingWrite }: StateRecord): UserError {
  return pendingWrite === undefined
    ? new UserError(
        'The state is being run already. Wait for that run to end, or restore the state once more for a second run.',
        { code: 'state_busy' },
      )
    : new UserError('Another run of this state is writing its pending session write. Wait for that run to end.', {
        code: 'session_write_busy',
      });
}

/** The agent's types are the result's types; one made anew under the same name, as servers do for each request, will do. */
function checkStartingAgent({ startingAgent }: StateRecord, agent: AnyAgent): void {
  if (agent === startingAgent || (agent.name === startingAgent.name && agent.id === startingAgent.id)) return;
  throw new UserError(
    `The state belongs to a run that began with agent ${startingAgent.name}, not ${agent.name}. Pass the run's starting agent.`,
    { code: 'agent_missing' },
  );
}
