import { instance } from '@viz-js/viz';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { UserError } from '../base/errors.ts';
import { Agent, handoff, Handoff, tool } from '../index.ts';
import type { AnyAgent } from '../index.ts';
import { agentGraph } from './index.ts';

const viz = await instance();

const named = (name: string, options: object = {}): Agent => new Agent({ name, ...options });
const lookup = (name: string) => tool({ name, description: 'Looks up', parameters: z.object({}), execute: () => 'x' });

interface Drawn {
  /** Label and what is said of it, one a node. */
  readonly nodes: string[];
  readonly edges: string[];
}

/** What Graphviz reads in the text. */
function dot(agent: AnyAgent): Drawn & { ids: string[] } {
  const result = viz.renderJSON(agentGraph(agent, { format: 'dot' }));
  if (result === undefined) throw new Error('Graphviz does not parse it');
  const { objects, edges = [] } = result as unknown as {
    objects: { name: string; label: string; shape: string; style: string; fillcolor: string }[];
    edges?: { tail: number; head: number; style?: string }[];
  };
  const labelOf = (index: number): string => text(objects[index]?.label ?? '');
  return {
    ids: objects.map(({ name }) => name),
    nodes: objects.map(({ label, shape, style, fillcolor }) => `${text(label)}: ${shape}, ${style}, ${fillcolor}`),
    edges: edges.map(({ tail, head, style = 'solid' }) => `${labelOf(tail)} ${style} ${labelOf(head)}`),
  };
}
/** The characters that an escaped label of Graphviz shows. */
const text = (label: string): string =>
  label.replaceAll('&amp;', '&').replaceAll(/\\(.)/gs, (_, letter: string) => ({ n: '\n', r: '\r' })[letter] ?? letter);

/** What stands in the flowchart. */
function mermaid(agent: AnyAgent): Drawn {
  const [head, ...lines] = agentGraph(agent, { format: 'mermaid' }).trimEnd().split('\n');
  const problems = head === 'flowchart TD' ? [] : [head];
  const labels = new Map<string, string>();
  const nodes: string[] = [];
  const edges: string[] = [];
  for (const line of lines) {
    const [, id, shape, label, kind] =
      /^ {2}(\w+)(\W+)"((?:[\p{L}\p{N} _-]|#\d+;|<br\/>)*)"[^"]+:::(\w+)$/u.exec(line) ?? [];
    const [, from, arrow, to] = /^ {2}(\w+) (-->|-\.->) (\w+)$/.exec(line) ?? [];
    if (id !== undefined && label !== undefined) {
      const shown = label
        .replaceAll('<br/>', '\n')
        .replaceAll(/#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
      if (labels.has(id)) problems.push(line);
      labels.set(id, shown);
      nodes.push(`${shown}: ${shape} ${kind}`);
    } else if (from !== undefined && to !== undefined) {
      if (!labels.has(from) || !labels.has(to)) problems.push(line);
      edges.push(`${labels.get(from)} ${arrow === '-->' ? 'solid' : 'dotted'} ${labels.get(to)}`);
    } else if (!/^ {2}classDef \w+ fill:\w+,color:black$/.test(line)) problems.push(line);
  }
  expect(problems).toEqual([]);
  return { nodes, edges };
}

describe('the graph', () => {
  const search = lookup('search');
  const billing = named('Billing', { tools: [search, lookup('refund')] });
  const support = named('Support', { handoffs: [handoff(billing, { toolNameOverride: 'to_billing' })] });
  const triage = named('Triage', { handoffs: [billing, support], tools: [search] });
  support.handoffs.push(triage);

  it('as text for Graphviz [TOOL-V1, V2]', () => {
    expect(agentGraph(triage, { format: 'dot' })).toBe(`digraph G {
  graph [splines=true];
  node [fontname="Arial"];
  edge [penwidth=1.5];
  "__start__" [label="__start__", shape=ellipse, style=filled, fillcolor=lightblue];
  "__end__" [label="__end__", shape=ellipse, style=filled, fillcolor=lightblue];
  "Triage" [label="Triage", shape=box, style=filled, fillcolor=lightyellow];
  "search" [label="search", shape=ellipse, style=filled, fillcolor=lightgreen];
  "Billing" [label="Billing", shape=box, style="filled,rounded", fillcolor=white];
  "Support" [label="Support", shape=box, style="filled,rounded", fillcolor=white];
  "refund" [label="refund", shape=ellipse, style=filled, fillcolor=lightgreen];
  "__start__" -> "Triage";
  "Triage" -> "search" [style=dotted];
  "search" -> "Triage" [style=dotted];
  "Triage" -> "Billing";
  "Triage" -> "Support";
  "Billing" -> "search" [style=dotted];
  "search" -> "Billing" [style=dotted];
  "Billing" -> "refund" [style=dotted];
  "refund" -> "Billing" [style=dotted];
  "Billing" -> "__end__";
  "Support" -> "Billing";
  "Support" -> "Triage";
}
`);
  });

  it('as text for Mermaid [TOOL-V6]', () => {
    expect(agentGraph(triage, { format: 'mermaid' })).toBe(`flowchart TD
  start_1(["#95;#95;start#95;#95;"]):::edge
  end_1(["#95;#95;end#95;#95;"]):::edge
  agent_1["Triage"]:::root
  tool_1(["search"]):::tool
  agent_2("Billing"):::agent
  agent_3("Support"):::agent
  tool_2(["refund"]):::tool
  start_1 --> agent_1
  agent_1 -.-> tool_1
  tool_1 -.-> agent_1
  agent_1 --> agent_2
  agent_1 --> agent_3
  agent_2 -.-> tool_1
  tool_1 -.-> agent_2
  agent_2 -.-> tool_2
  tool_2 -.-> agent_2
  agent_2 --> end_1
  agent_3 --> agent_2
  agent_3 --> agent_1
  classDef edge fill:lightblue,color:black
  classDef root fill:lightyellow,color:black
  classDef agent fill:white,color:black
  classDef tool fill:lightgreen,color:black
`);
  });

  it('has the same nodes and edges in both, as their readers see them [TOOL-V1, V2, V6]', () => {
    const [graphviz, flowchart] = [dot(triage), mermaid(triage)];
    expect(flowchart.edges.toSorted()).toEqual(graphviz.edges.toSorted());
    expect(graphviz.nodes).toEqual([
      '__start__: ellipse, filled, lightblue',
      '__end__: ellipse, filled, lightblue',
      'Triage: box, filled, lightyellow',
      'search: ellipse, filled, lightgreen',
      'Billing: box, filled,rounded, white',
      'Support: box, filled,rounded, white',
      'refund: ellipse, filled, lightgreen',
    ]);
    expect(flowchart.nodes.map((node) => node.split(':')[0])).toEqual(graphviz.nodes.map((node) => node.split(':')[0]));
  });
});

describe.each([
  ['dot', dot],
  ['mermaid', mermaid],
] as const)('in %s', (format, draw) => {
  it('an agent without handoffs leads to the end, also alone; a handoff to itself is one [TOOL-V2, V3]', () => {
    expect(draw(named('A')).edges).toEqual(['__start__ solid A', 'A solid __end__']);
    const own = named('A');
    own.handoffs.push(own);
    expect(draw(own).edges).toEqual(['__start__ solid A', 'A solid A']);
  });

  it('each object has one node, however often it is listed; cycles end [TOOL-V3, AC85]', () => {
    const [a, b] = [named('A'), named('B')];
    const shared = lookup('f');
    a.handoffs.push(b, handoff(b), handoff(b, { toolNameOverride: 'again' }));
    b.handoffs.push(a);
    a.tools.push(shared, shared);
    b.tools.push(shared);
    const { nodes, edges } = draw(a);
    expect(nodes).toHaveLength(5);
    expect(edges).toEqual([
      '__start__ solid A',
      'A dotted f',
      'f dotted A',
      'A solid B',
      'B dotted f',
      'f dotted B',
      'B solid A',
    ]);
  });

  it('a handoff whose agent is not known is a node by its name, where the drawing ends [TOOL-V3]', () => {
    const senior = new Handoff({
      toolName: 'escalate',
      toolDescription: 'To a senior',
      agentName: 'Senior',
      onInvokeHandoff: () => {
        throw new Error('not to be called');
      },
    });
    const b = named('B', { handoffs: [senior] });
    const { nodes, edges } = draw(named('A', { handoffs: [senior, b] }));
    expect(nodes.filter((node) => node.startsWith('Senior'))).toHaveLength(1);
    expect(edges).toEqual(['__start__ solid A', 'A solid Senior', 'A solid B', 'B solid Senior']);
  });

  it('equal names of different things are different nodes, and no name is taken for the start [TOOL-V4, AC85]', () => {
    const twin = named('__start__', { tools: [lookup('f')] });
    const odd = named('__agents_graph_agent_1__');
    const root = named('__start__', { tools: [lookup('f'), lookup('f'), lookup('__end__')], handoffs: [twin, odd] });
    const { nodes, edges } = draw(root);
    expect(nodes.map((node) => node.split(':')[0] ?? '').toSorted()).toEqual(
      [
        '__start__',
        '__start__',
        '__start__',
        '__end__',
        '__end__',
        'f',
        'f',
        'f',
        '__agents_graph_agent_1__',
      ].toSorted(),
    );
    expect(edges).toHaveLength(1 + 8 + 2 + 2);
  });

  it.each([
    'a "quote"',
    String.raw`C:\new\"dir"\\`,
    'two\nlines\r',
    '<b>&amp;</b> & &#65; #59;',
    'x"]; evil -> node; "',
    '%% click end subgraph --> |x|',
    '`**bold**` 1. item - dash _u_',
    '- item',
    '  blanks  ',
    'Grüße 😀 日本語 \u{1F468}\u200D\u{1F469}',
    '\\N \\G \\L',
    'end',
    '{a} [b] (c) <d> $e$ @f ;g; ~h~',
    'a-b_c',
    '_x_',
  ])('the name %j is shown letter by letter [TOOL-V5, AC85]', (name) => {
    const { nodes, edges } = draw(named(name, { handoffs: [named(name)] }));
    const shown = format === 'mermaid' ? name.replaceAll(/\r\n?/g, '\n') : name;
    expect(nodes.map((node) => node.replace(/: [^:]*$/, ''))).toEqual(['__start__', '__end__', shown, shown]);
    expect(edges).toEqual([`__start__ solid ${shown}`, `${shown} solid ${shown}`, `${shown} solid __end__`]);
  });

  it('control characters and halves of characters do no harm [TOOL-V5]', () => {
    const name = `\0\u0001\u001b\u007f\ud800 x`;
    expect(draw(named(name, { handoffs: [named('\ufffd\u0001\u001b\u007f\ud800 x')] })).nodes).toHaveLength(4);
  });

  it('calls nothing of the user [TOOL-V6]', () => {
    const never = (): never => {
      throw new Error('not to be called');
    };
    const quiet = tool({ name: 'f', description: 'd', parameters: z.object({}), isEnabled: never, execute: never });
    const b = named('B', { instructions: never });
    const a = named('A', {
      instructions: never,
      tools: [quiet],
      handoffs: [handoff(b, { isEnabled: never, onHandoff: never, inputFilter: never })],
    });
    expect(draw(a).nodes).toHaveLength(5);
  });
});

it('draws a thousand agents in a row', () => {
  let last = named('last');
  for (let index = 0; index < 1000; index++) last = named(`a${index}`, { handoffs: [last] });
  expect(mermaid(last).nodes).toHaveLength(1003);
});

it.each<[unknown, unknown, string]>([
  [{ name: 'A' }, { format: 'dot' }, 'must be an Agent, not an object'],
  [named('A'), { format: 'svg' }, "must be 'mermaid' or 'dot'"],
  [named('A'), {}, 'the option `format` is missing'],
  [named('A'), undefined, 'the option `format` is missing'],
  [named('A'), { format: 'dot', file: 'x' }, "Unknown option 'file' of agentGraph"],
])('takes an agent and a format: %o with %j is refused [TOOL-V6, Z11]', (agent, options, message) => {
  expect(() => agentGraph(agent as AnyAgent, options as never)).toThrow(UserError);
  expect(() => agentGraph(agent as AnyAgent, options as never)).toThrow(message);
});
