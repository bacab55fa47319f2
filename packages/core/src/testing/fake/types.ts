import type { MaybePromise } from '../../agent/tool.ts';
import type { ResponseOutputItem } from '../../items/wire.ts';
import type { Clock } from '../../tracing/types.ts';

/** The answer of one request: text, output items, an HTTP answer, or a function of the request. */
export type FakeStep =
  | string
  | ResponseOutputItem
  | readonly ResponseOutputItem[]
  | { status: number; body?: unknown; headers?: Record<string, string> }
  | ((request: RecordedRequest) => MaybePromise<FakeStep>);

/** The key is masked. */
export interface RecordedRequest {
  readonly transport: 'http';
  readonly method: string;
  /** With `/v1`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON; text that is none as it came. */
  readonly body: unknown;
}

/** What goes wrong. `afterEvents`, default 1, counts the events of a stream that still arrive. */
export type Fault = {
  /** Default: every request. `nth` is the nth request that fits, from 1. */
  on?: { method?: string; path?: string | RegExp; nth?: number } | undefined;
  /** Default 1. */
  times?: number | undefined;
} & (
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: unknown }
  /** No connection; no byte of an answer; an error page of a proxy. */
  | { kind: 'refuse' | 'hang' | 'html' }
  /** Before the answer; before each event. */
  | { kind: 'delay' | 'slow'; ms: number }
  /** Socket reset, clean end, broken JSON. */
  | { kind: 'cut' | 'truncate' | 'malformed'; afterEvents?: number }
  | { kind: 'errorEvent'; code: string; shape?: 'flat' | 'nested'; afterEvents?: number }
  | { kind: 'terminal'; status: 'failed' | 'incomplete'; details?: Record<string, unknown> }
);

/** An answer before it becomes that of `fetch` or of a server. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A chunk that is an `Error` breaks the connection there. */
  readonly body: string | AsyncIterable<string | Error>;
}

/** The API refuses a request. */
export class ApiRefusal extends Error {
  readonly status: number;
  readonly body: {
    readonly error: {
      readonly message: string;
      readonly type: string;
      readonly param: string | null;
      readonly code: string | null;
    };
  };

  constructor(
    message: string,
    details: { status?: number; param?: string | null; code?: string | null; type?: string } = {},
  ) {
    super(message);
    this.status = details.status ?? 400;
    this.body = {
      error: {
        message,
        type: details.type ?? 'invalid_request_error',
        param: details.param ?? null,
        code: details.code ?? null,
      },
    };
  }
}

export interface FakeOpenAIOptions {
  steps?: Iterable<FakeStep> | undefined;
  /** Refuse what the API refuses. Default `true`. */
  strict?: boolean | undefined;
  /** Default: any key. */
  apiKeys?: readonly string[] | undefined;
  /** Names that `/v1/models` lists, and that alone may be asked. Default: any. */
  models?: readonly string[] | undefined;
  clock?: Clock | undefined;
}
