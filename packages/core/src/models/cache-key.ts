import { answersLater } from '../base/at-once.ts';
import { sha256Hex } from '../base/digest.ts';
import { randomHex } from '../base/ids.ts';
import type { Model, ModelSettings } from './model.ts';

/** What a run may be known by, from the most to the least lasting. */
export interface CacheKeySource {
  readonly conversationId?: string | undefined;
  readonly session?: { readonly sessionId?: string | undefined } | undefined;
  readonly groupId?: string | undefined;
}

/** The key under which the provider keeps the prefix of a run's prompts. Drawn once per run and kept in its state; equal to that of the Python edition. */
export function makePromptCacheKey({ conversationId, session, groupId }: CacheKeySource): string {
  const group = groupId?.trim();
  if (conversationId) return keyOf('conversation', conversationId);
  const sessionId = sessionIdOf(session);
  if (sessionId) return keyOf('session', sessionId);
  if (group) return keyOf('group', group);
  return `agents-sdk:run:${randomHex(16)}`;
}

/** Whether the run adds its key: the model takes one, and the user gave none. */
export function needsPromptCacheKey(model: Model, settings: ModelSettings): boolean {
  const supports = model.supportsDefaultPromptCacheKey?.();
  // A promise says nothing yet, and its failure is nobody's.
  if (answersLater(supports) || supports !== true) return false;
  return (
    settings.extraArgs?.['prompt_cache_key'] === undefined && settings.extraBody?.['prompt_cache_key'] === undefined
  );
}

/** Settings of one call with the run's key; the user's settings stay as they are. */
export function withPromptCacheKey(settings: ModelSettings, key: string): ModelSettings {
  return { ...settings, extraArgs: { ...settings.extraArgs, prompt_cache_key: key } };
}

function keyOf(kind: string, id: string): string {
  return `agents-sdk:${kind}:${sha256Hex(id).slice(0, 32)}`;
}

/** Sessions that make their id on first need may throw when asked before. */
function sessionIdOf(session: CacheKeySource['session']): string | undefined {
  try {
    return session?.sessionId;
  } catch {
    return undefined;
  }
}
