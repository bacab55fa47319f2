import { peerNames } from './peers/peer.ts';
import type { PeerName } from './peers/peer.ts';
import type { BackendName } from './sessions/backends.ts';
import { sessionMeasurements } from './sessions/rows.ts';
import type { Protocol } from './sessions/wire.ts';

/** Who has a column in a table. LangGraph's savers are measured beside sessions alone. */
export type Contestant = PeerName | 'LangGraph';
export const contestants: readonly Contestant[] = ['bare', 'ai', '@openai/agents', 'LangGraph', '@agents/core'];

export type MeasurementName =
  | 'tool-call'
  | 'tool-call-traced'
  | 'turns-50'
  | 'turns-500'
  | 'text-deltas'
  | 'runs-at-once'
  | 'calls-100'
  | 'calls-1000'
  | 'handoffs'
  | 'otel'
  | 'trace-batches'
  | 'trace-outage'
  | 'state-input'
  | 'state-items'
  | 'state-nested'
  | 'sqlite-normal'
  | 'sqlite-full'
  | 'sqlite-long'
  | BackendName
  | 'langgraph-postgres'
  | 'langgraph-sqlite'
  | 'import'
  | 'footprint';

/** What one process measures; it gives a figure for each of its rows. */
export interface Measurement {
  readonly name: MeasurementName;
  readonly peers: readonly Contestant[];
  /** One process measures them beside each other, and gives for each row the figures of its peers. */
  readonly together?: true;
  /** One process per peer is enough: it gives the same figures each time, or those of several rounds. */
  readonly once?: true;
  /** What is started for it. */
  readonly server?: Protocol;
  /** It takes seconds before anything can be measured. */
  readonly slow?: boolean;
  readonly rows: readonly Row[];
}

export interface Row {
  readonly title: string;
  readonly unit: string;
  /** Default: those of the measurement. */
  readonly peers?: readonly Contestant[];
  readonly goals?: readonly Goal[];
}

/** What the figure of `@agents/core` is to reach: a limit, or a ratio to another figure. */
export type Goal =
  | { readonly atMost: number; readonly of?: Reference }
  | { readonly atLeast: number; readonly of?: Reference };

/** Another figure: that of a peer, that of another row, or both. */
export interface Reference {
  /** Default `@agents/core`. */
  readonly peer?: Contestant;
  /** Its title. Default: the row with the goal. */
  readonly row?: string;
}

const packages: readonly PeerName[] = peerNames.filter((name) => name !== 'bare');
const own: readonly PeerName[] = ['@agents/core'];
const stores: readonly PeerName[] = ['bare', '@agents/core'];

const runs: readonly Measurement[] = [
  {
    name: 'tool-call',
    peers: peerNames,
    rows: [{ title: 'one tool call', unit: 'µs/run', goals: [{ atMost: 0.2, of: { peer: 'ai' } }] }],
  },
  {
    name: 'tool-call-traced',
    peers: peerNames,
    rows: [
      { title: '… traced, all dropped', unit: 'µs/run', goals: [{ atMost: 0.15, of: { peer: 'ai' } }] },
      { title: '… of its own untraced', unit: '×', goals: [{ atMost: 2 }] },
    ],
  },
  {
    name: 'turns-50',
    peers: peerNames,
    rows: [{ title: '50 turns', unit: 'µs/turn', goals: [{ atMost: 0.2, of: { peer: 'ai' } }] }],
  },
  {
    name: 'turns-500',
    peers: peerNames,
    rows: [{ title: '500 turns', unit: 'µs/turn', goals: [{ atMost: 1.25, of: { row: '50 turns' } }] }],
  },
  {
    name: 'text-deltas',
    peers: peerNames,
    rows: [{ title: '5,000 text deltas', unit: 'k events/s', goals: [{ atLeast: 3, of: { peer: '@openai/agents' } }] }],
  },
  {
    name: 'runs-at-once',
    peers: peerNames,
    rows: [
      { title: '1,000 runs at once', unit: 'ms', goals: [{ atMost: 0.3, of: { peer: 'ai' } }] },
      { title: '… peak of the process', unit: 'MiB', goals: [{ atMost: 0.65, of: { peer: 'ai' } }] },
    ],
  },
  {
    name: 'calls-100',
    peers: peerNames,
    rows: [{ title: '100 tool calls in a turn', unit: 'ms/run', goals: [{ atMost: 0.3, of: { peer: 'ai' } }] }],
  },
  {
    name: 'calls-1000',
    peers: own,
    rows: [
      {
        title: '1,000 tool calls in a turn',
        unit: 'ms/run',
        goals: [{ atMost: 12, of: { row: '100 tool calls in a turn' } }],
      },
    ],
  },
  {
    name: 'handoffs',
    peers: own,
    rows: [
      { title: 'one handoff, in a chain of 10 agents', unit: 'µs' },
      { title: '… in a chain of 50, of 10', unit: '×', goals: [{ atMost: 1.25 }] },
    ],
  },
];

const batches = 'traces of one tool call, posted in batches';
const tracing: readonly Measurement[] = [
  {
    name: 'otel',
    peers: stores,
    together: true,
    rows: [
      {
        title: 'one tool call as OpenTelemetry spans, exported',
        unit: 'µs/run',
        goals: [{ atMost: 1.5, of: { peer: 'bare' } }],
      },
      { title: '… spans that arrived', unit: '%', peers: own, goals: [{ atLeast: 100 }] },
    ],
  },
  {
    name: 'trace-batches',
    peers: stores,
    together: true,
    rows: [
      { title: batches, unit: 'µs/run', goals: [{ atMost: 1.5, of: { peer: 'bare' } }] },
      {
        title: '… fit for OpenAI',
        unit: 'µs/run',
        peers: own,
        goals: [{ atMost: 1.5, of: { peer: 'bare', row: batches } }],
      },
      { title: '… records that arrived', unit: '%', peers: own, goals: [{ atLeast: 100 }] },
    ],
  },
  {
    name: 'trace-outage',
    peers: own,
    rows: [
      { title: 'runs of 100,000 spans without a receiver, of those with one', unit: '×', goals: [{ atMost: 1.1 }] },
    ],
  },
];

const states: readonly Measurement[] = [
  {
    name: 'state-input',
    peers: own,
    rows: [
      { title: 'paused run, 10,000 items of input: save', unit: 'ms' },
      { title: '… of JSON.stringify', unit: '×', goals: [{ atMost: 1.5 }] },
      { title: '… restore', unit: 'ms' },
      { title: '… of JSON.parse', unit: '×', goals: [{ atMost: 1.5 }] },
      { title: '… save of 100,000, of 10,000', unit: '×', goals: [{ atMost: 13 }] },
      { title: '… restore of 100,000, of 10,000', unit: '×', goals: [{ atMost: 13 }] },
    ],
  },
  {
    name: 'state-items',
    peers: own,
    rows: [
      { title: 'paused run, 10,000 items of 3,333 turns: save', unit: 'ms' },
      { title: '… of JSON.stringify', unit: '×', goals: [{ atMost: 1.6 }] },
      { title: '… the first time', unit: '×', goals: [{ atMost: 2.5 }] },
      { title: '… restore', unit: 'ms' },
      { title: '… of JSON.parse', unit: '×', goals: [{ atMost: 1.6 }] },
    ],
  },
  {
    name: 'state-nested',
    peers: own,
    rows: [
      { title: 'pause 10 agent tools deep', unit: 'ms' },
      { title: '… of 5 deep', unit: '×', goals: [{ atMost: 2.2 }] },
      { title: '… bytes of its state', unit: '×', goals: [{ atMost: 2.2 }] },
      { title: '… save', unit: '×', goals: [{ atMost: 2.2 }] },
      { title: '… restore 10 deep, 5 deep', unit: '×', goals: [{ atMost: 2.2 }] },
      { title: '… resume 10 deep, 5 deep', unit: '×', goals: [{ atMost: 2.2 }] },
    ],
  },
];

const append = 'SQLite session of 2,000 items: append of 2';
const appendFull = '… append of 2, synchronous=FULL';
const files: readonly Measurement[] = [
  {
    name: 'sqlite-normal',
    peers: stores,
    together: true,
    rows: [
      { title: append, unit: 'µs', goals: [{ atMost: 1.7, of: { peer: 'bare' } }] },
      {
        title: '… append of 2 with an operation id',
        unit: 'µs',
        peers: own,
        goals: [{ atMost: 2.5, of: { peer: 'bare', row: append } }],
      },
      { title: '… last 20', unit: 'µs', goals: [{ atMost: 2, of: { peer: 'bare' } }] },
    ],
  },
  {
    name: 'sqlite-full',
    peers: stores,
    together: true,
    rows: [
      { title: appendFull, unit: 'µs', goals: [{ atMost: 1.3, of: { peer: 'bare' } }] },
      {
        title: '… append of 2 with an operation id, FULL',
        unit: 'µs',
        peers: own,
        goals: [{ atMost: 1.3, of: { peer: 'bare', row: appendFull } }],
      },
    ],
  },
  {
    name: 'sqlite-long',
    peers: own,
    rows: [
      { title: '… append to 20,000, to 2,000', unit: '×', goals: [{ atMost: 1.25 }] },
      { title: '… last 20 of 20,000, of 2,000', unit: '×', goals: [{ atMost: 1.25 }] },
    ],
  },
];

const imports: readonly Measurement[] = [
  {
    name: 'import',
    peers: packages,
    rows: [{ title: 'cold import', unit: 'ms', goals: [{ atMost: 0.2, of: { peer: 'ai' } }] }],
  },
  {
    name: 'footprint',
    peers: packages,
    once: true,
    rows: [
      { title: 'import: modules', unit: '', goals: [{ atMost: 20 }] },
      { title: 'import: size', unit: 'KiB', goals: [{ atMost: 450 }] },
      { title: 'import: other packages', unit: '', goals: [{ atMost: 0 }] },
    ],
  },
];

/** Each group has a table of its own. */
export const groups: readonly (readonly Measurement[])[] = [
  [...runs, ...tracing, ...states, ...files],
  sessionMeasurements,
  imports,
];
export const measurements: readonly Measurement[] = groups.flat();
