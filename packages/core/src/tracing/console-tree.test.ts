import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resetAll } from '../base/reset.ts';
import { renderTree } from './console-tree.ts';
import { createSpan, createTrace } from './create.ts';
import { addTraceProcessor } from './processors.ts';
import type { TreeNode } from './tree.ts';
import type { Span, SpanError, SpanInit, SpanType, SpanUsage, Trace } from './types.ts';

test('colours leave no empty parts between the facts of a line', () => {
  const trace = createTrace('t');
  const span = createSpan({ type: 'custom', name: 's' }, { parent: trace });
  const tree = { item: trace, children: [{ item: span, children: [] }] };
  const plain = renderTree(tree, { continued: false, data: true, colours: false, width: 100 });
  const coloured = renderTree(tree, { continued: false, data: true, colours: true, width: 100 });
  // oxlint-disable-next-line no-control-regex
  expect(coloured.replaceAll(/\u001b\[\d+m/g, '')).toBe(plain);
  expect(coloured).not.toBe(plain);
});

describe('a tree for a fresh reader, at 100 columns', () => {
  /** A span of so many milliseconds. */
  function node(init: SpanInit<SpanType>, ms: number, children: TreeNode[] = [], error?: SpanError): TreeNode {
    const span = createSpan(init, { parent: trace }) as Span;
    Object.assign(span, { startTimeMs: 0, endTimeMs: ms, ...(error && { error }) });
    return { item: span, children };
  }
  let trace: Trace;
  beforeEach(() => {
    addTraceProcessor({});
    trace = createTrace('Refund desk', { traceId: 'trace_1' });
  });
  afterEach(resetAll);
  const render = (children: TreeNode[], data = true): string[] =>
    renderTree({ item: trace, children }, { continued: false, data, colours: false, width: 100 }).split('\n');
  const usage = (inputTokens: number, outputTokens: number): SpanUsage => ({
    inputTokens,
    outputTokens,
    cachedInputTokens: 0,
    cacheWriteInputTokens: 0,
  });
  const tokens = (input_tokens: number, output_tokens: number): Record<string, unknown> => ({
    input_tokens,
    output_tokens,
  });

  test('says the token total, the slowest step and the failing call; agent tools count once [TRACE-B15, T73]', () => {
    const expert = node({ type: 'task', name: 'Refund desk', usage: usage(100, 10) }, 700, [
      node({ type: 'generation', model: 'small', usage: tokens(100, 10) }, 690),
    ]);
    const failure = { message: 'Error running tool', data: { error: 'no such table' } };
    const lines = render([
      node({ type: 'task', name: 'Refund desk', usage: usage(310, 42) }, 2000, [
        node({ type: 'generation', model: 'large', usage: tokens(310, 42) }, 500),
        node({ type: 'function', name: 'ask_expert' }, 710, [expert]),
        node({ type: 'function', name: 'lookup_order' }, 12, [], failure),
      ]),
    ]);
    // Together they would be longer than a line.
    expect(lines.slice(-2)).toEqual([
      'tokens: 462 (410 in, 52 out) · slowest step: generation small (690 ms)',
      'failed: function lookup_order',
    ]);
    expect(lines).toContain('   └─ function lookup_order · 12 ms · ✗ Error running tool: no such table');
  });

  test('counts the tokens of models where no task does; says nothing that it does not know', () => {
    const model = node({ type: 'generation', model: 'm', usage: tokens(3, 4) }, 5);
    expect(render([model]).slice(2)).toEqual(['tokens: 7 (3 in, 4 out)']);
    expect(render([node({ type: 'custom', name: 'c' }, 5)])).toHaveLength(2);
  });

  test('names where failures began, not the spans around them, and no rejected call', () => {
    const failure = { message: 'Error running tool' };
    const rejected = node({ type: 'function', name: 'refund' }, 1, [], failure);
    Object.assign((rejected.item as Span).details, { outcome: 'rejected' });
    const inner = ['a', 'b', 'c', 'd', 'e'].map((name) => node({ type: 'function', name }, 1, [], failure));
    const agent = node({ type: 'agent', name: 'A' }, 9, [...inner, rejected], { message: 'Error in agent run' });
    expect(render([agent]).at(-1)).toContain('failed: function a, function b, function c, 2 more');
  });

  test('has no line that is too long, and no error text that is cut', () => {
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ');
    const failure = { message: 'Error running tool', data: { error: `${words} ${'x'.repeat(250)}` } };
    const child = node({ type: 'custom', name: 'child' }, 1);
    const lines = render([
      node({ type: 'turn', turn: 1, agentName: 'A' }, 9, [
        node({ type: 'function', name: 'lookup' }, 9, [child], failure),
        node({ type: 'function', name: 'n'.repeat(200) }, 9, [], failure),
      ]),
    ]);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
    const shown = lines.map((line) => line.replace(/^[│├└─ ]+/, '')).join(' ');
    expect(shown).toContain(words);
    expect(shown.replaceAll(' ', '').split('x'.repeat(250))).toHaveLength(3);
    expect(lines.filter((line) => line.startsWith('   │  │  '))).toHaveLength(
      lines.findIndex((line) => line.includes('custom child')) -
        lines.findIndex((line) => line.includes('function lookup')) -
        1,
    );
  });
});
