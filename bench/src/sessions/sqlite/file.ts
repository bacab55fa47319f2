import type { Store } from '../store.ts';

/** A session in a file. */
export interface FileStore extends Store {
  /** An operation id is applied once, however often it comes. */
  append(items: readonly object[], operationId?: string): Promise<void>;
}

export type OpenStore = (sessionId: string, path: string, synchronous: 'FULL' | 'NORMAL') => FileStore;
