import { isObject } from '../base/json.ts';
import type { JsonValue } from '../items/wire.ts';
import type { TraceRecord } from '../state/record.ts';
import { own } from './json.ts';
import type { Json } from './json.ts';
import { malformed } from './read-json.ts';

/** @throws UserError `state_malformed` */
export function readTrace(json: JsonValue | undefined): TraceRecord | undefined {
  if (json === undefined || json === null) return undefined;
  if (!isObject(json)) throw malformed('trace', 'an object or null');
  const id = own(json, 'id') ?? own(json, 'trace_id');
  if (typeof id !== 'string' || id === '') throw malformed('trace.id', 'a string');
  const extra: Json = { ...json };
  for (const key of ['object', 'id', 'trace_id', 'workflow_name', 'tracing_api_key', 'tracing_api_key_hash'])
    delete extra[key];
  const take = (key: string): string | undefined => {
    const value = own(json, key);
    return typeof value === 'string' ? value : undefined;
  };
  const groupId = take('group_id');
  if (groupId !== undefined) delete extra['group_id'];
  const metadata = own(json, 'metadata');
  if (isObject(metadata)) delete extra['metadata'];
  return {
    traceId: id,
    workflowName: take('workflow_name') ?? 'Agent workflow',
    ...(groupId !== undefined && { groupId }),
    ...(isObject(metadata) && { metadata }),
    ...given('apiKey', take('tracing_api_key')),
    ...given('apiKeyHash', take('tracing_api_key_hash')),
    extra,
  };
}

function given<K extends string>(key: K, value: string | undefined): { readonly [key in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]?: string });
}
