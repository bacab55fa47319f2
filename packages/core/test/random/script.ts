/** What a random run is made of; everything follows from its seed. */

/** Numbers that look random, the same for one seed: 0 to `below - 1`. */
export type Random = (below: number) => number;

export function numbers(seed: number): Random {
  let state = Math.imul(seed, 2654435761) ^ 0x5bd1e995;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

export function pick<T>(random: Random, ...of: readonly [T, ...T[]]): T {
  return of[random(of.length)] as T;
}

/** What may go wrong. `calm`: people and limits only, and whatever is done then is done as if at one go. */
export type Weather = 'calm' | 'faults' | 'cancels';

/** What becomes of a failure of a tool: a text for the model, or the run fails; the same of one that takes too long. */
export type Policy = 'text' | 'throw' | 'limit' | 'limit_throw';
export const policies = ['text', 'throw', 'limit', 'limit_throw'] as const;

/**
 * `heeds` stops when it is told to, `fails` throws on its first attempt, `hangs` ends on its first attempt only when it
 * is told to, `late` not even then: it ends when the segment that started it is over.
 */
export type Body = 'quick' | 'slow' | 'heeds' | 'fails' | 'hangs' | 'late';

export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly gated: boolean;
  readonly policy: Policy;
  readonly body: Body;
  /** Arguments that are no JSON: the body never begins. */
  readonly malformed: boolean;
  /** What a person says about it. */
  readonly want: 'approve' | 'reject';
}
export type Script = readonly (readonly Call[])[];

export const toolName = (policy: Policy, gated: boolean): string => `${gated ? 'gated' : 'free'}_${policy}`;
export const unknownTool = 'unknown';

export function scriptOf(random: Random, weather: Weather): Script {
  return Array.from({ length: 1 + random(4) }, (_, turn) =>
    Array.from({ length: 1 + random(3) }, (__, index) => callOf(`c${turn}_${index}`, random, weather)),
  );
}

function callOf(id: string, random: Random, weather: Weather): Call {
  const gated = random(2) === 0;
  const policy = weather === 'calm' ? 'text' : pick(random, ...policies);
  const unknown = random(20) === 0;
  return {
    id,
    tool: unknown ? unknownTool : toolName(policy, gated),
    gated: gated && !unknown,
    policy,
    body: bodyOf(policy, random, weather),
    // It would fail each attempt.
    malformed: policy !== 'throw' && random(20) === 0,
    want: random(3) > 0 ? 'approve' : 'reject',
  };
}

function bodyOf(policy: Policy, random: Random, weather: Weather): Body {
  if (weather === 'calm') return pick(random, 'quick', 'slow', 'fails');
  const limited = policy === 'limit' || policy === 'limit_throw';
  if (limited && random(3) === 0) return pick(random, 'hangs', 'late');
  return pick(random, 'quick', 'quick', 'slow', 'slow', 'heeds', 'fails');
}
