/** Kinds of calls that the ledger knows (STATE §5.2). */
export type InvocationType =
  | 'function_call'
  | 'custom_tool_call'
  | 'shell_call'
  | 'local_shell_call'
  | 'apply_patch_call'
  | 'computer_call'
  | 'mcp_approval_request';

const outputOf: Readonly<Record<string, InvocationType>> = Object.assign(
  Object.create(null) as Record<string, InvocationType>,
  {
    function_call_output: 'function_call',
    custom_tool_call_output: 'custom_tool_call',
    shell_call_output: 'shell_call',
    local_shell_call_output: 'local_shell_call',
    apply_patch_call_output: 'apply_patch_call',
    computer_call_output: 'computer_call',
    mcp_approval_response: 'mcp_approval_request',
  },
);

const invocationTypes: ReadonlySet<string> = new Set(Object.values(outputOf));

/** Whether `type` names a kind of call that the ledger can hold. */
export function isInvocationType(type: unknown): type is InvocationType {
  return typeof type === 'string' && invocationTypes.has(type);
}

/** Which call an output item ends; `undefined` for every other item. An output's own `id` never counts. */
export function completedBy(item: unknown): { readonly type: InvocationType; readonly callId: string } | undefined {
  const wire = asWire(item);
  const type = typeof wire?.['type'] === 'string' ? outputOf[wire['type']] : undefined;
  if (wire === undefined || type === undefined) return undefined;
  const callId = text(type === 'mcp_approval_request' ? wire['approval_request_id'] : wire['call_id']);
  return callId === undefined ? undefined : { type, callId };
}

/** Kind and id of a call of the wire; `undefined` for every other item. The id may be missing. */
export function invocationOf(
  item: unknown,
): { readonly type: InvocationType; readonly callId: string | undefined } | undefined {
  const wire = asWire(item);
  if (wire === undefined) return undefined;
  const request = hostedRequest(wire);
  if (request !== undefined) return { type: 'mcp_approval_request', callId: request.callId };
  return isInvocationType(wire['type']) ? { type: wire['type'], callId: text(wire['call_id']) } : undefined;
}

// ---- requests of hosted MCP servers

export interface HostedRequest {
  readonly callId: string | undefined;
  readonly wire: Wire;
}

/** A request of a hosted server, plain or wrapped. An inner id that is there but no text has no stand-in. */
export function hostedRequest(wire: Wire): HostedRequest | undefined {
  if (wire['type'] === 'mcp_approval_request') return { callId: text(wire['id']), wire };
  if (wire['type'] !== 'hosted_tool_call') return undefined;
  const inner = asWire(wire['provider_data']);
  if (inner?.['type'] !== 'mcp_approval_request') return undefined;
  const callId = present(inner['id']) ? text(inner['id']) : (text(wire['call_id']) ?? text(wire['id']));
  return { callId, wire: { ...inner, name: inner['name'] ?? wire['name'] } };
}

// ---- members of wire objects

export type Wire = Readonly<Record<string, unknown>>;

export function asWire(value: unknown): Wire | undefined {
  return typeof value === 'object' && value !== null ? (value as Wire) : undefined;
}

/** A text that says something. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function present(value: unknown): boolean {
  return value !== undefined && value !== null;
}
