import type { Graph, GraphEdge, GraphNode, GraphNodeKind } from './graph.ts';

const SHAPES: Readonly<Record<GraphNodeKind, (label: string) => string>> = {
  start: (label) => `([${label}])`,
  end: (label) => `([${label}])`,
  root: (label) => `[${label}]`,
  agent: (label) => `(${label})`,
  unknown: (label) => `(${label})`,
  tool: (label) => `([${label}])`,
};
const CLASSES: Readonly<Record<GraphNodeKind, string>> = {
  start: 'edge',
  end: 'edge',
  root: 'root',
  agent: 'agent',
  unknown: 'agent',
  tool: 'tool',
};
const ARROWS: Readonly<Record<GraphEdge['kind'], string>> = { flow: '-->', call: '-.->', answer: '-.->' };

/** The graph as a flowchart of Mermaid. */
export function mermaidText({ nodes, edges }: Graph): string {
  // Ids have few letters here and some words are taken, so they are numbers of each kind.
  const ids = new Map<GraphNode, string>();
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const kind = node.kind === 'start' || node.kind === 'end' || node.kind === 'tool' ? node.kind : 'agent';
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    ids.set(node, `${kind}_${count}`);
  }
  const lines = [
    'flowchart TD',
    ...nodes.map((node) => `  ${ids.get(node)}${SHAPES[node.kind](quoted(node.label))}:::${CLASSES[node.kind]}`),
    ...edges.map(({ from, to, kind }) => `  ${ids.get(from)} ${ARROWS[kind]} ${ids.get(to)}`),
    '  classDef edge fill:lightblue,color:black',
    '  classDef root fill:lightyellow,color:black',
    '  classDef agent fill:white,color:black',
    '  classDef tool fill:lightgreen,color:black',
    '',
  ];
  return lines.join('\n');
}

/** Letters, digits, blanks and the marks inside names as they are; line breaks as such; the rest as numbers of characters. */
function quoted(label: string): string {
  const text = label.replaceAll(
    /((?<=[\p{L}\p{N}])[-_]+(?=[\p{L}\p{N}]))|(\r\n|\r|\n)|[^\p{L}\p{N} ]/gu,
    (character: string, inside: string | undefined, lineBreak: string | undefined) => {
      if (inside !== undefined) return inside;
      return lineBreak === undefined ? `#${character.codePointAt(0)};` : '<br/>';
    },
  );
  return `"${text}"`;
}
