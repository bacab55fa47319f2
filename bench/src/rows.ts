import type { PeerName } from './peers/peer.ts';
import { peerNames } from './peers/peer.ts';

/** What one process measures; it gives a figure for each of its rows. */
export interface Measurement {
  readonly name: 'tool-call' | 'text-deltas' | 'state-input' | 'state-items' | 'import' | 'footprint';
  readonly peers: readonly PeerName[];
  /** The same figures each time: one process per peer is enough. */
  readonly exact?: true;
  readonly rows: readonly Row[];
}

export interface Row {
  readonly title: string;
  readonly unit: string;
  readonly goal?: Goal;
}

/** What the figure of `@agents/core` is to reach: a limit, or a ratio to a peer's figure. */
export type Goal =
  | { readonly atMost: number; readonly of?: PeerName }
  | { readonly atLeast: number; readonly of?: PeerName };

const packages: readonly PeerName[] = peerNames.filter((name) => name !== 'bare');

export const measurements: readonly Measurement[] = [
  {
    name: 'tool-call',
    peers: peerNames,
    rows: [{ title: 'one tool call', unit: 'µs/run', goal: { atMost: 0.2, of: 'ai' } }],
  },
  {
    name: 'text-deltas',
    peers: peerNames,
    rows: [{ title: '5,000 text deltas', unit: 'k events/s', goal: { atLeast: 3, of: '@openai/agents' } }],
  },
  {
    name: 'state-input',
    peers: ['@agents/core'],
    rows: [
      { title: 'paused run, 10,000 items of input: save', unit: 'ms' },
      { title: '… of JSON.stringify', unit: '×', goal: { atMost: 1.5 } },
      { title: '… restore', unit: 'ms' },
      { title: '… of JSON.parse', unit: '×', goal: { atMost: 1.5 } },
      { title: '… save of 100,000, of 10,000', unit: '×', goal: { atMost: 13 } },
      { title: '… restore of 100,000, of 10,000', unit: '×', goal: { atMost: 13 } },
    ],
  },
  {
    name: 'state-items',
    peers: ['@agents/core'],
    rows: [
      { title: 'paused run, 10,000 items of 3,333 turns: save', unit: 'ms' },
      { title: '… of JSON.stringify', unit: '×', goal: { atMost: 1.6 } },
      { title: '… the first time', unit: '×', goal: { atMost: 2.5 } },
      { title: '… restore', unit: 'ms' },
      { title: '… of JSON.parse', unit: '×', goal: { atMost: 1.6 } },
    ],
  },
  {
    name: 'import',
    peers: packages,
    rows: [{ title: 'cold import', unit: 'ms', goal: { atMost: 0.2, of: 'ai' } }],
  },
  {
    name: 'footprint',
    peers: packages,
    exact: true,
    rows: [
      { title: 'import: modules', unit: '', goal: { atMost: 20 } },
      { title: 'import: size', unit: 'KiB', goal: { atMost: 450 } },
      { title: 'import: other packages', unit: '', goal: { atMost: 0 } },
    ],
  },
];
