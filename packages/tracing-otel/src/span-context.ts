import { INVALID_SPAN_CONTEXT, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { Context, Span } from '@opentelemetry/api';

/** The API does not export the key under which it keeps the active span; it tells it to whoever is a context. */
const SPAN = spanKey();

function spanKey(): symbol {
  let found: symbol | undefined;
  const asked: Context = {
    getValue: () => undefined,
    setValue: (key) => {
      found = key;
      return ROOT_CONTEXT;
    },
    deleteValue: () => ROOT_CONTEXT,
  };
  trace.setSpan(asked, trace.wrapSpanContext(INVALID_SPAN_CONTEXT));
  if (found === undefined) throw new Error('This version of @opentelemetry/api keeps the active span in no context.');
  return found;
}

/**
 * A context with an active span and a value of ours in it. The API's own contexts copy all that they hold for each value
 * that is added, and there is one of these for each span: this one looks into the context that it was made from.
 */
class SpanContext implements Context {
  readonly base: Context;
  readonly #span: Span | undefined;
  readonly #key: symbol;
  readonly #value: unknown;

  constructor(base: Context, span: Span | undefined, key: symbol, value: unknown) {
    this.base = base;
    this.#span = span;
    this.#key = key;
    this.#value = value;
  }

  getValue(key: symbol): unknown {
    if (key === SPAN) return this.#span;
    return key === this.#key ? this.#value : this.base.getValue(key);
  }

  setValue(key: symbol, value: unknown): Context {
    if (key === SPAN) return new SpanContext(this.base, value as Span, this.#key, this.#value);
    if (key === this.#key) return new SpanContext(this.base, this.#span, key, value);
    return new SpanContext(this.base.setValue(key, value), this.#span, this.#key, this.#value);
  }

  deleteValue(key: symbol): Context {
    if (key === SPAN || key === this.#key) return this.setValue(key, undefined);
    return new SpanContext(this.base.deleteValue(key), this.#span, this.#key, this.#value);
  }
}

/** `at` with these two in it. */
export function withSpan(at: Context, span: Span | undefined, key: symbol, value: unknown): Context {
  // Of another one of these the rest is enough: however deep spans nest, a value is at most one step away.
  return new SpanContext(at instanceof SpanContext ? at.base : at, span, key, value);
}
