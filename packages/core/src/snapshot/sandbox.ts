import { isObject, setOwn } from '../base/json.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { malformed } from './read-json.ts';

/** Names under which mounts carry what gives access. */
const secrets: ReadonlySet<string> = new Set([
  'access_key',
  'access_key_id',
  'account_key',
  'api_key',
  'credentials',
  'password',
  'secret',
  'secret_key',
  'secret_access_key',
  'session_token',
  'token',
]);
/** Options of drivers, which may hold anything. */
const opaque: ReadonlySet<string> = new Set(['driver_options', 'driver_opts', 'mount_options']);

/**
 * The state of a Python sandbox: nothing here runs it, but it must not get lost. It is kept without what gives access to
 * its mounts (STATE §12.8).
 *
 * @throws UserError `state_malformed`
 */
export function readSandbox(json: JsonValue | undefined): JsonObject | undefined {
  if (json === undefined) return undefined;
  if (!isObject(json)) throw malformed('sandbox', 'an object (invalid envelope)');
  let redacted = false;
  const clean = (value: JsonValue | undefined): JsonValue | undefined => {
    if (Array.isArray(value)) return value.map((member: JsonValue) => clean(member) ?? null);
    if (!isObject(value)) return value;
    const result: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      const isSecret = secrets.has(key) && member !== null;
      const isOpaque = opaque.has(key) && isObject(member) && Object.keys(member).length > 0;
      redacted ||= isSecret || isOpaque;
      setOwn(result, key, isSecret ? null : isOpaque ? {} : clean(member));
    }
    return result as JsonObject;
  };
  const cleaned = clean(json) as JsonObject;
  return redacted ? { ...cleaned, authority_redacted: true } : cleaned;
}
