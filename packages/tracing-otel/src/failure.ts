import type { Span } from '@agents/core/tracing';

/** How a span ended badly. */
export interface Failure {
  readonly errorType: string;
  /** What ended it is a decision of the user, no fault. */
  readonly isError: boolean;
  /** Holds nothing of the user. */
  readonly message: string | undefined;
  /** What the run shows of the exception: content. */
  readonly detail: string | undefined;
}

/** Messages of span errors that are the same for everybody (TRACE §6.1). */
const CATALOGUE: ReadonlySet<string> = new Set([
  'Error in agent run',
  'Max turns exceeded',
  'Guardrail tripwire triggered',
  'Error running tool',
  'Error running tool (non-fatal)',
  'Tool execution cancelled',
  'Tool execution rejected',
  'Invalid input filter result',
  'Error in handoff',
  'Handoff function expected non-null input, but got None',
  'Error getting response',
  'Error streaming response',
  'Tool not found',
  'Shell tool not found',
  'Local shell tool not found',
  'Local shell executor not found',
  'Computer tool not found',
  'Apply patch tool not found',
  'Custom tool not found',
  'MCP server label not found',
  'Programmatic tool not found',
  'Program call ID missing',
  'Program parent not found',
  'Program parent already completed',
  'Program output status invalid',
  'Program output result invalid',
  'Invalid JSON provided',
  'Invalid JSON',
  'Error in call_model_input_filter',
  'Error listing MCP tools',
  'Error running guardrail',
  'Error details are redacted.',
]);
const TRIPWIRE = 'Guardrail tripwire triggered';
/** A span error that fails nothing: the model asked for several agents, and one goes on. */
const SEVERAL_HANDOFFS = 'Multiple handoffs requested';

/** What went wrong in a span; `undefined`: nothing, or nothing that is an error (TRACE-O21 to O23). */
export function failureOf(span: Span): Failure | undefined {
  const { error } = span;
  const given = span.details.errorType;
  if (error === undefined && given === undefined && span.type !== 'function') return undefined;
  if (given === 'cancelled' || isCancelledCall(span))
    return { errorType: 'cancelled', isError: false, message: undefined, detail: undefined };
  if (isWaitingOrRejected(span) || error?.message === SEVERAL_HANDOFFS) return undefined;
  if (error === undefined)
    return given === undefined ? undefined : { errorType: given, isError: true, message: undefined, detail: undefined };
  const known = CATALOGUE.has(error.message) ? error.message : undefined;
  const errorType =
    error.message === TRIPWIRE
      ? 'guardrail_tripwire'
      : (given ?? nameIn(error.data) ?? (known === undefined ? '_OTHER' : inSnakeCase(known)));
  return { errorType, isError: true, message: known, detail: detailOf(error, known) };
}

function isCancelledCall(span: Span): boolean {
  return span.type === 'function' && span.details.outcome === 'cancelled';
}

function isWaitingOrRejected(span: Span): boolean {
  if (span.type !== 'function') return false;
  return span.details.outcome === 'rejected' || span.details.outcome === 'interrupted';
}

/** Models of other makers name the class of what failed in the data of the error. */
function nameIn(data: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const name = data?.['name'];
  return typeof name === 'string' && /^[\w.$-]{1,80}$/.test(name) ? name : undefined;
}

function inSnakeCase(message: string): string {
  return message
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '');
}

function detailOf(error: NonNullable<Span['error']>, known: string | undefined): string | undefined {
  const { data } = error;
  const text = data?.['error'] ?? data?.['message'] ?? data?.['details'];
  if (typeof text === 'string') return text;
  return known === undefined ? error.message : undefined;
}
