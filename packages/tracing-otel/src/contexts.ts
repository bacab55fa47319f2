import { context, ROOT_CONTEXT, trace as api } from '@opentelemetry/api';
import type { Context, Span as OTelSpan } from '@opentelemetry/api';
import type { Node } from './node.ts';

/** Spans of all processors of this package: those of another one are not the user's own. */
const ours = new WeakSet<OTelSpan>();

/** Which context what runs in. Each knows the node whose code runs there. */
export class Contexts {
  // `createContextKey` gives two processors the same one.
  readonly #key = Symbol('@agents/tracing-otel');

  /** A node with its context: `at`, with its own span and itself in it. `around`: the node with a span that it is in. */
  node(parts: Omit<Node, 'context' | 'emitted' | 'handoff'>, around: Node | undefined, at: Context): Node {
    const node: { -readonly [K in keyof Node]: Node[K] } = {
      ...parts,
      context: at,
      emitted: around,
      handoff: undefined,
    };
    if (node.span !== undefined) {
      ours.add(node.span);
      node.emitted = node;
      node.context = api.setSpan(at, node.span).setValue(this.#key, node);
    } else if (at !== around?.context) node.context = at.setValue(this.#key, node);
    return node;
  }

  /** Runs code that belongs to a node: what user code put into the context on the way stays, but nothing of another run. */
  run<R>(node: Node, fn: () => R): R {
    const active = context.active();
    const owner = this.#ownerOf(active);
    const span = api.getSpan(node.context);
    const current = api.getSpan(active);
    if (current === span && owner?.emitted === node.emitted && owner?.segment === node.segment) return fn();
    // Another processor of ours has just put its span there: what it needs stays.
    const isShared = current !== undefined && ours.has(current) && current !== (owner && api.getSpan(owner.context));
    if (owner?.segment !== node.segment && !isShared) return context.with(node.context, fn);
    const inside = span === undefined ? active : api.setSpan(active, span);
    return context.with(inside.setValue(this.#key, node), fn);
  }

  /** Where a run was called: the active context, without spans of other processors. */
  caller(): Context {
    const active = context.active();
    const span = api.getSpan(active);
    if (span === undefined || !ours.has(span)) return active;
    const owner = this.#ownerOf(active);
    const own = owner === undefined ? undefined : api.getSpan(owner.context);
    if (own === span) return active;
    return own === undefined ? api.deleteSpan(active) : api.setSpan(active, own);
  }

  /** Where a span under `parent` is made: inside a span that user code opened in between, if there is one (TRACE-O3). */
  under(parent: Node): Context {
    const active = context.active();
    if (active === ROOT_CONTEXT) return parent.context;
    const owner = this.#ownerOf(active);
    const span = api.getSpan(active);
    if (owner === undefined || span === undefined || ours.has(span)) return parent.context;
    if (owner.segment !== parent.segment || owner.emitted !== parent.emitted) return parent.context;
    const around = api.getSpanContext(parent.context);
    return around === undefined || around.traceId === span.spanContext().traceId ? active : parent.context;
  }

  #ownerOf(at: Context): Node | undefined {
    return at.getValue(this.#key) as Node | undefined;
  }
}
