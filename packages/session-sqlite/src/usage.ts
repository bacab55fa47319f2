import { addUsage, toUsage } from '@agents/core';
import type { Usage } from '@agents/core';

import type { UsageRow } from './branch-statements.ts';

/** As Python's class stores it: totals, and details as JSON with the names of the wire. */
export function usageRow(usage: Usage): UsageRow {
  const { requests, inputTokens, outputTokens, totalTokens, inputTokensDetails, outputTokensDetails } = toUsage(usage);
  return {
    requests,
    input: inputTokens,
    output: outputTokens,
    total: totalTokens,
    inputDetails: `{"cached_tokens": ${inputTokensDetails.cachedTokens}, "cache_write_tokens": ${inputTokensDetails.cacheWriteTokens}}`,
    outputDetails: `{"reasoning_tokens": ${outputTokensDetails.reasoningTokens}}`,
  };
}

export function sumOfUsage(rows: readonly UsageRow[]): Usage | undefined {
  let sum: Usage | undefined;
  for (const row of rows) {
    const usage = toUsage({
      requests: row.requests,
      input_tokens: row.input,
      output_tokens: row.output,
      total_tokens: row.total,
      input_tokens_details: detailsOf(row.inputDetails),
      output_tokens_details: detailsOf(row.outputDetails),
    });
    sum = sum === undefined ? usage : addUsage(sum, usage);
  }
  return sum;
}

function detailsOf(text: unknown): unknown {
  try {
    return typeof text === 'string' ? (JSON.parse(text) as unknown) : undefined;
  } catch {
    return undefined;
  }
}
