/** Texts of span errors that hold nothing of the user; dashboards group by them (TRACE §6.1). */
export const spanMessages = {
  agentRun: 'Error in agent run',
  maxTurns: 'Max turns exceeded',
  tripwire: 'Guardrail tripwire triggered',
  tool: 'Error running tool',
  toolHandled: 'Error running tool (non-fatal)',
  toolCancelled: 'Tool execution cancelled',
  toolRejected: 'Tool execution rejected',
  multipleHandoffs: 'Multiple handoffs requested',
  handoff: 'Error in handoff',
  handoffInput: 'Handoff function expected non-null input, but got None',
  handoffFilter: 'Invalid input filter result',
  response: 'Error getting response',
  stream: 'Error streaming response',
  toolNotFound: 'Tool not found',
  invalidJson: 'Invalid JSON',
  invalidJsonProvided: 'Invalid JSON provided',
  inputFilter: 'Error in call_model_input_filter',
  guardrail: 'Error running guardrail',
  session: 'Error in session',
  redacted: 'Error details are redacted.',
  toolRedacted: 'Tool execution failed. Error details are redacted.',
  unavailable: 'Error details are unavailable.',
} as const;

const fixed: ReadonlySet<string> = new Set(Object.values(spanMessages));

export function isFixedMessage(message: string): boolean {
  return fixed.has(message);
}
