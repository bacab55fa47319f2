import { Agent } from '../agent/agent.ts';
import type { AnyAgent } from '../agent/agent.ts';
import { handoffInternals, isHandoff } from '../agent/handoff-internals.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import type { Graph, GraphEdge, GraphNode, GraphNodeKind } from './graph.ts';
import { dotText } from './graph-dot.ts';
import { mermaidText } from './graph-mermaid.ts';

/**
 * The agents that a run can reach from this one by handoffs, with their tools, as the text of a drawing: `mermaid` is
 * shown by GitHub and many editors, `dot` by Graphviz. Writing it into a file is yours. Agents, tools and handoffs are
 * drawn whether they are enabled or not; nothing of yours is called.
 *
 * @throws UserError when `agent` is not an agent, and for another `format`
 * @example writeFileSync('agents.md', '```mermaid\n' + agentGraph(triage, { format: 'mermaid' }) + '```\n')
 */
export function agentGraph(agent: AnyAgent, options: { format: 'mermaid' | 'dot' }): string {
  if (!((agent as unknown) instanceof Agent))
    throw new UserError(`agentGraph: the first argument must be an Agent, not ${kindOf(agent)}.`);
  checkOptions(options, { format: kinds.oneOf('mermaid', 'dot') }, 'agentGraph');
  const format = (options as { format?: unknown } | undefined)?.format;
  if (format === undefined) throw new UserError("agentGraph: the option `format` is missing: 'mermaid' or 'dot'.");
  const graph = graphOf(agent);
  return format === 'dot' ? dotText(graph) : mermaidText(graph);
}

/** Breadth first, so that a drawing begins with what is near the root; each object has one node (TOOL-V3). */
function graphOf(root: AnyAgent): Graph {
  const start: GraphNode = { kind: 'start', label: '__start__' };
  const end: GraphNode = { kind: 'end', label: '__end__' };
  const nodes: GraphNode[] = [start, end];
  const edges: GraphEdge[] = [];
  const known = new Map<object, GraphNode>();
  const waiting: AnyAgent[] = [root];
  const nodeOf = (object: object, kind: GraphNodeKind, label: string): GraphNode => {
    const existing = known.get(object);
    if (existing !== undefined) return existing;
    const node: GraphNode = { kind, label };
    known.set(object, node);
    nodes.push(node);
    if (kind === 'agent') waiting.push(object as AnyAgent);
    return node;
  };
  edges.push({ from: start, to: nodeOf(root, 'root', root.name), kind: 'flow' });
  for (let agent = waiting.shift(); agent !== undefined; agent = waiting.shift()) {
    const from = nodeOf(agent, 'agent', agent.name);
    for (const tool of new Set(agent.tools)) {
      const to = nodeOf(tool, 'tool', tool.name);
      edges.push({ from, to, kind: 'call' }, { from: to, to: from, kind: 'answer' });
    }
    const targets = new Set(agent.handoffs.map((target) => targetNode(target, nodeOf)));
    for (const to of targets) edges.push({ from, to, kind: 'flow' });
    if (targets.size === 0) edges.push({ from, to: end, kind: 'flow' });
  }
  return { nodes, edges };
}

function targetNode(
  target: AnyAgent['handoffs'][number],
  nodeOf: (object: object, kind: GraphNodeKind, label: string) => GraphNode,
): GraphNode {
  if (!isHandoff(target)) return nodeOf(target, 'agent', target.name);
  const { agent } = handoffInternals(target);
  // Which agent it picks is known when it is taken; it may lead anywhere.
  return agent === undefined ? nodeOf(target, 'unknown', target.agentName) : nodeOf(agent, 'agent', agent.name);
}
