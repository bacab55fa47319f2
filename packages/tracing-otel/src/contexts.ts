import { context, createContextKey, ROOT_CONTEXT, trace as api } from '@opentelemetry/api';
import type { Context, Span as OTelSpan } from '@opentelemetry/api';
import type { Node } from './node.ts';
import { withSpan } from './span-context.ts';

/** What a context knows of the processors of this package: the span that one of them put there last, and whose code runs. */
interface Mark {
  readonly span: OTelSpan | undefined;
  readonly by: Contexts;
  readonly node: Node;
  /** Of the other processors. */
  readonly next: Mark | undefined;
}

const KEY = createContextKey('@agents/tracing-otel');

/** Which context what runs in. */
export class Contexts {
  /** Puts a new node into its context, which is the one that it was made in until then, and its span if it has one. */
  enter(node: Node): void {
    const { span, context: at, emitted: around } = node;
    if (span !== undefined) {
      node.emitted = node;
      node.context = this.#marked(at, span, node);
    } else if (at !== around?.context) node.context = this.#marked(at, api.getSpan(at), node);
  }

  /** Runs code that belongs to a node: what user code put into the context on the way stays, but nothing of another run. */
  run<R>(node: Node, fn: () => R): R {
    const active = context.active();
    const owner = this.#ownerOf(active);
    const span = api.getSpan(node.context);
    const current = api.getSpan(active);
    if (current === span && owner?.emitted === node.emitted && owner?.segment === node.segment) return fn();
    // Another processor of ours has just put its span there: what it needs stays.
    const isShared = isOurs(active) && current !== (owner && api.getSpan(owner.context));
    if (owner?.segment !== node.segment && !isShared) return context.with(node.context, fn);
    return context.with(this.#marked(active, span ?? current, node), fn);
  }

  /** Where a run was called: the active context, without spans of other processors. */
  caller(): Context {
    const active = context.active();
    if (!isOurs(active)) return active;
    const owner = this.#ownerOf(active);
    const own = owner === undefined ? undefined : api.getSpan(owner.context);
    if (own === api.getSpan(active)) return active;
    return own === undefined ? api.deleteSpan(active) : api.setSpan(active, own);
  }

  /** Where a span under `parent` is made: inside a span that user code opened in between, if there is one (TRACE-O3). */
  under(parent: Node): Context {
    const active = context.active();
    if (active === ROOT_CONTEXT) return parent.context;
    const owner = this.#ownerOf(active);
    const span = api.getSpan(active);
    if (owner === undefined || span === undefined || isOurs(active)) return parent.context;
    if (owner.segment !== parent.segment || owner.emitted !== parent.emitted) return parent.context;
    const around = api.getSpanContext(parent.context);
    return around === undefined || around.traceId === span.spanContext().traceId ? active : parent.context;
  }

  #ownerOf(at: Context): Node | undefined {
    let mark = markOf(at);
    while (mark !== undefined && mark.by !== this) mark = mark.next;
    return mark?.node;
  }

  #marked(at: Context, span: OTelSpan | undefined, node: Node): Context {
    const mark: Mark = { span, by: this, node, next: without(markOf(at), this) };
    return withSpan(at, span, KEY, mark);
  }
}

function markOf(at: Context): Mark | undefined {
  return at.getValue(KEY) as Mark | undefined;
}

function without(mark: Mark | undefined, by: Contexts): Mark | undefined {
  if (mark === undefined) return undefined;
  return mark.by === by ? mark.next : { ...mark, next: without(mark.next, by) };
}

/** Whether the active span is of a processor of this package: it is not one that user code opened. */
function isOurs(at: Context): boolean {
  const mark = markOf(at);
  return mark?.span !== undefined && mark.span === api.getSpan(at);
}
