/** Names a service of the table. */
export declare const serviceNames: readonly string[];

/** Finds services and starts those that are servers; their variables are set afterwards, or `…_MISSING` with the reason. Gives what stops them. */
export declare function provide(names: readonly string[]): Promise<() => Promise<void>>;

export interface ServerOptions {
  /** More arguments of the program. */
  readonly args?: readonly (string | number)[];
  /** What it acknowledged outlives it. */
  readonly durable?: boolean;
  /** A file of its settings, for servers that take one. */
  readonly config?: string;
  /** Where an earlier one left its data; kept when it stops. Default: a new one that goes with it. */
  readonly folder?: string;
  readonly port?: number;
}

export interface RunningServer {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  stop(): Promise<void>;
  /** As a crash does. */
  kill(): Promise<void>;
}

/** A server for one test file alone, whatever the variable says. */
export declare function startServer(name: string, options?: ServerOptions): Promise<RunningServer>;
