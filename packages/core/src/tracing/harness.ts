import { env } from '../base/env.ts';
import { runtime } from './runtime.ts';

/** Under which a model provider tells the harness id that it was given. Shared by copies of core. */
export const harnessId: unique symbol = Symbol.for('agents.harnessId');

const KEY = 'agent_harness_id';

/** The default of the process; `undefined`: the environment's. */
export function setHarnessId(id: string | undefined): void {
  runtime().harnessId = id;
}

/**
 * Metadata of a run's trace with the id of the harness: the provider's, the process's or that of `OPENAI_AGENT_HARNESS_ID`;
 * one that the user gave stays (TRACE-R2).
 */
export function withHarnessId(
  metadata: Readonly<Record<string, unknown>> | undefined,
  provider: object | undefined,
): Record<string, unknown> | undefined {
  if (metadata !== undefined && Object.hasOwn(metadata, KEY)) return metadata;
  const id = harnessIdOf(provider);
  return id === undefined ? metadata : { ...metadata, [KEY]: id };
}

function harnessIdOf(provider: object | undefined): string | undefined {
  const own: unknown = provider === undefined ? undefined : Reflect.get(provider, harnessId);
  for (const id of [own, runtime().harnessId]) if (typeof id === 'string' && id.trim() !== '') return id.trim();
  return env('OPENAI_AGENT_HARNESS_ID')?.trim() || undefined;
}
