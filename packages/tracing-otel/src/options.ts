import type { Attributes, MeterProvider, TracerProvider } from '@opentelemetry/api';
import { checkOptions, kinds } from '@agents/core/session';
import type { Span, Trace } from '@agents/core/tracing';

export interface OTelTraceOptions {
  /** Default: the global one, looked up when first needed. */
  tracerProvider?: TracerProvider | undefined;
  /** Default: the global one, looked up when first needed. */
  meterProvider?: MeterProvider | undefined;
  /**
   * Prompts, answers, arguments and results as attributes; also needs the run's `traceIncludeSensitiveData`.
   * Default: `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, else false.
   */
  captureContent?: boolean | undefined;
  /**
   * Last word on the attributes of a span, at its start and at its end: vendor dialects, renaming, masking. It gets those
   * about to be set and gives those to set; `undefined` values are left out.
   */
  mapAttributes?: ((attributes: Attributes, item: Trace | Span) => Attributes) | undefined;
  /** Characters per text. Default 32 768. */
  maxContentLength?: number | undefined;
  /** `delta`: only what is new since the last model call of the agent. Default `full`. */
  inputMessages?: 'full' | 'delta' | undefined;
  /** `external`: another instrumentation makes the model spans. Default `emit`. */
  modelSpans?: 'emit' | 'external' | undefined;
  /** A root span per trace. Default `true`. */
  workflowSpan?: boolean | undefined;
  /** Spans of their own for tasks and turns. Default `false`. */
  taskAndTurnSpans?: boolean | undefined;
  /** Default `true`. */
  metrics?: boolean | undefined;
  /** Open spans that are kept; more end the oldest. Default 10 000. */
  maxOpenItems?: number | undefined;
  /** In milliseconds. A run that paused longer starts a new root with a link. Default 3 600 000. */
  resumeMaxAgeMs?: number | undefined;
}

type Defaulted =
  | 'maxContentLength'
  | 'inputMessages'
  | 'modelSpans'
  | 'workflowSpan'
  | 'taskAndTurnSpans'
  | 'metrics'
  | 'maxOpenItems'
  | 'resumeMaxAgeMs';

/** Options with their defaults; what is looked up later stays as it was given. */
export type Settings = Omit<OTelTraceOptions, Defaulted> & {
  readonly [K in Defaulted]: NonNullable<OTelTraceOptions[K]>;
};

/** @throws UserError for unknown options and wrong kinds */
export function settingsOf(options: OTelTraceOptions): Settings {
  checkOptions(
    options,
    {
      tracerProvider: kinds.object,
      meterProvider: kinds.object,
      captureContent: kinds.boolean,
      mapAttributes: kinds.function,
      maxContentLength: kinds.integer(0),
      inputMessages: kinds.oneOf('full', 'delta'),
      modelSpans: kinds.oneOf('emit', 'external'),
      workflowSpan: kinds.boolean,
      taskAndTurnSpans: kinds.boolean,
      metrics: kinds.boolean,
      maxOpenItems: kinds.integer(1),
      resumeMaxAgeMs: kinds.integer(0),
    },
    'OTelTraceProcessor',
  );
  return {
    ...options,
    maxContentLength: options.maxContentLength ?? 32_768,
    inputMessages: options.inputMessages ?? 'full',
    modelSpans: options.modelSpans ?? 'emit',
    workflowSpan: options.workflowSpan ?? true,
    taskAndTurnSpans: options.taskAndTurnSpans ?? false,
    metrics: options.metrics ?? true,
    maxOpenItems: options.maxOpenItems ?? 10_000,
    resumeMaxAgeMs: options.resumeMaxAgeMs ?? 3_600_000,
  };
}

/** Unset, blank, `NO_CONTENT` and `false` mean none; anything else means content on spans. */
export function contentDefault(): boolean {
  const value = environment('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT')?.trim().toLowerCase() ?? '';
  return value !== '' && value !== 'no_content' && value !== 'false';
}

function environment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name];
  } catch {
    return undefined;
  }
}
