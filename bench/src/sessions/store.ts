/** A session as a program uses it, ours or written by hand. */
export interface Store {
  /** All of them in one atomic change, which is stored when this ends. */
  append(items: readonly object[]): Promise<void>;
  /** The newest items, oldest first. */
  tail(count: number): Promise<readonly object[]>;
  close(): Promise<void>;
}

/**
 * The two that are measured beside each other: what a careful engineer writes with the bare driver for this one purpose,
 * and ours. Both on the same server or on files of the same kind, with the same durability, encoded by `encodeItem`.
 */
export interface Backend {
  floor(sessionId: string): Promise<Store>;
  session(sessionId: string): Promise<Store>;
  close(): Promise<void>;
}

/** @param place the address of the server; for embedded databases an empty folder */
export type OpenBackend = (place: string) => Promise<Backend>;
