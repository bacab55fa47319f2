import type { ModelRequest } from '../models/model.ts';

/** A model request for tests that call a model without a run. */
export function modelRequest(request: Partial<ModelRequest> | string = {}): ModelRequest {
  const members = typeof request === 'string' ? { input: [{ role: 'user' as const, content: request }] } : request;
  return {
    input: [{ role: 'user', content: 'Hello' }],
    modelSettings: {},
    tools: [],
    handoffs: [],
    tracing: 'disabled',
    ...members,
  };
}
