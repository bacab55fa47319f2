import {
  AgentsError,
  InputGuardrailTripwireTriggered,
  MaxTurnsExceededError,
  ModelBehaviorError,
  OutputGuardrailTripwireTriggered,
  RunAbortedError,
  ToolCallError,
  ToolInputGuardrailTripwireTriggered,
  ToolOutputGuardrailTripwireTriggered,
  UserError,
} from '../../src/index.ts';
import type { RunResult } from '../../src/index.ts';
import type { Fault } from './plan.ts';
import { siteOf } from './sites.ts';
import type { Fate } from './sites.ts';
import { nestedFault } from './misbehave.ts';
import type { Fired, World } from './world.ts';

/** How a segment ended, in a word; what ended otherwise than its faults allow is noted as broken. */
export function explain(
  { result, error }: { readonly result?: RunResult | undefined; readonly error?: unknown },
  fired: readonly Fired[],
  world: World,
  round: number,
): string {
  if (result) {
    for (const one of fired)
      if (!mayGoOn(one, world) && fired.length === 1)
        world.broken.push(`${named(one.fault)} was not heard: ${result.status}`);
    return result.status;
  }
  const { code, name } = error as { code?: string; name?: string };
  const word = error instanceof AgentsError ? `${name} ${code}` : 'thrown';
  // Whatever failed beside a handoff that was on its way: nobody can answer for that (TOOL-HO16).
  if (code === 'call_executed_uncommitted' && round > 0 && String(error).includes('A handoff is taken as a whole'))
    return code;
  if (error instanceof MaxTurnsExceededError && round === 0 && world.plan.maxTurns !== null) return word;
  // What a model was told is not there, or not any more.
  if (error instanceof ModelBehaviorError && world.fired.some(({ fault }) => fault.site.endsWith('isEnabled')))
    return word;
  if (fired.some((one) => fatesOf(one, world).some((fate) => fits(fate, one, error)))) return word;
  world.broken.push(
    `an error that nobody planned (${fired.map(({ fault }) => named(fault)).join()}): ${error instanceof Error ? `${error.stack}${error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : ''}` : String(error)}`,
  );
  return word;
}

const named = ({ site, kind, variant }: Fault): string => `${site} ${kind} ${variant}`;
const isStop = ({ kind }: Fault): boolean => kind === 'hang' || kind === 'cancel' || kind === 'late';

type AnyFate = Fate | 'aborted';

function fatesOf({ fault }: Fired, world: World): AnyFate[] {
  const site = siteOf[fault.site];
  if (isStop(fault)) return site.unheard ? ['goes on', 'aborted'] : ['aborted'];
  const own = ownFates(fault);
  const nested = nestedFault(fault);
  if (nested === 'no' || own.every((fate) => fate === 'goes on')) return own;
  // What fails in the run of an agent tool is the tool's failure.
  if (world.plan.agentToolsThrow) return [...own, 'tool'];
  return [...(nested === 'perhaps' || own.includes('goes on') ? own : []), 'goes on'];
}

function ownFates({ kind, site: name }: Fault): Fate[] {
  const site = siteOf[name];
  switch (kind) {
    case 'throw':
    case 'reject':
      return site.sync && kind === 'reject' ? [...(site.wrong ?? [])] : [...site.fails];
    case 'wrong':
      return [...(site.wrong ?? (['goes on'] as const))];
    case 'trip':
      return site.trip ? [site.trip] : [];
    default:
      return ['goes on'];
  }
}

function mayGoOn(one: Fired, world: World): boolean {
  const fates = fatesOf(one, world);
  const { site } = one.fault;
  const { toolsThrow, agentToolsThrow } = world.plan;
  if (fates.includes('goes on')) return true;
  if (site === 'tool.execute') return !toolsThrow;
  if (site === 'nested.tool.execute') return !toolsThrow || !agentToolsThrow;
  return nestedFault(one.fault) === 'yes' && !agentToolsThrow;
}

function fits(fate: AnyFate, { thrown }: Fired, error: unknown): boolean {
  switch (fate) {
    case 'aborted':
      return error instanceof RunAbortedError;
    case 'thrown':
      return isThrown(error, thrown);
    case 'policy':
    case 'tool':
      return (
        (error instanceof ToolCallError && (isThrown(error.cause, thrown) || thrown === undefined)) ||
        (error instanceof AgentsError && isThrown(error, thrown)) ||
        (thrown === undefined && error instanceof AgentsError)
      );
    case 'caused':
      return error instanceof UserError && isThrown(error.cause, thrown);
    case 'user_error':
      return error instanceof UserError && !(error instanceof ToolCallError);
    case 'model_behavior':
      return error instanceof ModelBehaviorError;
    case 'input_trip':
      return error instanceof InputGuardrailTripwireTriggered;
    case 'output_trip':
      return error instanceof OutputGuardrailTripwireTriggered;
    case 'tool_input_trip':
      return error instanceof ToolInputGuardrailTripwireTriggered;
    case 'tool_output_trip':
      return error instanceof ToolOutputGuardrailTripwireTriggered;
    case 'goes on':
      return false;
    default:
      return fate satisfies never;
  }
}

/** What is no object cannot carry what the run knows: an error of the SDK has it as its cause. */
function isThrown(error: unknown, thrown: unknown): boolean {
  if (error === thrown) return true;
  const { cause } = error as { cause?: unknown };
  return error instanceof AgentsError && cause === thrown && !Object.isExtensible(thrown);
}
