import type { Model, ModelAttempt } from '../models/model.ts';
import type { RunContext } from '../state/context.ts';
import type { SessionWriter } from '../sessions/persist.ts';
import type { Control } from './control.ts';
import type { RunStreamEvent } from './events.ts';
import type { ResolvedOptions } from './options.ts';
import type { InputCheck } from './input-check.ts';
import type { RunSpans } from './spans.ts';
import type { ModelInput } from './turn/model-input.ts';

/** An effect of the loop: a model call, a tool's body, a read or an append of the session. */
export type Effect =
  | { readonly kind: 'model'; readonly turn: number; readonly agentName: string }
  | { readonly kind: 'tool'; readonly toolName: string; readonly callId: string }
  | { readonly kind: 'session'; readonly operation: 'read' | 'append' };

/**
 * What one segment has beside its record: where events go, how effects are done, how it is stopped. Nothing in here
 * survives; what must is in the record.
 */
export interface RunEnv {
  readonly options: ResolvedOptions;
  readonly context: RunContext;
  readonly control: Control;
  readonly spans: RunSpans;
  /** Sink of a stream; absent for a plain run. */
  readonly emit: ((event: RunStreamEvent) => void) | undefined;
  /** The one way to an effect (law 5). */
  readonly step: <T>(effect: Effect, execute: () => Promise<T>) => Promise<T>;
  /** The one writer of the session; there once the input is prepared. */
  session: SessionWriter | undefined;
  /** Models that were used, told of the run's end with its identity. */
  readonly models: Set<Model>;
  readonly owner: object;
  readonly attempt: ModelAttempt;
  /** What the model sees, kept converted over the turns. */
  readonly modelInput: ModelInput;
  /** Input guardrails of the turn that goes on; absent where there are none, and behind the first turn. */
  inputCheck: InputCheck | undefined;
  /** The agent has become active and its start hooks have not run yet. */
  startHooksDue: boolean;
  /** Events that a reader has not taken yet are delivered before the failure. */
  deliverQueued: boolean;
  /** The setting `store` of the last request, for whoever compacts the session. */
  storeSetting: boolean | undefined;
  /** Key under which the provider keeps the prefix of the run's prompts. */
  cacheKey(): string;
  /** Warns at most once per run and key. */
  warnOnce(key: string, message: string): void;
}
