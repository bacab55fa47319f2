import OpenAI from 'openai';
import { afterEach, expect, it } from 'vitest';
import { UserError } from '../base/errors.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { getTraceExportKey, setTraceExportKey } from '../tracing.ts';
import { setOpenAIDefaults } from './defaults.ts';

afterEach(resetDefaults);

it('a key of models is one for trace exporters, unless there is one of its own [MODEL-314, TRACE-X2]', () => {
  expect(getTraceExportKey()).toBeUndefined();
  setOpenAIDefaults({ apiKey: 'k1' });
  expect(getTraceExportKey()).toBe('k1');
  setOpenAIDefaults({ apiKey: 'k2', traceApiKey: 't2' });
  expect(getTraceExportKey()).toBe('t2');
  setOpenAIDefaults({});
  expect(getTraceExportKey()).toBe('t2');
  setOpenAIDefaults({ traceApiKey: null });
  expect(getTraceExportKey()).toBeUndefined();
  setOpenAIDefaults({ client: new OpenAI({ apiKey: 'of-client' }) });
  expect(getTraceExportKey()).toBe('of-client');
  setOpenAIDefaults({ apiKey: null });
  expect(getTraceExportKey()).toBeUndefined();
});

it('the key of trace exporters is set and taken back, and shows in no print of the global state', () => {
  setTraceExportKey('sk-marker');
  const shared: unknown = Reflect.get(globalThis, Symbol.for('agents.tracing.v1'));
  expect(JSON.stringify(shared)).not.toContain('sk-marker');
  setTraceExportKey(undefined);
  expect(getTraceExportKey()).toBeUndefined();
  for (const key of ['', ' ', 7, null]) expect(() => setTraceExportKey(key as string)).toThrow(UserError);
});
