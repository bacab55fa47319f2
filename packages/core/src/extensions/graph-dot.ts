import type { Graph, GraphEdge, GraphNode, GraphNodeKind } from './graph.ts';

const STYLES: Readonly<Record<GraphNodeKind, string>> = {
  start: 'shape=ellipse, style=filled, fillcolor=lightblue',
  end: 'shape=ellipse, style=filled, fillcolor=lightblue',
  root: 'shape=box, style=filled, fillcolor=lightyellow',
  agent: 'shape=box, style="filled,rounded", fillcolor=white',
  unknown: 'shape=box, style="filled,rounded", fillcolor=white',
  tool: 'shape=ellipse, style=filled, fillcolor=lightgreen',
};
const EDGES: Readonly<Record<GraphEdge['kind'], string>> = {
  flow: '',
  call: ' [style=dotted]',
  answer: ' [style=dotted]',
};

/** The graph in the language of Graphviz. */
export function dotText({ nodes, edges }: Graph): string {
  const ids = idsOf(nodes);
  const id = (node: GraphNode): string => quoted(ids.get(node) ?? '');
  const lines = [
    'digraph G {',
    '  graph [splines=true];',
    '  node [fontname="Arial"];',
    '  edge [penwidth=1.5];',
    ...nodes.map((node) => `  ${id(node)} [label=${label(plain(node))}, ${STYLES[node.kind]}];`),
    ...edges.map(({ from, to, kind }) => `  ${id(from)} -> ${id(to)}${EDGES[kind]};`),
    '}',
    '',
  ];
  return lines.join('\n');
}

/** The label itself, where no other node has it. */
function idsOf(nodes: readonly GraphNode[]): ReadonlyMap<GraphNode, string> {
  const ids = new Map<GraphNode, string>();
  const taken = new Set<string>();
  const counts = new Map<string, number>();
  for (const node of nodes) {
    let id = plain(node);
    const kind = node.kind === 'tool' ? 'tool' : 'agent';
    while (taken.has(id)) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      id = `__agents_graph_${kind}_${count}__`;
    }
    taken.add(id);
    ids.set(node, id);
  }
  return ids;
}

/** Its label, without the characters that Graphviz or the drawings that it makes cannot have. */
function plain({ label: text }: GraphNode): string {
  // oxlint-disable-next-line no-control-regex -- these are meant
  return text.replaceAll(/[\0-\b\v\f\u000e-\u001f]/g, '\ufffd');
}

/** `&` begins an entity in a label, and only there. */
function label(text: string): string {
  return quoted(text.replaceAll(/&(?=#?\w+;)/g, '&amp;'));
}

function quoted(text: string): string {
  const escaped = text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\r', String.raw`\r`)
    .replaceAll('\n', String.raw`\n`);
  return `"${escaped}"`;
}
