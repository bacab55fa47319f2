import { sha256Hex } from '../base/digest.ts';
import { CanonicalText, canonicalJson } from '../base/json-encode.ts';
import { canonicalizeJsonText } from '../base/json-text.ts';
import { hasLoneSurrogate, quote } from '../base/json.ts';
import type { ToolLookupKey } from './record.ts';
import { asWire, hostedRequest, isInvocationType, present, text } from './invocation.ts';
import type { HostedRequest, InvocationType, Wire } from './invocation.ts';
import { lookupKeyOf, sameLookupKey } from './lookup-key.ts';
import type { NamedFunction } from './lookup-key.ts';

/** What tells one call from another (STATE §5.3), as snapshots hold it. */
export interface IdentityData {
  readonly type: InvocationType;
  readonly callId: string;
  /** Lowercase SHA-256 hex of what a sticky decision covers. */
  readonly approvalScope: string;
  /** Lowercase SHA-256 hex of the exact call. */
  readonly fingerprint: string;
}

/** What the raw call does not say about itself. */
export interface IdentityOptions {
  /** `handoff` for calls that pass the conversation on: an approval for a function never covers them (STATE-169). */
  readonly role?: 'handoff' | undefined;
  /** Resolved name of a native tool, which its calls do not carry. */
  readonly toolName?: string | undefined;
}

/**
 * Canonical identity of a call. Digests are made when somebody reads them: an ordinary call never needs one, since
 * a repeated id is compared by its raw text first.
 */
export class CallIdentity implements IdentityData {
  readonly type: InvocationType;
  readonly callId: string;
  // No `#private` members: an identity may meet one of another copy of the package.
  private scope: string | undefined;
  private print: string | undefined;
  private readonly source: Source | undefined;

  constructor(
    type: InvocationType,
    callId: string,
    from: Source | { readonly approvalScope: string; readonly fingerprint: string },
  ) {
    this.type = type;
    this.callId = callId;
    if ('wire' in from) {
      this.source = from;
    } else {
      this.scope = from.approvalScope;
      this.print = from.fingerprint;
    }
  }

  get approvalScope(): string {
    return (this.scope ??= digest(this.source && scopeText(this.type, this.source)));
  }

  get fingerprint(): string {
    return (this.print ??= digest(this.source && fingerprintText(this.type, this.source, this.approvalScope)));
  }

  /** Makes the scope's digest, or takes it from those that are made already. */
  shareScope(scopes: ScopeDigests): this {
    if (this.source !== undefined) this.scope ??= scopes.of(this.type, this.source);
    return this;
  }

  /** Whether both mean the same call. */
  equals(other: CallIdentity): boolean {
    if (this === other) return true;
    if (this.type !== other.type || this.callId !== other.callId) return false;
    if (this.source !== undefined && other.source !== undefined && sameText(this.source, other.source)) return true;
    return this.approvalScope === other.approvalScope && this.fingerprint === other.fingerprint;
  }
}

/** Digests of approval scopes for many calls at once: those of one tool have theirs in common. */
export class ScopeDigests {
  /** Of ordinary function tools, by name. */
  readonly #functions = new Map<string, string>();

  of(type: InvocationType, source: Source): string {
    const { isPlain, lookupKey, role } = source;
    if (!isPlain || lookupKey?.kind !== 'bare' || role !== undefined) return digest(scopeText(type, source));
    let scope = this.#functions.get(lookupKey.name);
    if (scope === undefined) this.#functions.set(lookupKey.name, (scope = digest(scopeText(type, source))));
    return scope;
  }
}

/** `callIdentity` lets no call pass that has no canonical text, and without a source both digests were given. */
function digest(canonical: string | undefined): string {
  if (canonical === undefined) throw new Error('An uncanonical call has no digest.');
  return sha256Hex(canonical);
}

interface Source {
  readonly wire: Wire;
  readonly name: string | undefined;
  readonly lookupKey: ToolLookupKey | undefined;
  readonly role: 'handoff' | undefined;
  /** A function call of which only names and argument text count, and whose text is whole. */
  readonly isPlain: boolean;
}

/** An identity that a snapshot holds. */
export function storedIdentity(data: IdentityData): CallIdentity {
  return new CallIdentity(data.type, data.callId, data);
}

/**
 * Canonical identity of a wire call, or `undefined` when it has none (*uncanonical*: no id, no name, no arguments, broken text).
 * `lookupKey` is the key of the function tool that the call resolved to; by default the one that its names mean.
 */
export function callIdentity(
  call: unknown,
  lookupKey?: ToolLookupKey,
  options: IdentityOptions = {},
): CallIdentity | undefined {
  const wire = asWire(call);
  if (wire === undefined) return undefined;
  const request = hostedRequest(wire);
  if (request !== undefined) return hostedIdentity(request, options);
  const { type } = wire;
  const callId = text(wire['call_id']);
  if (!isInvocationType(type) || callId === undefined) return undefined;
  const key = type === 'function_call' ? (lookupKey ?? lookupKeyOf(wire as unknown as NamedFunction)) : undefined;
  const name = options.toolName ?? text(wire['name']);
  const isPlain = type === 'function_call' && isPlainFunctionCall(wire, key);
  const source: Source = { wire, name, lookupKey: key, role: options.role, isPlain };
  if (!isPlain && !isComplete(type, source)) return undefined;
  const identity = new CallIdentity(type, callId, source);
  return isPlain || isWellFormed(identity, source) ? identity : undefined;
}

function isComplete(type: InvocationType, { wire, lookupKey }: Source): boolean {
  switch (type) {
    case 'function_call':
      return lookupKey !== undefined && present(wire['arguments']);
    case 'custom_tool_call':
      return text(wire['name']) !== undefined && present(wire['input']);
    case 'computer_call':
    case 'shell_call':
    case 'local_shell_call':
      return present(wire['action']);
    case 'apply_patch_call':
      return present(wire['operation']) || present(wire['operations']);
    case 'mcp_approval_request':
      return text(wire['name']) !== undefined && text(wire['server_label']) !== undefined && present(wire['arguments']);
    default:
      return type satisfies never;
  }
}

// ---- texts under the digests

// Those of plain function calls without the detour over an object: a snapshot needs one for each call of a run.

function scopeText(type: InvocationType, source: Source): string | undefined {
  const { lookupKey: key, isPlain } = source;
  if (!isPlain || key === undefined) return canonicalJson(scopePayload(type, source));
  const role = source.role === undefined ? '' : `"invocation_role":"${source.role}",`;
  const names = key.kind === 'namespaced' ? `${quote(key.namespace)},${quote(key.name)}` : quote(key.name);
  return `{${role}"tool_lookup_key":["${key.kind}",${names}],"type":"${type}"}`;
}

function fingerprintText(type: InvocationType, source: Source, scope: string): string | undefined {
  const argumentText = source.wire['arguments'];
  if (!source.isPlain || typeof argumentText !== 'string')
    return canonicalJson(fingerprintPayload(type, source, scope));
  const canonical = canonicalizeJsonText(argumentText) ?? quote(argumentText);
  return `{"approval_scope":"${scope}","arguments":${canonical},"type":"${type}"}`;
}

const scopedFields = [
  'server_label',
  'arguments',
  'input',
  'action',
  'actions',
  'pending_safety_checks',
  'operation',
  'operations',
  'environment',
  'caller',
] as const;

const otherFields = scopedFields.filter((field) => field !== 'arguments');

function scopePayload(type: InvocationType, source: Source): Wire {
  const payload: Record<string, unknown> = { type };
  if (source.role !== undefined) payload['invocation_role'] = source.role;
  if (source.lookupKey !== undefined) {
    const key = source.lookupKey;
    payload['tool_lookup_key'] = key.kind === 'namespaced' ? [key.kind, key.namespace, key.name] : [key.kind, key.name];
    return payload;
  }
  if (source.name !== undefined) payload['name'] = source.name;
  if (type === 'mcp_approval_request') payload['server_label'] = source.wire['server_label'];
  return payload;
}

function fingerprintPayload(type: InvocationType, { wire }: Source, scope: string): Wire {
  const payload: Record<string, unknown> = { approval_scope: scope, type };
  // The scope of a function covers its names.
  const fields = type === 'function_call' ? scopedFields : (['name', 'namespace', ...scopedFields] as const);
  for (const field of fields) {
    const value = wire[field];
    if (!present(value)) continue;
    payload[field] = field === 'arguments' ? argumentsValue(value) : withoutNulls(value);
  }
  return payload;
}

/** JSON text counts by its value, nulls included; any other text counts as it is. */
function argumentsValue(value: unknown): unknown {
  const canonical = typeof value === 'string' ? canonicalizeJsonText(value) : undefined;
  return canonical === undefined ? value : new CanonicalText(canonical);
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const kept: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [key, member] of Object.entries(value)) if (present(member)) kept[key] = withoutNulls(member);
  return kept;
}

// ---- comparing without digests

/** Python cannot encode a lone surrogate, in the text itself or written as an escape in the argument's JSON. */
function isPlainFunctionCall(wire: Wire, key: ToolLookupKey | undefined): boolean {
  return (
    key !== undefined &&
    typeof wire['arguments'] === 'string' &&
    !mayHaveLoneSurrogate(wire['arguments']) &&
    !hasLoneSurrogate(key.name) &&
    (key.kind !== 'namespaced' || !hasLoneSurrogate(key.namespace)) &&
    !hasOtherFields(wire)
  );
}

function hasOtherFields(wire: Wire): boolean {
  for (const field of otherFields) if (present(wire[field])) return true;
  return false;
}

function sameText(a: Source, b: Source): boolean {
  if (a.role !== b.role || !sameKey(a.lookupKey, b.lookupKey)) return false;
  if (a.wire === b.wire) return a.name === b.name;
  return a.isPlain && b.isPlain && a.wire['arguments'] === b.wire['arguments'];
}

function sameKey(a: ToolLookupKey | undefined, b: ToolLookupKey | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && sameLookupKey(a, b));
}

const escapedSurrogate = /\\u[dD][89a-fA-F]/;

function mayHaveLoneSurrogate(json: string): boolean {
  return hasLoneSurrogate(json) || escapedSurrogate.test(json);
}

/** Python cannot encode a lone surrogate, so such a call has no identity there, and none here. */
function isWellFormed(identity: CallIdentity, source: Source): boolean {
  return (
    canonicalJson(scopePayload(identity.type, source)) !== undefined &&
    canonicalJson(fingerprintPayload(identity.type, source, '')) !== undefined
  );
}

function hostedIdentity({ callId, wire }: HostedRequest, options: IdentityOptions): CallIdentity | undefined {
  if (callId === undefined) return undefined;
  const source: Source = {
    wire,
    name: text(wire['name']),
    lookupKey: undefined,
    role: options.role,
    isPlain: false,
  };
  if (!isComplete('mcp_approval_request', source)) return undefined;
  const identity = new CallIdentity('mcp_approval_request', callId, source);
  return isWellFormed(identity, source) ? identity : undefined;
}
