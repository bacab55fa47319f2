import type { AgentInputItem } from '../items/items.ts';
import type { StateRecord } from '../state/record.ts';
import type { Session } from '../sessions/contract.ts';
import type { RunEnv } from './env.ts';
import { supports } from '../sessions/contract.ts';
import { prepareInput } from '../sessions/prepare.ts';
import { SessionWriter } from '../sessions/persist.ts';
import { VersionChain } from '../sessions/version-chain.ts';
import { CompactionHook } from '../sessions/compaction-hook.ts';

/**
 * Joins a segment and its session: history and new input of a fresh run, what an earlier segment left owed of a resumed
 * one. A module of its own because only runs with a session load it.
 *
 * @param input of a run that has not read its history yet; `undefined`: it goes on
 */
export async function openSession(
  env: RunEnv,
  session: Session,
  record: StateRecord,
  input: string | readonly AgentInputItem[] | undefined,
): Promise<void> {
  const { options, context, step, control } = env;
  const race = <T>(work: Promise<T>): Promise<T> => control.race(work);
  const detects = options.sessionConcurrency === 'detect' && supports(session, 'versions');
  const chain = detects ? new VersionChain(session, context) : undefined;
  const compaction = supports(session, 'compaction')
    ? new CompactionHook({
        session,
        context,
        reasoningItemIdPolicy: record.reasoningItemIdPolicy,
        signal: control.signalForModel(),
        countUsage: (usage) => env.countUsage(usage),
      })
    : undefined;
  const args = { session, record, context, step, race, chain, compaction };
  if (input === undefined) {
    env.session = new SessionWriter(args);
    await env.session.settle();
    return;
  }
  const prepared = await control.race(
    prepareInput({
      ...args,
      settings: options.sessionSettings,
      callback: options.sessionInputCallback,
      input,
      reasoningItemIdPolicy: record.reasoningItemIdPolicy,
    }),
  );
  record.input = prepared.input;
  env.session = new SessionWriter({ ...args, tail: prepared.tail });
  env.session.stageInput(prepared.newItems);
  record.step = { type: 'run_again' };
  record.unprepared = false;
}
