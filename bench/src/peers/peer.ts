import type { Script } from '../task.ts';

/** What every peer can do. Each gets the same task from `task.ts`, and its own model that answers it without a network. */
export interface Peer {
  /** Makes a run that follows the script; it gives the final text. A traced one reports to somebody who drops everything. */
  scripted(script: Script): () => Promise<string>;
  /** Makes a streamed run whose answer comes in these pieces; it gives how many of them its reader got. */
  streamed(pieces: readonly string[]): () => Promise<number>;
}

export const peerNames = ['bare', 'ai', '@openai/agents', '@agents/core'] as const;
export type PeerName = (typeof peerNames)[number];

/** Loaded on demand: a measuring process has one peer in it. */
export const loadPeer: Readonly<Record<PeerName, () => Promise<{ readonly peer: Peer }>>> = {
  bare: () => import('./bare.ts'),
  ai: () => import('./ai.ts'),
  '@openai/agents': () => import('./openai-agents.ts'),
  '@agents/core': () => import('./agents.ts'),
};
