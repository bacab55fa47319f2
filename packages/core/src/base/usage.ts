import { isObject } from './json.ts';
import type { JsonObject } from '../items/wire.ts';
import type { Usage } from '../models/model.ts';

type Entry = Usage['requestUsageEntries'][number];
type InputDetails = Usage['inputTokensDetails'];
type OutputDetails = Usage['outputTokensDetails'];
type Counts = Readonly<Record<string, unknown>>;

/** Details that have a meaning here, in both spellings. */
const inputNames: readonly string[] = ['cachedTokens', 'cached_tokens', 'cacheWriteTokens', 'cache_write_tokens'];
const outputNames: readonly string[] = ['reasoningTokens', 'reasoning_tokens'];

/**
 * Completes partial counts; takes the wire's forms too (Responses and Chat Completions). What is missing, `null` or no
 * number counts as 0. Default: one request without tokens.
 *
 * @example
 * toUsage({ inputTokens: 40, outputTokens: 9, totalTokens: 49 }); // requests: 1
 * toUsage({ prompt_tokens: 40, completion_tokens: 9, total_tokens: 49 });
 */
export function toUsage(counts?: Partial<Usage> | Record<string, unknown> | null): Usage {
  const from: Counts = isObject(counts) ? counts : {};
  return usageOf(from['requests'] === undefined ? 1 : count(from['requests']), entryOf(from), entriesOf(from));
}

/**
 * The sum, as a new value. Entries of `b` are appended; without entries `b` becomes one when it stands for exactly one
 * request with tokens.
 */
export function addUsage(a: Usage, b: Usage): Usage {
  return new UsageAccumulator(toUsage(a)).add(b).read();
}

// One object each for what most requests have: a run keeps the usage of every one.
const noInputDetails: InputDetails = Object.freeze({ cachedTokens: 0, cacheWriteTokens: 0 });
const noOutputDetails: OutputDetails = Object.freeze({ reasoningTokens: 0 });
const noEntries: readonly Entry[] = Object.freeze([]);
const NO_USAGE: Usage = usageOf(0, entryOf({}), noEntries);

/** Sums usage in place; `read` gives the total as a frozen value, the same one until something is added. */
export class UsageAccumulator {
  #total: Usage;
  #requests: number;
  #input: number;
  #output: number;
  #tokens: number;
  #cached: number;
  #cacheWrite: number;
  #reasoning: number;
  /** Grows in place; `read` copies it. */
  #entries: Entry[];
  #stale = false;

  /** @param from as `toUsage` or `read` gives it */
  constructor(from: Usage = NO_USAGE) {
    this.#total = from;
    this.#requests = from.requests;
    this.#input = from.inputTokens;
    this.#output = from.outputTokens;
    this.#tokens = from.totalTokens;
    this.#cached = from.inputTokensDetails.cachedTokens;
    this.#cacheWrite = from.inputTokensDetails.cacheWriteTokens;
    this.#reasoning = from.outputTokensDetails.reasoningTokens;
    this.#entries = [...from.requestUsageEntries];
  }

  add(usage: Usage): this {
    const added = isWhole(usage) ? usage : toUsage(usage);
    this.#requests += added.requests;
    this.#input += added.inputTokens;
    this.#output += added.outputTokens;
    this.#tokens += added.totalTokens;
    this.#cached += added.inputTokensDetails.cachedTokens;
    this.#cacheWrite += added.inputTokensDetails.cacheWriteTokens;
    this.#reasoning += added.outputTokensDetails.reasoningTokens;
    if (added.requestUsageEntries.length > 0) this.#entries.push(...added.requestUsageEntries);
    else if (added.requests === 1 && hasTokens(added)) this.#entries.push(ownEntry(added));
    this.#stale = true;
    return this;
  }

  read(): Usage {
    if (this.#stale) {
      this.#total = usageOf(
        this.#requests,
        Object.freeze({
          inputTokens: this.#input,
          outputTokens: this.#output,
          totalTokens: this.#tokens,
          inputTokensDetails: Object.freeze({ cachedTokens: this.#cached, cacheWriteTokens: this.#cacheWrite }),
          outputTokensDetails: Object.freeze({ reasoningTokens: this.#reasoning }),
        }),
        [...this.#entries],
      );
      this.#stale = false;
    }
    return this.#total;
  }

  copy(): UsageAccumulator {
    return new UsageAccumulator(this.read());
  }
}

/** What `toUsage` makes, and most models give: counted without making it anew. */
function isWhole(usage: Usage): boolean {
  return (
    isCount(usage.requests) &&
    isCount(usage.inputTokens) &&
    isCount(usage.outputTokens) &&
    isCount(usage.totalTokens) &&
    isCount(usage.inputTokensDetails?.cachedTokens) &&
    isCount(usage.inputTokensDetails.cacheWriteTokens) &&
    isCount(usage.outputTokensDetails?.reasoningTokens) &&
    usage.requestUsageEntries?.length === 0
  );
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}

/** One request as an entry of its own. */
function ownEntry({ inputTokens, outputTokens, totalTokens, inputTokensDetails, outputTokensDetails }: Usage): Entry {
  return Object.freeze({
    inputTokens,
    outputTokens,
    totalTokens,
    inputTokensDetails: Object.isFrozen(inputTokensDetails)
      ? inputTokensDetails
      : Object.freeze({ ...inputTokensDetails }),
    outputTokensDetails: Object.isFrozen(outputTokensDetails)
      ? outputTokensDetails
      : Object.freeze({ ...outputTokensDetails }),
  });
}

/** The form that states are written in: Python's, with details as lists of one (MODEL-403). */
export function usageToJSON(usage: Usage): JsonObject {
  return {
    requests: usage.requests,
    input_tokens: usage.inputTokens,
    input_tokens_details: [inputDetailsToJSON(usage.inputTokensDetails)],
    output_tokens: usage.outputTokens,
    output_tokens_details: [outputDetailsToJSON(usage.outputTokensDetails)],
    total_tokens: usage.totalTokens,
    request_usage_entries: usage.requestUsageEntries.map((entry) => ({
      input_tokens: entry.inputTokens,
      output_tokens: entry.outputTokens,
      total_tokens: entry.totalTokens,
      input_tokens_details: inputDetailsToJSON(entry.inputTokensDetails),
      output_tokens_details: outputDetailsToJSON(entry.outputTokensDetails),
    })),
  };
}

/** Reads what `usageToJSON` and Python write; anything else counts as no usage (no requests, no tokens). */
export function usageFromJSON(json: unknown): Usage {
  return isObject(json) ? usageOf(count(json['requests']), entryOf(json), entriesOf(json)) : NO_USAGE;
}

function usageOf(requests: number, totals: Entry, entries: readonly Entry[]): Usage {
  return Object.freeze({
    requests,
    inputTokens: totals.inputTokens,
    outputTokens: totals.outputTokens,
    totalTokens: totals.totalTokens,
    inputTokensDetails: totals.inputTokensDetails,
    outputTokensDetails: totals.outputTokensDetails,
    requestUsageEntries: Object.freeze(entries),
  });
}

function hasTokens(usage: Usage): boolean {
  return usage.inputTokens > 0 || usage.outputTokens > 0 || usage.totalTokens > 0;
}

/** The counts of one request from any of the forms: ours, Responses, Chat Completions. */
function entryOf(from: Counts): Entry {
  return Object.freeze({
    inputTokens: count(from['inputTokens'] ?? from['input_tokens'] ?? from['prompt_tokens']),
    outputTokens: count(from['outputTokens'] ?? from['output_tokens'] ?? from['completion_tokens']),
    totalTokens: count(from['totalTokens'] ?? from['total_tokens']),
    inputTokensDetails: inputDetails(
      from['inputTokensDetails'] ?? from['input_tokens_details'] ?? from['prompt_tokens_details'],
    ),
    outputTokensDetails: outputDetails(
      from['outputTokensDetails'] ?? from['output_tokens_details'] ?? from['completion_tokens_details'],
    ),
  });
}

function entriesOf(from: Counts): readonly Entry[] {
  const entries = from['requestUsageEntries'] ?? from['request_usage_entries'];
  return Array.isArray(entries) && entries.length > 0 ? entries.filter(isObject).map(entryOf) : noEntries;
}

// Members of the details that have no meaning here are kept under their own names.

function inputDetails(value: unknown): InputDetails {
  const from = details(value);
  const cachedTokens = count(from['cachedTokens'] ?? from['cached_tokens']);
  const cacheWriteTokens = count(from['cacheWriteTokens'] ?? from['cache_write_tokens']);
  const more = others(from, inputNames);
  if (more === undefined && cachedTokens === 0 && cacheWriteTokens === 0) return noInputDetails;
  return Object.freeze({ ...more, cachedTokens, cacheWriteTokens });
}

function outputDetails(value: unknown): OutputDetails {
  const from = details(value);
  const reasoningTokens = count(from['reasoningTokens'] ?? from['reasoning_tokens']);
  const more = others(from, outputNames);
  if (more === undefined && reasoningTokens === 0) return noOutputDetails;
  return Object.freeze({ ...more, reasoningTokens });
}

/** Mostly there are none; a snapshot reads the details of every request of a run. */
function others(from: Counts, names: readonly string[]): Counts | undefined {
  for (const key in from) {
    if (!names.includes(key))
      return Object.fromEntries(Object.entries(from).filter(([other]) => !names.includes(other)));
  }
  return undefined;
}

function inputDetailsToJSON({ cachedTokens, cacheWriteTokens, ...others }: InputDetails): JsonObject {
  return { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens, ...others };
}

function outputDetailsToJSON({ reasoningTokens, ...others }: OutputDetails): JsonObject {
  return { reasoning_tokens: reasoningTokens, ...others };
}

/** States hold the details as a list of one object. */
function details(value: unknown): Counts {
  const only: unknown = Array.isArray(value) ? value[0] : value;
  return isObject(only) ? only : {};
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
