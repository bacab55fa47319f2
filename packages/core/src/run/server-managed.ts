import type { AnyAgent } from '../agent/agent.ts';
import type { Model } from '../models/model.ts';
import type { ServerManaged } from '../state/record.ts';
import type { ResolvedOptions } from './options.ts';
import { UserError } from '../base/errors.ts';

// Whether the provider keeps the history of a run, and what that excludes. What sends the rest is loaded where it does.

const names = 'conversationId, previousResponseId or autoPreviousResponseId';

/**
 * How the provider knows the run's history: as the options say, else as the state that is resumed (RUN-108). `undefined`:
 * it keeps none.
 * @throws UserError for two ids at once
 */
export function serverManagedBy(
  { conversationId, previousResponseId, autoPreviousResponseId = false }: ResolvedOptions,
  stored: ServerManaged | undefined,
): ServerManaged | undefined {
  if (conversationId !== undefined && previousResponseId !== undefined)
    throw new UserError(
      'The options conversationId and previousResponseId exclude each other: a history is kept as a conversation or as a chain of responses.',
    );
  const auto = autoPreviousResponseId || stored?.auto === true;
  const undelivered = stored?.undelivered;
  if (conversationId !== undefined) return { conversationId, auto, undelivered };
  if (previousResponseId !== undefined) return { previousResponseId, auto, undelivered };
  return stored === undefined && !auto ? undefined : { ...stored, auto };
}

/**
 * What goes with no history that the provider keeps: a session, and output guardrails where the model is known already.
 * @throws UserError `session_conflict`, or about the guardrails
 */
export function checkServerManaged(
  managed: ServerManaged | undefined,
  agent: AnyAgent,
  { session, outputGuardrails, model }: ResolvedOptions,
): void {
  if (managed === undefined) return;
  if (session)
    throw new UserError(
      `The option session and ${given(managed)} exclude each other: the history is kept by the session, or by the provider (${names}).`,
      { code: 'session_conflict' },
    );
  const known = model ?? agent.model;
  const guarded = agent.outputGuardrails.length > 0 || (outputGuardrails?.length ?? 0) > 0;
  if (guarded && typeof known === 'object') checkGuardrailsOf(known, agent);
}

/** An output that was refused stays in the history of the provider (RUN-915). @throws UserError */
export function checkGuardrailsOf(model: Model, agent: AnyAgent): void {
  if (model.supportsServerManagedHistory?.() === false) return;
  throw new UserError(
    `Output guardrails of agent ${agent.name} or of its run exclude a history that the provider keeps (${names}): what they block could not be taken out of it. Leave out the guardrails or the option.`,
  );
}

function given({ conversationId, previousResponseId, auto }: ServerManaged): string {
  return [
    conversationId === undefined ? [] : ['conversationId'],
    previousResponseId === undefined ? [] : ['previousResponseId'],
    auto ? ['autoPreviousResponseId'] : [],
  ]
    .flat()
    .join(' and ');
}
