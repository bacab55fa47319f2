import type { Attributes } from '@opentelemetry/api';
import { getLogger } from '@agents/core';
import type { Span, Trace } from '@agents/core/tracing';
import { Content } from './content.ts';
import { contentAttributes } from './names.ts';
import { contentDefault } from './options.ts';
import type { Settings } from './options.ts';

/** What the user decides of attributes: whether people's words are among them, and the last word on all. */
export class Mapping {
  readonly #settings: Settings;
  /** `undefined`: the environment has not been asked. */
  #content: Content | false | undefined;
  #hasFailed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** `undefined`: nothing of what people said may be shown. */
  get content(): Content | undefined {
    const { captureContent, maxContentLength } = this.#settings;
    this.#content ??= (captureContent ?? contentDefault()) && new Content(maxContentLength);
    return this.#content === false ? undefined : this.#content;
  }

  /** What is set in the end. Where the user's function fails, content is left out and the rest stays (TRACE-O46). */
  map(attributes: Attributes, item: Trace | Span): Attributes {
    const { mapAttributes } = this.#settings;
    if (mapAttributes === undefined) return attributes;
    try {
      return present(mapAttributes({ ...attributes }, item));
    } catch {
      if (!this.#hasFailed)
        getLogger('tracing').error('mapAttributes of OTelTraceProcessor failed: content is left out where it does.');
      this.#hasFailed = true;
      return present(attributes, contentAttributes);
    }
  }
}

function present(attributes: Attributes, without: readonly string[] = []): Attributes {
  const kept = Object.entries(attributes).filter(([name, value]) => value !== undefined && !without.includes(name));
  return Object.fromEntries(kept);
}
