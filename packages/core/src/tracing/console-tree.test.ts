import { expect, test } from 'vitest';
import { renderTree } from './console-tree.ts';
import { createSpan, createTrace } from './create.ts';

test('colours leave no empty parts between the facts of a line', () => {
  const trace = createTrace('t');
  const span = createSpan({ type: 'custom', name: 's' }, { parent: trace });
  const tree = { item: trace, children: [{ item: span, children: [] }] };
  const plain = renderTree(tree, { continued: false, data: true, colours: false });
  const coloured = renderTree(tree, { continued: false, data: true, colours: true });
  // oxlint-disable-next-line no-control-regex
  expect(coloured.replaceAll(/\u001b\[\d+m/g, '')).toBe(plain);
  expect(coloured).not.toBe(plain);
});
