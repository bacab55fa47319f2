/** A session in a file. */
export interface Store {
  /** One transaction. An operation id is applied once, however often it comes. */
  append(items: readonly object[], operationId?: string): Promise<void>;
  /** The newest items, oldest first. */
  tail(count: number): Promise<readonly object[]>;
  close(): Promise<void>;
}

export type OpenStore = (sessionId: string, path: string, synchronous: 'FULL' | 'NORMAL') => Store;
