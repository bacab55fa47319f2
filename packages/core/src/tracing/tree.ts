import type { Span, Trace } from './types.ts';

export interface TreeNode {
  readonly item: Trace | Span;
  readonly children: TreeNode[];
}

/**
 * Traces with their spans below them, siblings by start time and otherwise as they are given. A trace that is known by
 * its spans only stands there too; a span whose parent is missing hangs on the trace. Two traces may use one span id.
 */
export function treesOf(traces: readonly Trace[], spans: readonly Span[]): TreeNode[] {
  const roots = new Map<string, TreeNode>();
  const nodes = new Map<Span, TreeNode>();
  const byId = new Map<string, TreeNode>();
  for (const item of [...traces, ...spans.map((span) => span.trace)]) {
    if (!roots.has(item.traceId)) roots.set(item.traceId, { item, children: [] });
  }
  for (const span of spans) {
    const node: TreeNode = { item: span, children: [] };
    nodes.set(span, node);
    byId.set(key(span.traceId, span.spanId), node);
  }
  for (const [span, node] of nodes) {
    const parent = span.parentId === undefined ? undefined : byId.get(key(span.traceId, span.parentId));
    (parent ?? roots.get(span.traceId))?.children.push(node);
  }
  for (const node of [...roots.values(), ...nodes.values()]) node.children.sort(byStart);
  return [...roots.values()].sort(byStart);
}

/** What tells spans of one type apart: the name of an agent or a tool, the number of a turn. */
export function nameOf(item: Trace | Span): string {
  switch (item.type) {
    case 'trace':
      return item.name;
    case 'agent':
    case 'task':
    case 'function':
    case 'guardrail':
    case 'custom':
      return item.spanData.name;
    case 'turn':
      return String(item.spanData.turn);
    case 'generation':
    case 'transcription':
    case 'speech':
      return item.spanData.model ?? '';
    case 'response':
      return item.details.requestModel ?? '';
    case 'handoff':
      return `${item.spanData.fromAgent ?? ''} → ${item.spanData.toAgent ?? ''}`;
    case 'mcp_tools':
      return item.spanData.server ?? '';
    case 'speech_group':
      return '';
    default:
      return ownName(item);
  }
}

/** A span type of the user's own. */
function ownName(item: never): string {
  const { name } = (item as Span<'custom'>).spanData;
  return typeof name === 'string' ? name : '';
}

/** `JSON` keeps ids with any characters apart. */
function key(traceId: string, spanId: string): string {
  return JSON.stringify([traceId, spanId]);
}

function byStart(a: TreeNode, b: TreeNode): number {
  return (a.item.startTimeMs ?? 0) - (b.item.startTimeMs ?? 0);
}
