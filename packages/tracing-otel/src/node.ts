import type { Attributes, Context, Link, Span as OTelSpan, SpanContext } from '@opentelemetry/api';
import type { Span } from '@agents/core/tracing';
import type { Origin } from './carrier.ts';
import type { Shown } from './delta.ts';
import type { Failure } from './failure.ts';
import type { Calls } from './metrics.ts';

/** What stands for a trace or span of a run in OpenTelemetry. Held by the item alone, so that it goes with it. */
export interface Node {
  /** `undefined`: it has none of its own; what is inside it goes under the nearest one around it. */
  readonly span: OTelSpan | undefined;
  /** In which code inside runs. */
  context: Context;
  /** The nearest node that has a span, itself included. */
  emitted: Node | undefined;
  readonly segment: SegmentState;
  readonly agent: AgentState | undefined;
  /** The outermost agent around it. */
  readonly topAgent: AgentState | undefined;
  readonly turn: number | undefined;
  /** What its span was started with, before `mapAttributes`. */
  readonly started: Attributes | undefined;
  /** The handoff that the next agent directly inside this node comes from. */
  handoff: { readonly context: SpanContext; readonly to: string } | undefined;
}

/** What the spans of one trace share: of a resumed run, those of one segment. */
export interface SegmentState {
  /** For its first span. */
  links: Link[];
  /** What later segments go on with. */
  origin: Origin | undefined;
  /** A run of it has paused and nothing came after. */
  interrupted: boolean;
  /** A root that was made for a segment whose end nobody tells: it ends with the first span inside it. */
  endsWithFirst: Node | undefined;
  /** Content of the root: what the first agent got, and what the last one said. */
  input: string | undefined;
  output: string | undefined;
}

/** One uninterrupted stretch of one agent. */
export interface AgentState {
  readonly span: Span<'agent'>;
  readonly context: SpanContext | undefined;
  readonly calls: Calls;
  /** Of its last turn, which has no span of its own. */
  turnFailure: Failure | undefined;
  /** Where only new messages are shown: what was. */
  shown: Shown | undefined;
}
