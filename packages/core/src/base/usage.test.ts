import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UsageAccumulator, addUsage, toUsage, usageFromJSON, usageToJSON } from './usage.ts';
import type { Usage } from '../models/model.ts';

const zero = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  inputTokensDetails: { cachedTokens: 0, cacheWriteTokens: 0 },
  outputTokensDetails: { reasoningTokens: 0 },
};
const one = toUsage({
  inputTokens: 40,
  outputTokens: 9,
  totalTokens: 49,
  inputTokensDetails: { cachedTokens: 8, cacheWriteTokens: 1 },
});

describe('toUsage', () => {
  test('without counts: one request without tokens [MODEL-401]', () => {
    const empty = { ...zero, requests: 1, requestUsageEntries: [] };
    expect(toUsage()).toEqual(empty);
    expect(toUsage(null)).toEqual(empty);
    expect(toUsage({})).toEqual(empty);
  });

  test('missing, null and NaN counts are 0, in details too [MODEL-401]', () => {
    const usage = toUsage({
      input_tokens: null,
      output_tokens: Number.NaN,
      total_tokens: 7,
      input_tokens_details: { cached_tokens: null },
      output_tokens_details: null,
    });
    expect(usage).toEqual({ ...zero, requests: 1, totalTokens: 7, requestUsageEntries: [] });
  });

  test('takes the shapes of Responses and of Chat Completions [MODEL-401]', () => {
    const expected = {
      requests: 1,
      inputTokens: 40,
      outputTokens: 9,
      totalTokens: 49,
      inputTokensDetails: { cachedTokens: 8, cacheWriteTokens: 3 },
      outputTokensDetails: { reasoningTokens: 2 },
      requestUsageEntries: [],
    };
    expect(
      toUsage({
        input_tokens: 40,
        output_tokens: 9,
        total_tokens: 49,
        input_tokens_details: { cached_tokens: 8, cache_write_tokens: 3 },
        output_tokens_details: { reasoning_tokens: 2 },
      }),
    ).toEqual(expected);
    expect(
      toUsage({
        prompt_tokens: 40,
        completion_tokens: 9,
        total_tokens: 49,
        prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 3 },
        completion_tokens_details: { reasoning_tokens: 2 },
      }),
    ).toEqual(expected);
  });
});

describe('adding', () => {
  test('sums every counter into a new value and changes neither [RUN-1001] [MODEL-402]', () => {
    const before = structuredClone(one);
    const sum = addUsage(one, one);
    expect(sum).toMatchObject({ requests: 2, inputTokens: 80, outputTokens: 18, totalTokens: 98 });
    expect(sum.inputTokensDetails).toEqual({ cachedTokens: 16, cacheWriteTokens: 2 });
    expect(one).toEqual(before);
    expect(Object.isFrozen(sum)).toBe(true);
  });

  test('one request with tokens becomes an entry; entries of the added are kept instead [RUN-1001] [MODEL-402]', () => {
    const { requests: _, requestUsageEntries: __, ...entry } = one;
    expect(addUsage(toUsage({ requests: 0 }), one).requestUsageEntries).toEqual([entry]);
    const twice = addUsage(addUsage(toUsage({ requests: 0 }), one), one);
    expect(addUsage(one, twice).requestUsageEntries).toEqual([entry, entry]);
    expect(addUsage(twice, one).requestUsageEntries).toEqual([entry, entry, entry]);
  });

  test('a request without tokens and several requests without entries add none [RUN-1001] [MODEL-402]', () => {
    expect(addUsage(one, toUsage()).requestUsageEntries).toEqual([]);
    expect(addUsage(one, toUsage()).requests).toBe(2);
    expect(addUsage(one, toUsage({ requests: 2, inputTokens: 5 })).requestUsageEntries).toEqual([]);
  });

  test('holes in what an adapter reports count as 0 [RUN-1001]', () => {
    const broken = { requests: 1, inputTokens: null, inputTokensDetails: null } as unknown as Usage;
    expect(addUsage(one, broken)).toMatchObject({ requests: 2, inputTokens: 40, totalTokens: 49 });
  });

  test('an accumulator gives the same frozen value until something is added; copies are apart', () => {
    const usage = new UsageAccumulator();
    expect(usage.read()).toEqual({ ...zero, requests: 0, requestUsageEntries: [] });
    usage.add(one);
    const read = usage.read();
    expect(usage.read()).toBe(read);
    const copy = usage.copy();
    usage.add(one);
    expect(read).toMatchObject({ requests: 1, requestUsageEntries: [{ inputTokens: 40 }] });
    expect(copy.read()).toEqual(read);
    expect(usage.read()).toMatchObject({ requests: 2 });
    expect(Object.isFrozen(read.requestUsageEntries) && Object.isFrozen(read.inputTokensDetails)).toBe(true);
  });
});

const json = {
  requests: 2,
  input_tokens: 40,
  input_tokens_details: [{ cached_tokens: 8, cache_write_tokens: 0 }],
  output_tokens: 9,
  output_tokens_details: [{ reasoning_tokens: 2 }],
  total_tokens: 49,
  request_usage_entries: [
    {
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 0,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    },
    {
      input_tokens: 40,
      output_tokens: 9,
      total_tokens: 49,
      input_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 2 },
    },
  ],
};

describe('JSON form', () => {
  test("is Python's, details as lists of one in the totals and as objects in entries [RUN-1006] [MODEL-403]", () => {
    expect(JSON.stringify(usageToJSON(usageFromJSON(json)))).toBe(JSON.stringify(json));
  });

  test('reads either form of details; missing and invalid ones are zeros [RUN-1006] [MODEL-403]', () => {
    const usage = usageFromJSON({
      requests: 1,
      input_tokens: 5,
      input_tokens_details: { cached_tokens: 3 },
      output_tokens_details: 'none',
      request_usage_entries: [{ input_tokens: 5, input_tokens_details: [{ cached_tokens: 3 }] }, null],
    });
    expect(usage).toEqual({
      ...zero,
      requests: 1,
      inputTokens: 5,
      inputTokensDetails: { cachedTokens: 3, cacheWriteTokens: 0 },
      requestUsageEntries: [{ ...zero, inputTokens: 5, inputTokensDetails: { cachedTokens: 3, cacheWriteTokens: 0 } }],
    });
    expect(usageFromJSON(undefined)).toEqual({ ...zero, requests: 0, requestUsageEntries: [] });
  });

  test('unknown members of details are kept, and are no part of a sum [RUN-1006] [MODEL-403]', () => {
    const details = { cached_tokens: 1, cache_write_tokens: 0, cache_write_tokens_details: null };
    const read = usageFromJSON({
      ...json,
      input_tokens_details: [details],
      request_usage_entries: [{ ...json.request_usage_entries[1], input_tokens_details: details }],
    });
    const written = usageToJSON(read) as typeof json;
    expect(written.input_tokens_details).toEqual([details]);
    expect(written.request_usage_entries[0]?.input_tokens_details).toEqual(details);
    const sum = usageToJSON(addUsage(read, one)) as typeof json;
    expect(sum.input_tokens_details).toEqual([{ cached_tokens: 9, cache_write_tokens: 1 }]);
    expect(sum.request_usage_entries[0]?.input_tokens_details).toEqual(details);
  });

  test('every usage survives it', () => {
    const tokens = fc.nat(1_000_000);
    const entry = fc.record({
      inputTokens: tokens,
      outputTokens: tokens,
      totalTokens: tokens,
      inputTokensDetails: fc.record({ cachedTokens: tokens, cacheWriteTokens: tokens }),
      outputTokensDetails: fc.record({ reasoningTokens: tokens }),
    });
    fc.assert(
      fc.property(entry, fc.nat(9), fc.array(entry, { maxLength: 3 }), (totals, requests, requestUsageEntries) => {
        const usage: Usage = { ...totals, requests, requestUsageEntries };
        expect(usageFromJSON(JSON.parse(JSON.stringify(usageToJSON(usage))))).toEqual(usage);
      }),
    );
  });
});
