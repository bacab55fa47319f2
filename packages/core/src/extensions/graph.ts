export type GraphNodeKind = 'start' | 'end' | 'root' | 'agent' | 'unknown' | 'tool';

export interface GraphNode {
  readonly kind: GraphNodeKind;
  readonly label: string;
}

export interface GraphEdge {
  readonly from: GraphNode;
  readonly to: GraphNode;
  /** `flow`: start, end and handoffs; `call` and `answer` of a tool. */
  readonly kind: 'flow' | 'call' | 'answer';
}

/** Nodes are told apart by identity, whatever their labels. */
export interface Graph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}
