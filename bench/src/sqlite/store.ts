import type { PeerName } from '../peers/peer.ts';

/** A session in a file. */
export interface Store {
  /** One transaction. An operation id is applied once, however often it comes. */
  append(items: readonly object[], operationId?: string): Promise<void>;
  /** The newest items, oldest first. */
  tail(count: number): Promise<readonly object[]>;
  close(): Promise<void>;
}

export type OpenStore = (sessionId: string, path: string, synchronous: 'FULL' | 'NORMAL') => Store;

/** Loaded on demand: a measuring process has one peer in it. */
export const loadStore: Readonly<Partial<Record<PeerName, () => Promise<{ readonly openStore: OpenStore }>>>> = {
  bare: () => import('./floor.ts'),
  '@agents/core': () => import('./session.ts'),
};
