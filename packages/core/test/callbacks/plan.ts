import { numbers, pick } from '../random/script.ts';
import type { Random } from '../random/script.ts';
import { kindsOf, siteNames } from './sites.ts';
import type { Kind, SiteName } from './sites.ts';

/** What one seed means: a script of models, which callbacks there are, and which of them misbehave when. */
export interface Plan {
  readonly seed: number;
  readonly turns: readonly Turn[];
  /** Callbacks that there are. */
  readonly sites: ReadonlySet<SiteName>;
  readonly faults: readonly Fault[];
  /** Failing tools fail the run; the same of agent tools. */
  readonly toolsThrow: boolean;
  readonly agentToolsThrow: boolean;
  /** The last turn's tool gives the final output. */
  readonly endsByTool: boolean;
  readonly nests: boolean;
  readonly session: boolean;
  readonly stored: boolean;
  readonly readsStream: boolean;
  readonly preApproval: boolean;
  readonly concurrency: number | null;
  /** Of the first segment. */
  readonly maxTurns: number | null;
  /** What becomes of a call in doubt. */
  readonly doubt: 'done' | 'rerun' | 'retry';
  readonly traced: boolean;
}

export interface Turn {
  readonly says: boolean;
  readonly calls: readonly Call[];
}

/** Ids of calls are `c<turn>_<index>`; of those in the run of an agent tool `k<that id>x<turn>_<index>`. */
export interface Call {
  readonly id: string;
  readonly kind: 'free' | 'gated' | 'asked' | 'inner' | 'handoff';
  /** Which of the agents, of a handoff. */
  readonly target: number;
  readonly approve: boolean;
  readonly slow: number;
  /** Of the run of an agent tool. */
  readonly turns: readonly Turn[];
}

export interface Fault {
  readonly site: SiteName;
  readonly kind: Kind;
  /** At which of the calls of the place; from 0. */
  readonly nth: number;
  /** Which of several ways. */
  readonly variant: number;
}

export function planOf(seed: number): Plan {
  const random = numbers(seed);
  const chance = (of: number): boolean => random(of) === 0;
  const faults = faultsOf(random);
  const installed = new Set<SiteName>(faults.map(({ site }) => site));
  for (const site of siteNames) if (chance(4)) installed.add(site);
  const has = (...names: SiteName[]): boolean => faults.some(({ site }) => names.includes(site));
  if (has('outputGuardrailBlockedMessage')) for (const site of withBlocked) installed.add(site);
  const turns = turnsOf('c', random, 2 + random(2), faults);
  return {
    seed,
    turns,
    sites: installed,
    faults,
    toolsThrow: has('tool.failureErrorFunction', 'nested.tool.failureErrorFunction', 'toolErrorFormatter')
      ? false
      : chance(2),
    agentToolsThrow: has('agentTool.failureErrorFunction') ? false : chance(2),
    endsByTool: has('outputGuardrailBlockedMessage') || chance(6),
    nests: has('handoffHistoryMapper') || chance(4),
    session: has('sessionInputCallback') || !chance(4),
    stored: chance(2),
    readsStream: !chance(4),
    preApproval: chance(4),
    concurrency: chance(5) ? 1 + random(2) : null,
    maxTurns: has('errorHandlers.maxTurns') ? 1 : chance(12) ? 1 + random(2) : null,
    doubt: pick(random, 'done', 'rerun', 'retry'),
    traced: chance(5),
  };
}

const withBlocked = ['toolUseBehavior', 'guardrail.output'] as const;

function faultsOf(random: Random): Fault[] {
  const count = pick(random, 1, 1, 1, 2, 3);
  const faults = Array.from({ length: count }, () => faultOf(random, siteNames[random(siteNames.length)] as SiteName));
  const [first] = faults;
  // These are asked only when something else went wrong.
  if (first?.site === 'run.onError') faults.push(faultAt('agent.onLlmStart', 'throw', 1));
  if (first?.site === 'nested.run.onError') faults.push(faultAt('nested.agent.onLlmEnd', 'throw', 0));
  if (first?.site === 'outputGuardrailBlockedMessage') faults.push(faultAt('guardrail.output', 'trip', 0));
  if (first?.site === 'tool.failureErrorFunction' || first?.site === 'toolErrorFormatter')
    faults.push(faultAt('tool.execute', 'throw', first.nth));
  if (first?.site === 'nested.tool.failureErrorFunction') faults.push(faultAt('nested.tool.execute', 'throw', 0));
  if (first?.site === 'agentTool.failureErrorFunction') faults.push(faultAt('agentTool.model', 'throw', first.nth));
  return faults;
}

const faultAt = (site: SiteName, kind: Kind, nth: number): Fault => ({ site, kind, nth, variant: 0 });

function faultOf(random: Random, site: SiteName): Fault {
  const kinds = kindsOf(site);
  const kind = kinds[random(kinds.length)] as Kind;
  const nth = pick(random, 0, 0, 0, 1, 2);
  // A run meets its limit once.
  return { site, kind, nth: site === 'errorHandlers.maxTurns' ? 0 : nth, variant: random(64) };
}

function turnsOf(prefix: string, random: Random, length: number, faults: readonly Fault[]): Turn[] {
  const isInner = prefix !== 'c';
  const about = (...words: string[]): boolean => faults.some(({ site }) => words.some((word) => site.includes(word)));
  const wantsInner = !isInner && about('nested', 'agentTool', 'custom', 'inputBuilder', 'onStream');
  return Array.from({ length }, (_, turn) => {
    const calls: Call[] = [];
    const add = (kind: Call['kind']): void => {
      const id = `${prefix}${turn}_${calls.length}`;
      const turns = kind === 'inner' ? turnsOf(`k${id}x`, random, 1 + random(2), faults) : [];
      calls.push({ id, kind, target: random(isInner ? 2 : 3), approve: random(4) > 0, slow: random(4), turns });
    };
    for (let left = random(isInner ? 2 : 3); left > 0; left -= 1) add(pick(random, 'free', 'free', 'gated', 'asked'));
    if (about('needsApproval', 'onApproval') && turn === 0) add(pick(random, 'asked', 'gated'));
    if (!isInner && random(wantsInner ? 1 : 4) === 0) add('inner');
    if (!isInner && wantsInner && random(3) === 0) add('inner');
    if (random(about('andoff') ? 2 : 5) === 0) add('handoff');
    if (!isInner && random(12) === 0) add('handoff');
    if (calls.length === 0) add('free');
    return { says: random(3) === 0, calls };
  });
}

/** All calls of a script, those inside first. */
export function callsOf(turns: readonly Turn[]): Call[] {
  return turns.flatMap(({ calls }) => calls.flatMap((call) => [...callsOf(call.turns), call]));
}
