import type { RequestFaults } from './faults.ts';
import type { Answer } from './types.ts';

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

export function errorBody(status: number): object {
  const codes: Readonly<Record<number, string>> = {
    401: 'invalid_api_key',
    429: 'rate_limit_exceeded',
    500: 'server_error',
    503: 'server_is_overloaded',
  };
  return {
    error: {
      message: `The service answers with status ${status}.`,
      type: status === 429 ? 'requests' : status >= 500 ? 'server_error' : 'invalid_request_error',
      param: null,
      code: codes[status] ?? null,
    },
  };
}

/** What a fault answers in the service's place. */
export function faultAnswer({ breaking }: RequestFaults): Answer | undefined {
  if (breaking?.kind === 'status')
    return json(breaking.status, breaking.body ?? errorBody(breaking.status), breaking.headers);
  if (breaking?.kind === 'html')
    return {
      status: 502,
      headers: { 'content-type': 'text/html' },
      body: '<html><body><h1>502 Bad Gateway</h1></body></html>',
    };
  return undefined;
}

/** What the service says of each request. */
export function serviceHeaders(number: number): Record<string, string> {
  return {
    'x-request-id': `req_${String(number).padStart(4, '0')}`,
    'openai-processing-ms': '1',
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '9999',
  };
}
