import { isObject } from '../base/json.ts';
import { nearestName } from '../base/options.ts';
import { plainCopy } from '../models/plain.ts';
import type { ModelRequest, Usage } from '../models/model.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { drawnIdOf, text } from './builders.ts';
import type { DrawnId } from './builders.ts';
import { ModelScriptError } from './script-error.ts';

/** One model call: text, output items, a whole step, an error, or a function of the call. */
export type ModelStep =
  | string
  | ResponseOutputItem
  | readonly ResponseOutputItem[]
  | StepOptions
  | Error
  | ((call: ModelCall) => MaybePromise<ModelStep>);

export interface StepOptions {
  output?: string | readonly ResponseOutputItem[] | undefined;
  /** Default: one request without tokens. */
  usage?: Partial<Usage> | undefined;
  /** Default `resp_1`, `resp_2`, …; `null`: none. */
  responseId?: string | null | undefined;
  requestId?: string | undefined;
  /** Given with `preserveRawUsage` only. */
  rawUsage?: Record<string, unknown> | undefined;
  /** Streamed text and arguments in pieces of so many characters, or word by word. Default: one piece. */
  chunk?: number | 'word' | undefined;
  /**
   * Milliseconds before the answer; ends early on abort. With it, 0 included, a stream also lets timers and other work
   * of the process run before each event, as a network would: tests of cancelling need that.
   */
  delayMs?: number | undefined;
  /** Thrown; when streamed with `failAfterEvents`, after so many events. */
  error?: unknown;
  failAfterEvents?: number | undefined;
  /** The exact stream, instead of one made from `output`. */
  events?: Iterable<ResponseStreamEvent> | AsyncIterable<ResponseStreamEvent> | undefined;
}

/** A call as it was made: input and settings are snapshots. */
export interface ModelCall {
  readonly index: number;
  readonly stream: boolean;
  readonly request: ModelRequest;
}

/** A step that was checked and detached from what the caller holds. */
export type PreparedStep = ((call: ModelCall) => MaybePromise<ModelStep>) | PreparedAnswer;
export interface PreparedAnswer extends Omit<StepOptions, 'output' | 'error'> {
  readonly output: readonly ResponseOutputItem[];
  /** Boxed: anything can be thrown. */
  readonly failure?: { readonly error: unknown } | undefined;
  /** By index in `output`: ids that the script counts. */
  readonly drawn: readonly (DrawnId | undefined)[];
}

type CountedId = DrawnId | 'fc' | 'resp';

/** Counted ids, in order of the script. */
export class ScriptIds {
  readonly #counts: Record<CountedId, number> = { msg: 0, rs: 0, call: 0, fc: 0, resp: 0 };

  next(kind: CountedId): string {
    return `${kind}_${++this.#counts[kind]}`;
  }

  /** A counter to go on with, so that a refused batch of steps uses up no id. */
  fork(): ScriptIds {
    const copy = new ScriptIds();
    Object.assign(copy.#counts, this.#counts);
    return copy;
  }
}

/** @throws ModelScriptError `invalid_model_step`; `name` is how it calls the step */
export function prepareStep(step: ModelStep, name: string, ids: ScriptIds): PreparedStep {
  if (typeof step === 'function') return step;
  if (typeof step === 'string') return prepareAnswer(step, name, ids);
  if (step instanceof Error) return { ...nothing, failure: { error: step } };
  if (typeof step !== 'object' || step === null)
    throw invalid(name, 'is not a step: give text, output items, step options, an error or a function');
  if (Array.isArray(step) || 'type' in step)
    return prepareAnswer((Array.isArray(step) ? step : [step]) as ResponseOutputItem[], name, ids);
  const options = step as StepOptions;
  checkStepOptions(options, name);
  const { output, error, ...rest } = options;
  return {
    ...rest,
    ...(rest.usage === undefined ? undefined : { usage: plainCopy(rest.usage, 'usage') }),
    ...(rest.rawUsage === undefined ? undefined : { rawUsage: structuredClone(rest.rawUsage) }),
    ...(output === undefined ? nothing : prepareAnswer(output, name, ids)),
    failure: error === undefined ? undefined : { error },
  };
}

const nothing = { output: [], drawn: [] } as const;

export function prepareAnswer(
  output: string | readonly ResponseOutputItem[],
  name: string,
  ids: ScriptIds,
): Pick<PreparedAnswer, 'output' | 'drawn'> {
  const items = typeof output === 'string' ? [text(output)] : output;
  return { output: prepareOutput(items, name, ids), drawn: items.map(drawnIdOf) };
}

/** A copy for one answer. A history from elsewhere, of another script perhaps, may have a counted id already: the next free one then. */
export function outputFor(
  { output, drawn }: Pick<PreparedAnswer, 'output' | 'drawn'>,
  input: readonly object[],
  ids: ScriptIds,
): ResponseOutputItem[] {
  const copy = structuredClone(output) as ResponseOutputItem[];
  if (!drawn.some((kind) => kind !== undefined)) return copy;
  const known = new Set<unknown>();
  for (const { id, call_id: callId } of input as readonly { id?: unknown; call_id?: unknown }[])
    known.add(id).add(callId);
  drawn.forEach((kind, index) => {
    const item = copy[index] as { id?: string; call_id?: string } | undefined;
    const key = kind === 'call' ? 'call_id' : 'id';
    if (kind === undefined || item === undefined) return;
    while (known.has(item[key])) item[key] = ids.next(kind);
  });
  return copy;
}

function prepareOutput(
  output: string | readonly ResponseOutputItem[],
  name: string,
  ids: ScriptIds,
): ResponseOutputItem[] {
  const items: readonly ResponseOutputItem[] = typeof output === 'string' ? [text(output)] : output;
  return items.map((item, index) => {
    if (typeof item !== 'object' || item === null || typeof item.type !== 'string')
      throw invalid(name, `has no output item at index ${index}: an object with a type is needed`);
    const copy = copyItem(item, `output[${index}]`, name);
    const drawn = drawnIdOf(item);
    if (drawn === 'call') (copy as { call_id: string }).call_id = ids.next('call');
    else if (drawn !== undefined) (copy as { id: string }).id = ids.next(drawn);
    return copy;
  });
}

function copyItem(item: ResponseOutputItem, path: string, name: string): ResponseOutputItem {
  try {
    return plainCopy(item, path);
  } catch (cause) {
    throw invalid(name, `cannot be copied: ${(cause as Error).message}`, cause);
  }
}

const nonNegativeInteger = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): boolean => typeof value === 'string';

/** What each member must be, in words that end "… must be". */
const members: Readonly<Record<keyof StepOptions, readonly [what: string, test: (value: unknown) => boolean]>> = {
  output: ['text or an array of output items', (value) => isText(value) || Array.isArray(value)],
  usage: ['an object', isObject],
  responseId: ['a string or null', (value) => value === null || isText(value)],
  requestId: ['a string', isText],
  rawUsage: ['an object', isObject],
  chunk: [
    "an integer of at least 1 or 'word'",
    (value) => value === 'word' || (nonNegativeInteger(value) && value !== 0),
  ],
  delayMs: ['a number of at least 0', (value) => typeof value === 'number' && value >= 0 && Number.isFinite(value)],
  error: ['anything', () => true],
  failAfterEvents: ['an integer of at least 0', nonNegativeInteger],
  events: [
    'iterable',
    (value) =>
      typeof value === 'object' && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value),
  ],
};

function checkStepOptions(step: StepOptions, name: string): void {
  for (const [key, value] of Object.entries(step)) {
    const member = (members as Readonly<Record<string, (typeof members)[keyof StepOptions]>>)[key];
    if (member === undefined) {
      const near = nearestName(key, Object.keys(members));
      throw invalid(name, `has the unknown member '${key}'${near === undefined ? '' : ` (did you mean '${near}'?)`}`);
    }
    if (value !== undefined && !member[1](value)) throw invalid(name, `has a wrong '${key}': it must be ${member[0]}`);
  }
  if (step.failAfterEvents !== undefined && step.error === undefined)
    throw invalid(name, "has 'failAfterEvents' without 'error'");
  if (step.events !== undefined && step.error !== undefined && step.failAfterEvents === undefined)
    throw invalid(name, "has 'error' together with 'events', but no 'failAfterEvents'");
  if (step.events !== undefined && step.output !== undefined) throw invalid(name, "has both 'events' and 'output'");
}

function invalid(name: string, what: string, cause?: unknown): ModelScriptError {
  return new ModelScriptError(`${name} ${what}.`, { code: 'invalid_model_step', cause });
}
